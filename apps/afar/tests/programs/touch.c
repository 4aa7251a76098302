// Writes to every page of 64 MiB, twice, and checks them. With an argument, children that share the memory
// (`vfork`, and one that such a child has made) do all that comes after the first pass. With FILE_BYTES the program is
// a file of so many bytes more, which it reads; with FILE_DATA it could write to them, too. With STATIC the memory is
// static data, some of which begin as what the file has. With BYTES it is as many bytes in place of 64 MiB. With MOVED
// the memory moves after each pass, to addresses below 4 GiB.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef FILE_DATA
static volatile char file[FILE_BYTES] = { 1 };
#elif defined FILE_BYTES
static const char file[FILE_BYTES] = { 1 };
#endif

#ifndef BYTES
#define BYTES (64u << 20)
#endif

#ifdef STATIC
enum { INITIAL = 8 << 20 };
static volatile char zeros[BYTES], sevens[INITIAL] = { [0 ... INITIAL - 1] = 7 };

static volatile char *memory_of(size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        if (zeros[at] != 0)
            return 0;
    for (size_t at = 0; at < INITIAL; at++)
        if (sevens[at]++ != 7)
            return 0;
    return zeros;
}
#elif defined MOVED
static volatile char *memory_of(size_t bytes)
{
    return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
#else
static volatile char *memory_of(size_t bytes) { return malloc(bytes); }
#endif

static volatile char *after_pass(volatile char *memory, size_t bytes, int pass)
{
#ifdef MOVED
    char *place = (char *)((size_t)pass << 30);
    return mremap((void *)memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
#else
    (void)bytes, (void)pass;
    return memory;
#endif
}

static void write_by_lodgers(volatile char *memory, size_t bytes)
{
    volatile int status = 0;
    pid_t child = vfork();
    if (child == 0) {
        for (size_t at = 0; at < bytes / 2; at += 4096)
            memory[at] += 2;
        if (vfork() == 0) {
            for (size_t at = bytes / 2; at < bytes; at += 4096)
                memory[at] += 2;
            _exit(0);
        }
        _exit(0);
    }
    if (waitpid(child, (int *)&status, 0) != child || status != 0)
        _exit(3);
}

int main(int count, char **arguments)
{
    (void)arguments;
#ifdef FILE_BYTES
    for (size_t at = 0; at < sizeof file; at += 4096)
        (void)((const volatile char *)file)[at];
#endif
    size_t bytes = BYTES;
    volatile char *memory = memory_of(bytes);
    if (!memory)
        return 1;
    for (int pass = 1; pass <= (count > 1 ? 1 : 2); pass++) {
        for (size_t at = 0; at < bytes; at += 4096)
            memory[at] += pass;
        memory = after_pass(memory, bytes, pass);
    }
    if (count > 1) {
        write_by_lodgers(memory, bytes);
        puts("touched");
        return 0;
    }
    for (size_t at = 0; at < bytes; at += 4096)
        if (memory[at] != 3)
            return 2;
    puts("touched");
    return 0;
}
