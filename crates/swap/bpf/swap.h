// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What the delay on the swap device and its supervisor both read and write. `src/swap/tables.rs` is the same
// in Rust; sizes are asserted on both sides.
#pragma once
#include <linux/types.h>

#include "link.h"

#define SWAP_EVENTS_MAX (1 << 16)
#define SWAP_EVENTS_MARGIN 4096
// Threads whose fault is under way; those whose numbers differ by this share a place, and the earlier one is not
// logged (it is counted).
#define THREADS_MAX (1 << 13)
// A request further from the one before than this is not of the same fault.
#define TOGETHER_NS 50000ULL

struct swap_control {
    __u64 epoch_ns;
    // Control group whose members are delayed.
    __u64 group;
    // Device number as the kernel has it: major << 20 | minor.
    __u32 device;
    __u32 timed;
    __u64 pad0[5];
    __u64 event_head;
    __u64 event_lost;
    // Requests, and what they carried.
    __u64 read_count;
    __u64 read_bytes;
    __u64 write_count;
    __u64 write_bytes;
    // Faults that brought pages back.
    __u64 fetch_count;
    // Major faults without a request: pages full of zeros, which the kernel does not store, and files.
    __u64 silent_count;
    __u64 event_tail;
    __u64 pad1[7];
};
_Static_assert(sizeof(struct swap_control) == 192, "struct swap_control");

// A fault that is under way.
struct thread {
    __u64 entered_ns;
    __u64 time_ns;
    __u64 until_ns;
    // What the thread's faults counted up to when this one began.
    __u64 serial;
    __u32 entered_tid;
    __u32 tid;
    __u32 pages;
    __u32 slot;
    __u32 wait_ns;
    __u32 requested_ns;
    __u32 delayed_ns;
    __u32 tgid;
};
_Static_assert(sizeof(struct thread) == 64, "struct thread");

struct swap_event {
    __u64 time_ns;
    // Page within the swap device.
    __u32 slot;
    __u32 tid;
    __u32 tgid;
    // Pages that came with it, itself included; 0 in an entry that is not complete.
    __u32 pages;
    __u32 wait_ns;
    __u32 requested_ns;
    __u32 delayed_ns;
    // The whole fault; 0 if its end was not seen.
    __u32 total_ns;
};
_Static_assert(sizeof(struct swap_event) == 40, "struct swap_event");
