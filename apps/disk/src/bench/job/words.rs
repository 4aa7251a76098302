//! The names of fio's options, and how afar treats each: supported, without effect, or refused.

/// Options that do what they do in fio.
pub(super) const SUPPORTED: &[&str] = &[
    "allrandrepeat",
    "bs",
    "buffered",
    "description",
    "direct",
    "directory",
    "do_verify",
    "fdatasync",
    "filename",
    "fsync",
    "group_reporting",
    "io_size",
    "iodepth",
    "ioengine",
    "kb_base",
    "name",
    "new_group",
    "norandommap",
    "number_ios",
    "numjobs",
    "offset",
    "percentile_list",
    "ramp_time",
    "random_distribution",
    "randrepeat",
    "randseed",
    "rate",
    "rate_iops",
    "rate_process",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "size",
    "startdelay",
    "stonewall",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "thread",
    "time_based",
    "verify",
];

/// Aliases of options: alias, and the option's name.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("blockalign", "ba"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("disable_bw", "disable_bw_measurement"),
    ("fileoffset", "offset"),
    ("fill_fs", "fill_device"),
    ("io_limit", "io_size"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iomem", "mem"),
    ("nr_files", "nrfiles"),
    ("ratecycle", "rate_cycle"),
    ("ratemin", "rate_min"),
    ("readwrite", "rw"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
    ("start_delay", "startdelay"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
];

const ENGINE: &str = "it is for an engine of fio's, and requests go another way here";
const FILES: &str = "no file is laid out before a load";
const MEMORY: &str = "memory for requests is afar's own";
const RECORDED: &str = "all latencies are in the record";
const TIMED: &str = "every request is timed";

/// Options without effect here, and why.
pub(super) const MEANINGLESS: &[(&str, &str)] = &[
    ("allow_file_create", FILES),
    ("clat_percentiles", RECORDED),
    ("clocksource", TIMED),
    ("cmd_type", ENGINE),
    ("continue_on_error", "a load goes on after a failure, and counts it"),
    ("create_fsync", FILES),
    ("create_on_open", FILES),
    ("create_serialize", FILES),
    ("disable_bw_measurement", TIMED),
    ("disable_clat", TIMED),
    ("disable_lat", TIMED),
    ("disable_slat", TIMED),
    ("disk_util", "the counters of disks are not read"),
    ("fadvise_hint", "files are opened past the page cache"),
    ("fallocate", FILES),
    ("fixedbufs", ENGINE),
    ("force_async", ENGINE),
    ("gtod_cpu", TIMED),
    ("gtod_reduce", TIMED),
    ("hipri", ENGINE),
    ("hugepage-size", MEMORY),
    ("invalidate", "files are opened past the page cache"),
    ("lat_percentiles", RECORDED),
    ("lockmem", MEMORY),
    ("mem", MEMORY),
    ("nonvectored", ENGINE),
    ("nowait", ENGINE),
    ("overwrite", "what may be overwritten is said by --overwrite"),
    ("random_generator", "draws are afar's own"),
    ("refill_buffers", "what is written does not compress"),
    ("registerfiles", ENGINE),
    ("scramble_buffers", "what is written does not compress"),
    ("significant_figures", "quantiles are within 0.1 % of what was measured"),
    ("slat_percentiles", RECORDED),
    ("sqthread_poll", ENGINE),
    ("sqthread_poll_cpu", ENGINE),
    ("uncached", ENGINE),
    ("userspace_reap", ENGINE),
];

const ONE_SIZE: &str = "set bs";
const PIN: &str = "run afar under taskset";
const ONE_FILE: &str = "write a section for each file";
const RECORD: &str = "read the JSON, which has requests by the second and full histograms";

/// Unsupported options, which would change what is measured: the name, the value without effect
/// that is accepted (or ""), and what to do instead (or "").
#[rustfmt::skip] // one row, one line
pub(super) const UNSUPPORTED: &[(&str, &str, &str)] = &[
    ("allow_mounted_write", "0", ""), ("atomic", "0", ""), ("ba", "", ONE_SIZE),
    ("block_error_percentiles", "0", ""), ("bs_unaligned", "0", ONE_SIZE),
    ("bsrange", "", ONE_SIZE), ("bssplit", "", ONE_SIZE), ("buffer_compress_chunk", "", ""),
    ("buffer_compress_percentage", "0", ""), ("buffer_pattern", "", ""), ("bwavgtime", "", RECORD),
    ("cgroup", "", "run afar in it"), ("cgroup_nodelete", "0", ""), ("cgroup_weight", "", ""),
    ("cmdprio", "", ""), ("cmdprio_bssplit", "", ""), ("cmdprio_class", "", ""),
    ("cmdprio_percentage", "0", ""), ("cpumask", "", PIN), ("cpus_allowed", "", PIN),
    ("cpus_allowed_policy", "", PIN), ("create_only", "0", ""), ("dedupe_global", "0", ""),
    ("dedupe_mode", "", ""), ("dedupe_percentage", "0", ""),
    ("dedupe_working_set_percentage", "", ""), ("end_fsync", "0", "set fsync"),
    ("error_dump", "0", ""), ("exec_postrun", "", ""), ("exec_prerun", "", ""),
    ("exit_what", "", ""), ("exitall", "0", ""), ("exitall_on_error", "0", ""),
    ("experimental_verify", "0", "set verify"),
    ("file_append", "0", ""), ("file_service_type", "", ONE_FILE), ("filename_format", "", ""),
    ("filesize", "", "set size"), ("fill_device", "0", "set size"), ("flow", "0", ""),
    ("flow_id", "0", ""), ("flow_sleep", "0", ""),
    ("fsync_on_close", "0", "set sync=dsync"), ("gid", "", ""), ("ignore_error", "", ""),
    ("ignore_zone_limits", "0", ""), ("include", "", "copy what it has"),
    ("io_submit_mode", "inline", ""), ("iodepth_batch", "1", "set iodepth"),
    ("iodepth_batch_complete_max", "", "set iodepth"),
    ("iodepth_batch_complete_min", "1", "set iodepth"), ("iodepth_low", "", "set iodepth"),
    ("iopsavgtime", "", RECORD), ("ioscheduler", "", ""), ("job_max_open_zones", "0", ""),
    ("latency_percentile", "", ""), ("latency_run", "0", ""), ("latency_target", "0", ""),
    ("latency_window", "0", ""), ("lockfile", "none", ""), ("log_alternate_epoch", "0", RECORD),
    ("log_alternate_epoch_clock_id", "", RECORD), ("log_avg_msec", "", RECORD),
    ("log_compression", "", RECORD), ("log_compression_cpus", "", RECORD),
    ("log_entries", "", RECORD), ("log_hist_coarseness", "", RECORD), ("log_hist_msec", "", RECORD),
    ("log_max_value", "", RECORD), ("log_offset", "", RECORD), ("log_prio", "", RECORD),
    ("log_store_compressed", "", RECORD), ("log_unix_epoch", "", RECORD),
    ("loops", "1", "set io_size"),
    ("max_latency", "0", ""), ("max_open_zones", "0", ""), ("merge_blktrace_file", "", ""),
    ("merge_blktrace_iters", "", ""), ("merge_blktrace_scalars", "", ""),
    ("nice", "0", "run afar under nice"), ("nrfiles", "1", ONE_FILE), ("numa_cpu_nodes", "", PIN),
    ("numa_mem_policy", "", "run afar under numactl"), ("offset_align", "0", ""),
    ("offset_increment", "0", "write a section for each offset"), ("opendir", "", ONE_FILE),
    ("openfiles", "1", ONE_FILE), ("per_job_logs", "", RECORD),
    ("percentage_random", "100", "set rw"), ("pre_read", "0", ""),
    ("prio", "", "run afar under ionice"), ("prioclass", "", "run afar under ionice"),
    ("profile", "", ""), ("rate_cycle", "", "set rate"), ("rate_ignore_thinktime", "0", ""),
    ("rate_iops_min", "", "look at the rate that was reached"),
    ("rate_min", "", "look at the rate that was reached"), ("read_beyond_wp", "0", ""),
    ("read_iolog", "", ""), ("read_iolog_chunked", "0", ""), ("readfua", "0", ""),
    ("replay_align", "", ""), ("replay_no_stall", "0", ""), ("replay_redirect", "", ""),
    ("replay_scale", "", ""), ("replay_skip", "", ""), ("replay_time_scale", "", ""),
    ("rw_sequencer", "sequential", "set rw"), ("serialize_overlap", "0", ""),
    ("sg_write_mode", "", ""), ("stats", "1", ""), ("steadystate", "", "set ramp_time"),
    ("steadystate_duration", "0", "set ramp_time"), ("steadystate_ramp_time", "0", "set ramp_time"),
    ("stream_id", "", ""), ("sync_file_range", "", "set sync=dsync"),
    ("thinktime_blocks_type", "complete", ""), ("thinktime_iotime", "0", ""),
    ("thinktime_spin", "0", ""), ("trim_backlog", "0", ""), ("trim_backlog_batch", "0", ""),
    ("trim_percentage", "0", "set rw=randtrim"), ("trim_verify_zero", "", ""), ("uid", "", ""),
    ("unified_rw_reporting", "none", ""), ("unique_filename", "", ""), ("unit_base", "", ""),
    ("unlink", "0", ""), ("unlink_each_loop", "0", ""), ("verify_async", "0", ""),
    ("verify_backlog", "0", "reads check what is written while it is"),
    ("verify_backlog_batch", "0", "reads check what is written while it is"),
    ("verify_dump", "0", ""), ("verify_fatal", "0", ""), ("verify_interval", "", ""),
    ("verify_offset", "", ""), ("verify_only", "0", ""),
    ("verify_pattern", "", "set verify=crc32c"),
    ("verify_state_load", "0", ""), ("verify_state_save", "0", ""),
    ("wait_for", "", "set stonewall"), ("write_barrier", "0", ""), ("write_bw_log", "", RECORD),
    ("write_hint", "none", ""), ("write_hist_log", "", RECORD), ("write_iolog", "", ""),
    ("write_iops_log", "", RECORD), ("write_lat_log", "", RECORD),
    ("writefua", "0", "set sync=dsync"), ("zero_buffers", "0", ""), ("zonecapacity", "0", ""),
    ("zonemode", "none", ""), ("zonerange", "0", ""), ("zonesize", "0", ""), ("zoneskip", "0", ""),
    ("zone_reset_frequency", "", ""), ("zone_reset_threshold", "", ""),
];

/// The option that `name` is an alias of, or `name` itself.
pub(super) fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, word)| word)
}

/// The option whose name is nearest to the unknown `name`, if one is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let meaningless = MEANINGLESS.iter().map(|(word, _)| *word);
    let unsupported = UNSUPPORTED.iter().map(|(word, ..)| *word);
    // Of equally near names the first is taken, so supported ones come first.
    let all = SUPPORTED.iter().copied().chain(aliases).chain(meaningless).chain(unsupported);
    console::usage::nearest(name, all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_word_has_one_place() {
        let words = SUPPORTED
            .iter()
            .copied()
            .chain(MEANINGLESS.iter().map(|(word, _)| *word))
            .chain(UNSUPPORTED.iter().map(|(word, ..)| *word))
            .chain(ALIASES.iter().map(|(alias, _)| *alias));
        let mut seen = BTreeSet::new();
        words.for_each(|word| assert!(seen.insert(word), "{word}"));
        for (alias, word) in ALIASES {
            assert_eq!(canonical(alias), *word);
            assert!(seen.contains(word), "{word}");
        }
    }

    #[test]
    fn the_nearest_word_is_one_that_is_near() {
        let cases = [
            ("bz", Some("bs")),
            ("blocksiz", Some("blocksize")),
            ("io_depth", Some("iodepth")),
            ("run_time", Some("runtime")),
            ("rwmixreads", Some("rwmixread")),
            ("numjob", Some("numjobs")),
            ("nonsense_of_mine", None),
        ];
        for (name, word) in cases {
            assert_eq!(nearest(name), word, "{name}");
        }
    }
}
