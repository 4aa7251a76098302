// Writes to every page of 64 MiB, twice, and checks them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    size_t bytes = 64u << 20;
    volatile char *memory = malloc(bytes);
    if (!memory)
        return 1;
    for (int pass = 1; pass <= 2; pass++)
        for (size_t at = 0; at < bytes; at += 4096)
            memory[at] += pass;
    for (size_t at = 0; at < bytes; at += 4096)
        if (memory[at] != 3)
            return 2;
    puts("touched");
    return 0;
}
