// Memory whose words follow from their addresses and from how often each page was changed: written, read back and
// changed again in no order, by several threads, in a process and in what it forks, and moved about.
#include "check.h"

#include <sys/mman.h>
#include <sys/prctl.h>

enum { THREADS = 4, REGION = 1024 };

struct region {
    uint64_t *words;
    // How often each page was changed.
    unsigned char changes[REGION];
    uint64_t seed;
};

static uint64_t word_of(struct region *region, int page, int word)
{
    return mix(region->seed + page * 512 + word) + region->changes[page];
}

static void write_page(struct region *region, int page)
{
    for (int word = 0; word < 512; word += 32)
        region->words[page * 512 + word] = word_of(region, page, word);
}

static void check_page(struct region *region, int page)
{
    for (int word = 0; word < 512; word += 32)
        CHECK(region->words[page * 512 + word] == word_of(region, page, word));
}

static void check_all(struct region *region)
{
    for (int page = 0; page < REGION; page++)
        check_page(region, page);
}

static void begin(struct region *region, uint64_t seed)
{
    memset(region, 0, sizeof *region);
    region->seed = seed;
    region->words = (uint64_t *)map(REGION * PAGE);
    for (int page = 0; page < REGION; page++)
        write_page(region, page);
}

// One thing that a program does with memory; `draw` says which.
static void step(struct region *region, uint64_t draw)
{
    int page = draw % REGION;
    switch (draw >> 32 & 1023) {
    case 0: {
        // Its child has all of it, and neither sees what the other does then.
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 64; i++) {
                int own = (page + i * 7) % REGION;
                check_page(region, own);
                region->changes[own]++;
                write_page(region, own);
            }
            check_page(region, page);
            _exit(0);
        }
        CHECK(status_of(child) == 0);
        break;
    }
    case 1: {
        uint64_t *moved = mremap(region->words, REGION * PAGE, REGION * PAGE * 2, MREMAP_MAYMOVE);
        // What was mapped anew in the middle may be a mapping of its own.
        if (moved == MAP_FAILED && errno == EFAULT)
            break;
        CHECK(moved != MAP_FAILED);
        CHECK(mremap(moved, REGION * PAGE * 2, REGION * PAGE, 0) == moved);
        region->words = moved;
        break;
    }
    case 2: {
        // Given up, and made again.
        int count = 16 < REGION - page ? 16 : REGION - page;
        CHECK(madvise(region->words + page * 512, count * PAGE, MADV_DONTNEED) == 0);
        for (int i = page; i < page + count; i++) {
            CHECK(region->words[i * 512] == 0);
            write_page(region, i);
        }
        break;
    }
    case 3: {
        void *at = region->words + page * 512;
        CHECK(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
        CHECK(*(uint64_t *)at == 0);
        write_page(region, page);
        break;
    }
    case 4: {
        // By the kernel, in both directions.
        int ends[2];
        char copy[PAGE];
        CHECK(pipe(ends) == 0);
        CHECK(write(ends[1], region->words + page * 512, PAGE) == PAGE);
        CHECK(read(ends[0], copy, PAGE) == PAGE);
        CHECK(write(ends[1], copy, PAGE) == PAGE);
        CHECK(read(ends[0], region->words + page * 512, PAGE) == PAGE);
        close(ends[0]);
        close(ends[1]);
        check_page(region, page);
        break;
    }
    default:
        check_page(region, page);
        if (draw >> 42 & 1) {
            region->changes[page]++;
            write_page(region, page);
        }
    }
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, 0, 10) : otherwise;
}

static void run(uint64_t number)
{
    struct region region;
    uint64_t seed = setting("KEEPS_SEED", 0) << 8 | number;
    begin(&region, seed);
    // As long as it takes until a file is there, if one is named.
    const char *until = getenv("KEEPS_UNTIL");
    for (uint64_t i = 0, steps = setting("KEEPS_STEPS", 20000); i < steps; i++) {
        step(&region, mix(seed * 1000003 + i));
        if (until && i % 256 == 0 && access(until, F_OK) == 0)
            break;
    }
    check_all(&region);
}

static void *run_in_thread(void *seed)
{
    run((uintptr_t)seed);
    return 0;
}

static void alone(void) { run(1); }

static void together(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], 0, run_in_thread, (void *)(i + 2)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], 0) == 0);
}

// Then it executes itself, and does the same.
static void and_executes(void)
{
    run(9);
    execl("/proc/self/exe", "keeps", "alone", (char *)0);
    CHECK(0);
}

// Eight threads, and then one in what the process executes.
static void all(void)
{
    pthread_t threads[THREADS * 2];
    for (long i = 0; i < THREADS * 2; i++)
        CHECK(pthread_create(&threads[i], 0, run_in_thread, (void *)(i + 20)) == 0);
    for (int i = 0; i < THREADS * 2; i++)
        CHECK(pthread_join(threads[i], 0) == 0);
    execl("/proc/self/exe", "keeps", "alone", (char *)0);
    CHECK(0);
}

static void *fork_often(void *count)
{
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        CHECK(status_of(child) == 0);
    }
    return 0;
}

// Threads change pages while one forks and another process wants their frames: who waits for a fork finds that its page
// has left meanwhile.
static void and_forks(void)
{
    pid_t other = fork();
    if (other == 0) {
        // Until it is killed.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uint64_t number = 40;; number++)
            run(number);
    }
    CHECK(other > 0);
    pthread_t threads[THREADS], forks;
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], 0, run_in_thread, (void *)(i + 2)) == 0);
    CHECK(pthread_create(&forks, 0, fork_often, (void *)setting("KEEPS_FORKS", 100)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], 0) == 0);
    CHECK(pthread_join(forks, 0) == 0);
    CHECK(kill(other, SIGKILL) == 0);
    CHECK(waitpid(other, 0, 0) == other);
}

MAIN(CASE(alone), CASE(together), CASE(and_executes), CASE(all), CASE(and_forks))
