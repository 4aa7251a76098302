// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// A link to far memory as the kernel side and the supervisor both see it. `tables/src/link.rs` is the same in Rust.
#pragma once
#include <linux/types.h>

#define PROFILE_ENTRIES 4096

#define LINK_HALF_DUPLEX 0U
#define LINK_PER_FAULT 1U
#define LINK_FULL_DUPLEX 2U

struct link {
    __u64 rtt_ps;
    __u64 page_ps;
    __u64 constant_ns;
    __u32 mode;
    __u32 profiled;
    __u64 profile_state;
    __u64 pad0[3];
    __u64 fetch_free_ps;
    __u64 write_free_ps;
    __u64 pad1[6];
};
_Static_assert(sizeof(struct link) == 128, "struct link");

// Quantiles of the completion time of one page, evenly spaced.
struct profile {
    __u32 ns[PROFILE_ENTRIES];
};
