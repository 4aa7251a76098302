// Writes each of its pages once, and reads them all in an order of its own, again and again. Every
// second page is static data. Ends with a status that is given.
#include <stdio.h>
#include <stdlib.h>

enum { PAGES = 4096, WORDS = 512 };

static _Alignas(4096) unsigned long even[PAGES / 2][WORDS];

int main(int count, char **words) {
  size_t rounds = count > 1 ? strtoul(words[1], 0, 10) : 1, at = 5;
  int status = count > 2 ? atoi(words[2]) : 0;
  unsigned long(*odd)[WORDS] = aligned_alloc(4096, PAGES / 2 * sizeof *odd), sum = 0;
  if (!odd)
    return 1;
  for (size_t page = 0; page < PAGES; page++)
    for (size_t word = 0; word < WORDS; word++)
      (page % 2 ? odd : even)[page / 2][word] = page * WORDS + word;
  // Neighbours are never read one after the other, and no stride is kept.
  for (size_t round = 0; round < rounds; round++)
    for (size_t step = 0; step < PAGES; step++) {
      at = (at * 1229 + 4001) % PAGES;
      volatile unsigned long *page = (at % 2 ? odd : even)[at / 2];
      for (size_t word = 0; word < WORDS; word++)
        sum = sum * 31 + page[word];
    }
  printf("read %zu times, %lu\n", rounds, sum);
  return status;
}
