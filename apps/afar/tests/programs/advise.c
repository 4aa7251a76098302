// madvise and mlock: what the program is promised, and what it may only hope for.
#include "check.h"

#include <sys/uio.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static void dont_need(void)
{
    char *memory = map(64 * PAGE);
    for (int remote = 0; remote < 2; remote++) {
        stamp(memory, 64 * PAGE, 1);
        if (remote)
            press();
        CHECK(madvise(memory + 8 * PAGE, 16 * PAGE, MADV_DONTNEED) == 0);
        CHECK(is_zero(memory + 8 * PAGE, 16 * PAGE));
        CHECK(holds(memory, 8 * PAGE, 1));
        CHECK(holds(memory + 24 * PAGE, 40 * PAGE, 1 + 24 * PAGE / 8));
    }
    // Whatever the protection is.
    CHECK(mprotect(memory, 32 * PAGE, PROT_NONE) == 0);
    CHECK(mprotect(memory + 32 * PAGE, 32 * PAGE, PROT_READ) == 0);
    CHECK(madvise(memory, 64 * PAGE, MADV_DONTNEED) == 0);
    CHECK(is_zero(memory + 32 * PAGE, 32 * PAGE));
    CHECK(mprotect(memory, 32 * PAGE, PROT_READ) == 0);
    CHECK(is_zero(memory, 32 * PAGE));
}

// Several ranges of one's own memory by one call. Before Linux 6.13 the kernel refuses, and nothing is lost.
static void dont_need_together(void)
{
    char *memory = map(64 * PAGE);
    int self = syscall(SYS_pidfd_open, getpid(), 0);
    CHECK(self >= 0);
    for (int remote = 0; remote < 2; remote++) {
        stamp(memory, 64 * PAGE, 5);
        if (remote)
            press();
        struct iovec ranges[] = { { memory, 8 * PAGE }, { memory + 32 * PAGE, 4 * PAGE } };
        long done = syscall(SYS_process_madvise, self, ranges, 2, MADV_DONTNEED, 0);
        CHECK(done == 12 * PAGE || (done < 0 && errno == EINVAL));
        if (done > 0) {
            CHECK(is_zero(memory, 8 * PAGE));
            CHECK(is_zero(memory + 32 * PAGE, 4 * PAGE));
        } else {
            CHECK(holds(memory, 8 * PAGE, 5));
        }
        CHECK(holds(memory + 8 * PAGE, 24 * PAGE, 5 + 8 * PAGE / 8));
        CHECK(holds(memory + 36 * PAGE, 28 * PAGE, 5 + 36 * PAGE / 8));
    }
    close(self);
}

// Old or zero until it is written to; then what was written.
static void free_lazily(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 2);
    CHECK(madvise(memory, 64 * PAGE, MADV_FREE) == 0);
    press();
    for (int page = 0; page < 64; page++) {
        uint64_t word = *(uint64_t *)(memory + page * PAGE);
        CHECK(word == 0 || word == mix(2 + page * PAGE / 8));
    }
    stamp(memory, 64 * PAGE, 3);
    press();
    CHECK(holds(memory, 64 * PAGE, 3));
}

static void hints(void)
{
    int advices[] = { MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_COLD,
                      MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_NOHUGEPAGE,
                      MADV_HUGEPAGE, MADV_DODUMP, MADV_DONTDUMP };
    char *memory = map(MIB);
    stamp(memory, MIB, 4);
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
        if (i % 2)
            press();
        // A kernel without the feature says EINVAL.
        CHECK(madvise(memory + PAGE, MIB / 2, advices[i]) == 0 || errno == EINVAL);
        CHECK(holds(memory, MIB, 4));
    }
}

static void wipe_on_fork(void)
{
    char *memory = map(32 * PAGE);
    stamp(memory, 32 * PAGE, 5);
    CHECK(madvise(memory + 8 * PAGE, 8 * PAGE, MADV_WIPEONFORK) == 0);
    press();
    for (int round = 0; round < 2; round++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(holds(memory, 8 * PAGE, 5));
            CHECK(is_zero(memory + 8 * PAGE, 8 * PAGE));
            CHECK(holds(memory + 16 * PAGE, 16 * PAGE, 5 + 16 * PAGE / 8));
            stamp(memory, 32 * PAGE, 6);
            press();
            CHECK(holds(memory, 32 * PAGE, 6));
            _exit(0);
        }
        CHECK(status_of(child) == 0);
        CHECK(holds(memory, 32 * PAGE, 5));
    }
    CHECK(madvise(memory + 8 * PAGE, 8 * PAGE, MADV_KEEPONFORK) == 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(holds(memory, 32 * PAGE, 5));
        _exit(0);
    }
    CHECK(status_of(child) == 0);
}

static void dont_fork(void)
{
    char *memory = map(32 * PAGE);
    stamp(memory, 32 * PAGE, 7);
    CHECK(madvise(memory + 8 * PAGE, 8 * PAGE, MADV_DONTFORK) == 0);
    press();
    pid_t child = fork();
    if (child == 0) {
        CHECK(holds(memory, 8 * PAGE, 7));
        CHECK(holds(memory + 16 * PAGE, 16 * PAGE, 7 + 16 * PAGE / 8));
        CHECK(signal_of(memory + 8 * PAGE, false) == SIGSEGV);
        CHECK(signal_of(memory + 15 * PAGE, true) == SIGSEGV);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(madvise(memory + 8 * PAGE, 8 * PAGE, MADV_DOFORK) == 0);
    child = fork();
    if (child == 0) {
        CHECK(holds(memory, 32 * PAGE, 7));
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(holds(memory, 32 * PAGE, 7));
}

static void errors(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 8);
    CHECK_ERRNO(madvise(memory, PAGE, MADV_REMOVE), EINVAL);
    CHECK_ERRNO(madvise(memory + 1, PAGE, MADV_DONTNEED), EINVAL);
    CHECK_ERRNO(madvise(memory, PAGE, 77), EINVAL);
    CHECK_ERRNO(madvise(memory, -PAGE, MADV_DONTNEED), EINVAL);
    CHECK(madvise(memory, 0, MADV_DONTNEED) == 0);
    CHECK(holds(memory, 16 * PAGE, 8));
    // Parts that are mapped are dropped, and the hole is reported.
    CHECK(munmap(memory + 4 * PAGE, 4 * PAGE) == 0);
    CHECK_ERRNO(madvise(memory, 12 * PAGE, MADV_DONTNEED), ENOMEM);
    CHECK(is_zero(memory, 4 * PAGE) && is_zero(memory + 8 * PAGE, 4 * PAGE));
    CHECK(holds(memory + 12 * PAGE, 4 * PAGE, 8 + 12 * PAGE / 8));
    CHECK_ERRNO(madvise(memory + 4 * PAGE, 4 * PAGE, MADV_DONTNEED), ENOMEM);
}

static void resident(void)
{
    unsigned char pages[16];
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 9);
    CHECK(mincore(memory, 16 * PAGE, pages) == 0);
    for (int page = 0; page < 16; page++)
        CHECK(pages[page] & 1);
    CHECK(munmap(memory + 8 * PAGE, PAGE) == 0);
    CHECK_ERRNO(mincore(memory, 16 * PAGE, pages), ENOMEM);
}

static void lock(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 10);
    press();
    CHECK(mlock(memory, 32 * PAGE) == 0);
    press();
    CHECK(holds(memory, 64 * PAGE, 10));
    // Locked memory is not dropped.
    CHECK_ERRNO(madvise(memory, 32 * PAGE, MADV_DONTNEED), EINVAL);
    CHECK(holds(memory, 64 * PAGE, 10));
    CHECK(munlock(memory, 16 * PAGE) == 0);
    CHECK(madvise(memory, 16 * PAGE, MADV_DONTNEED) == 0);
    CHECK(is_zero(memory, 16 * PAGE));
    press();
    CHECK(holds(memory + 16 * PAGE, 48 * PAGE, 10 + 16 * PAGE / 8));
    CHECK(mlock2(memory, 64 * PAGE, MLOCK_ONFAULT) == 0);
    stamp(memory, 64 * PAGE, 11);
    press();
    CHECK(holds(memory, 64 * PAGE, 11));
    CHECK(munmap(memory + 32 * PAGE, PAGE) == 0);
    CHECK_ERRNO(mlock(memory, 64 * PAGE), ENOMEM);
    CHECK(munmap(memory, 64 * PAGE) == 0);
}

static void lock_all(void)
{
    char *before = map(MIB);
    stamp(before, MIB, 12);
    press();
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    char *after = map(MIB), *heap = malloc(100000);
    CHECK(is_zero(after, MIB));
    stamp(after, MIB, 13);
    stamp(heap, 100000, 14);
    CHECK(holds(before, MIB, 12) && holds(after, MIB, 13) && holds(heap, 100000, 14));
    pid_t child = fork();
    if (child == 0) {
        // Locks are not inherited.
        stamp(after, MIB, 15);
        CHECK(madvise(before, MIB, MADV_DONTNEED) == 0 && is_zero(before, MIB));
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(munlockall() == 0);
    press();
    CHECK(holds(before, MIB, 12) && holds(after, MIB, 13) && holds(heap, 100000, 14));
    CHECK(munmap(before, MIB) == 0 && munmap(after, MIB) == 0);
}

MAIN(CASE(dont_need), CASE(dont_need_together), CASE(free_lazily), CASE(hints), CASE(wipe_on_fork), CASE(dont_fork),
     CASE(errors), CASE(resident), CASE(lock), CASE(lock_all))
