//! Makes a job of the options of a section.
//!
//! Of several options of one name the last counts. Defaults are fio's, except for the size, which
//! is that of the disk.

use measure::Duration;
use workload::Spacing;

use super::Note;
use super::entries::{Entries, Read};
use super::text::{Entry, Section};
use super::units::{Extent, SECOND_NS};
use crate::bench::pattern::Pattern;

/// The disk of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A disk's URI, as on the command line.
    Uri(String),
    /// A file or block device.
    Path(String),
}

/// A load: a section of a job file, or flags.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Options with values, as they were written, without global ones.
    pub(crate) options: Vec<(String, String)>,
    /// Global options with values, as they were written.
    pub(crate) globals: Vec<(String, String)>,
    /// The disk; the one on the command line if it is `None`.
    pub(crate) place: Option<Place>,
    pub(crate) rw: Pattern,
    pub(crate) read_percent: u8,
    /// Skew of random requests; uniform if `None`.
    pub(crate) zipf: Option<f64>,
    pub(crate) block_bytes: u64,
    pub(crate) size: Option<Extent>,
    pub(crate) offset: Extent,
    /// Bytes that each thread reads or writes; the size of the region if `None`.
    pub(crate) io_size: Option<Extent>,
    pub(crate) number_ios: Option<u64>,
    pub(crate) depth: u16,
    pub(crate) threads: u16,
    /// Requests per second of all threads; a closed loop if `None`.
    pub(crate) rate: Option<f64>,
    pub(crate) spacing: Spacing,
    pub(crate) think: Option<(Duration, u32)>,
    pub(crate) delay: Duration,
    pub(crate) ramp: Duration,
    pub(crate) runtime: Option<Duration>,
    /// The job ends by `runtime` or `number_ios`, not when it has been through its bytes once.
    pub(crate) is_time_based: bool,
    pub(crate) verifies: bool,
    pub(crate) reads_back: bool,
    /// Each write is answered only when it is on the medium.
    pub(crate) is_forced: bool,
    /// A flush follows each time this number of writes has been made.
    pub(crate) flush_every: Option<u32>,
    /// Another seed for each run if `None`.
    pub(crate) seed: Option<u64>,
    /// Fio's list if `None`.
    pub(crate) percentiles: Option<Vec<f64>>,
    /// The job begins when all jobs before it have ended.
    pub(crate) waits: bool,
    pub(crate) begins_group: bool,
    pub(crate) is_grouped: bool,
}

const DEPTH_MOST: u64 = 4095;
const THREADS_MOST: u64 = 64;

impl Job {
    /// Makes a job of a section; adds to `notes` what has no effect.
    ///
    /// # Errors
    /// The first option that is unknown, not supported or wrong.
    pub(super) fn read(section: &Section, notes: &mut Vec<Note>) -> Read<Self> {
        let words = Entries::of(section, notes)?;
        let rw = words.pattern()?;
        let read_percent = words.read_percent(rw)?;
        let block_bytes = words.block_bytes(read_percent)?;
        let threads = words.whole("numjobs", 1..=THREADS_MOST)?.unwrap_or(1);
        let rate = words.rate(read_percent, block_bytes)?;
        let think = words.think()?;
        if let (Some(_), Some(_), Some(entry)) = (rate, think, words.get("thinktime")) {
            return Err(entry.wrong("a job with a rate does not wait for itself; leave one out"));
        }
        let runtime = words.time("runtime", SECOND_NS)?.filter(|time| !time.is_zero());
        let is_time_based = words.flag("time_based")?;
        if let (true, None, Some(entry)) = (is_time_based, runtime, words.get("time_based")) {
            return Err(entry.wrong("for how long? add runtime=SECONDS"));
        }
        let pairs = |entries: &[Entry]| {
            let pair = |one: &Entry| Some((one.name.clone(), one.value.clone()?));
            entries.iter().filter_map(pair).collect()
        };
        let (globals, own) = section.entries.split_at(section.global_count);
        Ok(Self {
            name: words.text("name").unwrap_or(&section.name).to_owned(),
            line: section.line,
            options: pairs(own),
            globals: pairs(globals),
            place: words.place()?,
            rw,
            read_percent,
            zipf: words.zipf()?,
            block_bytes,
            size: words.extent("size")?,
            offset: words.extent("offset")?.unwrap_or(Extent::Bytes(0)),
            io_size: words.extent("io_size")?,
            number_ios: words.whole("number_ios", 0..=u64::MAX)?.filter(|count| *count > 0),
            depth: small(words.whole("iodepth", 1..=DEPTH_MOST)?.unwrap_or(1)),
            threads: small(threads),
            rate: rate.map(|rate| rate * threads as f64),
            spacing: words.spacing()?,
            think,
            delay: words.time("startdelay", SECOND_NS)?.unwrap_or_default(),
            ramp: words.time("ramp_time", SECOND_NS)?.unwrap_or_default(),
            runtime,
            is_time_based,
            verifies: words.verifies()?,
            reads_back: words.boolean("do_verify")?.unwrap_or(true),
            is_forced: words.is_forced()?,
            flush_every: words.flush_every()?,
            seed: words.seed()?,
            percentiles: words.percentiles()?,
            waits: words.flag("stonewall")?,
            begins_group: words.flag("new_group")?,
            is_grouped: words.flag("group_reporting")?,
        })
    }
}

// A number that was checked to fit.
fn small(number: u64) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{JobError, read};
    use super::*;

    fn jobs(text: &str) -> (Vec<Job>, Vec<Note>) {
        read(text.as_bytes(), &|_| None).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    fn job(options: &str) -> Job {
        jobs(&format!("[a]\n{options}\n")).0.remove(0)
    }

    fn refused(options: &str) -> JobError {
        let text = format!("[a]\n{options}\n");
        read(text.as_bytes(), &|_| None).expect_err(options)
    }

    #[test]
    fn what_is_not_said_is_as_in_fio() {
        let plain = job("");
        assert_eq!((plain.name.as_str(), plain.line, plain.place), ("a", 1, None));
        assert_eq!((plain.rw, plain.read_percent, plain.block_bytes), (Pattern::Read, 100, 4096));
        assert_eq!((plain.depth, plain.threads, plain.rate, plain.seed), (1, 1, None, Some(1)));
        assert_eq!((plain.runtime, plain.is_time_based, plain.reads_back), (None, false, true));
        assert!(!plain.verifies && !plain.waits && !plain.is_grouped && !plain.is_forced);
    }

    #[test]
    fn a_file_as_people_write_them() {
        let text = "; two phases\n[global]\nioengine=libaio\ndirect=1\nbs=8k\niodepth=16\n\
                    runtime=30\ntime_based\ngroup_reporting\nfilename=/data/disk.img\n\
                    [warm up]\nrw=write\nbs=1m\nsize=10g\n\
                    [main]\nstonewall\nrw=randrw\nrwmixread=70\nnumjobs=4\nramp_time=2s\n\
                    random_distribution=zipf:1.2\n";
        let (jobs, notes) = jobs(text);
        let [warm, main] = &jobs[..] else { panic!("two: {jobs:?}") };
        assert_eq!((warm.block_bytes, warm.rw), (1 << 20, Pattern::Write));
        assert_eq!(warm.size, Some(Extent::Bytes(10 << 30)));
        assert_eq!((main.block_bytes, main.depth, main.threads), (8192, 16, 4));
        assert_eq!((main.rw, main.read_percent, main.zipf), (Pattern::Randrw, 70, Some(1.2)));
        assert_eq!((main.runtime, main.is_time_based), (Some(Duration::from_ms(30_000)), true));
        assert_eq!((main.ramp, main.waits), (Duration::from_ms(2000), true));
        assert_eq!(main.place, Some(Place::Path("/data/disk.img".to_owned())));
        assert_eq!((main.options.len(), main.globals.len()), (5, 6), "those with values");
        let notes: Vec<_> = notes.iter().map(|note| (note.line, note.text.as_str())).collect();
        let engine = "ioengine=libaio has no effect: requests go afar's own way";
        assert_eq!(notes, [(3, engine)], "once, not for each section");
    }

    #[test]
    fn words_have_other_names_and_the_last_counts() {
        let one = job("blocksize=8k\nbs=16k\nreadwrite=randwrite\ntimeout=5\nio_limit=1m");
        assert_eq!((one.block_bytes, one.rw), (16 << 10, Pattern::Randwrite));
        assert_eq!(one.runtime, Some(Duration::from_ms(5000)));
        assert_eq!(one.io_size, Some(Extent::Bytes(1 << 20)));
        assert_eq!(job("rw=rw\nrwmixread=70\nrwmixwrite=60").read_percent, 40);
        assert_eq!(job("rw=rw\nrwmixwrite=60\nrwmixread=70").read_percent, 70);
        assert_eq!(job("kb_base=1000\nbs=4k").block_bytes, 4000);
        assert_eq!(job("bs=4k\nkb_base=1000").block_bytes, 4000);
    }

    #[test]
    fn lists_are_for_reads_writes_and_trims() {
        assert_eq!(job("bs=8k,16k").block_bytes, 8192);
        assert_eq!(job("rw=write\nbs=8k,16k").block_bytes, 16 << 10);
        assert_eq!(job("rw=trim\nbs=8k,16k").block_bytes, 16 << 10);
        assert_eq!(job("rw=trim\nbs=8k,16k,32k").block_bytes, 32 << 10);
        assert_eq!(job("rw=write\nbs=8k,").block_bytes, 4096);
        assert_eq!(job("rw=rw\nbs=8k,8k").block_bytes, 8192);
        assert!(refused("rw=rw\nbs=4k,8k").reason.contains("write one for both"));
        assert!(refused("bs=1,2,3,4").reason.contains("up to three"));
    }

    // Each direction is limited by itself, and the mix stays what it is.
    #[test]
    fn rates_are_of_each_direction_and_thread() {
        let rate = |options: &str| job(options).rate.map(f64::round);
        assert_eq!(rate("rate_iops=1k"), Some(1024.0));
        assert_eq!(rate("rate=1m"), Some(256.0));
        assert_eq!(rate("rate=1m\nrate_iops=100\nnumjobs=3"), Some(300.0));
        assert_eq!(rate("rw=randrw\nrate_iops=100"), Some(200.0));
        assert_eq!(rate("rw=randrw\nrwmixread=75\nrate_iops=300,50"), Some(200.0));
        assert_eq!(rate("rw=randrw\nrwmixread=75\nrate_iops=,50"), Some(200.0));
        assert_eq!(rate("rate_iops=,50"), None, "it only reads");
        assert!(refused("rate_iops=0").reason.contains("more than 0"));
        assert_eq!(job("rate_iops=1\nrate_process=poisson").spacing, Spacing::Poisson);
        assert_eq!(job("rate_iops=1").spacing, Spacing::Even);
    }

    #[test]
    fn disks_are_paths_or_uris() {
        let place = |options: &str| job(options).place;
        let path = |path: &str| Some(Place::Path(path.to_owned()));
        let uri = |uri: &str| Some(Place::Uri(uri.to_owned()));
        assert_eq!(place("filename=disk.img"), path("disk.img"));
        assert_eq!(place("filename=disk.img\ndirectory=/data"), path("/data/disk.img"));
        assert_eq!(place("filename=/dev/sdx\ndirectory=/data"), path("/dev/sdx"));
        assert_eq!(place("filename=/dev/dsk\\:0"), path("/dev/dsk:0"));
        assert_eq!(place("filename=memory:1MiB"), uri("memory:1MiB"));
        assert_eq!(place("filename=nvme+tcp://a:1/nqn/2"), uri("nvme+tcp://a:1/nqn/2"));
        assert_eq!(place("filename=/dev/x\nioengine=null"), uri("null:"));
        assert!(refused("filename=a:b").reason.contains("a section for each file"));
    }

    #[test]
    fn what_cannot_be_says_what_to_do() {
        let cases = [
            ("bz=4k", "fio has no option \"bz\"; did you mean bs?"),
            ("rw_mix_read=4", "did you mean rwmixread?"),
            ("wobble=4k", "see fio(1)"),
            ("nrfiles=4", "fio's nrfiles is not supported; remove it and write a section for each"),
            ("cpus_allowed=0", "remove it and run afar under taskset"),
            ("zonemode=zbd", "fio's zonemode is not supported; remove it"),
            ("bs", "bs: it has no value; write NAME=VALUE"),
            ("bs=4q", "bs=4q: unknown unit \"q\"; use k, m, g, t or p"),
            ("bs=", "bs=: it has no value"),
            ("rw=randred", "rw=randred: write randread, randwrite, randrw, read"),
            ("rw=read:8", "remove them"),
            ("rw=trimwrite", "rw=trimwrite: is not supported; write sections"),
            ("iodepth=0", "iodepth=0: write 1 to 4095"),
            ("numjobs=65", "numjobs=65: write 1 to 64"),
            ("rwmixread=101", "write 0 to 100"),
            ("size=101%", "size=101%: write 0% to 100%"),
            ("runtime=1y", "use us, ms, s, m, h or d"),
            ("time_based", "add runtime=SECONDS"),
            ("direct=yes", "direct=yes: write 0 or 1"),
            ("thinktime=5\nrate_iops=5", "leave one out"),
            ("random_distribution=pareto:1", "write random, zipf or zipf:SKEW"),
            ("random_distribution=zipf:1.0", "above 0, not 1, at most 10"),
            ("percentile_list=50:101", "up to 20 numbers to 100"),
            ("verify=pattern", "any check will do"),
            ("verify=xyz", "write 0, md5"),
            ("startdelay=1-3", "unknown unit \"-3\""),
        ];
        for (options, reason) in cases {
            let error = refused(options);
            assert!(error.reason.contains(reason), "{options}: {error:?}");
            assert_eq!(error.line, 2, "{options}: {error:?}");
        }
    }

    #[test]
    fn values_that_change_nothing_are_taken() {
        for options in ["fsync=0", "loops=1", "nrfiles=1", "zonemode=none", "thinktime_spin=0"] {
            job(options);
        }
        let (_, notes) = jobs("[a]\ndirect=0\nbuffered=1\ngtod_reduce=1\n[b]\ninvalidate=1\n");
        let lines: Vec<usize> = notes.iter().map(|note| note.line).collect();
        assert_eq!(lines, [2, 3, 4, 6]);
    }

    #[test]
    fn the_rest_is_read_too() {
        let all =
            job("name=x\ndescription=y\nthinktime=50\nthinktime_blocks=8\nstartdelay=1500ms\n\
                       verify=md5\ndo_verify=0\nsync=dsync\nrandseed=9\npercentile_list=50:99.9\n\
                       fsync=16\nnew_group\nnumber_ios=7\noffset=25%\nwait_for_previous\n\
                       thread\nnorandommap");
        assert_eq!((all.name.as_str(), all.think), ("x", Some((Duration::from_us(50), 8))));
        assert_eq!((all.delay, all.verifies), (Duration::from_ms(1500), true));
        assert_eq!((all.flush_every, job("fdatasync=9").flush_every), (Some(16), Some(9)));
        assert!(!all.reads_back && all.is_forced && all.begins_group && all.waits);
        assert_eq!((all.seed, all.percentiles), (Some(9), Some(vec![50.0, 99.9])));
        assert_eq!((all.number_ios, all.offset), (Some(7), Extent::Percent(25)));
        assert_eq!(job("randrepeat=0").seed, None);
        assert_eq!(job("randrepeat=0\nrandseed=4").seed, Some(4));
    }

    proptest! {
        #[test]
        fn any_bytes_are_jobs_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, &|_| None);
        }

        #[test]
        fn any_values_are_jobs_or_refused(
            options in prop::collection::vec(
                (
                    prop::sample::select(super::super::words::SUPPORTED),
                    prop::option::of(
                        "[0-9a-z:,.%-]{0,12}|[0-9]{1,20}[kmgtp]?(ib)?|zipf:[0-9.e+-]{1,9}",
                    ),
                ),
                0..8,
            )
        ) {
            let mut text = "[a]\n".to_owned();
            for (name, value) in options {
                text += &match value {
                    Some(value) => format!("{name}={value}\n"),
                    None => format!("{name}\n"),
                };
            }
            if let Ok((jobs, _)) = read(text.as_bytes(), &|_| None) {
                let [job] = &jobs[..] else { panic!("one: {jobs:?}") };
                prop_assert!((1..=4095).contains(&job.depth) && (1..=64).contains(&job.threads));
                prop_assert!(job.read_percent <= 100);
                prop_assert!(job.rate.is_none_or(|rate| rate.is_finite() && rate > 0.0));
                prop_assert!(job.zipf.is_none_or(|skew| skew > 0.0 && skew != 1.0));
            }
        }
    }
}
