// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// A delay inside the kernel: reserve the link, add the round trip, wait.
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "link.h"

#define ARRAY(name_, type_, entries_)            \
    struct {                                      \
        __uint(type, BPF_MAP_TYPE_ARRAY);         \
        __uint(map_flags, BPF_F_MMAPABLE);        \
        __type(key, __u32);                       \
        __type(value, type_);                     \
        __uint(max_entries, entries_);            \
    } name_ SEC(".maps")

#define ACCESS_ONCE(x) (*(volatile typeof(x) *)&(x))

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

// Takes `busy_ps` of the way that is free at `*free_ps`, from `now_ps` on; answers when the last bit has been sent.
static __always_inline __u64 occupy(__u64 *free_ps, __u64 now_ps, __u64 busy_ps)
{
    for (int i = 0; i < 8; i++) {
        __u64 free_at = ACCESS_ONCE(*free_ps);
        __u64 start = free_at > now_ps ? free_at : now_ps;
        if (__sync_val_compare_and_swap(free_ps, free_at, start + busy_ps) == free_at)
            return start + busy_ps;
    }
    return now_ps + busy_ps;
}

// Reserves `busy_ps` of the way in.
static __always_inline __u64 reserve(struct link *link, __u64 now_ps, __u64 busy_ps)
{
    if (link->mode == LINK_PER_FAULT || !busy_ps)
        return now_ps + busy_ps;
    return occupy(&link->fetch_free_ps, now_ps, busy_ps);
}

// Round trip, or a draw from the profile of completion times.
static __always_inline __u64 latency_of(struct link *link, struct profile *profile)
{
    if (!link->profiled || !profile)
        return link->rtt_ps;
    // splitmix64 over a counter: the draws of a run are a function of its seed.
    __u64 z = __sync_fetch_and_add(&link->profile_state, 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (__u64)profile->ns[(z >> 32) & (PROFILE_ENTRIES - 1)] * 1000;
}
