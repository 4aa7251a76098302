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
    CHECK(out != MAP_FAILED && out != to);
    to = out;
    CHECK(holds(to, 4 * PAGE, 12) && holds(to + 8 * PAGE, 4 * PAGE, 13));
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
    CHECK(mremap(own, 4 * PAGE, 4 * PAGE, MOVE_TO, file) == file);
    CHECK(holds(file, 4 * PAGE, 15));
    CHECK(signal_of(own, false) == SIGSEGV);
    stamp(file, 4 * PAGE, 16);
    press();
    CHECK(holds(file, 4 * PAGE, 16) && holds(file + 4 * PAGE, 12 * PAGE, 14 + 4 * PAGE / 8));
    // A forked child has it as it was.
    pid_t child = fork();
    if (child == 0) {
        CHECK(holds(file, 4 * PAGE, 16));
        stamp(file, 4 * PAGE, 17);
        _exit(0);
    }
    CHECK(status_of(child) == 0 && holds(file, 4 * PAGE, 16));
    // And into anonymous memory again, with room to grow.
    char *back = map(8 * PAGE);
    CHECK(mremap(file, 4 * PAGE, 8 * PAGE, MOVE_TO, back) == back);
    CHECK(holds(back, 4 * PAGE, 16) && is_zero(back + 4 * PAGE, 4 * PAGE));
}

static void move_to(char *there)
{
    char *own = map(64 * PAGE);
    stamp(own, 32 * PAGE, 19);
    press();
    CHECK(mremap(own, 64 * PAGE, 64 * PAGE, MOVE_TO, there) == there);
    CHECK(holds(there, 32 * PAGE, 19) && is_zero(there + 32 * PAGE, 32 * PAGE));
    CHECK(madvise(there, 16 * PAGE, MADV_DONTNEED) == 0);
    press();
    CHECK(is_zero(there, 16 * PAGE) && holds(there + 16 * PAGE, 16 * PAGE, 19 + 16 * PAGE / 8));
    char *mapped = mmap(own, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                        -1, 0);
    CHECK(mapped == own && is_zero(own, 64 * PAGE));
    CHECK_ERRNO(mremap(own, PAGE, PAGE, MOVE_TO, (char *)(1UL << 47)), EINVAL);
    CHECK(munmap(there, 64 * PAGE) == 0);
}

// Below 4 GiB, where programs at fixed addresses are.
static void to_low_addresses(void) { move_to((char *)(1UL << 30)); }

// Above what is managed, where the contents go on as memory of the program's own.
static void to_high_addresses(void) { move_to((char *)0x7ec500000000); }

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#define MOVE_AND_LEAVE (MREMAP_MAYMOVE | MREMAP_DONTUNMAP)

static void leave_behind(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 32 * PAGE, 20);
    press();
    char *moved = mremap(memory, 64 * PAGE, 64 * PAGE, MOVE_AND_LEAVE, 0);
    CHECK(moved != MAP_FAILED && moved != memory);
    CHECK(holds(moved, 32 * PAGE, 20) && is_zero(moved + 32 * PAGE, 32 * PAGE));
    CHECK(is_zero(memory, 64 * PAGE));
    stamp(memory, 64 * PAGE, 21);
    press();
    CHECK(holds(memory, 64 * PAGE, 21) && holds(moved, 32 * PAGE, 20));
    // A piece of it, protected, twice to the same place.
    CHECK(mprotect(memory, 64 * PAGE, PROT_READ) == 0);
    for (int i = 0; i < 2; i++) {
        char *piece = memory + (8 + 8 * i) * PAGE;
        char *to = mremap(piece, 8 * PAGE, 8 * PAGE, MOVE_AND_LEAVE | MREMAP_FIXED, moved + 4 * PAGE);
        CHECK(to == moved + 4 * PAGE && holds(to, 8 * PAGE, 21 + (8 + 8 * i) * PAGE / 8));
        CHECK(is_zero(piece, 8 * PAGE));
        CHECK(signal_of(piece, true) == SIGSEGV && signal_of(to, true) == SIGSEGV);
    }
    CHECK(holds(memory, 8 * PAGE, 21) && holds(moved, 4 * PAGE, 20));
    CHECK(holds(moved + 12 * PAGE, 20 * PAGE, 20 + 12 * PAGE / 8));
    // Where nothing is managed.
    char *high = (char *)0x7ec500000000;
    CHECK(mremap(memory, 8 * PAGE, 8 * PAGE, MOVE_AND_LEAVE | MREMAP_FIXED, high) == high);
    CHECK(holds(high, 8 * PAGE, 21) && is_zero(memory, 24 * PAGE));
    press();
    CHECK(holds(high, 8 * PAGE, 21) && holds(memory + 24 * PAGE, 40 * PAGE, 21 + 24 * PAGE / 8));
}

static struct {
    _Atomic uint64_t *_Atomic old;
    _Atomic uint64_t done;
    _Atomic bool stop;
    _Atomic int counting;
} busy_place;

// Counts up in one word of each page, wherever the pages are.
static void *count_up(void *number)
{
    uint64_t added = 0;
    _Atomic uint64_t *words = busy_place.old;
    while (!busy_place.stop) {
        for (size_t page = 0; page < 16; page++)
            words[page * (PAGE / 8) + (size_t)number]++;
        busy_place.counting += added == 0;
        added += 16;
    }
    busy_place.done += added;
    return 0;
}

// What other threads write goes where the memory goes, or stays; none of it is lost.
static void leave_behind_in_use(void)
{
    pthread_t threads[2];
    char *memory = map(16 * PAGE);
    busy_place.old = (_Atomic uint64_t *)memory;
    for (long i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], 0, count_up, (void *)i) == 0);
    // On a busy machine all would be over before they began.
    while (busy_place.counting < 2)
        usleep(100);
    uint64_t found = 0;
    for (int i = 0; i < 200; i++) {
        char *moved = mremap(memory, 16 * PAGE, 16 * PAGE, MOVE_AND_LEAVE, 0);
        CHECK(moved != MAP_FAILED);
        for (uint64_t *word = (uint64_t *)moved; (char *)word < moved + 16 * PAGE; word++)
            found += *word;
        CHECK(munmap(moved, 16 * PAGE) == 0);
        if (i % 20 == 0)
            press();
    }
    busy_place.stop = true;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], 0) == 0);
    for (uint64_t *word = (uint64_t *)memory; (char *)word < memory + 16 * PAGE; word++)
        found += *word;
    if (found != busy_place.done)
        dprintf(2, "%lu of %lu were found\n", found, (uint64_t)busy_place.done);
    CHECK(found == busy_place.done && found > 0);
}

// What was said about a region goes with it.
static void keeps_advice(void)
{
    char *memory = map(8 * PAGE), *to = map(16 * PAGE);
    stamp(memory, 8 * PAGE, 22);
    CHECK(madvise(memory, 8 * PAGE, MADV_WIPEONFORK) == 0);
    CHECK(mremap(memory, 8 * PAGE, 8 * PAGE, MOVE_TO, to) == to);
    stamp(to + 8 * PAGE, 8 * PAGE, 23);
    pid_t child = fork();
    if (child == 0) {
        CHECK(is_zero(to, 8 * PAGE) && holds(to + 8 * PAGE, 8 * PAGE, 23));
        _exit(0);
    }
    CHECK(status_of(child) == 0 && holds(to, 8 * PAGE, 22));
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
    CHECK_ERRNO(mremap(memory, 16 * PAGE, 16 * PAGE, MREMAP_DONTUNMAP), EINVAL);
    CHECK_ERRNO(mremap(memory, 8 * PAGE, 16 * PAGE, MOVE_AND_LEAVE, 0), EINVAL);
    CHECK_ERRNO(mremap(memory, 8 * PAGE, 8 * PAGE, MOVE_AND_LEAVE, memory + 4 * PAGE), EINVAL);
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
     CASE(keeps_protection), CASE(file_into_own), CASE(own_over_file), CASE(to_low_addresses),
     CASE(to_high_addresses), CASE(leave_behind), CASE(leave_behind_in_use), CASE(keeps_advice),
     CASE(errors), CASE(in_several_threads))
