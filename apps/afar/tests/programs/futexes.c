// Futexes in memory that comes and goes.
#include "check.h"

#include <linux/futex.h>

static int *word;

static long futex(int *at, int operation, int value)
{
    return syscall(SYS_futex, at, operation, value, 0, 0, 0);
}

static void *bounce(void *argument)
{
    int self = (int)(uintptr_t)argument & 1, flag = (int)(uintptr_t)argument & FUTEX_PRIVATE_FLAG;
    for (int i = 0; i < 3000; i++) {
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != self)
            futex(word, FUTEX_WAIT | flag, 1 - self);
        __atomic_store_n(word, 1 - self, __ATOMIC_RELEASE);
        futex(word, FUTEX_WAKE | flag, 1);
        if (i % 300 == 0)
            press();
    }
    return 0;
}

static void between_threads(void)
{
    for (int flag = 0; flag <= FUTEX_PRIVATE_FLAG; flag += FUTEX_PRIVATE_FLAG) {
        word = malloc(64);
        *word = 0;
        pthread_t other;
        CHECK(pthread_create(&other, 0, bounce, (void *)(uintptr_t)(flag | 1)) == 0);
        bounce((void *)(uintptr_t)flag);
        CHECK(pthread_join(other, 0) == 0);
    }
}

static void between_processes(void)
{
    word = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        bounce((void *)1);
        _exit(0);
    }
    bounce(0);
    CHECK(status_of(child) == 0);
}

// The same address in parent and child is two different futexes.
static void not_shared_by_fork(void)
{
    word = map(PAGE);
    *word = 0;
    pid_t child = fork();
    if (child == 0) {
        struct timespec limit = { 0, 100 * 1000 * 1000 };
        CHECK_ERRNO(syscall(SYS_futex, word, FUTEX_WAIT, 0, &limit, 0, 0), ETIMEDOUT);
        _exit(0);
    }
    for (int i = 0; i < 50; i++) {
        CHECK(futex(word, FUTEX_WAKE, 1) == 0);
        usleep(1000);
    }
    CHECK(status_of(child) == 0);
}

static void errors(void)
{
    char *memory = map(2 * PAGE);
    CHECK(munmap(memory + PAGE, PAGE) == 0);
    CHECK_ERRNO(futex((int *)(memory + PAGE), FUTEX_WAIT, 0), EFAULT);
    CHECK_ERRNO(futex((int *)memory, FUTEX_WAIT, 1), EAGAIN);
    press();
    CHECK_ERRNO(futex((int *)memory, FUTEX_WAIT_PRIVATE, 1), EAGAIN);
}

MAIN(CASE(between_threads), CASE(between_processes), CASE(not_shared_by_fork), CASE(errors))
