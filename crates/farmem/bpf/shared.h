// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What the trap and the supervisor both read and write. `tables/src/shared.rs` is the same in Rust; sizes are
// asserted on both sides.
#pragma once
#include <linux/types.h>

#include "link.h"

#define PROCS_MAX 4096
#define TIERS_MAX 8
#define EVENTS_MAX (1 << 16)
#define EVENTS_MARGIN 4096
// Thread numbers of the kernel are below this.
#define PIDS_MAX (1 << 22)

// Memory below this address may be under management; above it the kernel places what it chooses itself.
#define ADDRESS_TOP 0x7e8000000000ULL
// A process says which one it is by reading an address of this range, where nothing is mapped.
#define ENROL_BASE 0x770000000000ULL
#define ENROL_BYTES 0x40000000000ULL

// Page states lie in a tree as the processor's page tables do: a root for each process, two levels of nodes, and
// leaves of state words. All nodes and leaves are of one size and come from one stock. An entry is the number of a
// node or leaf, or one of these: everything below it is under management and untouched, or nothing below it is under
// management, or its node is being taken from the stock. A node that is all zeros is open.
#define ENTRY_OPEN 0U
#define ENTRY_CLOSED 0xfffffffeU
#define ENTRY_CLAIMED 0xffffffffU
#define NODE_ENTRIES 512U
#define ROOT_ENTRIES 256U
#define ROOT_SHIFT 39
#define UPPER_SHIFT 30
#define LOWER_SHIFT 21
#define PAGE_SHIFT 12

// The state word of a page: state 0..2, dirty 3, untracked 4, tier 5..7; then, of a prefetched page, its time of
// arrival 8..31 (0: it has arrived); of a local page, whether it was fetched by a write 8; of a page on probation, its
// ticket 9..31 (0: it is not leaving). The time wraps around after a second, so the supervisor sets it to 0 some time
// after the arrival.
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
#define TICKET_SHIFT 9
#define TICKETS (1U << 22)
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
// An event of the log is this one word; its times are elsewhere (`struct timing`). The supervisor tells at every 256th
// event how far it has read, and what both sides write lies apart from what one of them reads at every fault: a cache
// line that another processor has written costs as much as the rest of the trap.
// What happened, in one word that is never 0: flags 0..3, kind 4..6, leaf 7..26, page within the leaf 27..35. Whose
// leaf it is, `afar_owners` says.
#define TAG_KIND_SHIFT 4
#define TAG_LEAF_SHIFT 7
#define TAG_PAGE_SHIFT 27
#define TAG(kind, flags, leaf, page)                                                                             \
    ((__u64)(flags) | (__u64)(kind) << TAG_KIND_SHIFT | (__u64)(leaf) << TAG_LEAF_SHIFT |                          \
     (__u64)(page) << TAG_PAGE_SHIFT)
// The owner of a leaf: slot 0..15, the address of its first page in units of 2 MiB from 16 on.
#define OWNER_SEGMENT_SHIFT 16

#define OFF_LONG_NS 20000

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
    // Programs that go on with a fault's wait, one after the other, when the kernel takes it up.
    __u64 stretches;
    __u64 pad0;
    // What the trap writes.
    __u64 event_head;
    __u64 joined_count;
    __u64 stock_head;
    // Touches that were let through because the stock was empty.
    __u64 stock_empty;
    // How long a turn of the wait loop has lately taken, in 1024ths of a nanosecond.
    __u64 pace;
    __u64 soft_count;
    // How long a processor had interrupts off at most, and how often for longer than OFF_LONG_NS.
    __u64 off_max_ns;
    __u64 off_long_count;
    // What the supervisor writes seldom and the trap reads at every fault.
    __u64 event_tail;
    // The trap leaves what comes after this for the supervisor, so that a node which is given back is not soon used
    // again: somebody may be about to read it.
    __u64 stock_tail;
    __u64 pad2[6];
    // What both write at times. The doorbell was rung since the supervisor last slept: it is awake, or about to be.
    __u64 rung;
    __u64 event_lost;
    // The doorbell had no room for a number.
    __u64 bell_lost;
    __u64 pad3[5];
};
_Static_assert(sizeof(struct control) == 256, "struct control");

struct proc {
    // As the kernel numbers it, whatever namespaces there are; 0 before it has enrolled.
    __u32 tgid;
    __u32 budget;
    __u32 unlimited;
    __u32 prefetch_count;
    __u32 prefetch_stride;
    // Processor of the last fault that rang the doorbell, plus one.
    __u32 processor;
    __u64 first_touch_count;
    // The address at which it enrols; 0 for none.
    __u64 enrol_address;
    __s64 last_page;
    __s64 last_stride;
    __u64 pad;
};
_Static_assert(sizeof(struct proc) == 64, "struct proc");

// Pages that leave local memory, in order: unmapped, with their contents on the way out or there already. A fault that
// finds no free frame takes that of the next page, unless it was touched meanwhile. They lie in a node of the stock, a
// ring of OUTGOING_MAX. The ticket in a page's word is the number of its entry modulo TICKETS, plus one; so an entry of
// a page that was touched, and is leaving again, is known to be an old one.
#define OUTGOING_MAX 128U
#define OUTGOING_WORDS 4U
// Which one: its leaf times NODE_ENTRIES, plus its place there.
#define OUTGOING_PAGE 0U
// What became of it: 0 nothing yet, or one of these.
#define OUTGOING_OUTCOME 1U
#define OUTCOME_LEFT 1U
#define OUTCOME_STAYS 2U
// Two words: when far memory has what is in it, in picoseconds of the run; only then is the frame free.
#define OUTGOING_FREE 2U

// A share of local memory: the frames of one budget in one tier.
struct lane {
    // Frames without a page.
    __s64 free;
    // The doorbell rings when so many frames can still be had.
    __s64 low;
    // Faults that found no free frame, and how long processors were held for one: in all, and at most at a time.
    __u64 stall_count;
    __u64 stall_ns;
    __u64 stall_max_ns;
    // There is nothing to evict: nobody waits for a frame.
    __u64 unrelieved;
    // Entries of the outgoing pages that were taken, and placed, since the start; they wrap around.
    __u32 taken;
    __u32 placed;
    // The node they are in; 0 for none.
    __u32 outgoing;
    __u32 pad;
};
_Static_assert(sizeof(struct lane) == 64, "struct lane");

// Entries for 2 MiB, or state words of it; entries for a gigabyte.
struct node {
    __u32 entry[NODE_ENTRIES];
};

struct root {
    __u32 entry[ROOT_ENTRIES];
};

// What a fault without a delay needs, in one place: every table of its own costs a look-up.
struct shared {
    struct control control;
    struct proc procs[PROCS_MAX];
    // By budget and tier.
    struct lane lanes[PROCS_MAX * TIERS_MAX];
    __u64 tags[EVENTS_MAX];
    struct root roots[PROCS_MAX];
    // Slots by process, plus one.
    __u16 slots[PIDS_MAX];
};
_Static_assert(sizeof(struct shared) == 15466752, "struct shared");

// When it happened and how long it took, of an event with FLAG_TIMED.
struct timing {
    __u64 time_ns;
    __u32 tid;
    __u32 wait_ns;
    __u32 requested_ns;
    __u32 measured_ns;
};
_Static_assert(sizeof(struct timing) == 24, "struct timing");
