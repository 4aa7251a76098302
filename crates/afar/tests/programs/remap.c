// mremap: the contents go where the memory goes.
#include "check.h"

#define MOVE MREMAP_MAYMOVE
#define MOVE_TO (MREMAP_MAYMOVE | MREMAP_FIXED)

static void grow(void)
{
    size_t pages = 1;
    char *memory = map(pages * PAGE);
    stamp(memory, PAGE, 1);
    while (pages < 4096) {
        // Something in the way makes some of the steps move.
        char *obstacle = pages % 4 == 1 ? map(PAGE) : 0;
        memory = mremap(memory, pages * PAGE, 2 * pages * PAGE, MOVE);
        CHECK(memory != MAP_FAILED);
        CHECK(holds(memory, pages * PAGE, 1));
        CHECK(is_zero(memory + pages * PAGE, pages * PAGE));
        pages *= 2;
        stamp(memory, pages * PAGE, 1);
        press();
        CHECK(holds(memory, pages * PAGE, 1));
        if (obstacle)
            CHECK(munmap(obstacle, PAGE) == 0);
    }
}

static void grow_in_place(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 2);
    CHECK(munmap(memory + 32 * PAGE, 32 * PAGE) == 0);
    press();
    char *grown = mremap(memory, 32 * PAGE, 64 * PAGE, 0);
    if (grown == MAP_FAILED) {
        CHECK(errno == ENOMEM);
    } else {
        CHECK(grown == memory);
        CHECK(is_zero(memory + 32 * PAGE, 32 * PAGE));
        stamp(memory + 32 * PAGE, 32 * PAGE, 3);
        press();
        CHECK(holds(memory + 32 * PAGE, 32 * PAGE, 3));
    }
    CHECK(holds(memory, 32 * PAGE, 2));
}

static void shrink(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 4);
    press();
    CHECK(mremap(memory, 64 * PAGE, 16 * PAGE, 0) == memory);
    CHECK(holds(memory, 16 * PAGE, 4));
    CHECK(signal_of(memory + 16 * PAGE, false) == SIGSEGV);
    CHECK(signal_of(memory + 63 * PAGE, true) == SIGSEGV);
    memory = mremap(memory, 16 * PAGE, 64 * PAGE, MOVE);
    CHECK(memory != MAP_FAILED && holds(memory, 16 * PAGE, 4));
    CHECK(is_zero(memory + 16 * PAGE, 48 * PAGE));
}

static void move_to_fixed(void)
{
    char *from = map(16 * PAGE), *to = map(64 * PAGE);
    stamp(from, 16 * PAGE, 5);
    stamp(to, 64 * PAGE, 6);
    press();
    char *moved = mremap(from, 16 * PAGE, 32 * PAGE, MOVE_TO, to + 8 * PAGE);
    CHECK(moved == to + 8 * PAGE);
    CHECK(holds(moved, 16 * PAGE, 5));
    CHECK(is_zero(moved + 16 * PAGE, 16 * PAGE));
    CHECK(holds(to, 8 * PAGE, 6) && holds(to + 40 * PAGE, 24 * PAGE, 6 + 40 * PAGE / 8));
    CHECK(signal_of(from, false) == SIGSEGV);
    stamp(moved, 32 * PAGE, 7);
    press();
    CHECK(holds(moved, 32 * PAGE, 7));
    // To where nothing is mapped, and shrinking on the way.
    CHECK(munmap(to, 4 * PAGE) == 0);
    CHECK(mremap(moved, 32 * PAGE, 4 * PAGE, MOVE_TO, to) == to);
    CHECK(holds(to, 4 * PAGE, 7));
    CHECK(signal_of(moved, false) == SIGSEGV && signal_of(moved + 31 * PAGE, false) == SIGSEGV);
}

// A piece of a region moves; its neighbours stay.
static void middle(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 8);
    press();
    char *moved = mremap(memory + 4 * PAGE, 4 * PAGE, 8 * PAGE, MOVE);
    CHECK(moved != MAP_FAILED && moved != memory + 4 * PAGE);
    CHECK(holds(moved, 4 * PAGE, 8 + 4 * PAGE / 8) && is_zero(moved + 4 * PAGE, 4 * PAGE));
    CHECK(holds(memory, 4 * PAGE, 8) && holds(memory + 8 * PAGE, 8 * PAGE, 8 + 8 * PAGE / 8));
    CHECK(signal_of(memory + 5 * PAGE, false) == SIGSEGV);
    CHECK_ERRNO(mremap(memory + 8 * PAGE, PAGE, 2 * PAGE, 0), ENOMEM);
}

static void keeps_protection(void)
{
    char *memory = map(8 * PAGE), *obstacle = map(8 * PAGE);
    stamp(memory, 8 * PAGE, 9);
    CHECK(mprotect(memory, 8 * PAGE, PROT_READ) == 0);
    press();
    memory = mremap(memory, 8 * PAGE, 1024 * PAGE, MOVE);
    CHECK(memory != MAP_FAILED && holds(memory, 8 * PAGE, 9));
    CHECK(signal_of(memory, true) == SIGSEGV && signal_of(memory + 1023 * PAGE, true) == SIGSEGV);
    CHECK(is_zero(memory + 8 * PAGE, 1016 * PAGE));
    CHECK(munmap(obstacle, 8 * PAGE) == 0);
}

// A private file mapping is moved into anonymous memory: what was written to it stays.
static void file_into_own(void)
{
    int fd = scratch_file(16 * PAGE, 10, 0);
    char *own = map(64 * PAGE), *to = own + 16 * PAGE;
    stamp(own, 64 * PAGE, 11);
    char *file = mmap(0, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(file != MAP_FAILED);
    stamp(file, 4 * PAGE, 12);
    press();
    CHECK(mremap(file, 16 * PAGE, 16 * PAGE, MOVE_TO, to) == to);
    CHECK(holds(to, 4 * PAGE, 12));
    CHECK(holds(to + 4 * PAGE, 12 * PAGE, 10 + 4 * PAGE / 8));
    stamp(to + 8 * PAGE, 4 * PAGE, 13);
    press();
    CHECK(holds(to + 8 * PAGE, 4 * PAGE, 13) && holds(to, 4 * PAGE, 12));
    CHECK(holds(own, 16 * PAGE, 11) && holds(own + 32 * PAGE, 32 * PAGE, 11 + 32 * PAGE / 8));
    // And out of it again.
    char *out = mremap(to, 16 * PAGE, 32 * PAGE, MOVE);
    if (out == MAP_FAILED) {
        // A mapping that is not managed may be refused to grow among managed ones.
        CHECK(errno == ENOMEM && getenv("AFAR_TEST_TRAP"));
        out = to;
    }
    to = out;
    CHECK(holds(to + 8 * PAGE, 4 * PAGE, 13));
    CHECK(munmap(own, 16 * PAGE) == 0 && munmap(own + 32 * PAGE, 32 * PAGE) == 0);
    char *fresh = map(64 * PAGE);
    CHECK(is_zero(fresh, 64 * PAGE));
    stamp(fresh, 64 * PAGE, 14);
    press();
    CHECK(holds(fresh, 64 * PAGE, 14) && holds(to, 4 * PAGE, 12));
}

// Anonymous memory is moved over a file mapping, which is no anonymous memory.
static void own_over_file(void)
{
    int fd = scratch_file(16 * PAGE, 14, 0);
    char *file = mmap(0, 16 * PAGE, PROT_READ, MAP_SHARED, fd, 0), *own = map(4 * PAGE);
    CHECK(file != MAP_FAILED);
    stamp(own, 4 * PAGE, 15);
    press();
    if (mremap(own, 4 * PAGE, 4 * PAGE, MOVE_TO, file) == MAP_FAILED) {
        // Managed memory cannot leave its range of addresses: refused, and nothing is lost.
        CHECK(errno == EINVAL && getenv("AFAR_TEST_TRAP"));
        CHECK(holds(own, 4 * PAGE, 15) && holds(file, 16 * PAGE, 14));
        return;
    }
    CHECK(holds(file, 4 * PAGE, 15));
    stamp(file, 4 * PAGE, 16);
    press();
    CHECK(holds(file, 4 * PAGE, 16) && holds(file + 4 * PAGE, 12 * PAGE, 14 + 4 * PAGE / 8));
}

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static void leave_behind(void)
{
    char *memory = map(8 * PAGE);
    stamp(memory, 8 * PAGE, 17);
    press();
    char *moved = mremap(memory, 8 * PAGE, 8 * PAGE, MOVE | MREMAP_DONTUNMAP);
    if (moved == MAP_FAILED) {
        // Linux before 5.7 does not know it, and its users must cope.
        CHECK(errno == EINVAL && holds(memory, 8 * PAGE, 17));
        return;
    }
    CHECK(holds(moved, 8 * PAGE, 17) && is_zero(memory, 8 * PAGE));
}

static void errors(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 18);
    CHECK_ERRNO(mremap(memory + 1, PAGE, 2 * PAGE, MOVE), EINVAL);
    CHECK_ERRNO(mremap(memory, PAGE, 0, MOVE), EINVAL);
    CHECK_ERRNO(mremap(memory, 0, PAGE, MOVE), EINVAL);
    CHECK_ERRNO(mremap(memory, PAGE, 2 * PAGE, 0x100), EINVAL);
    CHECK_ERRNO(mremap(memory, PAGE, 2 * PAGE, MREMAP_FIXED, memory), EINVAL);
    // The new place must not overlap the old one.
    CHECK_ERRNO(mremap(memory, 4 * PAGE, 4 * PAGE, MOVE_TO, memory + PAGE), EINVAL);
    CHECK_ERRNO(mremap(memory, 4 * PAGE, 4 * PAGE, MOVE_TO, memory + 8 * PAGE + 1), EINVAL);
    CHECK_ERRNO(mremap(memory, 16 * PAGE, 1UL << 46, MOVE), ENOMEM);
    CHECK(holds(memory, 16 * PAGE, 18));
    CHECK(munmap(memory + 4 * PAGE, PAGE) == 0);
    CHECK_ERRNO(mremap(memory + 4 * PAGE, PAGE, 2 * PAGE, MOVE), EFAULT);
    CHECK(holds(memory, 4 * PAGE, 18));
}

// Several threads grow, move and free at the same time.
static void *grow_and_free(void *argument)
{
    uint64_t state = (uintptr_t)argument;
    for (int i = 0; i < 400; i++) {
        state = mix(state);
        size_t bytes = (1 + state % 8) * PAGE, more = bytes + (1 + (state >> 8) % 16) * PAGE;
        char *memory = map(bytes);
        stamp(memory, bytes, state);
        memory = mremap(memory, bytes, more, MOVE);
        CHECK(memory != MAP_FAILED && holds(memory, bytes, state));
        CHECK(is_zero(memory + bytes, more - bytes));
        stamp(memory, more, state);
        CHECK(holds(memory, more, state));
        CHECK(munmap(memory, more) == 0);
    }
    return 0;
}

static void in_several_threads(void) { in_threads(4, grow_and_free); }

MAIN(CASE(grow), CASE(grow_in_place), CASE(shrink), CASE(move_to_fixed), CASE(middle),
     CASE(keeps_protection), CASE(file_into_own), CASE(own_over_file), CASE(leave_behind),
     CASE(errors), CASE(in_several_threads))
