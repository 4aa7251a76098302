// Works for ever with its memory, in two threads and two processes; ends when its parent does.
#include "check.h"

#include <sys/prctl.h>

static void *work(void *argument)
{
    uint64_t state = (uintptr_t)argument;
    char *memory = map(8 * MIB);
    for (;;) {
        state = mix(state);
        memory[state % (8 * MIB)]++;
        if (state % 64 == 0) {
            char *other = map(16 * PAGE);
            CHECK(is_zero(other, 16 * PAGE));
            other[0] = 1;
            CHECK(munmap(other, 16 * PAGE) == 0);
        }
    }
    return 0;
}

int main(void)
{
    pid_t parent = getpid();
    press();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        if (getppid() != parent)
            return 1;
        work(0);
    }
    CHECK(write(1, "ready\n", 6) == 6);
    in_threads(2, work);
}
