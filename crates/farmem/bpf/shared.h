// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What the trap and the supervisor both read and write. `src/runtime/shared.rs` is the same in Rust; sizes are
// asserted on both sides.
#pragma once
#include <linux/types.h>

#include "link.h"

#define PROCS_MAX 128
#define TIERS_MAX 8
#define EVENTS_MAX (1 << 16)
#define EVENTS_MARGIN 4096

// The arenas lie side by side, one slice of addresses per managed process.
#define ARENA_BASE 0x100000000000ULL
#define ARENA_SHIFT 37
#define ARENA_BYTES (1ULL << ARENA_SHIFT)
#define ARENA_SPAN (ARENA_BYTES * PROCS_MAX)
#define PAGES_PER_ARENA (1U << (ARENA_SHIFT - 12))
#define LEAF_SHIFT 9
#define PAGES_PER_LEAF (1U << LEAF_SHIFT)
#define SEGMENTS_PER_ARENA (PAGES_PER_ARENA / PAGES_PER_LEAF)
#define LEAF_NONE 0U
#define LEAF_CLAIMED 0xffffffffU

// The state word of a page: state 0..2, dirty 3, untracked 4, tier 5..7; then, of a prefetched page, its time of
// arrival 8..31 (0: it has arrived); of a local page, whether it was fetched by a write 8. The time wraps around after
// a second, so the supervisor sets it to 0 some time after the arrival.
#define STATE_MASK 7U
#define STATE_ABSENT 0U
#define STATE_LOCAL 1U
#define STATE_PROBATION 2U
#define STATE_REMOTE 3U
#define STATE_PREFETCHED 4U
#define STATE_FETCHING 5U
#define STATE_FOREIGN 6U
#define WORD_DIRTY (1U << 3)
// Writes to it are not noticed (it is not write-protected), so it counts as dirty as soon as it is local.
#define WORD_UNTRACKED (1U << 4)
#define WORD_WRITE_FETCHED (1U << 8)
#define TIER_SHIFT 5
#define FLAGS_KEPT (0xf8U & ~WORD_UNTRACKED)
#define READY_SHIFT 8
#define READY_MASK 0xffffffU
#define READY_UNIT_SHIFT 6

#define KIND_FIRST_TOUCH 1U
#define KIND_FETCH 2U
#define KIND_SOFT 3U
#define KIND_PREFETCH 4U
#define KIND_ARRIVED 5U
#define FLAG_WRITE 1U
// The times of the event are set; without it they are what an older event left.
#define FLAG_TIMED 8U
// What happened, in one word that is never 0: flags 0..3, kind 4..6, slot 7..13, page 14..38, thread 39..60.
#define TAG_KIND_SHIFT 4
#define TAG_SLOT_SHIFT 7
#define TAG_PAGE_SHIFT 14
#define TAG_TID_SHIFT 39
#define TAG(slot, kind, flags, page, tid)                                                                        \
    ((__u64)(flags) | (__u64)(kind) << TAG_KIND_SHIFT | (__u64)(slot) << TAG_SLOT_SHIFT |                          \
     (__u64)(page) << TAG_PAGE_SHIFT | (__u64)(tid) << TAG_TID_SHIFT)

struct control {
    __u64 epoch_ns;
    __u32 timed;
    __u32 recorded;
    // How long before its time a fetched page is let go to be mapped; 0 if nobody waits for the rest afterwards.
    __u64 lead_ns;
    // What `pace` was when the links' constants were measured; 0 if it was not.
    __u64 reference;
    // The doorbell rings at places of the log that have none of these bits.
    __u64 bell_mask;
    // Whether a sample of pages is watched: then it rings at every few soft faults, too.
    __u64 watched;
    __u64 pad0[2];
    // What the trap writes.
    __u64 event_head;
    __u64 joined_count;
    __u64 stock_head;
    __u64 stock_empty;
    // How long a turn of the wait loop has lately taken, in 1024ths of a nanosecond.
    __u64 pace;
    __u64 soft_count;
    __u64 pad1[2];
    // What the supervisor writes seldom and the trap reads at every fault.
    __u64 event_tail;
    __u64 stock_tail;
    __u64 pad2[6];
    // What both write at times. The doorbell was rung since the supervisor last slept: it is awake, or about to be.
    __u64 rung;
    __u64 event_lost;
    __u64 pad3[6];
};
_Static_assert(sizeof(struct control) == 256, "struct control");

struct proc {
    __u32 tgid;
    __u32 budget;
    __u32 unlimited;
    __u32 prefetch_count;
    __u32 prefetch_stride;
    __u32 last_page;
    __s32 last_stride;
    // Processor of the last fault that rang the doorbell, plus one.
    __u32 processor;
    __u64 first_touch_count;
    __u64 pad1[3];
};
_Static_assert(sizeof(struct proc) == 64, "struct proc");

// A share of local memory: the frames of one budget in one tier.
struct lane {
    __s64 free;
    __s64 low;
    // Faults that found no free frame, and how long processors were held for one: in all, and at most at a time.
    __u64 stall_count;
    __u64 stall_ns;
    __u64 stall_max_ns;
    // There is nothing to evict: nobody waits for a frame.
    __u64 unrelieved;
    __u64 pad[2];
};
_Static_assert(sizeof(struct lane) == 64, "struct lane");

struct directory {
    __u32 leaf[SEGMENTS_PER_ARENA];
};

// State words of 2 MiB.
struct leaf {
    __u32 word[PAGES_PER_LEAF];
};

// What a fault without a delay needs, in one place: every table of its own costs a look-up.
struct shared {
    struct control control;
    struct proc procs[PROCS_MAX];
    // By budget and tier.
    struct lane lanes[PROCS_MAX * TIERS_MAX];
    __u64 tags[EVENTS_MAX];
    struct directory directories[PROCS_MAX];
};
_Static_assert(sizeof(struct shared) == 34152704, "struct shared");

// When it happened and how long it took, of an event with FLAG_TIMED.
struct timing {
    __u64 time_ns;
    __u32 tid;
    __u32 wait_ns;
    __u32 requested_ns;
    __u32 measured_ns;
};
_Static_assert(sizeof(struct timing) == 24, "struct timing");
