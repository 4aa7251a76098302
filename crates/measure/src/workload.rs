use serde::{Deserialize, Serialize};

use crate::run::Results;

/// What a built-in workload was asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadParams {
    /// Memory of its data, as asked for.
    pub size_bytes: u64,
    /// Runs of the job, each timed, over the same data.
    pub repeat_count: u64,
    /// Which job, and over what.
    #[serde(flatten)]
    pub input: WorkloadInput,
}

/// A job and the data that was generated for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum WorkloadInput {
    /// Words of a text are counted.
    Wordcount {
        /// Text.
        text_bytes: u64,
        /// Words of it.
        word_count: u64,
        /// Words they were drawn from.
        vocabulary_count: u64,
        /// Skew of their Zipf distribution.
        theta: f64,
    },
    /// Records are sorted.
    Sort {
        /// Records.
        record_count: u64,
        /// Of one record.
        record_bytes: u64,
    },
    /// Factors are fitted to ratings.
    Als {
        /// Ratings.
        rating_count: u64,
        /// Users.
        user_count: u64,
        /// Items.
        item_count: u64,
        /// Length of the factors, planted and fitted.
        rank: u64,
        /// Standard deviation of the noise, that of ratings being 1.
        noise: f64,
        /// Fits of all users and all items.
        iteration_count: u64,
    },
    /// Vertices of a graph are ranked.
    Pagerank {
        /// `single` or `timely`.
        variant: String,
        /// Vertices.
        vertex_count: u64,
        /// Edges.
        edge_count: u64,
        /// Iterations.
        iteration_count: u64,
        /// Workers, each on a thread.
        thread_count: u64,
    },
}

/// What came of a built-in workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadResults {
    /// The job without the generation of its data, run by run.
    pub elapsed_ns: Vec<u64>,
    /// Their median, the lower one of two.
    pub elapsed_ns_median: u64,
    /// Of the result, in hexadecimal digits: the same for the same parameters and seed.
    pub checksum: String,
    /// What the job found, and how fast in the median.
    #[serde(flatten)]
    pub outcome: WorkloadOutcome,
}

/// What a job found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum WorkloadOutcome {
    /// Of counting words.
    Wordcount {
        /// Different words.
        distinct_count: u64,
        /// Words counted.
        words_per_s: f64,
        /// Bytes of text read.
        text_bytes_per_s: f64,
    },
    /// Of sorting.
    Sort {
        /// Records sorted.
        records_per_s: f64,
        /// Their bytes.
        record_bytes_per_s: f64,
    },
    /// Of alternating least squares.
    Als {
        /// Root mean square error after each iteration.
        rmse: Vec<f64>,
        /// Ratings fitted, each once an iteration.
        ratings_per_s: f64,
    },
    /// Of PageRank.
    Pagerank {
        /// The highest rank, of all ranks' sum of at most 1.
        rank_max: f64,
        /// What the ranks add up to.
        rank_sum: f64,
        /// Edges followed, each once an iteration.
        edges_per_s: f64,
    },
}

impl Results for WorkloadResults {
    const SCHEMA: &'static str = "afar.workload/1";
    type Params = WorkloadParams;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Host, Run};

    #[test]
    fn record_survives_and_says_what_it_is() {
        let run: Run<WorkloadResults> = Run {
            schema: WorkloadResults::SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            command: Vec::new(),
            started_unix_ns: 1,
            seed: 7,
            host: Host::default(),
            params: WorkloadParams {
                size_bytes: 1 << 20,
                repeat_count: 2,
                input: WorkloadInput::Sort { record_count: 10_485, record_bytes: 100 },
            },
            results: WorkloadResults {
                elapsed_ns: vec![2, 1],
                elapsed_ns_median: 1,
                checksum: "00ff".to_owned(),
                outcome: WorkloadOutcome::Sort { records_per_s: 1.5, record_bytes_per_s: 150.0 },
            },
        };
        let json = run.to_json();
        assert_eq!(Run::from_json(&json).expect("it was written just now"), run);
        for wanted in ["\"afar.workload/1\"", "\"workload\": \"sort\"", "\"record_count\": 10485"] {
            assert!(json.contains(wanted), "{wanted} is missing in {json}");
        }
    }
}
