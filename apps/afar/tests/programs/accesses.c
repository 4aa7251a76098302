// accesses PAGES COUNT SEED: touches every page once, in order, then accesses pages in an order that follows from the
// seed, four fifths of them in the first fifth.
// accesses PAGES COUNT SEED FIRST: two processes with so many pages each, which take turns: first one touches its pages,
// then the other, then of every FIRST + 8 accesses the first are of the first one.
// accesses PAGES: writes a byte of every page, twice, and prints the nanoseconds from the start to the end of each pass.
#include "check.h"

static uint64_t now(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return time.tv_sec * 1000000000UL + time.tv_nsec;
}

static void write_twice(volatile char *memory, uint64_t pages)
{
    uint64_t before = now();
    for (int pass = 1; pass <= 2; pass++) {
        for (uint64_t page = 0; page < pages; page++)
            memory[page * PAGE] = pass;
        printf("%lu\n", now() - before);
    }
}

// Touches every page once, in order.
static volatile char *touched(uint64_t pages)
{
    volatile char *memory = map(pages * PAGE);
    for (uint64_t page = 0; page < pages; page++)
        memory[page * PAGE] = 1;
    return memory;
}

static void access_page(volatile char *memory, uint64_t pages, uint64_t drawn)
{
    uint64_t among = drawn % 10 < 8 ? pages / 5 : pages;
    (void)memory[(drawn >> 8) % among * PAGE];
}

static void take_turns(uint64_t pages, uint64_t accesses, uint64_t seed, uint64_t first)
{
    int pipes[2][2];
    CHECK(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    bool is_first = child > 0;
    int own = pipes[is_first][0], other = pipes[!is_first][1];
    char byte = 0;
    if (!is_first)
        CHECK(read(own, &byte, 1) == 1);
    volatile char *memory = touched(pages);
    if (is_first)
        CHECK(write(other, &byte, 1) == 1);
    bool has_turn = !is_first;
    for (uint64_t at = 0; at < accesses; at++) {
        bool is_own = (at % (first + 8) < first) == is_first;
        if (is_own && !has_turn)
            CHECK(read(own, &byte, 1) == 1);
        if (!is_own && has_turn)
            CHECK(write(other, &byte, 1) == 1);
        has_turn = is_own;
        if (is_own)
            access_page(memory, pages, mix(seed + at));
    }
    if (!is_first)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char **arguments)
{
    CHECK(count == 2 || count == 4 || count == 5);
    uint64_t pages = strtoul(arguments[1], 0, 10);
    if (count == 2) {
        write_twice(map(pages * PAGE), pages);
        return 0;
    }
    uint64_t accesses = strtoul(arguments[2], 0, 10), seed = strtoul(arguments[3], 0, 10);
    if (count == 5) {
        take_turns(pages, accesses, seed, strtoul(arguments[4], 0, 10));
        return 0;
    }
    volatile char *memory = touched(pages);
    for (uint64_t at = 0; at < accesses; at++)
        access_page(memory, pages, mix(seed + at));
    return 0;
}
