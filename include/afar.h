/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Places parts of a program's memory in a named tier of far memory:
 *
 *     afar run --local 25% --rtt 2us --tier name=slow,rtt=20us,local=10% -- ./program
 *
 *     double *archive = malloc(bytes);
 *     afar_place(archive, bytes, "slow");
 *
 * Needs no library. Without afar the program runs as before.
 */
#ifndef AFAR_H
#define AFAR_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

/* Longest name of a tier: it travels in one register. */
#define AFAR_TIER_BYTES_MAX 8

/* Puts the pages that hold [ptr, ptr + bytes) into the tier named `tier`. Pages are whole: what
 * else lies on the first and the last one goes along.
 *
 * Returns 0. Returns -1 with errno EINVAL when the program does not run under afar, there is no
 * such tier, or the memory is none that afar manages (malloc and anonymous mmap; not the stack,
 * static data or files); nothing has changed then, and it is safe to ignore.
 */
static inline int afar_place(void *ptr, size_t bytes, const char *tier)
{
    uint64_t name = 0;
    unsigned i;

    for (i = 0; tier[i] != '\0'; i++) {
        if (i == AFAR_TIER_BYTES_MAX) {
            errno = EINVAL;
            return -1;
        }
        name |= (uint64_t)(unsigned char)tier[i] << (8 * i);
    }
    /* "afar" in hexadecimal: no prctl(2) of the kernel has this number. */
    return prctl(0x61666172, 3UL, (unsigned long)(uintptr_t)ptr, (unsigned long)bytes,
                 (unsigned long)name);
}

#endif
