// Writes to shared memory, which is not managed: hoard MIB STATUS [unmap|pieces|over|shrink]. With a
// third word it is gone before the program ends: at once, in small pieces, under another mapping,
// or by making it smaller.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PIECE = 512 << 10 };

static void give_up(char *memory, size_t bytes, const char *way)
{
    if (!strcmp(way, "unmap"))
        munmap(memory, bytes);
    if (!strcmp(way, "pieces"))
        for (size_t at = 0; at < bytes; at += PIECE)
            munmap(memory + at, PIECE);
    if (!strcmp(way, "over"))
        mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (!strcmp(way, "shrink"))
        mremap(memory, bytes, 4096, 0);
}

int main(int count, char **words)
{
    size_t bytes = count > 1 ? strtoul(words[1], 0, 10) << 20 : 0;
    if (bytes > 0) {
        volatile char *memory =
            mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return 99;
        for (size_t at = 0; at < bytes; at += 4096)
            memory[at] = 1;
        if (count > 3)
            give_up((char *)memory, bytes, words[3]);
    }
    return count > 2 ? atoi(words[2]) : 0;
}
