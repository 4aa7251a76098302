//! DESIGN NOTES
//!
//! A record is read years later, by other programs, so its field names carry their units and its
//! values are never scaled. Fields may be added within a schema version: readers ignore what
//! they do not know, and what is new is optional. A field that changes its meaning or goes away
//! makes a new version. Each kind of run has its own parameters and results behind [`Results`];
//! the frame around them is the same for all.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::coverage::{
    COVERAGE_BOUND, Coverage, ImageSummary, Invalid, InvalidKind, Loss, judge, nothing_far, overrun,
};
use crate::figures::{Figures, Remembered};
use crate::fraction::{LocalSize, ShareOf};
use crate::quantity::Bytes;

/// The record of one run: what was asked, where, and what came of it.
///
/// As JSON: `schema`, `version`, `command`, `started_unix_ns`, `seed`, `host`, `params`,
/// `results`, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(bound(serialize = "R: Serialize, R::Params: Serialize", deserialize = "R: Results"))]
#[cfg_attr(
    feature = "schema",
    schemars(bound = "R: schemars::JsonSchema, R::Params: schemars::JsonSchema")
)]
pub struct Run<R: Results = RunResults> {
    /// Kind and version of the record, such as `afar.run/2`.
    #[serde(deserialize_with = "schema_of::<R, _>")]
    pub schema: String,
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The full command line.
    pub command: Vec<String>,
    /// Start of the run, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// Seed of every random draw of the run.
    pub seed: u64,
    /// The machine of the run.
    pub host: Host,
    /// The resolved configuration.
    pub params: R::Params,
    /// The outcome.
    pub results: R,
}

/// The results of one kind of run, which decide the schema of its record.
///
/// Results and parameters must have a JSON form: any map in them has string keys.
pub trait Results: Serialize + DeserializeOwned {
    /// Kind and version, e.g. `afar.run/2`.
    const SCHEMA: &'static str;
    /// The configuration that such a run has.
    type Params: Serialize + DeserializeOwned;
}

/// Why a text is not a record of the wanted kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The record is of another kind or of a version this program does not know.
    #[error(
        "the record has schema \"{found}\", but \"{expected}\" is wanted; \
         read it with the version of afar that wrote it"
    )]
    UnknownSchema {
        /// The schema that the record states.
        found: String,
        /// The schema that this program reads.
        expected: &'static str,
    },
    /// The text is JSON but does not say what it is.
    #[error(
        "the record has no \"schema\" field, so it was not written by afar; \
         \"{expected}\" is wanted"
    )]
    NoSchema {
        /// The schema that this program reads.
        expected: &'static str,
    },
    /// The text does not begin as JSON does.
    #[error("it is no JSON, so it is no record \"{expected}\"; give what --json has written")]
    NotJson {
        /// The schema that this program reads.
        expected: &'static str,
    },
    /// The text ends early, or a field is missing or of the wrong type.
    #[error("the record cannot be read as \"{expected}\": {source}; it may be cut short")]
    Malformed {
        /// The schema that this program reads.
        expected: &'static str,
        /// What is wrong and where.
        source: serde_json::Error,
    },
}

/// The machine a run took place on, as its operating system describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Processor model.
    pub cpu_model: String,
    /// Processors online.
    pub cpu_count: u64,
    /// Physical memory of the machine.
    pub memory_bytes: u64,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: String,
    /// Clock source of the kernel, such as `tsc`.
    pub clocksource: String,
    /// Whether the machine is virtual or a container; `None` if unknown.
    pub virtualised: Option<bool>,
    /// Frequency governor; `None` if the processor has none.
    pub governor: Option<String>,
    /// Mitigations of processor vulnerabilities in force; `None` if unknown.
    pub mitigations: Option<String>,
}

/// The resolved configuration of a run with far memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Params {
    /// Engine that holds far memory: `arena` or `swap`.
    pub engine: String,
    /// Trap that detects and delays faults: `bpf`, `userfaultfd`, or `block_bio_queue` with the
    /// swap engine.
    pub trap: String,
    /// How a thread waits for a page: `spin` (on its processor) or `sleep` (without).
    pub wait: String,
    /// Local memory as the user gave it: a share or a size.
    pub local: String,
    /// Budget of local memory; `None` if it is a share of what is in use at each moment.
    pub local_bytes: Option<u64>,
    /// What `local` is a share of: `live` (what is in use at each moment) or `fixed` (a size);
    /// `None` if `local` is a size, or all memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Bytes that `local` is a share of; `None` if they change all the time, or if `local` is no
    /// share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Round-trip time of the link, in nanoseconds.
    pub rtt_ns: u64,
    /// Bandwidth of the link in bits per second; `None` if infinite.
    pub bandwidth_bps: Option<u64>,
    /// What transfers share: `half-duplex` (one queue), `full-duplex` (a queue for each direction)
    /// or `per-fault` (none).
    pub link: String,
    /// File of the delay profile; `None` without one.
    pub profile: Option<String>,
    /// Eviction policy; `kernel` with the swap engine.
    pub policy: String,
    /// Prefetch policy; `kernel` with the swap engine.
    pub prefetch: String,
    /// Most pages of write-backs that are not acknowledged yet; `None` if the engine chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_pages: Option<u64>,
    /// Which evicted pages use the link: `written`, `changed` or `free` (none).
    pub write_back: String,
    /// Read-ahead of the kernel when it swaps, as `vm.page-cluster`: 2 to this power pages; `None`
    /// with an engine that does not swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cluster: Option<u64>,
    /// What shares one budget of local memory: each `process`, or the whole `tree` of processes.
    pub budget_scope: String,
    /// Further tiers of far memory, nearest first.
    pub tiers: Vec<TierParams>,
    /// Blades that hold the far pages, separated by commas; `None` if delays are emulated and no
    /// page leaves the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<String>,
    /// Number of blades that hold each page; `None` if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
    /// Longest time that a thread spins for a page on a blade before it sleeps, in nanoseconds;
    /// `None` if it sleeps at once, or delays are emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_max_ns: Option<u64>,
    /// File of the order of first fetches; `None` if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<String>,
}

impl Params {
    /// Local memory in words, a share with what it is a share of; `None` if it is no share, or the
    /// record is of an afar that did not say.
    #[must_use]
    pub fn share_told(&self) -> Option<String> {
        let of = match (self.of.as_deref()?, self.of_bytes) {
            (_, Some(bytes)) => ShareOf::Bytes(Bytes::new(bytes)),
            _ => ShareOf::Live,
        };
        Some(self.local.parse::<LocalSize>().ok()?.told(of, None))
    }
}

/// One tier of far memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierParams {
    /// Name of the tier.
    pub name: String,
    /// Capacity of the tier; `None` if unlimited.
    pub capacity_bytes: Option<u64>,
    /// Round-trip time of the tier's link, in nanoseconds.
    pub rtt_ns: u64,
    /// Bandwidth of the tier's link in bits per second; `None` if infinite.
    pub bandwidth_bps: Option<u64>,
    /// What transfers share: `half-duplex` (one queue), `full-duplex` (a queue for each direction)
    /// or `per-fault` (none).
    pub link: String,
}

/// The outcome of a run with far memory.
///
/// What was measured is behind [`figures`](Self::figures), which answers only if the run is valid:
/// a run whose memory stayed local looks like one without a cost of far memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResults {
    /// Whether anything may be concluded from the figures.
    pub valid: bool,
    /// Why nothing may be concluded from the figures; empty if the run is valid.
    pub invalid: Vec<Invalid>,
    /// What would make the run invalid if the user had not allowed it.
    pub allowed: Vec<Invalid>,
    /// How much of the program's memory was managed.
    pub coverage: Coverage,
    /// Process images of the program, managed or not.
    pub images: Vec<ImageSummary>,
    /// Exit status of the program; `None` if a signal ended it.
    pub exit_status: Option<i32>,
    /// Number of the signal that ended the program; `None` if no signal did.
    pub signal: Option<i32>,
    #[serde(flatten)]
    figures: Figures,
    /// What a reader must know before believing the figures.
    pub warnings: Vec<String>,
    /// Calibration of delays; `None` without one.
    pub calibration: Option<Calibration>,
    /// Use of the order of first fetches; `None` if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Remembered>,
}

/// A run has no figures to conclude from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run is invalid: {}", self.told())]
pub struct InvalidRun {
    /// Why; empty if nobody judged the run.
    pub reasons: Vec<Invalid>,
}

impl InvalidRun {
    /// The reasons in one text.
    fn told(&self) -> String {
        if self.reasons.is_empty() {
            return "nobody has judged what of its memory was managed".to_owned();
        }
        let reasons: Vec<String> = self.reasons.iter().map(Invalid::to_string).collect();
        reasons.join("; ")
    }
}

impl RunResults {
    /// Judges a run. It is valid if [`judge`] with [`COVERAGE_BOUND`] has no reason against it, no
    /// link carried more than it can and, with `least`, a page was far; `least` is the smallest
    /// budget of local memory, `None` if all memory may be local.
    #[must_use]
    pub fn judged(
        figures: Figures,
        images: Vec<ImageSummary>,
        lost: &[Loss],
        least: Option<Bytes>,
    ) -> Self {
        let faults = &figures.faults;
        let touch_count = faults.first_touch_count + faults.fetch_count + faults.soft_count;
        let (coverage, mut invalid) = judge(&images, lost, touch_count, COVERAGE_BOUND, false);
        if let Some(least) = least.filter(|_| invalid.is_empty()) {
            invalid.extend(nothing_far(&images, &figures, least));
        }
        invalid.extend(figures.links.iter().filter_map(overrun));
        let valid = invalid.is_empty();
        Self { valid, invalid, coverage, images, figures, ..Self::default() }
    }

    /// Accepts unmanaged memory: the run is valid if nothing else is wrong, and the reasons against
    /// it move to [`allowed`](Self::allowed).
    #[must_use]
    pub fn allowing_unmanaged(mut self) -> Self {
        let is_allowed = |one: &mut Invalid| one.kind != InvalidKind::Overrun;
        self.allowed.extend(self.invalid.extract_if(.., is_allowed));
        self.coverage.allow_unmanaged = true;
        self.valid = self.invalid.is_empty();
        self
    }

    /// Whether nothing can be concluded although afar did all that was requested: the program gave
    /// it too little to do.
    #[must_use]
    pub fn tells_nothing(&self) -> bool {
        !self.invalid.is_empty() && !self.invalid.iter().any(|one| one.kind.is_failure())
    }

    /// The figures of a valid run.
    ///
    /// # Errors
    /// If the run is invalid, with the reasons.
    pub fn figures(&self) -> Result<&Figures, InvalidRun> {
        if self.valid {
            return Ok(&self.figures);
        }
        Err(InvalidRun { reasons: self.invalid.clone() })
    }

    /// The figures of a valid or invalid run: to show what happened, never to conclude anything
    /// from.
    #[must_use]
    pub const fn seen(&self) -> &Figures {
        &self.figures
    }
}

/// How delays were calibrated before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Shortest fault that is possible on this machine, in nanoseconds.
    pub floor_ns: u64,
    /// Cost of a fault beyond its requested delay, in nanoseconds, subtracted from every delay.
    pub constant_ns: u64,
    /// Time of a turn of the trap's wait loop in calibration, in 1/1024 ns, to scale the constant
    /// by processor speed; 0 if it is not scaled.
    #[serde(default)]
    pub reference: u64,
    /// Median of achieved minus requested delay that remains, in nanoseconds.
    pub median_error_ns: i64,
}

impl<R: Results> Run<R> {
    /// Reads a record from JSON.
    ///
    /// # Errors
    /// If the text is not a record, or its kind or version is another; that is reported before any
    /// other difference.
    pub fn from_json(text: &str) -> Result<Self, RunError> {
        let expected = R::SCHEMA;
        if !text.trim_start().starts_with('{') {
            return Err(RunError::NotJson { expected });
        }
        let malformed = |source| RunError::Malformed { expected, source };
        let header: Header = serde_json::from_str(text).map_err(malformed)?;
        match header.schema {
            None => Err(RunError::NoSchema { expected }),
            Some(found) if found != expected => Err(RunError::UnknownSchema { found, expected }),
            Some(_) => serde_json::from_str(text).map_err(malformed),
        }
    }

    /// The record as JSON, indented, with a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("results promise a JSON form");
        json.push('\n');
        json
    }
}

impl Results for RunResults {
    const SCHEMA: &'static str = "afar.run/2";
    type Params = Params;
}

/// The one field that every version of every record has.
#[derive(Deserialize)]
struct Header {
    schema: Option<String>,
}

/// Reads the schema of a record that is not read by [`Run::from_json`]; an error if it is another.
fn schema_of<'de, R: Results, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let found = String::deserialize(deserializer)?;
    if found == R::SCHEMA {
        return Ok(found);
    }
    Err(D::Error::custom(RunError::UnknownSchema { found, expected: R::SCHEMA }))
}

#[cfg(test)]
mod tests {
    use crate::conservation::LinkUse;
    use crate::figures::{BudgetHeld, FaultCounts, FaultLatency, MechanismTime, StallCounts};
    use crate::histogram::LatencySummary;

    use super::*;

    const GOLDEN: &str = include_str!("../tests/golden/run.json");

    fn latency(base_ns: u64) -> LatencySummary {
        LatencySummary {
            count: 3,
            min_ns: base_ns,
            mean_ns: base_ns + 1,
            p50_ns: base_ns + 2,
            p90_ns: base_ns + 3,
            p95_ns: base_ns + 4,
            p99_ns: base_ns + 5,
            p999_ns: base_ns + 6,
            max_ns: base_ns + 7,
        }
    }

    fn host() -> Host {
        Host {
            kernel: "6.18.0".to_owned(),
            cpu_model: "Model X".to_owned(),
            cpu_count: 2,
            memory_bytes: 25_769_803_776,
            thp: "madvise".to_owned(),
            clocksource: "tsc".to_owned(),
            virtualised: Some(true),
            governor: None,
            mitigations: None,
        }
    }

    fn params() -> Params {
        Params {
            engine: "arena".to_owned(),
            trap: "bpf".to_owned(),
            wait: "spin".to_owned(),
            local: "25%".to_owned(),
            local_bytes: Some(536_870_912),
            of: None,
            of_bytes: None,
            rtt_ns: 5_000,
            bandwidth_bps: Some(40_000_000_000),
            link: "half-duplex".to_owned(),
            profile: None,
            policy: "clock".to_owned(),
            prefetch: "none".to_owned(),
            in_flight_pages: None,
            write_back: "written".to_owned(),
            page_cluster: None,
            budget_scope: "tree".to_owned(),
            tiers: vec![TierParams {
                name: "far".to_owned(),
                capacity_bytes: None,
                rtt_ns: 9_000,
                bandwidth_bps: None,
                link: "full-duplex".to_owned(),
            }],
            far: None,
            replicas: None,
            spin_max_ns: None,
            remember: None,
        }
    }

    fn figures() -> Figures {
        Figures {
            elapsed_ns: 1_500_000_000,
            faults: FaultCounts {
                first_touch_count: 1,
                fetch_count: 2,
                soft_count: 3,
                prefetch_count: 4,
                prefetch_used_count: 5,
                silent_count: 6,
                duplicate_count: 7,
            },
            fetched_bytes: 8_192,
            written_back_bytes: 4_096,
            links: vec![LinkUse {
                tier: String::new(),
                link: "half-duplex".to_owned(),
                fetched_bytes: 8_192,
                written_back_bytes: 4_096,
                capacity_bytes: Some(7_500_000_000),
                window_bytes: 524_288,
                conserves: true,
            }],
            dirty_share: Some(0.5),
            fault_latency: FaultLatency {
                total: latency(100),
                wait: latency(200),
                transfer: latency(300),
                overhead: latency(400),
                requested: latency(500),
                achieved: latency(600),
                total_bins: vec![(100, 2), (107, 1)],
            },
            mechanism: MechanismTime {
                late_ns: 1_500_000,
                soft_ns: 3_000_000,
                supervisor_ns: 2_000_000,
                interrupts_off_max_ns: 18_000,
                interrupts_off_long_count: 1,
                spins: None,
            },
            stall: StallCounts { stall_count: 1, stall_ns_total: 20, stall_ns_max: 30 },
            budget: BudgetHeld {
                budget_bytes: 536_870_912,
                peak_resident_bytes: 536_866_816,
                batch_bytes: 262_144,
                held: true,
            },
            managed_peak_bytes: 2_147_483_648,
        }
    }

    fn results() -> RunResults {
        let image = ImageSummary {
            pid: 77,
            name: "redis-server".to_owned(),
            managed: false,
            why_unmanaged: Some("statically linked".to_owned()),
            remedy: Some("use --engine swap".to_owned()),
            unmanaged_anon_bytes: 12_288,
            unmanaged_shared_bytes: 8_192,
            file_bytes: 4_096,
            ..ImageSummary::default()
        };
        let lost = Loss { what: "the page-state table was full".to_owned(), count: 4 };
        RunResults {
            exit_status: Some(0),
            warnings: vec!["one processor was busy".to_owned()],
            calibration: Some(Calibration {
                floor_ns: 900,
                constant_ns: 910,
                reference: 640,
                median_error_ns: -12,
            }),
            ..RunResults::judged(figures(), vec![image], &[lost], None)
        }
    }

    fn run() -> Run {
        Run {
            schema: RunResults::SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            command: ["afar", "run", "--", "redis-server"].map(str::to_owned).to_vec(),
            started_unix_ns: 1_700_000_000_000_000_000,
            seed: 42,
            host: host(),
            params: params(),
            results: results(),
        }
    }

    #[test]
    fn figures_are_those_of_a_valid_run_only() {
        let results = results();
        assert!(!results.valid && results.coverage.share == Some(0.0));
        let error = results.figures().unwrap_err().to_string();
        assert!(error.contains("redis-server (pid 77) was not managed"), "{error}");
        assert!(error.contains("; use --engine swap"), "{error}");
        assert_eq!(results.seen(), &figures());
        let reasons = results.invalid.clone();
        let allowed = results.allowing_unmanaged();
        assert_eq!(allowed.figures(), Ok(&figures()));
        assert_eq!((allowed.valid, &allowed.allowed), (true, &reasons));
        assert!(allowed.invalid.is_empty() && allowed.coverage.allow_unmanaged);
        let unjudged = RunResults::default().figures().unwrap_err().to_string();
        assert!(unjudged.contains("nobody has judged"), "{unjudged}");
    }

    #[test]
    fn nine_tenths_must_be_managed_and_are_enough() {
        let judged = |managed_peak_bytes| {
            let unmanaged_anon_bytes = (100 << 20) - managed_peak_bytes;
            let image = ImageSummary {
                managed: true,
                managed_peak_bytes,
                unmanaged_anon_bytes,
                ..ImageSummary::default()
            };
            RunResults::judged(figures(), vec![image], &[], None)
        };
        let (less, enough) = (judged((90 << 20) - 4096), judged(90 << 20));
        assert!(!less.valid && less.figures().is_err() && !less.tells_nothing());
        assert!(enough.valid && enough.figures().is_ok());
    }

    #[test]
    fn a_run_in_which_nothing_was_far_has_no_figures_and_has_not_failed() {
        let image =
            || ImageSummary { managed: true, managed_peak_bytes: 8_192, ..ImageSummary::default() };
        let judged = |figures, least| RunResults::judged(figures, vec![image()], &[], least);
        let none = judged(Figures::default(), Some(Bytes::new(65_536)));
        assert!(none.figures().is_err() && none.tells_nothing());
        let whole = judged(Figures::default(), None);
        assert!(whole.figures().is_ok() && !whole.tells_nothing(), "all was to be local");
        assert!(judged(figures(), Some(Bytes::new(65_536))).figures().is_ok());
        assert!(!results().tells_nothing() && !RunResults::default().tells_nothing());
    }

    #[test]
    fn to_json_golden() {
        assert_eq!(run().to_json(), GOLDEN);
    }

    #[test]
    fn a_blade_is_read_as_it_was_written() {
        let params = Params { far: Some("memory:1073741824".to_owned()), ..params() };
        let text = serde_json::to_string(&params).expect("plain data");
        assert!(text.contains("\"far\":\"memory:1073741824\""), "{text}");
        assert_eq!(serde_json::from_str::<Params>(&text).expect("it was written"), params);
    }

    #[test]
    fn from_json_golden() {
        assert_eq!(Run::from_json(GOLDEN).unwrap(), run());
    }

    #[test]
    fn from_json_ignores_fields_of_later_writers() {
        let later = GOLDEN.replacen("\"seed\"", "\"weather\": {\"rain\": true},\n  \"seed\"", 1);
        assert_eq!(Run::from_json(&later).unwrap(), run());
    }

    #[test]
    fn from_json_unknown_version_is_told_before_anything_else() {
        let error = Run::<RunResults>::from_json(r#"{"results": [], "schema": "afar.run/9"}"#);
        assert_eq!(
            error.unwrap_err().to_string(),
            "the record has schema \"afar.run/9\", but \"afar.run/2\" is wanted; \
             read it with the version of afar that wrote it"
        );
    }

    #[test]
    fn from_json_not_a_record() {
        let error = |text| Run::<RunResults>::from_json(text).unwrap_err().to_string();
        assert_eq!(
            error("{}"),
            "the record has no \"schema\" field, so it was not written by afar; \
             \"afar.run/2\" is wanted"
        );
        assert_eq!(
            error("root:x:0"),
            "it is no JSON, so it is no record \"afar.run/2\"; give what --json has written"
        );
        let cut_short = &GOLDEN[..GOLDEN.len() / 2];
        assert!(error(cut_short).starts_with("the record cannot be read as \"afar.run/2\": EOF"));
        let missing = GOLDEN.replacen("\"elapsed_ns\"", "\"elapsed_us\"", 1);
        assert!(error(&missing).contains("missing field `elapsed_ns`"));
    }

    #[test]
    fn deserialize_other_schema_within_a_larger_document() {
        let runs = format!("[{}]", GOLDEN.replacen("afar.run/2", "afar.sim/1", 1));
        let error = serde_json::from_str::<Vec<Run>>(&runs).unwrap_err().to_string();
        assert!(error.contains("schema \"afar.sim/1\", but \"afar.run/2\" is wanted"), "{error}");
    }

    #[test]
    fn other_kinds_bring_their_own_params_and_results() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct BenchParams {
            depth_count: u64,
        }
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct BenchResults {
            latency: LatencySummary,
        }
        impl Results for BenchResults {
            const SCHEMA: &'static str = "afar.bench/1";
            type Params = BenchParams;
        }
        let bench = Run {
            schema: BenchResults::SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            command: Vec::new(),
            started_unix_ns: 0,
            seed: 0,
            host: Host::default(),
            params: BenchParams { depth_count: 32 },
            results: BenchResults { latency: latency(1) },
        };
        let json = bench.to_json();
        assert_eq!(Run::<BenchResults>::from_json(&json).unwrap(), bench);
        assert!(matches!(
            Run::<RunResults>::from_json(&json),
            Err(RunError::UnknownSchema { expected: "afar.run/2", .. })
        ));
    }
}
