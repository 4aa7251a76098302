// Touches pages in a pattern whose faults can be counted by hand.
//   pages alternate N          two pages, N times each in turn
//   pages last TOTAL X ROUNDS  TOTAL pages once, then the last X of them ROUNDS times
//   pages nothing              none
// Nothing else is touched between the first and the last of them: no call, and so no static data.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile char *pages(long count)
{
    void *memory = mmap(0, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "alternate") == 0) {
        long times = atol(argv[2]);
        volatile char *memory = pages(2);
        memory[0] = 1;
        memory[4096] = 1;
        for (long i = 0; i < times; i++) {
            memory[0]++;
            memory[4096]++;
        }
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "last") == 0) {
        long total = atol(argv[2]), x = atol(argv[3]), rounds = atol(argv[4]);
        volatile char *memory = pages(total);
        for (long i = 0; i < total; i++)
            memory[i * 4096] = 1;
        for (long round = 0; round < rounds; round++)
            for (long i = total - x; i < total; i++)
                memory[i * 4096]++;
        return 0;
    }
    return argc == 2 && strcmp(argv[1], "nothing") == 0 ? 0 : 2;
}
