// Writes each of its pages once, and reads them all again and again.
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
  size_t pages = 4096, rounds = count > 1 ? strtoul(words[1], 0, 10) : 5;
  unsigned long *memory = aligned_alloc(4096, pages * 4096), sum = 0;
  if (!memory)
    return 1;
  for (size_t page = 0; page < pages; page++)
    for (size_t word = 0; word < 512; word++)
      memory[page * 512 + word] = page * 512 + word;
  for (size_t round = 0; round < rounds; round++)
    for (size_t page = 0; page < pages; page++)
      sum = sum * 31 + ((volatile unsigned long *)memory)[page * 512 + round];
  // One page of a hundred changes, in its last word.
  for (size_t page = 0; page < pages; page += 100)
    memory[page * 512 + 511]++;
  for (size_t page = 0; page < pages; page++)
    for (size_t word = 0; word < 512; word++)
      if (memory[page * 512 + word] != page * 512 + word + (word == 511 && page % 100 == 0))
        return 2;
  printf("read %zu times, %lu\n", rounds, sum);
  return 0;
}
