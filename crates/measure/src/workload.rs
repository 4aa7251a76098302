use serde::{Deserialize, Serialize};

use crate::run::Results;

/// What a built-in workload was asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadParams {
    /// Requested memory of the job's data.
    pub size_bytes: u64,
    /// Number of timed runs of the job over the same data.
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
        /// Length of the text.
        text_bytes: u64,
        /// Number of words in the text.
        word_count: u64,
        /// Number of different words that the text is drawn from.
        vocabulary_count: u64,
        /// Skew of the Zipf distribution that words are drawn from.
        theta: f64,
    },
    /// Records are sorted.
    Sort {
        /// Number of records to sort.
        record_count: u64,
        /// Length of a record.
        record_bytes: u64,
    },
    /// Factors are fitted to ratings.
    Als {
        /// Number of ratings.
        rating_count: u64,
        /// Number of users.
        user_count: u64,
        /// Number of items.
        item_count: u64,
        /// Length of the factors of a user or an item, planted and fitted.
        rank: u64,
        /// Standard deviation of the noise of ratings, that of ratings being 1.
        noise: f64,
        /// Number of fits of all users and all items.
        iteration_count: u64,
    },
    /// Vertices of a graph are ranked.
    Pagerank {
        /// Implementation: `single` or `timely`.
        variant: String,
        /// Number of vertices of the graph.
        vertex_count: u64,
        /// Number of edges of the graph.
        edge_count: u64,
        /// Number of iterations.
        iteration_count: u64,
        /// Number of workers, each on a thread.
        thread_count: u64,
    },
}

/// The outcome of a built-in workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadResults {
    /// Time of each run of the job, in nanoseconds, without the generation of its data.
    pub elapsed_ns: Vec<u64>,
    /// Median time of the runs in nanoseconds; the lower of two in the middle.
    pub elapsed_ns_median: u64,
    /// Checksum of the job's result in hexadecimal digits; equal for equal parameters and seed.
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
        /// Number of different words in the text.
        distinct_count: u64,
        /// Words counted per second, in the median run.
        words_per_s: f64,
        /// Bytes of text read per second, in the median run.
        text_bytes_per_s: f64,
    },
    /// Of sorting.
    Sort {
        /// Records sorted per second, in the median run.
        records_per_s: f64,
        /// Bytes of records sorted per second, in the median run.
        record_bytes_per_s: f64,
    },
    /// Of alternating least squares.
    Als {
        /// Root mean square error of fitted ratings after each iteration.
        rmse: Vec<f64>,
        /// Ratings fitted per second, each once an iteration, in the median run.
        ratings_per_s: f64,
    },
    /// Of PageRank.
    Pagerank {
        /// Highest rank of a vertex; all ranks add up to at most 1.
        rank_max: f64,
        /// Sum of the ranks of all vertices.
        rank_sum: f64,
        /// Edges followed per second, each once an iteration, in the median run.
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
