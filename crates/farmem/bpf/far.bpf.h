// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Pages that are far for real: a fault asks the supervisor and spins until it has an answer.
//
//   page fault -> whose page? -> local? -> ask -> spin -> the kernel finds the page mapped, or userfaultfd parks the thread
//
// DESIGN NOTES
//
// * Nothing depends on an ask: it changes no state, and a fault that gets no answer in time goes the way it would have
//   gone without one. So the spin has a bound (`longest_ns`), whoever is late.
// * The supervisor says when it looks (`looking`). While it sleeps, no fault spins: userfaultfd wakes it.
// * Interrupts are off here, so a processor has one ask at a time, and its place is its own. An ask that was overwritten
//   before the supervisor saw it had expired.
// * A fault where the kernel may not sleep does not ask: it holds what others wait for.
#pragma once

// Processors beyond do not ask.
#define ASKS_MAX 1024
struct ask {
    // What the trap writes: `begun` first and `number` last, so that who reads it in between knows.
    __u64 number;
    __u64 address;
    __u64 at_ns;
    __u32 slot;
    __u32 tid;
    __u64 is_write;
    // Spins that got an answer, and that did not.
    __u64 caught;
    __u64 expired;
    __u64 begun;
    // The number of the last ask that the supervisor has answered.
    __u64 answered;
    __u64 pad2[7];
};
_Static_assert(sizeof(struct ask) == 128, "struct ask");

struct asks {
    // The processor of the supervisor while it looks for asks, plus one; 0 while it does not.
    __u64 looking;
    // How long a fault spins at most.
    __u64 longest_ns;
    // The processor of the last fault, plus one.
    __u64 near;
    __u64 pad[5];
    struct ask of[ASKS_MAX];
};
_Static_assert(sizeof(struct asks) == 131136, "struct asks");

ARRAY(afar_asks, struct asks, 1);

struct answer {
    volatile __u64 *answered;
    __u64 number;
    __u64 limit_ns;
    __u64 now_ns;
};

static long spin_answer(__u32 index, void *context)
{
    struct answer *answer = context;
    answer->now_ns = bpf_ktime_get_ns();
    return *answer->answered >= answer->number || answer->now_ns >= answer->limit_ns;
}

static __always_inline void ask_and_spin(struct control *control, struct asks *asks, const struct ask *fault)
{
    __u32 processor = bpf_get_smp_processor_id();
    __u64 looking = ACCESS_ONCE(asks->looking);
    if (ACCESS_ONCE(asks->near) != processor + 1)
        ACCESS_ONCE(asks->near) = processor + 1;
    // On the supervisor's own processor nobody would answer.
    if (processor >= ASKS_MAX || !looking || looking == processor + 1)
        return;
    struct ask *ask = &asks->of[processor];
    __u64 number = ask->number + 1;
    ACCESS_ONCE(ask->begun) = number;
    asm volatile("" ::: "memory");
    ask->address = fault->address;
    ask->at_ns = bpf_ktime_get_ns();
    ask->slot = fault->slot;
    ask->tid = fault->tid;
    ask->is_write = fault->is_write;
    asm volatile("" ::: "memory");
    ACCESS_ONCE(ask->number) = number;
    struct answer answer = { .answered = &ask->answered, .number = number, .limit_ns = ask->at_ns + asks->longest_ns };
    bpf_loop(1 << 20, spin_answer, &answer, 0);
    if (ACCESS_ONCE(ask->answered) >= number)
        ask->caught++;
    else
        ask->expired++;
    count_off(control, answer.now_ns - ask->at_ns);
}

// Runs at both tracepoints, as `afar_fault` does where nothing is far for real.
SEC("raw_tracepoint/page_fault_user")
int afar_ask(struct bpf_raw_tracepoint_args *context)
{
    __u64 address = context->args[0];
    struct shared *shared = the_shared();
    if (address >= ADDRESS_TOP || !shared)
        return 0;
    __u64 id = bpf_get_current_pid_tgid();
    __u32 slot = slot_of(shared, address, id >> 32);
    if (!slot)
        return 0;
    slot = (slot - 1) & (PROCS_MAX - 1);
    struct place place;
    if (!find_word(shared, slot, address, false, &place))
        return 0;
    __u32 state = ACCESS_ONCE(*place.word) & STATE_MASK;
    if (state == STATE_LOCAL || state == STATE_FOREIGN)
        return 0;
    struct task_struct *task = (void *)bpf_get_current_task();
    // To read that adds one to it.
    if (BPF_CORE_READ(task, pagefault_disabled) > 1)
        return 0;
    __u32 zero = 0;
    struct asks *asks = bpf_map_lookup_elem(&afar_asks, &zero);
    if (!asks)
        return 0;
    struct ask fault = { .address = address, .slot = slot, .tid = (__u32)id, .is_write = (context->args[2] & 2) != 0 };
    ask_and_spin(&shared->control, asks, &fault);
    return 0;
}
