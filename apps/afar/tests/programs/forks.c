// fork: the child has its parent's memory as it was at that moment, and neither sees the other's writes.
#include "check.h"

static void snapshot(void)
{
    char *memory = map(256 * PAGE), *heap = malloc(300000);
    stamp(memory, 256 * PAGE, 1);
    stamp(heap, 300000, 2);
    press();
    int go[2];
    CHECK(pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        CHECK(read(go[0], &byte, 1) == 1);
        CHECK(holds(memory, 256 * PAGE, 1) && holds(heap, 300000, 2));
        stamp(memory, 256 * PAGE, 3);
        press();
        CHECK(holds(memory, 256 * PAGE, 3));
        char *more = malloc(100000);
        stamp(more, 100000, 4);
        free(heap);
        CHECK(holds(more, 100000, 4));
        _exit(0);
    }
    stamp(memory, 256 * PAGE, 5);
    stamp(heap, 300000, 6);
    press();
    CHECK(write(go[1], "x", 1) == 1);
    CHECK(status_of(child) == 0);
    CHECK(holds(memory, 256 * PAGE, 5) && holds(heap, 300000, 6));
}

static void check_layout(char *memory)
{
    CHECK(holds(memory, 16 * PAGE, 7));
    CHECK(signal_of(memory + 8 * PAGE, true) == SIGSEGV);
    CHECK(signal_of(memory + 16 * PAGE, false) == SIGSEGV);
    CHECK(signal_of(memory + 24 * PAGE, false) == SIGSEGV);
    CHECK(is_zero(memory + 32 * PAGE, 8 * PAGE));
    CHECK(holds(memory + 40 * PAGE, 4 * PAGE, 9));
    CHECK(holds(memory + 44 * PAGE, 4 * PAGE, 8 + 4 * PAGE / 8));
    CHECK(holds(memory + 48 * PAGE, 16 * PAGE, 7 + 48 * PAGE / 8));
}

// Every layout that a region can have is there in the child as well.
static void layouts(void)
{
    const int rw = PROT_READ | PROT_WRITE;
    char *memory = map(64 * PAGE), *gap = memory + 24 * PAGE, *file = memory + 40 * PAGE;
    int fd = scratch_file(8 * PAGE, 8, 0);
    stamp(memory, 64 * PAGE, 7);
    CHECK(mprotect(memory + 8 * PAGE, 8 * PAGE, PROT_READ) == 0);
    CHECK(mprotect(memory + 16 * PAGE, 8 * PAGE, PROT_NONE) == 0);
    CHECK(munmap(gap, 8 * PAGE) == 0);
    CHECK(madvise(memory + 32 * PAGE, 8 * PAGE, MADV_DONTNEED) == 0);
    CHECK(mmap(file, 8 * PAGE, rw, MAP_PRIVATE | MAP_FIXED, fd, 0) == file);
    stamp(file, 4 * PAGE, 9);
    for (int round = 0; round < 2; round++) {
        pid_t child = fork();
        if (child == 0) {
            check_layout(memory);
            CHECK(mprotect(memory + 16 * PAGE, 8 * PAGE, PROT_READ) == 0);
            CHECK(holds(memory + 16 * PAGE, 8 * PAGE, 7 + 16 * PAGE / 8));
            CHECK(mmap(gap, 8 * PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == gap);
            CHECK(is_zero(gap, 8 * PAGE));
            stamp(gap, 8 * PAGE, 10);
            stamp(file, 24 * PAGE, 11);
            press();
            CHECK(holds(gap, 8 * PAGE, 10) && holds(file, 24 * PAGE, 11));
            _exit(0);
        }
        CHECK(status_of(child) == 0);
        check_layout(memory);
        press();
    }
}

static void descend(char *memory, int depth)
{
    CHECK(holds(memory, 64 * PAGE, depth));
    if (depth == 6)
        return;
    pid_t child = fork();
    if (child == 0) {
        stamp(memory, 64 * PAGE, depth + 1);
        press();
        descend(memory, depth + 1);
        _exit(depth);
    }
    CHECK(status_of(child) == depth);
    CHECK(holds(memory, 64 * PAGE, depth));
}

static void nested(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 0);
    descend(memory, 0);
}

static volatile bool stop;

static void *allocate(void *argument)
{
    uint64_t state = (uintptr_t)argument;
    while (!stop) {
        state = mix(state);
        size_t bytes = 8 + state % 200000;
        char *memory = malloc(bytes), *mapped = map(4 * PAGE);
        stamp(memory, bytes, state);
        CHECK(holds(memory, bytes, state) && is_zero(mapped, 4 * PAGE));
        mapped[0] = 1;
        free(memory);
        CHECK(munmap(mapped, 4 * PAGE) == 0);
    }
    return 0;
}

static void *fork_repeatedly(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    char *memory = map(32 * PAGE);
    stamp(memory, 32 * PAGE, seed);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(holds(memory, 32 * PAGE, seed));
            stamp(memory, 32 * PAGE, 77);
            // The C library makes its allocator usable in a child of a process with threads.
            char *heap = malloc(50000);
            stamp(heap, 50000, i);
            CHECK(holds(heap, 50000, i));
            _exit(i);
        }
        CHECK(status_of(child) == i);
        CHECK(holds(memory, 32 * PAGE, seed));
    }
    return 0;
}

static void while_others_allocate(void)
{
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], 0, allocate, (void *)i) == 0);
    fork_repeatedly((void *)11);
    stop = true;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], 0) == 0);
}

static void by_several_threads(void) { in_threads(3, fork_repeatedly); }

static void two_hundred(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 12);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(holds(memory, 64 * PAGE, 12));
            memset(memory, i, 64 * PAGE);
            _exit(i);
        }
        CHECK(status_of(child) == i);
    }
    CHECK(holds(memory, 64 * PAGE, 12));
}

static void at_once(int count)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 13);
    pid_t children[128];
    int go[2];
    CHECK(pipe(go) == 0);
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            char byte;
            CHECK(close(go[1]) == 0);
            stamp(memory, 16 * PAGE, i);
            CHECK(read(go[0], &byte, 1) == 0);
            CHECK(holds(memory, 16 * PAGE, i));
            _exit(0);
        }
    }
    CHECK(close(go[1]) == 0);
    for (int i = 0; i < count; i++)
        CHECK(status_of(children[i]) == 0);
    CHECK(holds(memory, 16 * PAGE, 13));
}

static void forty_at_once(void) { at_once(40); }
static void hundred_at_once(void) { at_once(100); }

// Memory as it is, and memory that the child makes and frees, are its parent's.
static void by_vfork(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 14);
    for (int i = 0; i < 20; i++) {
        press();
        pid_t child = vfork();
        if (child == 0) {
            memory[0] = (char)i;
            _exit(i);
        }
        CHECK(status_of(child) == i && memory[0] == (char)i);
    }
    *(uint64_t *)memory = mix(14);
    CHECK(holds(memory, 16 * PAGE, 14));
}

static void daemonized(void)
{
    int result[2];
    CHECK(pipe(result) == 0);
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 15);
    pid_t child = fork();
    if (child == 0) {
        CHECK(setsid() > 0);
        if (fork() != 0)
            _exit(0);
        CHECK(chdir("/") == 0);
        usleep(20000);
        press();
        char byte = holds(memory, 64 * PAGE, 15) ? 'y' : 'n';
        CHECK(write(result[1], &byte, 1) == 1);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    char byte = 0;
    CHECK(read(result[0], &byte, 1) == 1 && byte == 'y');
}

// Larger than the budget, forked repeatedly, read by children that run at the same time.
static void large(void)
{
    const size_t bytes = 32 * MIB;
    char *memory = map(bytes);
    stamp(memory, bytes, 16);
    for (int round = 0; round < 2; round++) {
        pid_t children[2];
        for (int i = 0; i < 2; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                CHECK(holds(memory, bytes, 16 + round));
                _exit(0);
            }
        }
        stamp(memory, bytes, 17 + round);
        CHECK(status_of(children[0]) == 0 && status_of(children[1]) == 0);
    }
}

static int share(void *argument)
{
    const int rw = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    char **memory = argument, *mine = memory[1];
    memory[0] = map(8 * PAGE);
    stamp(memory[0], 8 * PAGE, 17);
    CHECK(mmap(mine, 4 * PAGE, rw, flags, -1, 0) == mine && is_zero(mine, 4 * PAGE));
    stamp(mine, 4 * PAGE, 18);
    CHECK(munmap(mine + 12 * PAGE, 4 * PAGE) == 0);
    memory[2] = mremap(mine + 8 * PAGE, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    CHECK(memory[2] != MAP_FAILED);
    return 0;
}

// A process that shares all memory with its maker, but is no thread of it.
static void sharing_process(void)
{
    static char *memory[3];
    memory[1] = map(16 * PAGE);
    stamp(memory[1], 16 * PAGE, 19);
    press();
    char *stack = map(64 * PAGE);
    pid_t child = clone(share, stack + 64 * PAGE, CLONE_VM | SIGCHLD, memory);
    CHECK(status_of(child) == 0);
    press();
    for (int round = 0; round < 2; round++) {
        CHECK(holds(memory[0], 8 * PAGE, 17) && holds(memory[1], 4 * PAGE, 18));
        CHECK(holds(memory[1] + 4 * PAGE, 4 * PAGE, 19 + 4 * PAGE / 8));
        CHECK(holds(memory[2], 4 * PAGE, 19 + 8 * PAGE / 8));
        CHECK(signal_of(memory[1] + 13 * PAGE, false) == SIGSEGV);
        char *more = map(64 * PAGE);
        CHECK(is_zero(more, 64 * PAGE));
        stamp(more, 64 * PAGE, 20);
        press();
        CHECK(holds(more, 64 * PAGE, 20));
        pid_t other = fork();
        if (other == 0) {
            for (int i = 0; i < 3; i++)
                memset(memory[i], 0, 4 * PAGE);
            _exit(0);
        }
        CHECK(status_of(other) == 0);
    }
}

MAIN(CASE(snapshot), CASE(layouts), CASE(nested), CASE(while_others_allocate),
     CASE(by_several_threads), CASE(two_hundred), CASE(forty_at_once), CASE(hundred_at_once),
     CASE(by_vfork), CASE(daemonized), CASE(large), CASE(sharing_process))
