// A program whose threads a tracer follows, as strace -f and debuggers do, forks as it does without one.
#include "check.h"
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/time.h>

// Lets everything that stops go on, until nothing is left. Answers the status of `main`.
static int follow(pid_t main)
{
    const long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    int status, result = -1, event;
    CHECK(waitpid(main, &status, 0) == main && WIFSTOPPED(status));
    CHECK(ptrace(PTRACE_SETOPTIONS, main, 0, options | PTRACE_O_EXITKILL) == 0);
    CHECK(ptrace(PTRACE_CONT, main, 0, 0) == 0);
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (WIFSTOPPED(status)) {
            // Of births nobody is told, nor of the stop that a new thread begins with.
            event = status >> 16;
            long signal = event || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
            CHECK(ptrace(PTRACE_CONT, pid, 0, signal) == 0 || errno == ESRCH);
        } else if (pid == main) {
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
    return result;
}

static void traced(void (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
        raise(SIGSTOP);
        body();
        _exit(0);
    }
    CHECK(follow(child) == 0);
}

// A child has what its parent had, and neither sees what the other writes.
static void apart(char *memory, size_t bytes, int seed)
{
    stamp(memory, bytes, seed);
    pid_t child = fork();
    if (child == 0) {
        CHECK(holds(memory, bytes, seed));
        stamp(memory, bytes, seed + 1);
        press();
        CHECK(holds(memory, bytes, seed + 1));
        _exit(seed % 100);
    }
    stamp(memory, bytes, seed + 2);
    CHECK(status_of(child) == seed % 100);
    CHECK(holds(memory, bytes, seed + 2));
}

static void some(void)
{
    char *memory = map(256 * PAGE);
    for (int i = 0; i < 20; i++)
        apart(memory, 256 * PAGE, 10 + i);
    pid_t child = fork();
    if (child == 0) {
        apart(memory, 256 * PAGE, 50);
        _exit(7);
    }
    CHECK(status_of(child) == 7);
}
static void forks(void) { traced(some); }

static void one_large(void) { apart(map(48 * MIB), 48 * MIB, 3); }
static void large(void) { traced(one_large); }

static void *in_thread(void *number)
{
    char *memory = map(64 * PAGE);
    for (int i = 0; i < 6; i++)
        apart(memory, 64 * PAGE, 10 * (long)number + i);
    return 0;
}
static void many(void) { in_threads(6, in_thread); }
static void by_several_threads(void) { traced(many); }

static char *shared_by_name;
static int on_own_stack(void *argument)
{
    char here[256];
    memset(here, 5, sizeof here);
    CHECK(argument == shared_by_name && holds(argument, 16 * PAGE, 9));
    stamp(argument, 16 * PAGE, 8);
    return here[99];
}
static void cloned(void)
{
    char *stack = map(64 * PAGE);
    shared_by_name = map(16 * PAGE);
    stamp(shared_by_name, 16 * PAGE, 9);
    int number = 0;
    pid_t child =
        clone(on_own_stack, stack + 64 * PAGE, CLONE_PARENT_SETTID | SIGCHLD, shared_by_name, &number);
    CHECK(child > 0 && number == child);
    CHECK(status_of(child) == 5);
    press();
    CHECK(holds(shared_by_name, 16 * PAGE, 9));
}
static void own_stack(void) { traced(cloned); }

static volatile sig_atomic_t ticks;
static void tick(int signal) { ticks += signal == SIGALRM; }
static void interrupted(void)
{
    struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 500 }, { 0, 500 } };
    CHECK(sigaction(SIGALRM, &action, 0) == 0 && setitimer(ITIMER_REAL, &often, 0) == 0);
    some();
    CHECK(ticks > 0);
}
static void under_signals(void) { traced(interrupted); }

static void ended(void)
{
    char *memory = map(1024 * PAGE);
    stamp(memory, 1024 * PAGE, 2);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                pause();
        CHECK(kill(child, SIGKILL) == 0);
        CHECK(status_of(child) == 128 + SIGKILL);
    }
    apart(memory, 1024 * PAGE, 4);
}
static void killed_children(void) { traced(ended); }

// As a leak checker does at the end of a program: a process that shares its memory stops all its
// threads and reads all it has.
enum { STOPPED_BYTES = 40 * MIB };
static char *to_read;
static int stop_all_and_read(void *argument)
{
    char path[64];
    pid_t stopped[64];
    int count = 0, status;
    snprintf(path, sizeof path, "/proc/%d/task", *(pid_t *)argument);
    DIR *tasks = opendir(path);
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));)
        if (atoi(task->d_name) > 0 && count < 64)
            stopped[count++] = atoi(task->d_name);
    for (int i = 0; i < count; i++) {
        CHECK(ptrace(PTRACE_ATTACH, stopped[i], 0, 0) == 0);
        CHECK(waitpid(stopped[i], &status, __WALL) == stopped[i]);
    }
    int same = holds(to_read, STOPPED_BYTES, 6);
    for (int i = 0; i < count; i++)
        CHECK(ptrace(PTRACE_DETACH, stopped[i], 0, 0) == 0);
    return same;
}
static void stopped_and_read(void)
{
    to_read = map(STOPPED_BYTES);
    char *stack = map(64 * PAGE);
    stamp(to_read, STOPPED_BYTES, 6);
    stamp(stack, 64 * PAGE, 7);
    pid_t own = getpid();
    pid_t child = clone(stop_all_and_read, stack + 64 * PAGE, CLONE_VM | CLONE_FILES | SIGCHLD, &own);
    CHECK(status_of(child) == 1);
    press();
    CHECK(holds(to_read, STOPPED_BYTES, 6));
}

MAIN(CASE(forks), CASE(large), CASE(by_several_threads), CASE(own_stack), CASE(under_signals),
     CASE(killed_children), CASE(stopped_and_read))
