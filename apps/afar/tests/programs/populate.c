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

// Touches the pages until each of them was away at some time: one that afar has not found never
// leaves, however many others want its place.
static void wait_until_all_have_left(const volatile char *memory)
{
    static uint64_t entries[BYTES / PAGE];
    static char has_left[BYTES / PAGE];
    size_t left = 0;
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    CHECK(map >= 0);
    for (size_t round = 0; left < BYTES / PAGE && round < 30000; round++) {
        off_t from = (off_t)((uintptr_t)memory / PAGE * sizeof *entries);
        CHECK(pread(map, entries, sizeof entries, from) == (ssize_t)sizeof entries);
        for (size_t page = 0; page < BYTES / PAGE; page++) {
            int is_away = !(entries[page] >> 63) && !has_left[page];
            has_left[page] |= (char)is_away;
            left += (size_t)is_away;
        }
        // A quarter, which fills the local memory, and then another.
        for (size_t page = 0; page < BYTES / PAGE / 4; page++)
            (void)memory[(round % 4 * (BYTES / PAGE / 4) + page) * PAGE];
        usleep(1000);
    }
    CHECK(left == BYTES / PAGE);
    close(map);
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
    if (getenv("AFAR_TEST_TRAP"))
        wait_until_all_have_left(memory);
    for (size_t at = 0; at < BYTES; at += MIB)
        CHECK(holds(memory + at, MIB, 3));
}

MAIN(CASE(by_reading), CASE(by_writing), CASE(by_mapping), CASE(by_locking), CASE(by_the_kernel))
