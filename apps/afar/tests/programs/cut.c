// fork while others write: the child sees one cut of its parent's memory. Threads write A, then B, then A again, for
// ever; no child may see B ahead of A, or A ahead of B by more than one.
#include "check.h"
#include <sys/epoll.h>

enum { FORKS = 100 };

static volatile bool stop;

struct pair {
    // On different pages. `first` is written before `second`.
    volatile uint64_t *first, *second;
};

static void *write_in_turn(void *argument)
{
    struct pair *pair = argument;
    for (uint64_t n = 1; !stop; n++) {
        __atomic_store_n(pair->first, n, __ATOMIC_RELEASE);
        __atomic_store_n(pair->second, n, __ATOMIC_RELEASE);
    }
    return 0;
}

// As above, by way of the kernel: read(2) writes what was sent through a pipe.
static void *read_in_turn(void *argument)
{
    struct pair *pair = argument;
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (uint64_t n = 1; !stop; n++) {
        CHECK(write(ends[1], &n, 8) == 8 && read(ends[0], (void *)pair->first, 8) == 8);
        CHECK(write(ends[1], &n, 8) == 8 && read(ends[0], (void *)pair->second, 8) == 8);
    }
    return 0;
}

// The other thread writes what it has seen, so that the order is one of two threads; the first waits for that.
static void *follow(void *argument)
{
    struct pair *pair = argument;
    for (uint64_t n = 0, before = 0; !stop; before = n) {
        n = __atomic_load_n(pair->first, __ATOMIC_ACQUIRE);
        __atomic_store_n(pair->second, n, __ATOMIC_RELEASE);
        if (n == before)
            sched_yield();
    }
    return 0;
}

static void *lead(void *argument)
{
    struct pair *pair = argument;
    for (uint64_t n = 1; !stop; n++) {
        __atomic_store_n(pair->first, n, __ATOMIC_RELEASE);
        while (!stop && __atomic_load_n(pair->second, __ATOMIC_ACQUIRE) != n)
            sched_yield();
    }
    return 0;
}

static bool torn(const struct pair *pair, uint64_t ahead_max)
{
    uint64_t first = *pair->first, second = *pair->second;
    if (second <= first && first - second <= ahead_max)
        return false;
    dprintf(2, "torn: %lu was written before %lu\n", first, second);
    return true;
}

// Forks while `writer` (and `other`) write; `ahead_max` is how far the first word may be ahead.
static void fork_under(struct pair pair, void *(*writer)(void *), void *(*other)(void *), uint64_t ahead_max,
                       int forks)
{
    pthread_t threads[2];
    *pair.first = *pair.second = 0;
    CHECK(pthread_create(&threads[0], 0, writer, &pair) == 0);
    if (other)
        CHECK(pthread_create(&threads[1], 0, other, &pair) == 0);
    while (*pair.second == 0)
        ;
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(torn(&pair, ahead_max));
        CHECK(status_of(child) == 0);
    }
    stop = true;
    CHECK(pthread_join(threads[0], 0) == 0);
    if (other)
        CHECK(pthread_join(threads[1], 0) == 0);
}

static struct pair apart(size_t first, size_t second)
{
    size_t bytes = (first > second ? first : second) + PAGE;
    char *memory = map(bytes);
    stamp(memory, bytes, 1);
    return (struct pair){ (void *)(memory + first), (void *)(memory + second) };
}

static void next_pages(void) { fork_under(apart(0, PAGE), write_in_turn, 0, 1, FORKS); }
static void next_pages_backwards(void) { fork_under(apart(PAGE, 0), write_in_turn, 0, 1, FORKS); }
static void far_apart(void) { fork_under(apart(0, 5 * MIB), write_in_turn, 0, 1, FORKS); }
static void far_apart_backwards(void) { fork_under(apart(5 * MIB, 0), write_in_turn, 0, 1, FORKS); }
static void by_the_kernel(void) { fork_under(apart(0, 5 * MIB), read_in_turn, 0, 1, FORKS); }
static void by_the_kernel_backwards(void) { fork_under(apart(5 * MIB, 0), read_in_turn, 0, 1, FORKS); }
static void two_threads(void) { fork_under(apart(0, 5 * MIB), lead, follow, 1, FORKS); }
static void two_threads_backwards(void) { fork_under(apart(5 * MIB, 0), lead, follow, 1, FORKS); }

// One of the words is in static data, of which the kernel makes the copy.
static void static_first(void)
{
    static uint64_t word;
    fork_under((struct pair){ &word, apart(0, PAGE).second }, write_in_turn, 0, 1, FORKS);
}

static void static_second(void)
{
    static uint64_t word;
    fork_under((struct pair){ apart(0, PAGE).first, &word }, write_in_turn, 0, 1, FORKS);
}

// Threads wait in system calls meanwhile: none of them is interrupted.
static void *wait_in_poll(void *argument)
{
    (void)argument;
    while (!stop) {
        struct timespec time = { 0, 3000000 };
        CHECK(nanosleep(&time, 0) == 0);
        int epoll = epoll_create1(0);
        struct epoll_event event;
        CHECK(epoll >= 0 && epoll_wait(epoll, &event, 1, 3) == 0);
        CHECK(close(epoll) == 0);
        CHECK_ERRNO(sigtimedwait(&(sigset_t){ 0 }, 0, &time), EAGAIN);
    }
    return 0;
}

static void nobody_is_interrupted(void)
{
    fork_under(apart(0, 5 * MIB), write_in_turn, wait_in_poll, 1, FORKS);
}

// Threads come and go.
static void *nothing(void *argument) { return argument; }

static void *make_threads(void *argument)
{
    (void)argument;
    const size_t bytes = 16 * PAGE;
    char *stack = map(bytes);
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, bytes) == 0);
    while (!stop) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, &attributes, nothing, stack) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == stack);
    }
    return 0;
}

static void while_threads_end(void) { fork_under(apart(0, 5 * MIB), write_in_turn, make_threads, 1, FORKS); }

// A thread whose stack is managed memory: the kernel tells the child its number there, the parent keeps its own.
static void *fork_from_own_stack(void *argument)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    CHECK(pthread_mutexattr_init(&attributes) == 0);
    CHECK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK) == 0);
    CHECK(pthread_mutex_init(&mutex, &attributes) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        CHECK(pthread_mutex_lock(&mutex) == 0 && mutex.__data.__owner == gettid());
        if (child == 0)
            _exit(0);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
        CHECK(status_of(child) == 0);
    }
    return argument;
}

static void own_stack(void)
{
    const size_t bytes = 64 * PAGE;
    char *stack = map(bytes);
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, bytes) == 0);
    for (int round = 0; round < 2; round++) {
        CHECK(pthread_create(&thread, &attributes, fork_from_own_stack, 0) == 0);
        CHECK(pthread_join(thread, 0) == 0);
        press();
    }
}

// What the parent does while a child's copy is made is not in it: it frees, moves, maps and writes.
static void parent_goes_on(void)
{
    const size_t bytes = 24 * MIB;
    for (int round = 0; round < 4; round++) {
        char *memory = map(bytes);
        stamp(memory, bytes, 3);
        pid_t child = fork();
        if (child == 0) {
            CHECK(holds(memory, bytes, 3));
            _exit(0);
        }
        char *end = memory + bytes;
        stamp(end - MIB, MIB, 4);
        CHECK(madvise(end - 4 * MIB, MIB, MADV_DONTNEED) == 0 && is_zero(end - 4 * MIB, MIB));
        memset(end - 4 * MIB, 1, MIB);
        CHECK(munmap(end - 8 * MIB, 2 * MIB) == 0);
        char *other = map(2 * MIB);
        stamp(other, 2 * MIB, 5);
        char *moved = mremap(end - 12 * MIB, 2 * MIB, 4 * MIB, MREMAP_MAYMOVE);
        CHECK(moved != MAP_FAILED && holds(moved, 2 * MIB, 3 + (bytes - 12 * MIB) / 8));
        stamp(moved, 4 * MIB, 6);
        press();
        CHECK(status_of(child) == 0);
        CHECK(holds(moved, 4 * MIB, 6) && holds(other, 2 * MIB, 5));
        CHECK(munmap(memory, bytes) == 0 && munmap(moved, 4 * MIB) == 0 && munmap(other, 2 * MIB) == 0);
    }
}

// The parent ends, or executes another program, while its child's copy is made.
static void parent_ends(void)
{
    const size_t bytes = 24 * MIB;
    char *memory = map(bytes);
    stamp(memory, bytes, 7);
    int result[2];
    CHECK(pipe(result) == 0);
    for (int round = 0; round < 2; round++) {
        pid_t between = fork();
        if (between == 0) {
            pid_t child = fork();
            if (child == 0) {
                char byte = holds(memory, bytes, 7) ? 'y' : 'n';
                CHECK(write(result[1], &byte, 1) == 1);
                _exit(0);
            }
            if (round == 0)
                _exit(0);
            execl("/bin/true", "true", (char *)0);
            _exit(1);
        }
        CHECK(status_of(between) == 0);
        char byte = 0;
        CHECK(read(result[0], &byte, 1) == 1 && byte == 'y');
    }
}

// Signals arrive all the time: the kernel begins forks anew.
static void on_signal(int signal) { (void)signal; }

static void *send_signals(void *argument)
{
    pthread_t *to = argument;
    while (!stop) {
        CHECK(pthread_kill(*to, SIGUSR1) == 0);
        usleep(700);
    }
    return 0;
}

static void under_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    CHECK(sigaction(SIGUSR1, &action, 0) == 0);
    pthread_t self = pthread_self(), sender;
    CHECK(pthread_create(&sender, 0, send_signals, &self) == 0);
    fork_under(apart(0, 5 * MIB), write_in_turn, 0, 1, 60);
    CHECK(pthread_join(sender, 0) == 0);
}

// Locked memory is in the cut as well.
static void locked(void)
{
    struct pair pair = apart(0, 2 * MIB);
    CHECK(mlock((void *)pair.first, PAGE) == 0 && mlock((void *)pair.second, PAGE) == 0);
    fork_under(pair, write_in_turn, 0, 1, FORKS);
}

// Several threads fork at once.
static struct pair shared_pair;

static void *fork_often(void *argument)
{
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(torn(&shared_pair, 1));
        CHECK(status_of(child) == 0);
    }
    return argument;
}

static void by_several_threads(void)
{
    pthread_t writer;
    shared_pair = apart(5 * MIB, 0);
    *shared_pair.first = *shared_pair.second = 0;
    CHECK(pthread_create(&writer, 0, write_in_turn, &shared_pair) == 0);
    while (*shared_pair.second == 0)
        ;
    in_threads(3, fork_often);
    stop = true;
    CHECK(pthread_join(writer, 0) == 0);
}

// Another process makes memory calls all the time: no fork holds one of them for long. Whoever copied all memory
// between two calls would let it make two or three. One fork of many is enough: others may be busy meanwhile.
enum { CALLS = 8 };
static void others_go_on(void)
{
    struct { volatile uint64_t calls, born, stop; } *shared;
    shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t other = fork();
    if (other == 0) {
        for (; !shared->stop; shared->calls++)
            CHECK(munmap(map(PAGE), PAGE) == 0);
        _exit(0);
    }
    const size_t bytes = 48 * MIB;
    char *memory = map(bytes);
    stamp(memory, bytes, 8);
    bool went_on = false;
    for (int i = 0; i < 30 && !went_on; i++) {
        uint64_t before = shared->calls;
        pid_t child = fork();
        if (child == 0) {
            shared->born = shared->calls;
            _exit(!holds(memory, bytes, 8));
        }
        CHECK(status_of(child) == 0);
        went_on = shared->born - before >= CALLS;
    }
    shared->stop = 1;
    CHECK(status_of(other) == 0 && went_on);
}

MAIN(CASE(next_pages), CASE(next_pages_backwards), CASE(far_apart), CASE(far_apart_backwards), CASE(by_the_kernel),
     CASE(by_the_kernel_backwards), CASE(two_threads), CASE(two_threads_backwards), CASE(static_first),
     CASE(static_second), CASE(nobody_is_interrupted), CASE(while_threads_end), CASE(own_stack),
     CASE(parent_goes_on), CASE(parent_ends), CASE(under_signals), CASE(locked), CASE(by_several_threads),
     CASE(others_go_on))
