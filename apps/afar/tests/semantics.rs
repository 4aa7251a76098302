//! What a program may rely on: every case runs natively, then under afar with both traps, nearly
//! all of its memory remote and all of it local, and must end the same way each time. The cases
//! are C programs in `programs`.

mod support;

use std::time::Duration;

use support::{Launch, TRAPS, program, usable};

const LOCAL: [&str; 2] = ["10%", "100%"];

/// Beyond it a run hangs: alone each takes a few seconds, beside other work up to a minute.
const LIMIT: Duration = Duration::from_secs(150);

/// What does not work, and how the program is told: never by wrong bytes.
struct Limit {
    case: &'static str,
    /// Exit status of the case, whose check fails.
    status: i32,
}

/// With pages that are far for real.
const FAR: [&str; 6] = ["--trap", "userfaultfd", "--local", "10%", "--far", "memory:4GiB"];

const LIMITS: [Limit; 3] = [
    // Without room for a single descriptor a forked child cannot be given its memory, and is ended.
    Limit { case: "limits::no_descriptors", status: 1 },
    // A helper lives in every process as a thread. A filter for all threads that does not allow
    // what it does ends the process with SIGSYS,
    Limit { case: "limits::sandbox_for_all", status: 159 },
    // and what only a process without threads may do is refused.
    Limit { case: "limits::user_namespace", status: 1 },
];

// Most of its memory stays local, and why.
const UNMANAGED: [(&str, &str); 3] = [
    ("threads::five_hundred", "the stacks of its threads are larger than all else"),
    ("threads::detached", "as many threads, and so stacks, are there at once as get a processor"),
    ("remap::to_high_addresses", "memory moves to where none is managed"),
];

macro_rules! cases {
    ($($file:ident { $($case:ident $(= $status:literal)?),* $(,)? })*) => {
        $(mod $file {
            $(#[test]
            fn $case() {
                let status = 0 $(+ $status)?;
                super::check(stringify!($file), stringify!($case), status);
            })*
        })*
    };
}

cases! {
    map {
        read_write, protections, fixed_over_own, file_over_own, refused_over_own, no_replace,
        hints, kinds, executable, shared_with_child, reservation, many_reservations, trimmed,
        errors, unmapped, ten_thousand, churn, small_ones, unmapped_before_given,
    }
    addresses { hints, taken, across, reserve_256_gib, reserve_32_tib, sparse, crowd }
    zero { maps, maps_in_threads, heap, heap_in_threads, pages, pages_in_threads }
    remap {
        grow, grow_in_place, shrink, move_to_fixed, middle, keeps_protection, file_into_own,
        own_over_file, to_low_addresses, to_high_addresses, leave_behind, leave_behind_in_use,
        keeps_advice, errors, in_several_threads,
    }
    advise {
        dont_need, dont_need_together, free_lazily, hints, wipe_on_fork, dont_fork, errors,
        resident, lock, lock_all,
    }
    heap {
        program_break, stress, arenas, one_arena, everything_mapped, freed_elsewhere, aligned,
        one_large_block_that_grows,
    }
    threads {
        five_hundred, one_after_another, detached, own_stack, cleared_word, ends_while_fetched,
        end_under_pressure, robust_mutex, robust_mutex_of_a_process, first_thread_ends,
        exits_without_its_helper, helper_ends_first, exit_from_thread = 23, last_thread_ends = 9,
        thread_local_memory, conditions, cancelled,
    }
    signals {
        alternate_stack, stack_overflow, fault_address, write_barrier, in_memory_calls,
        in_large_calls, in_forks, stop_and_continue, stopped_at_birth, child_signals, aborts = 134,
        terminated = 143, killed = 137, segmentation_fault = 139,
    }
    forks {
        snapshot, layouts, nested, while_others_allocate, by_several_threads, two_hundred,
        forty_at_once, hundred_at_once, by_vfork, daemonized, large, sharing_process,
    }
    traced {
        forks, large, by_several_threads, own_stack, under_signals, killed_children,
        stopped_and_read,
    }
    cut {
        next_pages, next_pages_backwards, far_apart, far_apart_backwards, by_the_kernel,
        by_the_kernel_backwards, two_threads, two_threads_backwards, static_first, static_second,
        nobody_is_interrupted, while_threads_end, own_stack, parent_goes_on, parent_ends,
        under_signals, locked, by_several_threads, others_go_on,
    }
    execs {
        by_spawn, by_system, by_popen, by_vfork, work = 7, itself, from_thread = 7, failing,
        empty_environment, many_arguments, tree,
    }
    io {
        uring, uring_refused, uring_direct, direct, buffered, vectors, spliced, sockets,
        from_another_process, own_memory_file, own_memory_file_read_only, under_pressure,
    }
    kernel {
        cleared, lock_opened, named, named_by_the_first, named_before_all, marked, preempted,
        locked, while_forking,
    }
    kernel_static {
        cleared, lock_opened, named, named_by_the_first, named_before_all, marked, preempted,
        locked, while_forking,
    }
    futexes { between_threads, between_processes, not_shared_by_fork, errors }
    limits {
        address_space, few_descriptors, no_descriptors, closed_descriptors, own_filter,
        own_filter_for_all, sandbox, sandbox_for_all, not_dumpable, dropped_privileges, new_root,
        user_namespace, pid_namespace, stack_limit, one_processor,
    }
}

#[test]
fn threads_end_while_their_words_are_fetched() {
    if !usable("userfaultfd", "semantics::threads_end_while_their_words_are_fetched") {
        return;
    }
    let path = program("threads");
    let native = Launch::new([path.as_os_str(), "ends_while_fetched".as_ref()]);
    let options = ["--trap", "userfaultfd", "--local", "1MiB", "--rtt", "50ms"];
    native.limit(LIMIT).under_afar(&options).run().expect(0, "the slow run");
}

fn check(file: &str, case: &str, status: i32) {
    let (path, name) = (program(file), format!("{file}::{case}"));
    let native = Launch::new([path.as_os_str(), case.as_ref()]).limit(LIMIT);
    native.clone().run().expect(status, "the native run");
    let exception = UNMANAGED.iter().find(|(case, _)| *case == name);
    let native = match exception {
        Some((_, why)) => native.unmanaged(why),
        None => native,
    };
    for trap in TRAPS {
        let limit = LIMITS.iter().find(|limit| limit.case == name);
        if !usable(trap, &format!("semantics::{name}")) {
            continue;
        }
        let emulated = LOCAL.map(|local| vec!["--trap", trap, "--local", local]);
        let far = (trap == FAR[1]).then(|| FAR.to_vec());
        for flags in emulated.into_iter().chain(far) {
            let what = flags.join(" ");
            let mut ended = native.under_afar(&flags).run();
            if limit.is_some_and(|limit| limit.status == ended.status) {
                ended.status = status;
            }
            ended.expect(status, &what).leaves_nothing(&what);
        }
    }
}
