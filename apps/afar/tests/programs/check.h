// What every program here begins with: each is a set of named cases that check themselves and end with status 0.
// Comes before all other headers.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define MIB (1UL << 20)
#define GIB (1UL << 30)
#define UNUSED __attribute__((unused))

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition))                                                                    \
            check_failed(__FILE__, __LINE__, #condition, errno);                             \
    } while (0)

// The call answers -1 with this errno.
#define CHECK_ERRNO(call, number)                                                            \
    do {                                                                                     \
        errno = 0;                                                                           \
        long answer_ = (long)(call);                                                         \
        if (answer_ != -1 || errno != (number))                                              \
            check_failed(__FILE__, __LINE__, #call " == " #number, errno);                   \
    } while (0)

static UNUSED __attribute__((noreturn)) void check_failed(const char *file, int line,
                                                          const char *what, int number)
{
    dprintf(2, "%s:%d: not so: %s (errno %d: %s, pid %d)\n", file, line, what, number,
            strerror(number), getpid());
    _exit(1);
}

// A number that looks random and is a function of its argument (splitmix64).
static inline uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// Fills memory with what `holds` expects. What follows byte n of seed s begins like seed s + n / 8.
static inline void stamp(void *memory, size_t bytes, uint64_t seed)
{
    uint64_t *words = memory;
    for (size_t i = 0; i < bytes / 8; i++)
        words[i] = mix(seed + i);
}

static inline bool holds(const void *memory, size_t bytes, uint64_t seed)
{
    const uint64_t *words = memory;
    for (size_t i = 0; i < bytes / 8; i++)
        if (words[i] != mix(seed + i)) {
            dprintf(2, "%p: byte %zu of %zu (seed %lu) is %#lx, not %#lx\n", memory, i * 8, bytes,
                    seed, words[i], mix(seed + i));
            return false;
        }
    return true;
}

static inline bool is_zero(const void *memory, size_t bytes)
{
    const uint64_t *words = memory;
    for (size_t i = 0; i < bytes / 8; i++)
        if (words[i]) {
            dprintf(2, "%p: byte %zu of %zu is %#lx, not zero\n", memory, i * 8, bytes, words[i]);
            return false;
        }
    return true;
}

// New private anonymous memory.
static inline void *map(size_t bytes)
{
    void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

// Touches so much other memory that whatever was touched before has to leave.
static inline void press(void)
{
    static char *ballast;
    const size_t bytes = 4 * MIB;
    char *memory = __atomic_load_n(&ballast, __ATOMIC_ACQUIRE);
    if (!memory) {
        char *expected = 0;
        memory = map(bytes);
        if (!__atomic_compare_exchange_n(&ballast, &expected, memory, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            munmap(memory, bytes);
            memory = expected;
        }
    }
    for (size_t at = 0; at < bytes; at += PAGE)
        __atomic_fetch_add(&memory[at], 1, __ATOMIC_RELAXED);
}

static __thread sigjmp_buf check_jump;
static __thread volatile sig_atomic_t check_armed;
static __thread void *volatile check_address;

static UNUSED void check_handler(int signal, siginfo_t *info, void *context)
{
    (void)context;
    check_address = info->si_addr;
    if (!check_armed)
        check_failed(__FILE__, __LINE__, "no signal here", signal);
    siglongjmp(check_jump, signal);
}

// The signal that reading from (or writing to) `address` raises, 0 if none; `si_addr` is checked too.
static UNUSED int signal_of(volatile char *address, bool write)
{
    struct sigaction action = { .sa_sigaction = check_handler, .sa_flags = SA_SIGINFO }, old[2];
    CHECK(sigaction(SIGSEGV, &action, &old[0]) == 0);
    CHECK(sigaction(SIGBUS, &action, &old[1]) == 0);
    int signal = sigsetjmp(check_jump, 1);
    if (signal == 0) {
        check_armed = 1;
        if (write)
            *address = 1;
        else
            (void)*address;
    }
    check_armed = 0;
    CHECK(signal == 0 || check_address == address);
    sigaction(SIGSEGV, &old[0], 0);
    sigaction(SIGBUS, &old[1], 0);
    return signal;
}

// Waits for a child and answers its exit status, or 128 and the signal that ended it.
static inline int status_of(pid_t child)
{
    int status;
    pid_t got;
    CHECK(child > 0);
    while ((got = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    CHECK(got == child);
    CHECK(WIFEXITED(status) || WIFSIGNALED(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A file of `bytes` bytes as `stamp` makes them; it has no name any more.
static UNUSED int scratch_file(size_t bytes, uint64_t seed, int flags)
{
    enum { CHUNK = 1 << 16 };
    static char chunk[CHUNK];
    char path[4096];
    const char *directory = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/afar-XXXXXX", directory ? directory : "/tmp");
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    for (size_t at = 0; at < bytes; at += CHUNK) {
        size_t length = bytes - at < CHUNK ? bytes - at : CHUNK;
        stamp(chunk, CHUNK, seed + at / 8);
        CHECK(write(fd, chunk, length) == (ssize_t)length);
    }
    CHECK(fsync(fd) == 0);
    int again = open(path, O_RDWR | flags);
    CHECK(unlink(path) == 0);
    CHECK(close(fd) == 0);
    return again;
}

static UNUSED void in_threads(int count, void *(*body)(void *))
{
    pthread_t threads[64];
    CHECK(count <= 64);
    for (long i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], 0, body, (void *)i) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], 0) == 0);
}

// Whether the run is under a userfaultfd, which the kernel does not let debuggers read through.
static inline bool by_userfaultfd(void)
{
    const char *trap = getenv("AFAR_TEST_TRAP");
    return trap && strcmp(trap, "userfaultfd") == 0;
}

struct check_case {
    const char *name;
    void (*body)(void);
};

// Runs the case that is the program's argument.
static UNUSED int run_case(int count, char **arguments, const struct check_case *cases,
                           size_t cases_count)
{
    for (size_t i = 0; count > 1 && i < cases_count; i++)
        if (strcmp(cases[i].name, arguments[1]) == 0) {
            cases[i].body();
            return 0;
        }
    dprintf(2, "%s: no such case: %s\n", arguments[0], count > 1 ? arguments[1] : "");
    return 2;
}

// Memory worth having far away: without it a case and its children are too small for afar to say anything of them.
static UNUSED void weigh(size_t bytes)
{
    char *memory = map(bytes);
    for (size_t at = 0; at < bytes; at += PAGE)
        memory[at] = 1;
}

#define CASE(name) { #name, name }
#define MAIN(...)                                                                            \
    int main(int count, char **arguments)                                                    \
    {                                                                                        \
        weigh(2 * MIB);                                                                      \
        static const struct check_case cases[] = { __VA_ARGS__ };                            \
        return run_case(count, arguments, cases, sizeof cases / sizeof cases[0]);            \
    }
