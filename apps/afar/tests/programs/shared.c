// Fills more memory than is local, forks, and has the child read it, then the parent: pages that two
// processes share are those that the kernel reads ahead.
#include "check.h"

#include <sys/wait.h>

enum { PAGES = 16384, ROUNDS = 2 };

static uint64_t sum(const char *memory)
{
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t page = 0; page < PAGES; page++)
            for (size_t at = 0; at < PAGE; at += 8)
                sum += *(const uint64_t *)(memory + page * PAGE + at);
    return sum;
}

int main(void)
{
    char *memory = map(PAGES * PAGE);
    for (size_t at = 0; at < PAGES * PAGE; at += 8)
        *(uint64_t *)(memory + at) = mix(at);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        return (int)(sum(memory) % 251);
    // One after the other: what the test is about is not who meets whom.
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    uint64_t found = sum(memory);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (int)(found % 251));
    printf("%llu\n", (unsigned long long)found);
    return 0;
}
