// Reads and writes pages at random in so many threads: THREADS MIB ACCESSES [lock].
#include "check.h"

static char *memory;
static size_t pages;
static long accesses;

static void *work(void *argument)
{
    uint64_t state = (uintptr_t)&argument;
    for (long i = 0; i < accesses; i++) {
        state = mix(state);
        volatile char *byte = memory + state % pages * PAGE;
        if (state >> 63)
            *byte = 1;
        else
            (void)*byte;
    }
    return 0;
}

int main(int count, char **arguments)
{
    CHECK(count >= 4);
    pages = strtoul(arguments[2], 0, 10) * MIB / PAGE;
    accesses = atol(arguments[3]);
    memory = map(pages * PAGE);
    if (count > 4)
        CHECK(mlock(memory, pages * PAGE) == 0);
    memset(memory, 1, pages * PAGE);
    in_threads(atoi(arguments[1]), work);
    puts("done");
    return 0;
}
