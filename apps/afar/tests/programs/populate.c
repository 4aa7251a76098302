// Memory that arrives without being touched: 16 MiB, populated by a call, locked, or written to by the kernel.
#include "check.h"
#include <sys/uio.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define BYTES (16 * MIB)

// Kernels before 5.14 do not know it.
static void advise(char *memory, int advice)
{
    if (madvise(memory, BYTES, advice) != 0) {
        CHECK(errno == EINVAL);
        puts("not here");
        exit(0);
    }
}

static void by_reading(void)
{
    char *memory = map(BYTES);
    stamp(memory, BYTES, 1);
    advise(memory, MADV_POPULATE_READ);
    advise(memory, MADV_POPULATE_READ);
    CHECK(holds(memory, BYTES, 1));
}

static void by_writing(void)
{
    char *memory = map(BYTES);
    advise(memory, MADV_POPULATE_WRITE);
    advise(memory, MADV_POPULATE_WRITE);
    CHECK(is_zero(memory, BYTES));
    // What the kernel refuses stays refused.
    CHECK(mprotect(memory, BYTES, PROT_READ) == 0);
    CHECK_ERRNO(madvise(memory, BYTES, MADV_POPULATE_WRITE), EINVAL);
    CHECK(munmap(memory + PAGE, PAGE) == 0);
    CHECK_ERRNO(madvise(memory, 4 * PAGE, MADV_POPULATE_READ), ENOMEM);
}

static void by_mapping(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    char *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(memory != MAP_FAILED);
}

static void by_locking(void)
{
    char *memory = map(BYTES);
    CHECK(mlock(memory, BYTES) == 0);
}

static long resident_pages(void)
{
    long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &all, &resident) == 2);
    fclose(file);
    return resident;
}

// The kernel writes to pages that were never touched; they have to leave all the same.
static void by_the_kernel(void)
{
    static char chunk[MIB];
    char *memory = map(BYTES);
    stamp(chunk, MIB, 3);
    for (size_t at = 0; at < BYTES; at += MIB) {
        struct iovec own = { chunk, MIB }, other = { memory + at, MIB };
        CHECK(process_vm_writev(getpid(), &own, 1, &other, 1, 0) == (ssize_t)MIB);
    }
    for (int i = 0; getenv("AFAR_TEST_TRAP") && resident_pages() > 12 * 256 && i < 3000; i++)
        usleep(10000);
    for (size_t at = 0; at < BYTES; at += MIB)
        CHECK(holds(memory + at, MIB, 3));
}

MAIN(CASE(by_reading), CASE(by_writing), CASE(by_mapping), CASE(by_locking), CASE(by_the_kernel))
