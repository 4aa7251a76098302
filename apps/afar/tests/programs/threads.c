// Threads: made, joined, detached, on borrowed stacks, dying with locks held.
#include "check.h"

#include <dirent.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

static pthread_barrier_t barrier;

static void *meet(void *argument)
{
    char *memory = malloc(5000);
    stamp(memory, 5000, (uintptr_t)argument);
    pthread_barrier_wait(&barrier);
    CHECK(holds(memory, 5000, (uintptr_t)argument));
    free(memory);
    return argument;
}

static void five_hundred(void)
{
    enum { COUNT = 500 };
    pthread_t threads[COUNT];
    CHECK(pthread_barrier_init(&barrier, 0, COUNT + 1) == 0);
    for (long i = 0; i < COUNT; i++)
        CHECK(pthread_create(&threads[i], 0, meet, (void *)i) == 0);
    press();
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < COUNT; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0 && result == (void *)i);
    }
}

static void *touch(void *argument)
{
    volatile char *memory = malloc(100);
    memory[50] = 1;
    free((void *)memory);
    return argument;
}

static void one_after_another(void)
{
    for (long i = 0; i < 2000; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, 0, touch, (void *)i) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == (void *)i);
    }
}

static int counter;

static void *count(void *argument)
{
    touch(argument);
    __atomic_add_fetch(&counter, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static void *count_when_detached(void *is_detached)
{
    while (sem_wait(is_detached) != 0)
        CHECK(errno == EINTR);
    return count(is_detached);
}

// A thread that is detached from outside must not end before: glibc (2.36, nptl/pthread_detach.c)
// looks at its descriptor once more after that, and by then the thread may have unmapped it.
static void detached(void)
{
    static sem_t is_detached[500];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 500; i++) {
        pthread_t thread;
        if (i % 2) {
            CHECK(pthread_create(&thread, &attributes, count, 0) == 0);
        } else {
            CHECK(sem_init(&is_detached[i], 0, 0) == 0);
            CHECK(pthread_create(&thread, 0, count_when_detached, &is_detached[i]) == 0);
            CHECK(pthread_detach(thread) == 0);
            CHECK(sem_post(&is_detached[i]) == 0);
        }
        if (i % 50 == 0)
            press();
    }
    while (__atomic_load_n(&counter, __ATOMIC_ACQUIRE) < 500)
        usleep(1000);
}

static int depth(int left)
{
    volatile char frame[3000];
    memset((char *)frame, left, sizeof frame);
    int below = left ? depth(left - 1) : 0;
    CHECK(frame[0] == (char)left && frame[2999] == (char)left);
    return below + 1;
}

static void *deep(void *argument)
{
    pthread_barrier_wait(&barrier);
    CHECK(depth(30) == 31);
    pthread_barrier_wait(&barrier);
    // Most of the stack is remote by now.
    pthread_barrier_wait(&barrier);
    return argument;
}

static void own_stack(void)
{
    enum { COUNT = 8, BYTES = 256 << 10 };
    CHECK(pthread_barrier_init(&barrier, 0, COUNT + 1) == 0);
    for (int round = 0; round < 10; round++) {
        pthread_t threads[COUNT];
        char *stacks[COUNT];
        for (long i = 0; i < COUNT; i++) {
            pthread_attr_t attributes;
            CHECK(posix_memalign((void **)&stacks[i], PAGE, BYTES) == 0);
            pthread_attr_init(&attributes);
            CHECK(pthread_attr_setstack(&attributes, stacks[i], BYTES) == 0);
            CHECK(pthread_create(&threads[i], &attributes, deep, (void *)i) == 0);
        }
        for (int phase = 0; phase < 3; phase++) {
            press();
            pthread_barrier_wait(&barrier);
        }
        for (long i = 0; i < COUNT; i++) {
            void *result;
            CHECK(pthread_join(threads[i], &result) == 0 && result == (void *)i);
            free(stacks[i]);
        }
    }
}

static int exit_later(void *microseconds)
{
    usleep((useconds_t)(uintptr_t)microseconds);
    syscall(SYS_exit, 0);
    return 0;
}

// The kernel itself clears the word when the thread ends, at a time when a fault cannot be taken as usual.
static void cleared_word(void)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    int *words = map(64 * PAGE);
    char *stack = map(16 * PAGE);
    for (uintptr_t i = 0; i < 64; i++) {
        int *word = words + i * (PAGE / sizeof(int)), seen;
        *word = -1;
        CHECK(clone(exit_later, stack + 16 * PAGE, flags, (void *)(i % 8 * 2000), 0, 0, word) > 0);
        press();
        while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)))
            syscall(SYS_futex, word, FUTEX_WAIT, seen, 0, 0, 0);
    }
}

enum { WORDS = 64 };
static int *words;

// Of them, too, some are always about to leave.
static void *press_on(void *done)
{
    while (!__atomic_load_n((int *)done, __ATOMIC_ACQUIRE)) {
        press();
        for (size_t i = 0; i < WORDS; i++)
            (void)__atomic_load_n(words + i * (PAGE / sizeof(int)), __ATOMIC_RELAXED);
    }
    return 0;
}

static pid_t helper_of(pid_t process)
{
    char path[300], name[20];
    pid_t helper = 0;
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *threads = opendir(path);
    CHECK(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/comm", process, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strcmp(name, "afar-helper\n") == 0)
            helper = atoi(entry->d_name);
        if (file)
            fclose(file);
    }
    closedir(threads);
    return helper;
}

// Under afar another thread unmaps the pages that leave: it stands still half of the time.
static int hinder_helper(void *done)
{
    pid_t helper = helper_of(getppid());
    while (helper && !__atomic_load_n((int *)done, __ATOMIC_ACQUIRE)) {
        int status;
        CHECK(ptrace(PTRACE_ATTACH, helper, 0, 0) == 0);
        CHECK(waitpid(helper, &status, __WALL) == helper);
        usleep(20000);
        CHECK(ptrace(PTRACE_DETACH, helper, 0, 0) == 0);
        usleep(20000);
    }
    return 0;
}

static void *spin(void *done)
{
    while (!__atomic_load_n((int *)done, __ATOMIC_ACQUIRE))
        ;
    return 0;
}

// All others go before it.
static int exit_late(void *microseconds)
{
    CHECK(syscall(SYS_setpriority, PRIO_PROCESS, 0, 19) == 0);
    return exit_later(microseconds);
}

// Many end while pages are leaving all the time, among them those of their words.
static void end_under_pressure(void)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    enum { OTHERS = 3 };
    int done = 0, seen;
    words = map(WORDS * PAGE);
    char *stacks = map((WORDS + 1) * 4 * PAGE);
    pthread_t others[OTHERS];
    for (int i = 0; i < OTHERS; i++)
        CHECK(pthread_create(&others[i], 0, i ? spin : press_on, &done) == 0);
    pid_t hinderer = clone(hinder_helper, stacks + 4 * PAGE, CLONE_VM | CLONE_FILES | SIGCHLD, &done);
    CHECK(hinderer > 0);
    for (int round = 0; round < 5; round++) {
        for (uintptr_t i = 0; i < WORDS; i++) {
            int *word = words + i * (PAGE / sizeof(int));
            *word = -1;
            CHECK(clone(exit_late, stacks + (i + 2) * 4 * PAGE, flags, (void *)(i * 2000), 0, 0,
                        word) > 0);
        }
        for (int i = 0; i < WORDS; i++) {
            int *word = words + i * (PAGE / sizeof(int));
            usleep(2000);
            while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)))
                syscall(SYS_futex, word, FUTEX_WAIT, seen, 0, 0, 0);
        }
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    CHECK(status_of(hinderer) == 0);
    for (int i = 0; i < OTHERS; i++)
        CHECK(pthread_join(others[i], 0) == 0);
}

static int exit_when_told(void *told)
{
    while (!__atomic_load_n((int *)told, __ATOMIC_ACQUIRE))
        usleep(100);
    usleep(5000);
    syscall(SYS_exit, 0);
    return 0;
}

// The thread ends while another waits for the page of its word: for long, if the network is slow.
static void ends_while_fetched(void)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    // Shared, so always local.
    char *shared = mmap(0, 17 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    int *told = (int *)(shared + 16 * PAGE), *words = map(5 * PAGE);
    for (int i = 0; i < 5; i++) {
        int *word = words + i * (PAGE / sizeof(int)), seen;
        *word = -1;
        *told = 0;
        CHECK(clone(exit_when_told, shared + 16 * PAGE, flags, told, 0, 0, word) > 0);
        // New memory, so that nothing is fetched.
        memset(map(4 * MIB), 1, 4 * MIB);
        __atomic_store_n(told, 1, __ATOMIC_RELEASE);
        while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)))
            syscall(SYS_futex, word, FUTEX_WAIT, seen, 0, 0, 0);
    }
}

static pthread_mutex_t *robust;

static void *die_holding(void *argument)
{
    CHECK(pthread_mutex_lock(robust) == 0);
    press();
    return argument;
}

static void robust_mutex(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < 20; i++) {
        char *memory = map(PAGE);
        robust = (pthread_mutex_t *)(memory + 128);
        CHECK(pthread_mutex_init(robust, &attributes) == 0);
        pthread_t thread;
        CHECK(pthread_create(&thread, 0, die_holding, 0) == 0);
        CHECK(pthread_join(thread, 0) == 0);
        CHECK(pthread_mutex_lock(robust) == EOWNERDEAD);
        CHECK(pthread_mutex_consistent(robust) == 0);
        CHECK(pthread_mutex_unlock(robust) == 0);
        CHECK(pthread_mutex_destroy(robust) == 0);
    }
}

static void robust_mutex_of_a_process(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    robust = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pthread_mutex_init(robust, &attributes) == 0);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            die_holding(0);
            _exit(0);
        }
        CHECK(status_of(child) == 0);
        CHECK(pthread_mutex_lock(robust) == EOWNERDEAD);
        CHECK(pthread_mutex_consistent(robust) == 0);
        CHECK(pthread_mutex_unlock(robust) == 0);
    }
}

static pthread_t first;

static void *after_the_first(void *argument)
{
    (void)argument;
    CHECK(pthread_join(first, 0) == 0);
    char *memory = malloc(MIB), *other = map(8 * PAGE), *obstacle = map(PAGE);
    stamp(memory, MIB, 1);
    stamp(other, 8 * PAGE, 2);
    CHECK(mprotect(other, 8 * PAGE, PROT_READ) == 0);
    press();
    memory = realloc(memory, 8 * MIB);
    CHECK(holds(memory, MIB, 1));
    other = mremap(other, 8 * PAGE, 256 * PAGE, MREMAP_MAYMOVE);
    CHECK(other != MAP_FAILED && holds(other, 8 * PAGE, 2));
    CHECK(signal_of(other, true) == SIGSEGV);
    pid_t child = fork();
    if (child == 0) {
        CHECK(holds(memory, MIB, 1) && holds(other, 8 * PAGE, 2));
        stamp(memory, MIB, 3);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(holds(memory, MIB, 1));
    CHECK(munmap(obstacle, PAGE) == 0);
    in_threads(4, touch);
    exit(0);
}

// The first thread ends; the process goes on.
static void first_thread_ends(void)
{
    pthread_t thread;
    first = pthread_self();
    CHECK(pthread_create(&thread, 0, after_the_first, 0) == 0);
    pthread_exit(0);
}

static void *call_exit(void *status)
{
    press();
    exit((int)(uintptr_t)status);
}

static void exit_from_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, 0, call_exit, (void *)23) == 0);
    pause();
}

// The last thread goes without ending the process explicitly.
static void last_thread_ends(void)
{
    press();
    syscall(SYS_exit, 9);
}

static __thread char local[20000];

static void *use_local(void *argument)
{
    CHECK(is_zero(local, sizeof local));
    stamp(local, sizeof local, (uintptr_t)argument);
    for (int i = 0; i < 3; i++) {
        press();
        CHECK(holds(local, sizeof local, (uintptr_t)argument));
    }
    return 0;
}

static void thread_local_memory(void)
{
    for (int i = 0; i < 3; i++)
        in_threads(8, use_local);
}

struct table {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int turn;
};
static struct table *table;

static void *play(void *argument)
{
    int self = (int)(uintptr_t)argument;
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&table->mutex);
        while (table->turn != self)
            pthread_cond_wait(&table->changed, &table->mutex);
        table->turn = 1 - self;
        pthread_cond_signal(&table->changed);
        pthread_mutex_unlock(&table->mutex);
        if (i % 200 == 0)
            press();
    }
    return 0;
}

static void conditions(void)
{
    table = malloc(sizeof *table);
    pthread_mutex_init(&table->mutex, 0);
    pthread_cond_init(&table->changed, 0);
    table->turn = 0;
    in_threads(2, play);
}

static void *wait_for_ever(void *argument)
{
    char memory[3000];
    stamp(memory, sizeof memory, 1);
    pause();
    return argument;
}

static void cancelled(void)
{
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, 0, wait_for_ever, 0) == 0);
        if (i % 10 == 0)
            press();
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
}

// Under afar another thread ends before its process does. A debugger may keep that from it.
static int keep_helper(pid_t of, int told)
{
    pid_t helper = helper_of(of);
    int status;
    if (helper) {
        CHECK(ptrace(PTRACE_ATTACH, helper, 0, 0) == 0);
        CHECK(waitpid(helper, &status, __WALL) == helper);
    }
    CHECK(write(told, "x", 1) == 1);
    if (helper)
        CHECK(waitpid(helper, &status, __WALL) == helper && WIFSIGNALED(status));
    return 0;
}
static void exits_without_its_helper(void)
{
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        if (child == 0) {
            char *memory = map(64 * PAGE);
            stamp(memory, 64 * PAGE, round);
            pid_t own = getpid();
            if (fork() == 0)
                _exit(keep_helper(own, ends[1]));
            CHECK(read(ends[0], &byte, 1) == 1);
            _exit(7);
        }
        CHECK(status_of(child) == 7);
    }
}

// Whether the helper ends by itself, with 0, and not with its process, with that one's status.
static int ends_first(pid_t of, int told)
{
    pid_t helper = helper_of(of);
    unsigned long ended_with = 0;
    int status;
    if (helper)
        CHECK(ptrace(PTRACE_SEIZE, helper, 0, PTRACE_O_TRACEEXIT) == 0);
    CHECK(write(told, "x", 1) == 1);
    if (helper) {
        CHECK(waitpid(helper, &status, __WALL) == helper);
        // Who is killed does not always stop.
        if (status >> 8 != (SIGTRAP | PTRACE_EVENT_EXIT << 8))
            return 0;
        CHECK(ptrace(PTRACE_GETEVENTMSG, helper, 0, &ended_with) == 0);
        CHECK(ended_with == 0 || ended_with == 7 << 8);
    }
    return ended_with == 0;
}
static void helper_ends_first(void)
{
    int first = 0, ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    // It may be late, and its process does not wait for ever.
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0) {
            char *memory = map(64 * PAGE);
            stamp(memory, 64 * PAGE, round);
            pid_t own = getpid();
            if (fork() == 0) {
                byte = ends_first(own, ends[1]);
                CHECK(write(ends[1], &byte, 1) == 1);
                _exit(0);
            }
            CHECK(read(ends[0], &byte, 1) == 1);
            _exit(7);
        }
        CHECK(status_of(child) == 7);
        CHECK(read(ends[0], &byte, 1) == 1);
        first += byte;
    }
    CHECK(first > 0);
}

MAIN(CASE(five_hundred), CASE(one_after_another), CASE(detached), CASE(own_stack),
     CASE(cleared_word), CASE(ends_while_fetched), CASE(end_under_pressure),
     CASE(robust_mutex),
     CASE(robust_mutex_of_a_process),
     CASE(first_thread_ends), CASE(exits_without_its_helper),
     CASE(helper_ends_first), CASE(exit_from_thread), CASE(last_thread_ends),
     CASE(thread_local_memory), CASE(conditions), CASE(cancelled))
