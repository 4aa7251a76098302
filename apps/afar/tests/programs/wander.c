// Writes each of its pages once, and reads them all in an order of its own, again and again. Ends
// with a status that is given.
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
  size_t pages = 4096, rounds = count > 1 ? strtoul(words[1], 0, 10) : 1, at = 5;
  int status = count > 2 ? atoi(words[2]) : 0;
  unsigned long *memory = aligned_alloc(4096, pages * 4096), sum = 0;
  if (!memory)
    return 1;
  for (size_t page = 0; page < pages; page++)
    for (size_t word = 0; word < 512; word++)
      memory[page * 512 + word] = page * 512 + word;
  // Neighbours are never read one after the other, and no stride is kept.
  for (size_t round = 0; round < rounds; round++)
    for (size_t step = 0; step < pages; step++) {
      at = (at * 1229 + 4001) % pages;
      for (size_t word = 0; word < 512; word++)
        sum = sum * 31 + ((volatile unsigned long *)memory)[at * 512 + word];
    }
  printf("read %zu times, %lu\n", rounds, sum);
  return status;
}
