// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// The trap: what happens between the processor's page fault and the kernel's own handling of it.
//
//   page fault -> whose page? -> state word -> claim a frame -> reserve the link -> busy-wait -> log
//
// DESIGN NOTES
//
// * The program runs on the stock tracepoints `exceptions:page_fault_user` and `page_fault_kernel`, which fire
//   in the faulting thread with interrupts off, before the kernel looks at the address. The kernel then
//   resolves the fault as an ordinary minor fault of a shared memory file: the bytes never moved.
// * One 32-bit word holds all that is known of a page. Every change of state is one compare-and-exchange, so two
//   threads that meet on a page never both pay for it: the loser waits for the winner (STATE_FETCHING).
// * A frame is claimed by decrementing a lane's `free` counter, or else from the next outgoing page: that is unmapped,
//   and needs one compare-and-exchange. Its frame is free when its write-back is acknowledged, and the fault waits for
//   that. With neither the supervisor is late. The fault cannot wait for a frame here, because the thread that would
//   free one needs this processor to answer its TLB shoot-down, and interrupts are off. So it goes on, and rings for
//   the thread that holds this processor.
// * The log is a plain array with an atomic head, not a BPF ring buffer: it costs a third, and the supervisor wants
//   batches. The ring buffer `doorbell` only wakes it.
// * The kernel takes a few hundred nanoseconds to map the page, more or less as its caches are warm. So the wait ends
//   early (`lead_ns`, 4 us), and a second program at the end of the fault touches the page and waits for the rest:
//   mapping the page and walking to it are inside the delay. That program is attached to the software event of minor
//   faults, on every processor, and only while there is a delay.
// * What is outside of both programs takes a constant time, which the calibration measures; but a processor whose
//   neighbour is at work is slower by a quarter or more. How long a turn of the wait loop takes tells how fast it is,
//   and scales the constant.
// * Interrupts are off in the trap. They are also off in a program on a software event (on Linux 6.18; not on older
//   kernels). So no program waits for more than OFF_MAX_NS. What is left of a wait is kept by thread (`afar_waiting`).
//   Further programs, on the software event of page faults, go on with it one after the other before the kernel looks
//   for the page, and interrupts come in between two of them. There are as many as the longest delay of two pages
//   needs. A wait that turns out longer, behind a queue, ends in the last of them; the record says how long interrupts
//   were off at most. A program on the kernel's function of faults would wait with interrupts on, but not every kernel
//   lets programs be attached there.
// * Time is in picoseconds since `control.epoch_ns`, so that 4096 bytes at 40 Gb/s are 819 200 and not 819.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "link.bpf.h"
#include "shared.h"

#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// What is needed of the kernel's own type; the loader finds the fields' places.
struct task_struct {
    void *mm;
    struct task_struct *real_parent;
    int tgid;
    int pagefault_disabled;
} __attribute__((preserve_access_index));

// Sizes of `afar_nodes`, `afar_owners` and `afar_stock` are set by the loader. Values are whole tables where entries are words:
// the kernel gives every array element at least eight bytes.
ARRAY(afar_shared, struct shared, 1);
ARRAY(afar_links, struct link, TIERS_MAX);
ARRAY(afar_profile, struct profile, TIERS_MAX);
ARRAY(afar_nodes, struct node, 1);
ARRAY(afar_stock, __u64, 1);
ARRAY(afar_owners, __u64, 1);
ARRAY(afar_timings, struct timing, EVENTS_MAX);

// Rings with the number of a budget that is short of frames, plus one; 0: look at the log.
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 16384);
} afar_doorbell SEC(".maps");

// Rings on the processor where a fault has found no frame, with the number of its lane.
struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __type(key, __u32);
    __type(value, __u32);
} afar_short SEC(".maps");

// A fetch whose page is being mapped: how long its thread has yet to wait.
struct rest {
    const void *address;
    __u64 entered_ns;
    __u64 until_ns;
    __u32 tid;
    // Where it is logged.
    __u32 place;
    // Moving average of a turn of the wait loop on this processor: 1024ths of a nanosecond, times PACE_WEIGHT.
    __u64 pace;
};
#define PACE_WEIGHT 32
// Fewer turns are not measured.
#define PACE_TURNS_MIN 16
// While a sample of pages is watched, the doorbell rings at one soft fault of so many.
#define WATCHED_SOFT 16

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, __u32);
    __type(value, struct rest);
    __uint(max_entries, 1);
} afar_rest SEC(".maps");

// A fault that waits: for its frame, for its page, or for another thread's fetch of its page. Interrupts are off in a
// program, so none waits longer than `OFF_MAX_NS`: then interrupts are let in, and the next program goes on.
#define OFF_MAX_NS 18000
#define FOREVER (~0ULL)
#define PHASE_FRAME 0U
#define PHASE_PAGE 1U
#define PHASE_JOIN 2U
struct waiting {
    // Whose it is; 0 for nobody's.
    __u32 tid;
    __u32 phase;
    __u32 slot;
    __u32 leaf;
    __u32 page;
    // Its lane, and the word as it was.
    __u32 number;
    __u32 old;
    __u32 kind;
    __u32 is_write;
    // Programs that have gone on with it.
    __u32 stretches;
    __u64 address;
    __u64 entered_ns;
    // When its frame is free, in picoseconds of the run.
    __u64 frame_ps;
    // When it may go on, in nanoseconds of the clock, and how long before that its page may be mapped.
    __u64 until_ns;
    __u32 lead_ns;
    __u32 wait_ns;
    __u32 requested_ns;
    __u32 pad;
};
// By thread; two threads whose numbers differ by a multiple of WAITING_MAX cannot both be here. From WAITING_MAX on by
// processor, for faults that do not outlast their program.
#define WAITING_MAX 4096
#define PROCESSORS_MAX 8192
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, struct waiting);
    __uint(max_entries, WAITING_MAX + PROCESSORS_MAX);
} afar_waiting SEC(".maps");

// Sizes the loader chose; constants for the verifier and the JIT.
volatile const __u32 stock_mask = 0;

// Processes that share memory, each the child of the one before.
#define LODGERS_MAX 4

static __always_inline void ring_doorbell(struct control *control, __u32 number)
{
    ACCESS_ONCE(control->rung) = 1;
    if (bpf_ringbuf_output(&afar_doorbell, &number, sizeof(number), BPF_RB_FORCE_WAKEUP))
        ACCESS_ONCE(control->bell_lost) = 1;
}

// For a fault of `proc`: what is unmapped next is best unmapped here, where it was mapped.
static __always_inline void ring_from(struct control *control, struct proc *proc)
{
    ACCESS_ONCE(proc->processor) = bpf_get_smp_processor_id() + 1;
    ring_doorbell(control, proc->budget + 1);
}

// A node out of the stock, all zeros; 0 if there is none.
static __always_inline __u32 take_node(struct control *control)
{
    for (int i = 0; i < 32; i++) {
        __u64 head = ACCESS_ONCE(control->stock_head);
        if (head >= ACCESS_ONCE(control->stock_tail))
            return 0;
        if (__sync_val_compare_and_swap(&control->stock_head, head, head + 1) != head)
            continue;
        __u32 index = (__u32)head & stock_mask;
        __u64 *stocked = bpf_map_lookup_elem(&afar_stock, &index);
        return stocked ? (__u32)*stocked : 0;
    }
    return 0;
}

// Puts a node below an open entry, or finds that another processor has. `owner` is that of a leaf, 0 for other nodes.
static __noinline __u32 fill_entry(struct shared *shared, __u32 *entry, __u64 owner)
{
    struct control *control = &shared->control;
    __u32 number = __sync_val_compare_and_swap(entry, ENTRY_OPEN, ENTRY_CLAIMED);
    if (number == ENTRY_OPEN) {
        number = take_node(control);
        __u64 *owned = owner && number ? bpf_map_lookup_elem(&afar_owners, &number) : 0;
        if (owned)
            ACCESS_ONCE(*owned) = owner;
        asm volatile("" ::: "memory");
        ACCESS_ONCE(*entry) = number;
    } else {
        for (int i = 0; i < 64 && number == ENTRY_CLAIMED; i++)
            number = ACCESS_ONCE(*entry);
        if (number == ENTRY_CLOSED)
            return 0;
        if (number == ENTRY_CLAIMED)
            number = 0;
    }
    if (!number)
        __sync_fetch_and_add(&control->stock_empty, 1);
    return number;
}

// The number of the node below an entry; 0 if there is none, and none is to be or can be made.
static __always_inline __u32 node_below(struct shared *shared, __u32 *entry, bool make, __u64 owner)
{
    __u32 number = ACCESS_ONCE(*entry);
    if (number - 1 < ENTRY_CLOSED - 1)
        return number;
    if (number == ENTRY_CLOSED || !make)
        return 0;
    return fill_entry(shared, entry, owner);
}

struct place {
    __u32 *word;
    __u32 leaf;
    __u32 page;
};

// Finds the state word of a page under management. A leaf is made at the first touch of its 2 MiB.
static __always_inline bool find_word(struct shared *shared, __u32 slot, __u64 address, bool make, struct place *place)
{
    struct root *root = &shared->roots[slot & (PROCS_MAX - 1)];
    __u32 number = node_below(shared, &root->entry[(address >> ROOT_SHIFT) & (ROOT_ENTRIES - 1)], make, 0);
    struct node *node = number ? bpf_map_lookup_elem(&afar_nodes, &number) : 0;
    if (!node)
        return false;
    number = node_below(shared, &node->entry[(address >> UPPER_SHIFT) & (NODE_ENTRIES - 1)], make, 0);
    node = number ? bpf_map_lookup_elem(&afar_nodes, &number) : 0;
    if (!node)
        return false;
    __u64 owner = address >> LOWER_SHIFT << OWNER_SEGMENT_SHIFT | slot;
    number = node_below(shared, &node->entry[(address >> LOWER_SHIFT) & (NODE_ENTRIES - 1)], make, owner);
    node = number ? bpf_map_lookup_elem(&afar_nodes, &number) : 0;
    if (!node)
        return false;
    place->leaf = number;
    place->page = (address >> PAGE_SHIFT) & (NODE_ENTRIES - 1);
    place->word = &node->entry[place->page];
    return true;
}

static __always_inline __u32 lane_number(struct proc *proc, __u32 word)
{
    __u32 number = proc->budget * TIERS_MAX + ((word >> TIER_SHIFT) & (TIERS_MAX - 1));
    // The bound comes last and the compiler must not move it: verifiers before Linux 6.10 know nothing of the result
    // of an "or" (which this sum becomes) and refuse it as an index.
    barrier_var(number);
    return number & (PROCS_MAX * TIERS_MAX - 1);
}

// A place in the log; EVENTS_MAX if it is full.
static __always_inline __u32 log_place(struct control *control)
{
    // Each processor adds at most one event between this check and its increment, so the margin cannot overflow.
    if (ACCESS_ONCE(control->event_head) - ACCESS_ONCE(control->event_tail) >= EVENTS_MAX - EVENTS_MARGIN) {
        // The supervisor finds the page by walking the table.
        __sync_fetch_and_add(&control->event_lost, 1);
        ring_doorbell(control, 0);
        return EVENTS_MAX;
    }
    __u64 head = __sync_fetch_and_add(&control->event_head, 1);
    if ((head & control->bell_mask) == 0)
        ring_doorbell(control, 0);
    return head & (EVENTS_MAX - 1);
}

// Fills a place: with a tag the supervisor takes it for complete.
static __always_inline void publish(struct shared *shared, __u32 place, __u64 tag)
{
    asm volatile("" ::: "memory");
    if (place < EVENTS_MAX)
        ACCESS_ONCE(shared->tags[place]) = tag;
}

static __always_inline void publish_timed(struct shared *shared, __u32 place, __u64 tag, const struct timing *timing)
{
    struct timing *entry = bpf_map_lookup_elem(&afar_timings, &place);
    if (entry)
        *entry = *timing;
    publish(shared, place, tag | FLAG_TIMED);
}

struct fault {
    struct shared *shared;
    struct proc *proc;
    __u32 *word;
    __u32 slot;
    __u32 leaf;
    // Within the leaf.
    __u32 page;
    __u32 tid;
    bool write;
    // 0 if nothing is timed.
    __u64 entered_ns;
    __u64 address;
    void *context;
};

// A frame: when it is free, in picoseconds of the run, and whether the doorbell was rung for the next ones.
struct frame {
    __u64 free_ps;
    bool rang;
};

// Pages that were touched before their turn, in one go.
#define STAYING_MAX 32
// The answer of `take_outgoing`, above which its frame's time follows.
#define TAKEN 1U
#define TAKEN_LOW 2U
#define TAKEN_SHIFT 2

// Takes the frame of the next outgoing page. Answers when it is free; TAKEN_LOW if few are left. 0 if there is none.
static __noinline __u64 take_outgoing(struct shared *shared, __u32 number)
{
    struct lane *lane = &shared->lanes[number & (PROCS_MAX * TIERS_MAX - 1)];
    __u32 ring = ACCESS_ONCE(lane->outgoing);
    struct node *entries = ring ? bpf_map_lookup_elem(&afar_nodes, &ring) : 0;
    if (!entries)
        return 0;
    __s32 before = ACCESS_ONCE(lane->placed) - ACCESS_ONCE(lane->taken);
    for (int i = 0; i < STAYING_MAX; i++) {
        __u32 taken = ACCESS_ONCE(lane->taken);
        if (taken == ACCESS_ONCE(lane->placed))
            return 0;
        if (__sync_val_compare_and_swap(&lane->taken, taken, taken + 1) != taken)
            continue;
        __u32 first = (taken & (OUTGOING_MAX - 1)) * OUTGOING_WORDS;
        __u32 page = ACCESS_ONCE(entries->entry[first + OUTGOING_PAGE]);
        __u32 leaf = page / NODE_ENTRIES;
        struct node *words = bpf_map_lookup_elem(&afar_nodes, &leaf);
        if (!words) {
            ACCESS_ONCE(entries->entry[first + OUTGOING_OUTCOME]) = OUTCOME_STAYS;
            continue;
        }
        __u32 *word = &words->entry[page & (NODE_ENTRIES - 1)];
        __u32 old = ACCESS_ONCE(*word);
        bool leaves = (old & STATE_MASK) == STATE_PROBATION && old >> TICKET_SHIFT == (taken & (TICKETS - 1)) + 1;
        __u32 remote = (old & (FLAGS_KEPT | WORD_UNTRACKED)) | STATE_REMOTE;
        leaves = leaves && __sync_val_compare_and_swap(word, old, remote) == old;
        __u64 free_ps = *(__u64 *)&entries->entry[first + OUTGOING_FREE];
        ACCESS_ONCE(entries->entry[first + OUTGOING_OUTCOME]) = leaves ? OUTCOME_LEFT : OUTCOME_STAYS;
        if (leaves) {
            __s32 left = ACCESS_ONCE(lane->placed) - (taken + 1);
            bool is_low = before > lane->low && left <= lane->low;
            return free_ps << TAKEN_SHIFT | (is_low ? TAKEN_LOW : 0) | TAKEN;
        }
    }
    return 0;
}

// Claims a frame. A fault without one goes on, and its processor is held afterwards until there is one.
static __always_inline struct frame claim_frame(struct fault *f, struct lane *lane, __u32 number)
{
    struct frame frame = {};
    if (ACCESS_ONCE(lane->free) <= 0) {
        __u64 taken = take_outgoing(f->shared, number);
        frame.free_ps = taken >> TAKEN_SHIFT;
        frame.rang = taken & TAKEN_LOW;
        if (frame.rang)
            ring_from(&f->shared->control, f->proc);
        if (taken)
            return frame;
    }
    __s64 before = __sync_fetch_and_add(&lane->free, -1);
    frame.rang = before == lane->low;
    if (frame.rang)
        ring_from(&f->shared->control, f->proc);
    if (before > 0)
        return frame;
    __sync_fetch_and_add(&lane->stall_count, 1);
    if (!ACCESS_ONCE(lane->unrelieved))
        bpf_perf_event_output(f->context, &afar_short, BPF_F_CURRENT_CPU, &number, sizeof(number));
    ring_doorbell(&f->shared->control, f->proc->budget + 1);
    return frame;
}

// Round trip, or a draw from the profile of completion times.
static __always_inline __u64 latency_ps(struct link *link, __u32 tier)
{
    return latency_of(link, link->profiled ? bpf_map_lookup_elem(&afar_profile, &tier) : 0);
}

struct prefetch {
    struct shared *shared;
    struct proc *proc;
    struct link *link;
    struct lane *lane;
    __u64 now_ns;
    __s64 page;
    __s64 stride;
    __u32 slot;
    __u32 tid;
    // Of the lane.
    __u32 number;
};

static long prefetch_one(__u32 index, void *context)
{
    struct prefetch *p = context;
    __s64 page = p->page + p->stride * (index + 1);
    if (page < 0 || page >= ADDRESS_TOP >> PAGE_SHIFT)
        return 1;
    struct place place;
    if (!find_word(p->shared, p->slot, (__u64)page << PAGE_SHIFT, false, &place))
        return 1;
    __u32 *word = place.word;
    __u32 old = ACCESS_ONCE(*word);
    if ((old & STATE_MASK) != STATE_REMOTE)
        return 0;
    // A prefetch never takes the last frames: those are for faults.
    __s64 free = ACCESS_ONCE(p->lane->free);
    __s32 outgoing = ACCESS_ONCE(p->lane->placed) - ACCESS_ONCE(p->lane->taken);
    if ((free > 0 ? free : 0) + outgoing <= p->lane->low)
        return 1;
    if (__sync_val_compare_and_swap(word, old, (old & ~STATE_MASK) | STATE_FETCHING) != old)
        return 0;
    __u64 taken = free > 0 ? 0 : take_outgoing(p->shared, p->number);
    if (!taken)
        __sync_fetch_and_add(&p->lane->free, -1);
    __u64 asked_ps = (p->now_ns - p->shared->control.epoch_ns) * 1000;
    __u64 now_ps = taken >> TAKEN_SHIFT > asked_ps ? taken >> TAKEN_SHIFT : asked_ps;
    __u64 ready_ps = reserve(p->link, now_ps, p->link->page_ps) + latency_ps(p->link, (old >> TIER_SHIFT) & (TIERS_MAX - 1));
    __u64 ready_ns = ready_ps / 1000;
    __u32 ticks = (__u32)(ready_ns >> READY_UNIT_SHIFT) & READY_MASK;
    // 0 says that it has arrived.
    ticks += !ticks;
    ACCESS_ONCE(*word) = (old & (FLAGS_KEPT | WORD_UNTRACKED)) | STATE_PREFETCHED | ticks << READY_SHIFT;
    __u32 logged = log_place(&p->shared->control);
    struct timing timing = { .time_ns = p->now_ns - p->shared->control.epoch_ns, .tid = p->tid,
                             .requested_ns = ready_ns - asked_ps / 1000 };
    publish_timed(p->shared, logged, TAG(KIND_PREFETCH, 0, place.leaf, place.page), &timing);
    return 0;
}

static __always_inline void prefetch(struct prefetch *p)
{
    struct proc *proc = p->proc;
    __s64 stride = 1;
    if (proc->prefetch_stride) {
        stride = p->page - proc->last_page;
        __s64 before = proc->last_stride;
        proc->last_page = p->page;
        proc->last_stride = stride;
        if (stride != before || stride == 0)
            return;
    }
    p->stride = stride;
    bpf_loop(proc->prefetch_count & 31, prefetch_one, p, 0);
}

// A page that has become local by a fault.
static __always_inline __u32 local_word(__u32 old, bool write)
{
    __u32 word = (old & FLAGS_KEPT) | STATE_LOCAL;
    if (write || (old & WORD_UNTRACKED))
        word |= WORD_DIRTY;
    return write ? word | WORD_WRITE_FETCHED : word;
}

// Has the thread wait for the rest of its delay when its page is mapped.
static __always_inline void rest_until(struct rest *rest, struct waiting *w, __u32 place)
{
    rest->address = (const void *)w->address;
    rest->entered_ns = w->entered_ns;
    rest->until_ns = w->until_ns;
    rest->place = place;
    rest->tid = w->tid;
}

// What a fault takes outside of both programs, at the speed the processor has now.
static __always_inline __u64 constant_at(struct control *control, struct link *link, struct rest *rest)
{
    __u64 constant = link->constant_ns;
    __u64 reference = control->reference * PACE_WEIGHT;
    if (!reference || !rest->pace)
        return constant;
    __u64 scaled = constant * rest->pace / reference;
    return scaled < constant / 2 ? constant / 2 : scaled > constant * 2 ? constant * 2 : scaled;
}

struct until {
    volatile __u32 *word;
    __u64 until_ns;
    __u64 limit_ns;
    __u64 now_ns;
};

static long spin_waiting(__u32 index, void *context)
{
    struct until *until = context;
    until->now_ns = bpf_ktime_get_ns();
    bool is_over = until->word ? (*until->word & STATE_MASK) != STATE_FETCHING : until->now_ns >= until->until_ns;
    return is_over || until->now_ns >= until->limit_ns;
}

// A fault waited for its frame.
static __always_inline void count_stall(struct waiting *w, struct lane *lane, __u64 waited_ns)
{
    if (w->kind == KIND_FIRST_TOUCH)
        w->wait_ns = waited_ns < 0xffffffff ? waited_ns : 0xffffffff;
    __sync_fetch_and_add(&lane->stall_count, 1);
    __sync_fetch_and_add(&lane->stall_ns, waited_ns);
    // Of two processors that are here at once the shorter wait may be kept.
    if (ACCESS_ONCE(lane->stall_max_ns) < waited_ns)
        ACCESS_ONCE(lane->stall_max_ns) = waited_ns;
}

// A processor had interrupts off for so long.
static __always_inline void count_off(struct control *control, __u64 took_ns)
{
    // Of two processors that are here at once the shorter time may be kept.
    if (control->off_max_ns < took_ns)
        control->off_max_ns = took_ns;
    if (took_ns > OFF_LONG_NS)
        __sync_fetch_and_add(&control->off_long_count, 1);
}

// The verifier looks at each of the functions below by itself, because they are not static, and so at their paths'
// sum and not at their product. What they are about they look up: `place` is that of a fault that waits.

static __always_inline struct shared *the_shared(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&afar_shared, &zero);
}

static __always_inline struct rest *the_rest(struct control *control)
{
    __u32 zero = 0;
    return control->lead_ns ? bpf_map_lookup_elem(&afar_rest, &zero) : 0;
}

// The frame of a fetch is there: reserves the link.
__noinline int ask(__u32 place)
{
    struct shared *shared = the_shared();
    struct waiting *w = bpf_map_lookup_elem(&afar_waiting, &place);
    if (!shared || !w)
        return 0;
    struct control *control = &shared->control;
    __u32 tier = (w->old >> TIER_SHIFT) & (TIERS_MAX - 1);
    struct link *link = bpf_map_lookup_elem(&afar_links, &tier);
    if (!link)
        return 0;
    __u64 asked_ps = (w->entered_ns - control->epoch_ns) * 1000;
    __u64 now_ps = w->frame_ps > asked_ps ? w->frame_ps : asked_ps;
    __u64 sent_ps = reserve(link, now_ps, link->page_ps);
    __u64 ready_ns = (sent_ps + latency_ps(link, tier)) / 1000 + control->epoch_ns;
    w->wait_ns = (sent_ps - link->page_ps - asked_ps) / 1000;
    w->requested_ns = ready_ns - w->entered_ns;
    // What is left of the fault then takes a constant time, which the calibration has measured.
    struct rest *rest = the_rest(control);
    w->until_ns = ready_ns - (rest ? constant_at(control, link, rest) : link->constant_ns);
    struct proc *proc = &shared->procs[w->slot & (PROCS_MAX - 1)];
    if (proc->prefetch_count) {
        struct lane *lane = &shared->lanes[w->number & (PROCS_MAX * TIERS_MAX - 1)];
        struct prefetch p = { .shared = shared, .proc = proc, .link = link, .lane = lane, .now_ns = w->entered_ns,
                              .slot = w->slot, .page = w->address >> PAGE_SHIFT, .tid = w->tid, .number = w->number };
        prefetch(&p);
    }
    return 0;
}

// What a fault has waited for is there: its page is local, and it is in the log.
__noinline int end(__u32 place, __u64 now_ns)
{
    struct shared *shared = the_shared();
    struct waiting *w = bpf_map_lookup_elem(&afar_waiting, &place);
    if (!shared || !w)
        return 0;
    struct control *control = &shared->control;
    struct rest *rest = w->kind == KIND_FETCH ? the_rest(control) : 0;
    struct node *words = w->kind == KIND_FIRST_TOUCH ? 0 : bpf_map_lookup_elem(&afar_nodes, &w->leaf);
    if (words) {
        __u32 *word = &words->entry[w->page & (NODE_ENTRIES - 1)];
        __u32 old = ACCESS_ONCE(*word);
        // Somebody may have given up waiting for it.
        if ((old & STATE_MASK) == STATE_FETCHING)
            __sync_val_compare_and_swap(word, old, local_word(w->old, w->is_write));
    }
    __u64 took = w->kind == KIND_FIRST_TOUCH ? 0 : now_ns - w->entered_ns;
    struct timing timing = { .time_ns = w->entered_ns - control->epoch_ns, .tid = w->tid, .wait_ns = w->wait_ns,
                             .requested_ns = w->requested_ns };
    // What waits for the rest is timed at its end.
    timing.measured_ns = rest ? 0 : took < 0xffffffff ? took : 0xffffffff;
    __u32 logged = log_place(control);
    if (rest)
        rest_until(rest, w, logged);
    publish_timed(shared, logged, TAG(w->kind, w->is_write ? FLAG_WRITE : 0, w->leaf, w->page), &timing);
    return 0;
}

// Another thread fetches the page; it should have ended long ago.
static __always_inline void give_up(volatile __u32 *word)
{
    __u32 old = *word;
    if ((old & STATE_MASK) == STATE_FETCHING)
        __sync_val_compare_and_swap(word, old, (old & FLAGS_KEPT) | STATE_LOCAL | WORD_DIRTY);
}

// Waits for another thread's fetch. Answers whether it is over.
static __always_inline int join_until(struct waiting *w, struct until *until)
{
    struct node *words = bpf_map_lookup_elem(&afar_nodes, &w->leaf);
    if (!words)
        return 1;
    until->word = &words->entry[w->page & (NODE_ENTRIES - 1)];
    bpf_loop(1 << 20, spin_waiting, until, 0);
    if ((*until->word & STATE_MASK) != STATE_FETCHING)
        return 1;
    if (until->limit_ns == FOREVER)
        give_up(until->word);
    return until->limit_ns == FOREVER;
}

// Has a fault wait until `limit_ns` at most. Answers whether it is over.
__noinline int go_on(__u32 place, __u64 from_ns, __u64 limit_ns)
{
    struct shared *shared = the_shared();
    struct waiting *w = bpf_map_lookup_elem(&afar_waiting, &place);
    if (!shared || !w)
        return 1;
    struct control *control = &shared->control;
    struct until until = { .limit_ns = limit_ns, .now_ns = from_ns };
    int is_over = 0;
    if (w->phase == PHASE_JOIN) {
        is_over = join_until(w, &until);
        goto out;
    }
    if (w->phase == PHASE_FRAME) {
        __u64 free_ns = control->epoch_ns + w->frame_ps / 1000;
        if (free_ns > w->entered_ns) {
            until.until_ns = free_ns;
            bpf_loop(1 << 20, spin_waiting, &until, 0);
            if (until.now_ns < free_ns && limit_ns != FOREVER)
                goto out;
            count_stall(w, &shared->lanes[w->number & (PROCS_MAX * TIERS_MAX - 1)], free_ns - w->entered_ns);
        }
        w->phase = PHASE_PAGE;
        // Not before there is a frame: other budgets' fetches would queue behind an idle link.
        if (w->kind == KIND_FETCH)
            ask(place);
    }
    if (w->until_ns) {
        until.until_ns = w->until_ns > w->lead_ns ? w->until_ns - w->lead_ns : 0;
        if (until.now_ns < until.until_ns)
            bpf_loop(1 << 20, spin_waiting, &until, 0);
        if (until.now_ns < until.until_ns && limit_ns != FOREVER)
            goto out;
    }
    end(place, until.now_ns);
    is_over = 1;
out:
    count_off(control, until.now_ns - from_ns);
    return is_over;
}

// A fault that is to wait, and where.
struct waits {
    struct waiting *waiting;
    __u32 place;
    // Interrupts may be let in meanwhile, and further programs go on with it.
    bool outlasts;
};

static __always_inline bool wait_for(struct fault *f, struct waits *waits)
{
    struct control *control = &f->shared->control;
    struct task_struct *task = (void *)bpf_get_current_task();
    waits->place = f->tid & (WAITING_MAX - 1);
    waits->outlasts = false;
    struct waiting *w = 0;
    // Where no fault may sleep the kernel does not handle it either: what touched the page is told so, and may try again.
    // To read that adds one to it.
    if (control->stretches && BPF_CORE_READ(task, pagefault_disabled) <= 1)
        w = bpf_map_lookup_elem(&afar_waiting, &waits->place);
    if (w) {
        __u32 before = __sync_val_compare_and_swap(&w->tid, 0, f->tid);
        // A fault of its own that the kernel has not handled.
        if (before == f->tid)
            go_on(waits->place, f->entered_ns, FOREVER);
        waits->outlasts = !before || before == f->tid;
    }
    if (!waits->outlasts) {
        waits->place = WAITING_MAX + (bpf_get_smp_processor_id() & (PROCESSORS_MAX - 1));
        w = bpf_map_lookup_elem(&afar_waiting, &waits->place);
    }
    waits->waiting = w;
    if (!w)
        return false;
    struct waiting begun = { .tid = f->tid, .slot = f->slot, .leaf = f->leaf, .page = f->page, .is_write = f->write,
                             .address = f->address, .entered_ns = f->entered_ns };
    *w = begun;
    return true;
}

// Begins to wait. `rang` says that interrupts are to be let in first, because somebody has been called.
static __always_inline void begin(struct fault *f, struct waits *waits, bool rang)
{
    __u64 limit = waits->outlasts ? (rang ? 0 : f->entered_ns + OFF_MAX_NS) : FOREVER;
    if (go_on(waits->place, f->entered_ns, limit))
        waits->waiting->tid = 0;
}

static __always_inline void fetch(struct fault *f, __u32 old)
{
    struct control *control = &f->shared->control;
    __u32 number = lane_number(f->proc, old);
    struct lane *lane = &f->shared->lanes[number];
    // Without a delay the page is local at once; with one, others must wait for it.
    bool timed = control->timed;
    __u32 next = timed ? (old & FLAGS_KEPT) | STATE_FETCHING : local_word(old, f->write);
    if (__sync_val_compare_and_swap(f->word, old, next) != old)
        return;
    struct frame frame = claim_frame(f, lane, number);
    if (!timed) {
        publish(f->shared, log_place(control), TAG(KIND_FETCH, f->write ? FLAG_WRITE : 0, f->leaf, f->page));
        return;
    }
    struct waits waits;
    if (!wait_for(f, &waits))
        return;
    struct waiting *w = waits.waiting;
    w->phase = PHASE_FRAME;
    w->number = number;
    w->old = old;
    w->kind = KIND_FETCH;
    w->frame_ps = frame.free_ps;
    // The doorbell is heard when interrupts are allowed again, which takes time; so that fault waits afterwards.
    bool is_put_off = frame.rang && !waits.outlasts && control->lead_ns;
    w->lead_ns = is_put_off ? 0x7fffffff : control->lead_ns;
    begin(f, &waits, frame.rang);
}

static __always_inline void arrive(struct fault *f, __u32 old)
{
    __u64 now = bpf_ktime_get_ns();
    __u32 ready = old >> READY_SHIFT;
    __u32 ticks = (__u32)((now - f->shared->control.epoch_ns) >> READY_UNIT_SHIFT) & READY_MASK;
    __u32 ahead = (ready - ticks) & READY_MASK;
    if (__sync_val_compare_and_swap(f->word, old, (old & FLAGS_KEPT) | STATE_FETCHING) != old)
        return;
    f->entered_ns = now;
    struct waits waits;
    if (!wait_for(f, &waits))
        return;
    struct waiting *w = waits.waiting;
    w->phase = PHASE_PAGE;
    w->old = old;
    w->kind = KIND_ARRIVED;
    if (ready && ahead < READY_MASK / 2) {
        w->requested_ns = ahead << READY_UNIT_SHIFT;
        w->until_ns = now + w->requested_ns;
    }
    begin(f, &waits, false);
}

// Another thread fetches the page.
static __always_inline void join(struct fault *f)
{
    __sync_fetch_and_add(&f->shared->control.joined_count, 1);
    f->entered_ns = bpf_ktime_get_ns();
    struct waits waits;
    if (!wait_for(f, &waits))
        return;
    waits.waiting->phase = PHASE_JOIN;
    begin(f, &waits, false);
}

// Logs what is only timed if it is recorded.
static __always_inline void log_happened(struct fault *f, __u64 tag)
{
    struct control *control = &f->shared->control;
    __u32 place = log_place(control);
    if (!control->recorded) {
        publish(f->shared, place, tag);
        return;
    }
    struct timing timing = { .time_ns = bpf_ktime_get_ns() - control->epoch_ns, .tid = f->tid };
    publish_timed(f->shared, place, tag, &timing);
}

static __always_inline void first_touch(struct fault *f, __u32 old)
{
    // A new page has no copy anywhere else: it is dirty from birth.
    __u32 next = (old & FLAGS_KEPT) | STATE_LOCAL | WORD_DIRTY;
    if (__sync_val_compare_and_swap(f->word, old, next) != old)
        return;
    if (f->proc->unlimited) {
        __sync_fetch_and_add(&f->proc->first_touch_count, 1);
        return;
    }
    __u32 number = lane_number(f->proc, old);
    struct lane *lane = &f->shared->lanes[number];
    __u32 flags = f->write ? FLAG_WRITE : 0;
    struct frame frame = claim_frame(f, lane, number);
    struct control *control = &f->shared->control;
    if (!control->timed || control->epoch_ns + frame.free_ps / 1000 <= f->entered_ns) {
        log_happened(f, TAG(KIND_FIRST_TOUCH, flags, f->leaf, f->page));
        return;
    }
    struct waits waits;
    if (!wait_for(f, &waits))
        return;
    struct waiting *w = waits.waiting;
    w->phase = PHASE_FRAME;
    w->number = number;
    w->old = old;
    w->kind = KIND_FIRST_TOUCH;
    w->frame_ps = frame.free_ps;
    begin(f, &waits, frame.rang);
}

static __always_inline void soft(struct fault *f, __u32 old)
{
    __u32 next = local_word(old, f->write);
    if (__sync_val_compare_and_swap(f->word, old, next) != old)
        return;
    __u32 flags = f->write ? FLAG_WRITE : 0;
    log_happened(f, TAG(KIND_SOFT, flags, f->leaf, f->page));
    struct control *control = &f->shared->control;
    // A supervisor that is at work already looks again before it sleeps.
    if (control->watched && __sync_fetch_and_add(&control->soft_count, 1) % WATCHED_SOFT == 0 && !ACCESS_ONCE(control->rung))
        ring_from(control, f->proc);
}

// A child of vfork, or of a clone that shares memory, that was not made as a thread uses its parent's memory until it
// executes a program of its own. So its faults are its parent's. Answers the slot of that, plus one; 0 if none is managed.
static __noinline __u32 lodging(struct shared *shared)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    void *memory = BPF_CORE_READ(task, mm);
    for (int i = 0; memory && i < LODGERS_MAX; i++) {
        task = BPF_CORE_READ(task, real_parent);
        if (!task || BPF_CORE_READ(task, mm) != memory)
            return 0;
        __u32 slot = shared->slots[BPF_CORE_READ(task, tgid) & (PIDS_MAX - 1)];
        if (slot)
            return slot;
    }
    return 0;
}

// A process reads the address it was told: from now on its faults are those of this slot. Numbers of processes differ
// from one namespace to another, so only the trap itself can say which one it sees.
static __noinline int enrol(struct shared *shared, __u64 address, __u32 tgid)
{
    __u32 slot = (address >> PAGE_SHIFT) & (PROCS_MAX - 1);
    struct proc *proc = &shared->procs[slot];
    if (proc->enrol_address != (address & ~((1ULL << PAGE_SHIFT) - 1)))
        return 0;
    proc->enrol_address = 0;
    shared->slots[tgid & (PIDS_MAX - 1)] = slot + 1;
    asm volatile("" ::: "memory");
    ACCESS_ONCE(proc->tgid) = tgid;
    return 0;
}

// The slot of the process that has a fault at `address`, plus one; 0 if it is not managed.
static __always_inline __u32 slot_of(struct shared *shared, __u64 address, __u32 tgid)
{
    if (address - ENROL_BASE < ENROL_BYTES)
        enrol(shared, address, tgid);
    __u32 slot = shared->slots[tgid & (PIDS_MAX - 1)];
    return slot ? slot : lodging(shared);
}

// Runs at both tracepoints, which have the same arguments: one program, because the verifier takes 70 ms for each.
SEC("raw_tracepoint/page_fault_user")
int afar_fault(struct bpf_raw_tracepoint_args *context)
{
    __u64 address = context->args[0];
    if (address >= ADDRESS_TOP)
        return 0;
    __u32 zero = 0;
    struct shared *shared = bpf_map_lookup_elem(&afar_shared, &zero);
    if (!shared)
        return 0;
    __u64 id = bpf_get_current_pid_tgid();
    __u32 slot = slot_of(shared, address, id >> 32);
    // This is as far as the faults of other programs come.
    if (!slot)
        return 0;
    slot = (slot - 1) & (PROCS_MAX - 1);
    struct control *control = &shared->control;
    __u64 entered_ns = control->timed ? bpf_ktime_get_ns() : 0;
    struct place place;
    if (!find_word(shared, slot, address, true, &place))
        return 0;
    struct fault f = {
        .shared = shared,
        .proc = &shared->procs[slot],
        .word = place.word,
        .slot = slot,
        .leaf = place.leaf,
        .page = place.page,
        .tid = (__u32)id,
        .write = context->args[2] & 2,
        .entered_ns = entered_ns,
        .address = address,
        .context = context,
    };
    __u32 old = ACCESS_ONCE(*f.word);
    switch (old & STATE_MASK) {
    case STATE_LOCAL:
        if (f.write && !(old & WORD_DIRTY))
            __sync_fetch_and_or(f.word, WORD_DIRTY);
        break;
    case STATE_ABSENT:
        first_touch(&f, old);
        break;
    case STATE_REMOTE:
        fetch(&f, old);
        break;
    case STATE_PROBATION:
        soft(&f, old);
        break;
    case STATE_PREFETCHED:
        arrive(&f, old);
        break;
    case STATE_FETCHING:
        join(&f);
        break;
    }
    return 0;
}


// Runs when the kernel takes a fault up, several times: what its wait has left, with interrupts let in between.
SEC("perf_event")
int afar_fault_wait(struct bpf_perf_event_data *context)
{
    __u32 zero = 0;
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    __u32 number = tid & (WAITING_MAX - 1);
    struct waiting *w = bpf_map_lookup_elem(&afar_waiting, &number);
    if (!w || w->tid != tid)
        return 0;
    struct shared *shared = bpf_map_lookup_elem(&afar_shared, &zero);
    if (!shared)
        return 0;
    w->stretches++;
    __u64 now = bpf_ktime_get_ns();
    // No further program comes: this one waits to the end.
    bool is_last = w->stretches >= shared->control.stretches;
    if (go_on(number, now, is_last ? FOREVER : now + OFF_MAX_NS))
        w->tid = 0;
    return 0;
}

// Runs when the kernel has mapped a page: the rest of the delay. Interrupts that have waited were let in between the
// two programs; here they wait again (seen on Linux 6.18: no shoot-down is answered from here).
SEC("perf_event")
int afar_fault_done(struct bpf_perf_event_data *context)
{
    __u32 zero = 0;
    struct rest *rest = bpf_map_lookup_elem(&afar_rest, &zero);
    if (!rest || rest->tid != (__u32)bpf_get_current_pid_tgid())
        return 0;
    __u32 tid = rest->tid;
    rest->tid = 0;
    // Has the processor walk the page tables and fetch the line now, while the delay lasts, and not when it is over.
    __u8 byte;
    bpf_probe_read_user(&byte, sizeof(byte), rest->address);
    __u32 place = rest->place;
    struct timing *entry = bpf_map_lookup_elem(&afar_timings, &place);
    __u64 now = bpf_ktime_get_ns();
    struct spin_clock spin = { .until_ns = rest->until_ns, .now_ns = now };
    if (now <= rest->until_ns) {
        long turns = bpf_loop(1 << 20, spin_clock, &spin, 0);
        __u64 waited = rest->until_ns - now;
        if (turns >= PACE_TURNS_MIN) {
            __u64 turn = waited * 1024 / turns;
            rest->pace = rest->pace ? rest->pace + turn - rest->pace / PACE_WEIGHT : turn * PACE_WEIGHT;
            struct shared *shared = bpf_map_lookup_elem(&afar_shared, &zero);
            if (shared)
                ACCESS_ONCE(shared->control.pace) = rest->pace / PACE_WEIGHT;
        }
    }
    __u64 took = spin.now_ns - rest->entered_ns;
    if (entry && entry->tid == tid)
        ACCESS_ONCE(entry->measured_ns) = took < 0xffffffff ? took : 0xffffffff;
    return 0;
}

#include "far.bpf.h"
