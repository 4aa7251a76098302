// Starting other programs.
#include "check.h"

#include <spawn.h>

extern char **environ;

static char *memory;

static void fill(void)
{
    memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, 1);
    press();
}

static void check_filled(void)
{
    CHECK(holds(memory, 64 * PAGE, 1));
    CHECK(munmap(memory, 64 * PAGE) == 0);
}

static pid_t spawn(char *const *arguments, char *const *environment)
{
    pid_t child;
    CHECK(posix_spawn(&child, "/proc/self/exe", 0, 0, arguments, environment) == 0);
    return child;
}

static void by_spawn(void)
{
    fill();
    for (int i = 0; i < 10; i++)
        CHECK(status_of(spawn((char *[]){ "execs", "work", 0 }, environ)) == 7);
    pid_t child;
    CHECK(posix_spawnp(&child, "/nonexistent", 0, 0, (char *[]){ "x", 0 }, environ) == ENOENT);
    check_filled();
}

static void by_system(void)
{
    // Beside the shells that it starts.
    weigh(24 * MIB);
    fill();
    CHECK(system("exit 3") >> 8 == 3);
    CHECK(system("x=$(seq 1 20000 | sort -n | tail -1); test \"$x\" = 20000") == 0);
    check_filled();
}

static void by_popen(void)
{
    fill();
    FILE *pipe = popen("seq 1 1000", "r");
    long sum = 0, number;
    CHECK(pipe);
    while (fscanf(pipe, "%ld", &number) == 1)
        sum += number;
    CHECK(sum == 500500 && pclose(pipe) == 0);
    check_filled();
}

static void by_vfork(void)
{
    fill();
    for (int i = 0; i < 10; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/proc/self/exe", "execs", "work", (char *)0);
            _exit(99);
        }
        CHECK(status_of(child) == 7);
    }
    check_filled();
}

static void work(void)
{
    char *heap = malloc(500000);
    stamp(heap, 500000, 2);
    press();
    CHECK(holds(heap, 500000, 2));
    exit(7);
}

// The program becomes itself again, twelve times, with arguments.
static void itself(void)
{
    char *turn = getenv("TURN"), next[16];
    int number = turn ? atoi(turn) : 0;
    fill();
    if (number < 12) {
        snprintf(next, sizeof next, "%d", number + 1);
        setenv("TURN", next, 1);
        execl("/proc/self/exe", "execs", "itself", "with", "more", "arguments", (char *)0);
        CHECK(!"reached");
    }
    check_filled();
}

static void *become(void *argument)
{
    press();
    execl("/proc/self/exe", "execs", "work", (char *)0);
    return argument;
}

// All other threads are gone then, and so is the memory.
static void from_thread(void)
{
    pthread_t thread;
    fill();
    CHECK(pthread_create(&thread, 0, become, 0) == 0);
    for (;;)
        free(malloc(200000));
}

static void failing(void)
{
    fill();
    for (int i = 0; i < 10; i++) {
        CHECK_ERRNO(execl("/nonexistent", "x", (char *)0), ENOENT);
        CHECK_ERRNO(execl("/etc", "x", (char *)0), EACCES);
        CHECK_ERRNO(execl("/etc/passwd", "x", (char *)0), EACCES);
        char *more = map(16 * PAGE);
        CHECK(is_zero(more, 16 * PAGE));
        stamp(more, 16 * PAGE, i);
        press();
        CHECK(holds(more, 16 * PAGE, i));
    }
    check_filled();
}

static void empty_environment(void)
{
    fill();
    CHECK(status_of(spawn((char *[]){ "execs", "work", 0 }, (char *[]){ 0 })) == 7);
    check_filled();
}

static void many_arguments(void)
{
    enum { COUNT = 20000 };
    // Beside its arguments, which lie on the first stack of the shell: that stays local.
    weigh(24 * MIB);
    fill();
    char **arguments = calloc(COUNT + 5, sizeof *arguments);
    char *head[] = { "sh", "-c", "test $# = 20000 && test \"$1\" = 0123456789 && exit 5", "name" };
    memcpy(arguments, head, sizeof head);
    for (int i = 0; i < COUNT; i++)
        arguments[4 + i] = strdup("0123456789");
    press();
    pid_t child;
    CHECK(posix_spawnp(&child, "sh", 0, 0, arguments, environ) == 0);
    CHECK(status_of(child) == 5);
    check_filled();
}

static void tree(void)
{
    char *text = getenv("DEPTH"), next[16];
    int depth = text ? atoi(text) : 4;
    fill();
    if (depth > 0) {
        pid_t children[2];
        snprintf(next, sizeof next, "%d", depth - 1);
        setenv("DEPTH", next, 1);
        for (int i = 0; i < 2; i++)
            children[i] = spawn((char *[]){ "execs", "tree", 0 }, environ);
        for (int i = 0; i < 2; i++)
            CHECK(status_of(children[i]) == 0);
    }
    check_filled();
}

MAIN(CASE(by_spawn), CASE(by_system), CASE(by_popen), CASE(by_vfork), CASE(work), CASE(itself),
     CASE(from_thread), CASE(failing), CASE(empty_environment), CASE(many_arguments), CASE(tree))
