// Reads a word of each of its pages, round after round, and with `write` writes it right after: a page comes by a read,
// and leaves written to. With `restore` it writes another word, and puts the old one back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
  size_t pages = 2048, rounds = count > 2 ? strtoul(words[2], 0, 10) : 6;
  int writes = count > 1 && !strcmp(words[1], "write"), restores = count > 1 && !strcmp(words[1], "restore");
  volatile unsigned long *memory = aligned_alloc(4096, pages * 4096);
  if (!memory)
    return 1;
  for (size_t page = 0; page < pages; page++)
    memory[page * 512] = page;
  for (size_t round = 0; round < rounds; round++)
    for (size_t page = 0; page < pages; page++) {
      unsigned long was = memory[page * 512];
      if (was != page + (writes ? round : 0))
        return 2;
      if (writes)
        memory[page * 512] = was + 1;
      if (restores) {
        memory[page * 512] = ~was;
        memory[page * 512] = was;
      }
    }
  printf("%zu rounds\n", rounds);
  return 0;
}
