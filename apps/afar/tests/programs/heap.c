// brk, and the C library's allocator on top of everything else.
#include "check.h"

#include <malloc.h>

// The heap may refuse to grow, but never goes wrong.
static void program_break(void)
{
    char *start = sbrk(0);
    CHECK(start == sbrk(0));
    char *memory = sbrk(16 * PAGE);
    if (memory == (void *)-1) {
        CHECK(errno == ENOMEM && sbrk(0) == start);
    } else {
        CHECK(memory == start && is_zero(memory, 16 * PAGE));
        stamp(memory, 16 * PAGE, 1);
        press();
        CHECK(holds(memory, 16 * PAGE, 1));
        CHECK(sbrk(-8 * (long)PAGE) == start + 16 * PAGE);
        CHECK(sbrk(8 * PAGE) == start + 8 * PAGE);
        CHECK(is_zero(start + 8 * PAGE, 8 * PAGE) && holds(start, 8 * PAGE, 1));
    }
    CHECK(syscall(SYS_brk, 0) == syscall(SYS_brk, 1));
    char *heap = malloc(100000);
    CHECK(heap);
    stamp(heap, 100000, 2);
    press();
    CHECK(holds(heap, 100000, 2));
}

enum { BLOCKS = 256, SHARED = 64, STEPS = 5000 };

struct block {
    char *memory;
    size_t bytes;
    uint64_t seed;
};

// One step of a fixed sequence: allocate, grow, shrink or free the block, checking its contents.
static void step(struct block *block, uint64_t state)
{
    size_t bytes = 8 + (state >> 24) % (state & 0x70 ? 3000 : 300000);
    if (block->memory)
        CHECK(holds(block->memory, block->bytes, block->seed));
    if (!block->memory || state & 1) {
        free(block->memory);
        block->memory = malloc(bytes);
        CHECK(block->memory);
    } else if (state & 2) {
        size_t kept = block->bytes < bytes ? block->bytes : bytes;
        block->memory = realloc(block->memory, bytes);
        CHECK(block->memory && holds(block->memory, kept, block->seed));
    } else {
        free(block->memory);
        block->memory = 0;
        return;
    }
    block->bytes = bytes;
    block->seed = state;
    stamp(block->memory, bytes, state);
}

static void *work(void *argument)
{
    struct block blocks[BLOCKS] = { 0 };
    uint64_t state = (uintptr_t)argument;
    for (int i = 0; i < STEPS; i++) {
        state = mix(state);
        step(&blocks[(state >> 8) % BLOCKS], state);
        if (i % 1000 == 0)
            malloc_trim(0);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i].memory);
    return 0;
}

static void stress(void) { in_threads(1, work); }
static void arenas(void) { in_threads(4, work); }

static void one_arena(void)
{
    CHECK(mallopt(M_ARENA_MAX, 1) == 1);
    in_threads(4, work);
}

static void everything_mapped(void)
{
    CHECK(mallopt(M_MMAP_THRESHOLD, 1024) == 1);
    in_threads(2, work);
}

// What one thread allocates another frees.
static struct block shared[SHARED];
static pthread_mutex_t locks[SHARED];

static void *exchange(void *argument)
{
    uint64_t state = (uintptr_t)argument + 7;
    for (int i = 0; i < STEPS; i++) {
        state = mix(state);
        int at = (state >> 8) % SHARED;
        pthread_mutex_lock(&locks[at]);
        step(&shared[at], state);
        pthread_mutex_unlock(&locks[at]);
    }
    return 0;
}

static void freed_elsewhere(void)
{
    for (int i = 0; i < SHARED; i++)
        pthread_mutex_init(&locks[i], 0);
    in_threads(4, exchange);
}

static void aligned(void)
{
    for (size_t alignment = 8; alignment <= 4 * MIB; alignment *= 2)
        for (int i = 0; i < 4; i++) {
            void *memory;
            size_t bytes = alignment / 2 + 64 + i * 1000;
            CHECK(posix_memalign(&memory, alignment, bytes) == 0);
            CHECK(((uintptr_t)memory & (alignment - 1)) == 0);
            stamp(memory, bytes, i);
            if (i == 2)
                press();
            CHECK(holds(memory, bytes, i));
            free(memory);
        }
}

static void one_large_block_that_grows(void)
{
    size_t bytes = 1000;
    char *memory = malloc(bytes);
    stamp(memory, bytes, 3);
    while (bytes < 40 * MIB) {
        size_t next = bytes + bytes / 2;
        memory = realloc(memory, next);
        CHECK(memory && holds(memory, bytes, 3));
        bytes = next / 8 * 8;
        stamp(memory, bytes, 3);
    }
    while (bytes > 1000) {
        bytes = bytes / 3 / 8 * 8;
        memory = realloc(memory, bytes);
        CHECK(memory && holds(memory, bytes, 3));
    }
    free(memory);
}

MAIN(CASE(program_break), CASE(stress), CASE(arenas), CASE(one_arena), CASE(everything_mapped),
     CASE(freed_elsewhere), CASE(aligned), CASE(one_large_block_that_grows))
