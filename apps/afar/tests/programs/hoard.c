// Writes to shared memory, which is not managed: hoard MIB STATUS [unmap]. With a third word it
// is gone before the program ends.
#include <stdlib.h>
#include <sys/mman.h>

int main(int count, char **words)
{
    size_t bytes = count > 1 ? strtoul(words[1], 0, 10) << 20 : 0;
    if (bytes > 0) {
        volatile char *memory =
            mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return 99;
        for (size_t at = 0; at < bytes; at += 4096)
            memory[at] = 1;
        if (count > 3)
            munmap((void *)memory, bytes);
    }
    return count > 2 ? atoi(words[2]) : 0;
}
