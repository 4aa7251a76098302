// The kernel writes to words of the program of its own accord: when a thread ends or is preempted, or takes a lock.
// The words are static data, as those of a C library that is linked statically are.
#include "check.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/rseq.h>

enum { ROUNDS = 16 };

// A page of its own.
union word {
    _Atomic int value;
    uint64_t words[PAGE / 8];
};

static union word words[ROUNDS] __attribute__((aligned(PAGE)));
static union word lock __attribute__((aligned(PAGE)));
static char stacks[ROUNDS][8 * PAGE] __attribute__((aligned(PAGE)));
static _Atomic int ready;

static void end(void) { syscall(SYS_exit, 0); }

static void wait_for_zero(union word *word)
{
    int seen;
    while ((seen = word->value))
        syscall(SYS_futex, &word->value, FUTEX_WAIT, seen, 0, 0, 0);
}

// Starts a thread that no C library knows; `more` flags say what `told` and `cleared` are for.
static void start(int (*body)(void *), int number, int more, union word *told, union word *cleared)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    char *stack = stacks[number] + sizeof stacks[number];
    CHECK(clone(body, stack, flags | more, (void *)(uintptr_t)number, told, 0, cleared) > 0);
}

static int end_at_once(void *number)
{
    press();
    end();
    return number != 0;
}

// A word that has the thread's number, and one that has another value.
static void cleared(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        words[i].value = -1;
        int told = i % 2 ? CLONE_PARENT_SETTID : 0;
        start(end_at_once, i, CLONE_CHILD_CLEARTID | told, &words[i], &words[i]);
        press();
        wait_for_zero(&words[i]);
    }
}

// As musl ends threads: with the lock of its list of threads, which the kernel opens.
static void take_lock(void)
{
    int open = 0;
    while (!atomic_compare_exchange_strong(&lock.value, &open, gettid())) {
        syscall(SYS_futex, &lock.value, FUTEX_WAIT, open, 0, 0, 0);
        open = 0;
    }
}

static int end_with_lock(void *number)
{
    take_lock();
    return end_at_once(number);
}

static void lock_opened(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        start(end_with_lock, i, CLONE_CHILD_CLEARTID, 0, &lock);
        if (i % 4 == 3)
            press();
    }
    for (int i = 0; i < 4; i++) {
        press();
        wait_for_zero(&lock);
    }
}

// A thread that names its word itself.
static int name_and_end(void *number)
{
    union word *own = &words[(uintptr_t)number];
    own->value = (uintptr_t)number % 2 ? gettid() : -1;
    CHECK(syscall(SYS_set_tid_address, &own->value) == gettid());
    ready = 1;
    return end_at_once(number);
}

static void named(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        ready = 0;
        start(name_and_end, i, 0, 0, 0);
        while (!ready)
            sched_yield();
        press();
        wait_for_zero(&words[i]);
    }
}

static int outlive(void *number)
{
    wait_for_zero(&words[0]);
    _exit(number == 0);
}

// The first thread ends, and the process goes on.
static void named_by_the_first(void)
{
    words[0].value = gettid();
    CHECK(syscall(SYS_set_tid_address, &words[0].value) == gettid());
    start(outlive, 1, 0, 0, 0);
    press();
    end();
}

// As before, but it has named its word before the program asked for any memory.
static __attribute__((constructor)) void name_early(void)
{
    syscall(SYS_set_tid_address, &words[1].value);
}

static int outlive_early(void *number)
{
    wait_for_zero(&words[1]);
    _exit(number == 0);
}

static void named_before_all(void)
{
    words[1].value = gettid();
    start(outlive_early, 1, 0, 0, 0);
    press();
    end();
}

// Locks that a thread still has when it ends are marked.
static struct robust_list_head heads[ROUNDS] __attribute__((aligned(PAGE)));
static struct {
    struct robust_list entry;
    union word futex;
} held[ROUNDS] __attribute__((aligned(PAGE)));

static int end_with_robust_lock(void *number)
{
    uintptr_t i = (uintptr_t)number;
    long distance = (char *)&held[i].futex - (char *)&held[i].entry;
    heads[i] = (struct robust_list_head){ { &held[i].entry }, distance, 0 };
    held[i].entry.next = (struct robust_list *)&heads[i];
    held[i].futex.value = gettid() | FUTEX_WAITERS;
    CHECK(syscall(SYS_set_robust_list, &heads[i], sizeof heads[i]) == 0);
    ready = 1;
    return end_at_once(number);
}

static void marked(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        ready = 0;
        start(end_with_robust_lock, i, 0, 0, 0);
        while (!ready)
            sched_yield();
        press();
        int seen;
        while (!((seen = held[i].futex.value) & FUTEX_OWNER_DIED))
            syscall(SYS_futex, &held[i].futex.value, FUTEX_WAIT, seen, 0, 0, 0);
    }
}

// The processor that a thread is on.
static struct rseq areas[2] __attribute__((aligned(PAGE)));
static _Atomic int done;

static int look(void *number)
{
    struct rseq *own = &areas[(uintptr_t)number];
    if (syscall(SYS_rseq, own, sizeof *own, 0, 0x53053053) != 0)
        check_failed(__FILE__, __LINE__, "rseq", errno);
    for (int i = 0; i < 30; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i % (int)sysconf(_SC_NPROCESSORS_ONLN), &one);
        press();
        CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
        unsigned cpu;
        CHECK(syscall(SYS_getcpu, &cpu, 0, 0) == 0);
        CHECK(__atomic_load_n(&own->cpu_id, __ATOMIC_RELAXED) == cpu);
    }
    done++;
    end();
    return 0;
}

static void preempted(void)
{
    for (int i = 0; i < 2; i++)
        start(look, i, 0, 0, 0);
    while (done < 2)
        usleep(1000);
}

// Locks with an owner, which the kernel keeps, and sums that it makes.
static void locked(void)
{
    for (int i = 0; i < 3; i++) {
        _Atomic int *own = &words[i].value, *sum = own + 2;
        press();
        CHECK(syscall(SYS_futex, own, FUTEX_LOCK_PI, 0, 0, 0, 0) == 0 && *own == gettid());
        press();
        CHECK(syscall(SYS_futex, own, FUTEX_UNLOCK_PI, 0, 0, 0, 0) == 0 && *own == 0);
        press();
        CHECK(syscall(SYS_futex, own, FUTEX_TRYLOCK_PI, 0, 0, 0, 0) == 0 && *own == gettid());
        press();
        int add = FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_GT, 0);
        CHECK(syscall(SYS_futex, &lock.value, FUTEX_WAKE_OP, 1, 1, sum, add) == 0 && *sum == 5);
        press();
        CHECK(syscall(SYS_futex, own, FUTEX_CMP_REQUEUE, 1, 1, &lock.value, gettid()) == 0);
    }
}

// As `lock_opened`, while the process is copied again and again.
static void *fork_on(void *argument)
{
    while (done < 20 * ROUNDS) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        CHECK(status_of(child) == 0);
    }
    return argument;
}

static int count_and_end(void *number)
{
    take_lock();
    done++;
    end();
    return number != 0;
}

static void while_forking(void)
{
    pthread_t forking;
    CHECK(pthread_create(&forking, 0, fork_on, 0) == 0);
    for (int round = 1; round <= 20; round++) {
        for (int i = 0; i < ROUNDS; i++)
            start(count_and_end, i, CLONE_CHILD_CLEARTID, 0, &lock);
        while (done < round * ROUNDS)
            sched_yield();
        wait_for_zero(&lock);
    }
    CHECK(pthread_join(forking, 0) == 0);
}

MAIN(CASE(cleared), CASE(lock_opened), CASE(named), CASE(named_by_the_first), CASE(named_before_all), CASE(marked),
     CASE(preempted), CASE(locked), CASE(while_forking))
