// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// A delay inside the kernel: reserve the link, add the round trip (`law.h`), wait.
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "law.h"

#define ARRAY(name_, type_, entries_)            \
    struct {                                      \
        __uint(type, BPF_MAP_TYPE_ARRAY);         \
        __uint(map_flags, BPF_F_MMAPABLE);        \
        __type(key, __u32);                       \
        __type(value, type_);                     \
        __uint(max_entries, entries_);            \
    } name_ SEC(".maps")

struct spin_clock {
    __u64 until_ns;
    // What the clock was when it was last looked at.
    __u64 now_ns;
};

static long spin_clock(__u32 index, void *context)
{
    struct spin_clock *spin = context;
    spin->now_ns = bpf_ktime_get_ns();
    return spin->now_ns >= spin->until_ns;
}

// Answers how often it looked at the clock.
static __always_inline long spin_until(__u64 until_ns)
{
    struct spin_clock spin = { .until_ns = until_ns };
    return bpf_loop(1 << 20, spin_clock, &spin, 0);
}
