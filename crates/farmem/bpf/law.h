// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// The law of a link: when a transfer begins, ends, and is acknowledged. `tables/src/link.rs` is the same in Rust, and
// `measure::Link` says what it is; a test runs this file outside the kernel beside both.
#pragma once
#include "link.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define ACCESS_ONCE(x) (*(volatile typeof(x) *)&(x))

// Takes `busy_ps` of the way that is free at `*free_ps`, from `now_ps` on; answers when the last bit has been sent.
static __always_inline __u64 occupy(__u64 *free_ps, __u64 now_ps, __u64 busy_ps)
{
    for (int i = 0; i < 8; i++) {
        __u64 free_at = ACCESS_ONCE(*free_ps);
        __u64 start = free_at > now_ps ? free_at : now_ps;
        if (__sync_val_compare_and_swap(free_ps, free_at, start + busy_ps) == free_at)
            return start + busy_ps;
    }
    // Many do so at this moment: whoever comes last is last.
    __u64 end = __sync_fetch_and_add(free_ps, busy_ps) + busy_ps;
    return end > now_ps + busy_ps ? end : now_ps + busy_ps;
}

// Reserves `busy_ps` of the way in; answers when the last bit has been sent.
static __always_inline __u64 reserve(struct link *link, __u64 now_ps, __u64 busy_ps)
{
    if (link->mode == LINK_PER_FAULT || !busy_ps)
        return now_ps + busy_ps;
    return occupy(&link->fetch_free_ps, now_ps, busy_ps);
}

// The same of the way out.
static __always_inline __u64 reserve_out(struct link *link, __u64 now_ps, __u64 busy_ps)
{
    if (link->mode == LINK_PER_FAULT || !busy_ps)
        return now_ps + busy_ps;
    return occupy(link->mode == LINK_HALF_DUPLEX ? &link->fetch_free_ps : &link->write_free_ps, now_ps, busy_ps);
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
