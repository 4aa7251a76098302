// Where memory lies: addresses that a program asks for, and reservations larger than any memory.
#include "check.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

// What collectors, browsers and language runtimes ask for: each is honoured where nothing is mapped.
static void hints(void)
{
    static const uintptr_t wanted[] = { 0x40000000000, 0x80000000000, 0x100000000000, 0x200000000000,
                                        0x10000000, 0x3000000000, 0xc000000000, 0x7c0000000000,
                                        0x600000000000 };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        char *at = (char *)wanted[i];
        char *none = mmap(at, 16 * GIB, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
        // Near the bottom the program itself may be in the way.
        CHECK(none == at || wanted[i] < GIB);
        // The next one finds it taken and goes elsewhere.
        char *other = mmap(none, 4 * PAGE, RW, ANON, -1, 0);
        CHECK(other != MAP_FAILED && (other < none || other >= none + 16 * GIB));
        CHECK_ERRNO(mmap(none, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
        CHECK(munmap(none, 16 * GIB) == 0 && munmap(other, 4 * PAGE) == 0);
        CHECK(mmap(at, 64 * PAGE, RW, ANON, -1, 0) == at);
        stamp(at, 64 * PAGE, i);
        press();
        CHECK(holds(at, 64 * PAGE, i));
        CHECK(munmap(at, 64 * PAGE) == 0);
        CHECK(mmap(at, 64 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == at);
        CHECK(is_zero(at, 64 * PAGE));
        CHECK(munmap(at, 64 * PAGE) == 0);
        CHECK(mmap(at, 64 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == at);
        stamp(at, 64 * PAGE, i);
        press();
        CHECK(holds(at, 64 * PAGE, i));
        CHECK(signal_of(at + 64 * PAGE, false) == SIGSEGV);
        CHECK(munmap(at, 64 * PAGE) == 0);
        CHECK(signal_of(at, false) == SIGSEGV);
    }
}

// Something of the kernel's choice or of a file lies where memory is asked for: that goes elsewhere.
static void taken(void)
{
    int fd = scratch_file(64 * PAGE, 1, 0);
    char *at = (char *)0x566000400000, *file = mmap(at, 64 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(file == at);
    char *memory = mmap(at + PAGE, 2 * PAGE, RW, ANON, -1, 0);
    CHECK(memory != MAP_FAILED && (memory < file || memory >= file + 64 * PAGE));
    CHECK_ERRNO(mmap(file, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    // More than fits before it.
    char *large = map(8 * MIB);
    stamp(large, 8 * MIB, 2);
    press();
    CHECK(holds(file, 64 * PAGE, 1));
    CHECK(holds(large, 8 * MIB, 2));
    CHECK(mmap(file + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == file + PAGE);
    stamp(file + PAGE, PAGE, 3);
    press();
    CHECK(holds(file, PAGE, 1) && holds(file + PAGE, PAGE, 3));
    CHECK(holds(file + 2 * PAGE, 62 * PAGE, 1 + 2 * PAGE / 8));
    CHECK(munmap(file, 64 * PAGE) == 0);
    CHECK(mmap(at, 64 * PAGE, RW, ANON, -1, 0) == at && is_zero(at, 64 * PAGE));
}

// Memory under management on both sides of a bound that is none.
static void across(void)
{
    static const uintptr_t bounds[] = { 1UL << 30, 1UL << 39, 0x7e0000000000, 0x500000000000 };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        char *at = (char *)bounds[i] - 3 * PAGE;
        CHECK(mmap(at, 7 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == at);
        stamp(at, 7 * PAGE, i);
        press();
        CHECK(holds(at, 7 * PAGE, i));
        pid_t child = fork();
        if (child == 0) {
            CHECK(holds(at, 7 * PAGE, i));
            memset(at, 0, 7 * PAGE);
            _exit(0);
        }
        CHECK(status_of(child) == 0);
        CHECK(holds(at, 7 * PAGE, i));
        CHECK(munmap(at + PAGE, 4 * PAGE) == 0);
        CHECK(holds(at, PAGE, i) && holds(at + 5 * PAGE, 2 * PAGE, i + 5 * PAGE / 8));
        CHECK(munmap(at, 7 * PAGE) == 0);
    }
}

// A part of a reservation is used: at both ends, around places in between, and after it has been moved.
static void reserve(size_t bytes)
{
    enum { PLACES = 24, USED = 64 };
    char *memory = mmap(0, bytes, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (size_t i = 0; i < PLACES; i++) {
        char *at = memory + (bytes - USED * PAGE) / (PLACES - 1) / PAGE * PAGE * i;
        CHECK(mprotect(at, USED * PAGE, RW) == 0);
        CHECK(is_zero(at, USED * PAGE));
        stamp(at, USED * PAGE, i);
    }
    press();
    pid_t child = fork();
    for (size_t i = 0; i < PLACES; i++) {
        char *at = memory + (bytes - USED * PAGE) / (PLACES - 1) / PAGE * PAGE * i;
        CHECK(holds(at, USED * PAGE, i));
    }
    if (child == 0)
        _exit(0);
    CHECK(status_of(child) == 0);
    CHECK(madvise(memory, bytes, MADV_DONTNEED) == 0);
    CHECK(is_zero(memory, USED * PAGE));
    // Taken again in place, as a collector does with its heap.
    CHECK(mmap(memory, bytes / 2, RW, ANON | MAP_NORESERVE | MAP_FIXED, -1, 0) == memory);
    char *middle = memory + bytes / 4;
    stamp(middle, USED * PAGE, 1);
    press();
    CHECK(holds(middle, USED * PAGE, 1));
    CHECK(munmap(memory, bytes) == 0);
    CHECK(signal_of(middle, false) == SIGSEGV);
}

static void reserve_256_gib(void)
{
    reserve(256 * GIB);
}

static void reserve_32_tib(void)
{
    reserve(32768 * GIB);
}

// What is used of the whole address space, here and there, is what it costs.
static void sparse(void)
{
    enum { COUNT = 300 };
    for (uint64_t i = 0; i < COUNT; i++) {
        char *at = (char *)(0x10000000000 + i * 0x5000000000 / PAGE * PAGE);
        CHECK(mmap(at, 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == at);
        stamp(at, 2 * PAGE, i);
    }
    press();
    for (uint64_t i = 0; i < COUNT; i++) {
        char *at = (char *)(0x10000000000 + i * 0x5000000000 / PAGE * PAGE);
        CHECK(holds(at, 2 * PAGE, i));
        CHECK(munmap(at, 2 * PAGE) == 0);
    }
}

// So many processes at a time, each with memory of its own.
static void crowd(void)
{
    enum { COUNT = 500, OWN = 64 };
    pid_t children[COUNT];
    int ready[2], go[2];
    char byte = 0;
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    char *memory = map(OWN * PAGE);
    for (int i = 0; i < COUNT; i++) {
        stamp(memory, OWN * PAGE, i);
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            CHECK(write(ready[1], &byte, 1) == 1);
            CHECK(read(go[0], &byte, 1) == 1);
            CHECK(holds(memory, OWN * PAGE, i));
            _exit(i % 100);
        }
    }
    for (int i = 0; i < COUNT; i++)
        CHECK(read(ready[0], &byte, 1) == 1);
    for (int i = 0; i < COUNT; i++)
        CHECK(write(go[1], &byte, 1) == 1);
    for (int i = 0; i < COUNT; i++)
        CHECK(status_of(children[i]) == i % 100);
}

MAIN(CASE(hints), CASE(taken), CASE(across), CASE(reserve_256_gib), CASE(reserve_32_tib), CASE(sparse),
     CASE(crowd))
