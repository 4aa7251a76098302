// Fills more memory than is local and reads it again, round after round, in the order that suits no
// policy; prints the sum of what it read.
#include "check.h"

enum { PAGES = 8192, ROUNDS = 3 };

int main(void)
{
    char *memory = map(PAGES * PAGE);
    for (size_t page = 0; page < PAGES; page++)
        for (size_t at = 0; at < PAGE; at += 8)
            *(uint64_t *)(memory + page * PAGE + at) = mix(page * PAGE + at);
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t page = 0; page < PAGES; page++)
            for (size_t at = 0; at < PAGE; at += 8) {
                uint64_t word = *(uint64_t *)(memory + page * PAGE + at);
                CHECK(word == mix(page * PAGE + at));
                sum += word;
            }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
