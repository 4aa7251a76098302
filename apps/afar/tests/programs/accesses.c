// accesses PAGES COUNT SEED: touches every page once, in order, then accesses pages in an order that follows from the
// seed, four fifths of them in the first fifth.
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

int main(int count, char **arguments)
{
    CHECK(count == 2 || count == 4);
    uint64_t pages = strtoul(arguments[1], 0, 10);
    volatile char *memory = map(pages * PAGE);
    if (count == 2) {
        write_twice(memory, pages);
        return 0;
    }
    uint64_t accesses = strtoul(arguments[2], 0, 10), seed = strtoul(arguments[3], 0, 10);
    for (uint64_t page = 0; page < pages; page++)
        memory[page * PAGE] = 1;
    for (uint64_t at = 0; at < accesses; at++) {
        uint64_t drawn = mix(seed + at);
        uint64_t among = drawn % 10 < 8 ? pages / 5 : pages;
        (void)memory[(drawn >> 8) % among * PAGE];
    }
    return 0;
}
