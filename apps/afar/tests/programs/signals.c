// Signals: on remote stacks, with exact addresses, in the middle of memory calls.
#include "check.h"

#include <dirent.h>
#include <sys/time.h>

static volatile sig_atomic_t seen;
static char *alternate;
static size_t alternate_bytes;

static void on_alternate(int signal)
{
    (void)signal;
    volatile char frame[8000];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (char)i;
    for (size_t i = 0; i < sizeof frame; i++)
        CHECK(frame[i] == (char)i);
    CHECK((char *)frame >= alternate && (char *)frame < alternate + alternate_bytes);
    seen++;
}

static void set_alternate(size_t bytes)
{
    alternate_bytes = bytes;
    alternate = malloc(bytes);
    stack_t stack = { .ss_sp = alternate, .ss_size = bytes };
    CHECK(sigaltstack(&stack, 0) == 0);
}

static void alternate_stack(void)
{
    set_alternate(128 << 10);
    struct sigaction action = { .sa_handler = on_alternate, .sa_flags = SA_ONSTACK };
    CHECK(sigaction(SIGUSR1, &action, 0) == 0);
    for (int i = 0; i < 200; i++) {
        if (i % 4 == 0)
            press();
        raise(SIGUSR1);
        CHECK(seen == i + 1);
    }
}

static sigjmp_buf overflowed;

static void on_overflow(int signal)
{
    char *frame = __builtin_frame_address(0);
    CHECK(frame >= alternate && frame < alternate + alternate_bytes);
    siglongjmp(overflowed, signal);
}

static int descend(int left)
{
    volatile char frame[4000];
    frame[0] = (char)left;
    return left == 0 ? 0 : descend(left - 1) + frame[0];
}

static void *overflow(void *argument)
{
    set_alternate(128 << 10);
    press();
    if (sigsetjmp(overflowed, 1) == 0)
        descend(1 << 20);
    else
        seen++;
    return argument;
}

// Overflow of a stack that is itself allocated, with a guard page below.
static void stack_overflow(void)
{
    struct sigaction action = { .sa_handler = on_overflow, .sa_flags = SA_ONSTACK };
    CHECK(sigaction(SIGSEGV, &action, 0) == 0);
    for (int i = 0; i < 5; i++) {
        char *stack = map(66 * PAGE);
        CHECK(mprotect(stack, 2 * PAGE, PROT_NONE) == 0);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        CHECK(pthread_attr_setstack(&attributes, stack + 2 * PAGE, 64 * PAGE) == 0);
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, overflow, 0) == 0);
        CHECK(pthread_join(thread, 0) == 0);
        CHECK(seen == i + 1);
        CHECK(munmap(stack, 66 * PAGE) == 0);
    }
}

static void fault_address(void)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 1);
    for (int page = 1; page < 64; page += 2)
        CHECK(mprotect(memory + page * PAGE, PAGE, PROT_NONE) == 0);
    for (int round = 0; round < 2; round++) {
        // signal_of checks the address that it is told.
        for (int page = 0; page < 64; page++)
            CHECK(signal_of(memory + page * PAGE + 13 * page, false) == (page % 2 ? SIGSEGV : 0));
        press();
    }
    CHECK(signal_of((char *)8, false) == SIGSEGV);
    CHECK(mprotect(memory, 64 * PAGE, PROT_READ) == 0 && holds(memory, 64 * PAGE, 1));
}

// A garbage collector's write barrier: read-only pages become writable when they are written to.
static char *heap;
static volatile int barriers;

static void open_page(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    char *page = (char *)((uintptr_t)info->si_addr & ~(PAGE - 1));
    CHECK(page >= heap && page < heap + 256 * PAGE);
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
    barriers++;
}

static void write_barrier(void)
{
    heap = map(256 * PAGE);
    stamp(heap, 256 * PAGE, 2);
    struct sigaction action = { .sa_sigaction = open_page, .sa_flags = SA_SIGINFO };
    CHECK(sigaction(SIGSEGV, &action, 0) == 0);
    for (int round = 0; round < 3; round++) {
        CHECK(mprotect(heap, 256 * PAGE, PROT_READ) == 0);
        press();
        CHECK(holds(heap, 256 * PAGE, 2 + round));
        stamp(heap, 256 * PAGE, 3 + round);
        CHECK(barriers == 256 * (round + 1));
    }
}

static void ring(int signal)
{
    (void)signal;
    seen++;
}

static void start_ringing(void)
{
    struct sigaction action = { .sa_handler = ring, .sa_flags = SA_RESTART };
    CHECK(sigaction(SIGALRM, &action, 0) == 0);
    struct itimerval often = { { 0, 100 }, { 0, 100 } };
    CHECK(setitimer(ITIMER_REAL, &often, 0) == 0);
}

// Signals arrive while mmap, mremap and munmap wait for their answer.
static void in_memory_calls(void)
{
    start_ringing();
    char *last = 0;
    for (int i = 0; i < 10000; i++) {
        size_t bytes = (1 + i % 5) * PAGE;
        char *memory = map(bytes);
        CHECK(is_zero(memory, bytes));
        stamp(memory, bytes, i);
        if (i % 3 == 0) {
            memory = mremap(memory, bytes, bytes + 8 * PAGE, MREMAP_MAYMOVE);
            CHECK(memory != MAP_FAILED && holds(memory, bytes, i));
            CHECK(is_zero(memory + bytes, 8 * PAGE));
            CHECK(munmap(memory + bytes, 8 * PAGE) == 0);
        }
        CHECK(holds(memory, bytes, i));
        if (last)
            CHECK(munmap(last, (1 + (i - 1) % 5) * PAGE) == 0);
        last = memory;
    }
    CHECK(seen > 10);
}

// Memory does not leak through calls that a signal interrupted: the addresses would run out.
static void in_large_calls(void)
{
    start_ringing();
    for (int i = 0; i < 5000; i++) {
        char *memory = mmap(0, GIB, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(memory != MAP_FAILED);
        CHECK(memory[i * PAGE] == 0);
        memory[i * PAGE] = 1;
        CHECK(munmap(memory, GIB) == 0);
    }
    CHECK(seen > 10);
}

static void in_forks(void)
{
    start_ringing();
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 4);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(holds(memory, 64 * PAGE, 4));
            _exit(0);
        }
        CHECK(status_of(child) == 0);
    }
    CHECK(seen > 10);
}

static void stop_and_continue(void)
{
    int *shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        char *memory = map(MIB);
        for (int i = 0; !__atomic_load_n(shared, __ATOMIC_ACQUIRE); i++) {
            stamp(memory, MIB, i);
            CHECK(holds(memory, MIB, i));
        }
        _exit(9);
    }
    for (int i = 0; i < 20; i++) {
        int status;
        CHECK(kill(child, SIGSTOP) == 0);
        CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        CHECK(WSTOPSIG(status) == SIGSTOP);
        press();
        CHECK(kill(child, SIGCONT) == 0);
        CHECK(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
        usleep(2000);
    }
    __atomic_store_n(shared, 1, __ATOMIC_RELEASE);
    CHECK(status_of(child) == 9);
}

// A thread of a process that is not its first, once there is one; 0 if it has none for a while.
static pid_t another_thread(pid_t process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    for (int i = 0; i < 100; i++) {
        DIR *tasks = opendir(path);
        CHECK(tasks);
        pid_t found = 0;
        for (struct dirent *task; (task = readdir(tasks));)
            if (atoi(task->d_name) > 0 && atoi(task->d_name) != process)
                found = atoi(task->d_name);
        closedir(tasks);
        if (found)
            return found;
    }
    return 0;
}

// A child is stopped before it has all of its memory, whichever of its threads takes the signal,
// and its parent hears what there is to hear.
static void stopped_at_birth(void)
{
    char *memory = map(512 * PAGE);
    stamp(memory, 512 * PAGE, 4);
    // As many mappings as there are pages.
    for (int page = 0; page < 512; page += 2)
        CHECK(mprotect(memory + page * PAGE, PAGE, PROT_READ) == 0);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(holds(memory, 512 * PAGE, 4));
            for (;;)
                pause();
        }
        int status;
        pid_t thread = i % 2 ? another_thread(child) : 0;
        CHECK(syscall(SYS_tgkill, child, thread ? thread : child, SIGSTOP) == 0);
        CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        CHECK(kill(child, SIGCONT) == 0);
        CHECK(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
        CHECK(kill(child, SIGTERM) == 0);
        CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
    }
}

static volatile sig_atomic_t children;

static void on_child(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    CHECK(info->si_code == CLD_EXITED);
    children++;
}

// A parent hears of its children what it would hear without a supervisor, and no more.
static void child_signals(void)
{
    struct sigaction action = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART };
    CHECK(sigaction(SIGCHLD, &action, 0) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(10000));
            _exit(i);
        }
        CHECK(status_of(child) == i);
        CHECK(children == i + 1);
    }
    CHECK_ERRNO(waitpid(-1, 0, __WALL), ECHILD);
}

static void aborts(void)
{
    press();
    abort();
}

static void terminated(void)
{
    press();
    raise(SIGTERM);
}

static void killed(void)
{
    press();
    raise(SIGKILL);
}

static void segmentation_fault(void)
{
    char *memory = map(4 * PAGE);
    press();
    munmap(memory, 4 * PAGE);
    *(volatile char *)memory = 1;
}

MAIN(CASE(alternate_stack), CASE(stack_overflow), CASE(fault_address), CASE(write_barrier),
     CASE(in_memory_calls), CASE(in_large_calls), CASE(in_forks), CASE(stop_and_continue),
     CASE(stopped_at_birth), CASE(child_signals), CASE(aborts), CASE(terminated), CASE(killed),
     CASE(segmentation_fault))
