// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// The delay of the swap engine: what a read of the swap device costs a program whose pages are there.
//
//   page fault -> kernel's swap path -> read request -> whose? -> reserve the link -> busy-wait -> fault ends -> log
//
// DESIGN NOTES
//
// * `block_bio_queue` fires in the faulting thread, before a zram device decompresses the page there and then. So the
//   delay comes on top of what the kernel's swap path takes by itself, as in Gao et al. 2016, section 3.1.
// * A request is the program's if the thread that makes it is in the program's memory control group; on which zram
//   device the page lies does not matter, because runs that go on at once may use one another's.
// * Requests of one fault (the page and what is read ahead with it) are one batch: a round trip, then their transfers.
//   A fault is told from the next by the thread's fault counters, which the kernel advances when a fault ends.
// * How long the whole fault took is known at its end, so it is logged there. The counts do not depend on the log.
#include <stdbool.h>

#include "link.bpf.h"
#include "swap.h"

#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// What is needed of the kernel's own types; the loader finds the fields' places.
#define OF_THE_KERNEL __attribute__((preserve_access_index))

struct kernfs_node {
    __u64 id;
} OF_THE_KERNEL;
struct cgroup {
    struct kernfs_node *kn;
} OF_THE_KERNEL;
struct cgroup_subsys_state {
    struct cgroup *cgroup;
} OF_THE_KERNEL;
struct css_set {
    struct cgroup_subsys_state *subsys[1];
} OF_THE_KERNEL;
struct task_struct {
    struct css_set *cgroups;
    unsigned long min_flt;
    unsigned long maj_flt;
} OF_THE_KERNEL;
struct block_device {
    __u32 bd_dev;
} OF_THE_KERNEL;
struct bvec_iter {
    __u64 bi_sector;
    unsigned int bi_size;
} OF_THE_KERNEL;
struct bio {
    struct block_device *bi_bdev;
    __u32 bi_opf;
    struct bvec_iter bi_iter;
} OF_THE_KERNEL;
enum cgroup_subsys_id { memory_cgrp_id };

#define OPERATION_MASK 0xff
#define READ 0
#define WRITE 1
#define MAJOR_SHIFT 20

ARRAY(afar_control, struct swap_control, 1);
ARRAY(afar_link, struct link, 1);
ARRAY(afar_profile, struct profile, 1);
ARRAY(afar_threads, struct thread, THREADS_MAX);
ARRAY(afar_events, struct swap_event, SWAP_EVENTS_MAX);

static __always_inline struct thread *thread_of(__u32 tid)
{
    __u32 place = tid & (THREADS_MAX - 1);
    return bpf_map_lookup_elem(&afar_threads, &place);
}

static __always_inline bool is_ours(struct swap_control *control, struct task_struct *task)
{
    struct css_set *groups = BPF_CORE_READ(task, cgroups);
    __u64 place = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
    void *entry = (void *)groups + bpf_core_field_offset(struct css_set, subsys) + place * sizeof(void *);
    struct cgroup_subsys_state *state = 0;
    bpf_probe_read_kernel(&state, sizeof(state), entry);
    return BPF_CORE_READ(state, cgroup, kn, id) == control->group;
}

static __always_inline void publish(struct swap_control *control, struct thread *thread, __u32 total_ns)
{
    __u32 pages = thread->pages;
    thread->pages = 0;
    if (ACCESS_ONCE(control->event_head) - ACCESS_ONCE(control->event_tail) >= SWAP_EVENTS_MAX - SWAP_EVENTS_MARGIN) {
        __sync_fetch_and_add(&control->event_lost, 1);
        return;
    }
    __u32 place = __sync_fetch_and_add(&control->event_head, 1) & (SWAP_EVENTS_MAX - 1);
    struct swap_event *entry = bpf_map_lookup_elem(&afar_events, &place);
    if (!entry)
        return;
    entry->time_ns = thread->time_ns;
    entry->slot = thread->slot;
    entry->tid = thread->tid;
    entry->tgid = thread->tgid;
    entry->wait_ns = thread->wait_ns;
    entry->requested_ns = thread->requested_ns;
    entry->delayed_ns = thread->delayed_ns;
    entry->total_ns = total_ns;
    // Complete from here on.
    asm volatile("" ::: "memory");
    ACCESS_ONCE(entry->pages) = pages;
}

// Pages on their way out occupy the link, but nobody waits for them.
static __always_inline void write_back(struct swap_control *control, struct link *link, __u32 bytes)
{
    __sync_fetch_and_add(&control->write_count, 1);
    __sync_fetch_and_add(&control->write_bytes, bytes);
    __u64 busy_ps = link->page_ps * (bytes >> 12);
    if (busy_ps)
        reserve_out(link, (bpf_ktime_get_ns() - control->epoch_ns) * 1000, busy_ps);
}

static __always_inline void fetch(struct swap_control *control, struct link *link, struct task_struct *task,
                                  struct bio *bio, __u64 now)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = id;
    __u32 bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
    __sync_fetch_and_add(&control->read_count, 1);
    __sync_fetch_and_add(&control->read_bytes, bytes);
    struct thread *thread = thread_of(tid);
    if (!thread)
        return;
    __u64 serial = BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt);
    bool together = thread->pages && thread->tid == tid && thread->serial == serial &&
                    now - thread->until_ns < TOGETHER_NS;
    if (!together) {
        // The end of the fault before was not seen.
        if (thread->pages)
            publish(control, thread, 0);
        __sync_fetch_and_add(&control->fetch_count, 1);
        thread->tid = tid;
        thread->tgid = id >> 32;
        thread->serial = serial;
        thread->time_ns = now - control->epoch_ns;
        thread->slot = BPF_CORE_READ(bio, bi_iter.bi_sector) >> 3;
        thread->wait_ns = 0;
        thread->requested_ns = 0;
        thread->delayed_ns = 0;
    }
    thread->pages += bytes >> 12;
    thread->until_ns = now;
    if (!control->timed)
        return;
    __u64 now_ps = (now - control->epoch_ns) * 1000;
    __u64 busy_ps = link->page_ps * (bytes >> 12);
    __u32 zero = 0;
    __u64 sent_ps = reserve(link, now_ps, busy_ps);
    __u64 ready_ps = sent_ps;
    if (!together)
        ready_ps += latency_of(link, link->profiled ? bpf_map_lookup_elem(&afar_profile, &zero) : 0);
    __u64 delay_ns = (ready_ps - now_ps) / 1000;
    spin_until(now + delay_ns);
    thread->until_ns = bpf_ktime_get_ns();
    thread->wait_ns += (sent_ps - busy_ps - now_ps) / 1000;
    thread->requested_ns += delay_ns;
    thread->delayed_ns += thread->until_ns - now;
}

SEC("raw_tracepoint/block_bio_queue")
int afar_request(struct bpf_raw_tracepoint_args *context)
{
    struct bio *bio = (struct bio *)context->args[0];
    __u32 zero = 0;
    struct swap_control *control = bpf_map_lookup_elem(&afar_control, &zero);
    if (!control)
        return 0;
    __u32 device = BPF_CORE_READ(bio, bi_bdev, bd_dev);
    if (device >> MAJOR_SHIFT != control->device >> MAJOR_SHIFT)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    struct link *link = bpf_map_lookup_elem(&afar_link, &zero);
    if (!link)
        return 0;
    __u32 operation = BPF_CORE_READ(bio, bi_opf) & OPERATION_MASK;
    if (operation == WRITE && device == control->device)
        write_back(control, link, BPF_CORE_READ(bio, bi_iter.bi_size));
    if (operation != READ)
        return 0;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    if (is_ours(control, task))
        fetch(control, link, task, bio, now);
    return 0;
}

// A fault begins. Whose, is not asked before it turns out to have read the swap device.
SEC("raw_tracepoint/page_fault_user")
int afar_fault(struct bpf_raw_tracepoint_args *context)
{
    __u32 tid = bpf_get_current_pid_tgid();
    struct thread *thread = thread_of(tid);
    if (!thread)
        return 0;
    thread->entered_tid = tid;
    thread->entered_ns = bpf_ktime_get_ns();
    return 0;
}

// A major fault has ended.
SEC("perf_event")
int afar_fault_done(struct bpf_perf_event_data *context)
{
    __u64 now = bpf_ktime_get_ns();
    __u32 tid = bpf_get_current_pid_tgid();
    __u32 zero = 0;
    struct swap_control *control = bpf_map_lookup_elem(&afar_control, &zero);
    struct thread *thread = thread_of(tid);
    if (!control || !thread)
        return 0;
    if (thread->pages && thread->tid == tid) {
        bool timed = thread->entered_tid == tid && thread->entered_ns;
        publish(control, thread, timed ? now - thread->entered_ns : 0);
    } else if (is_ours(control, (struct task_struct *)bpf_get_current_task())) {
        __sync_fetch_and_add(&control->silent_count, 1);
    }
    return 0;
}
