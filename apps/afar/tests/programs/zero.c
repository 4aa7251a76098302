// Fresh memory is zero, however it was freed and whoever had it before.
#include "check.h"

enum { THREADS = 4, ROUNDS = 2500 };

static void *map_and_free(void *argument)
{
    uint64_t state = (uintptr_t)argument + 1;
    for (int i = 0; i < ROUNDS; i++) {
        state = mix(state);
        size_t bytes = (1 + state % 16) * PAGE, kept = bytes / 2 / PAGE * PAGE;
        char *memory = map(bytes);
        CHECK(is_zero(memory, bytes));
        memset(memory, 0xa5, bytes);
        if (state & 64) {
            CHECK(madvise(memory, bytes, MADV_DONTNEED) == 0);
            CHECK(is_zero(memory, bytes));
            memset(memory, 0x5a, bytes);
        }
        // Some of them in two halves.
        if (state & 128)
            CHECK(munmap(memory + kept, bytes - kept) == 0);
        else
            kept = bytes;
        CHECK(kept == 0 || munmap(memory, kept) == 0);
    }
    return 0;
}

static void maps(void) { in_threads(1, map_and_free); }
static void maps_in_threads(void) { in_threads(THREADS, map_and_free); }

static void *allocate_and_free(void *argument)
{
    enum { KEPT = 16 };
    uint64_t state = (uintptr_t)argument + 100;
    char *kept[KEPT] = { 0 };
    size_t sizes[KEPT] = { 0 };
    for (int i = 0; i < ROUNDS; i++) {
        state = mix(state);
        int at = state % KEPT;
        if (kept[at]) {
            CHECK(holds(kept[at], sizes[at], sizes[at]));
            free(kept[at]);
        }
        sizes[at] = 8 + (state >> 16) % (state & 256 ? 2000 : 150000);
        kept[at] = calloc(1, sizes[at]);
        CHECK(kept[at] && is_zero(kept[at], sizes[at]));
        stamp(kept[at], sizes[at], sizes[at]);
    }
    for (int at = 0; at < KEPT; at++)
        free(kept[at]);
    return 0;
}

static void heap(void) { in_threads(1, allocate_and_free); }
static void heap_in_threads(void) { in_threads(THREADS, allocate_and_free); }

// Pages given back while other pages of the same region are in use, on their way out, or remote.
static void *drop_pages(void *argument)
{
    enum { PAGES = 256 };
    static __thread uint64_t expected[PAGES];
    uint64_t state = (uintptr_t)argument + 1000;
    char *memory = map(PAGES * PAGE);
    for (int i = 0; i < 6 * ROUNDS; i++) {
        state = mix(state);
        int page = state % PAGES;
        uint64_t *first = (uint64_t *)(memory + page * PAGE), *other = first + (state >> 20) % 512;
        CHECK(*first == expected[page]);
        if (state & 0x10000) {
            CHECK(madvise(first, PAGE, MADV_DONTNEED) == 0);
            CHECK(*other == 0 && *first == 0);
            expected[page] = 0;
        } else {
            *first = expected[page] = state;
        }
    }
    return 0;
}

static void pages(void) { in_threads(1, drop_pages); }
static void pages_in_threads(void) { in_threads(THREADS, drop_pages); }

MAIN(CASE(maps), CASE(maps_in_threads), CASE(heap), CASE(heap_in_threads), CASE(pages),
     CASE(pages_in_threads))
