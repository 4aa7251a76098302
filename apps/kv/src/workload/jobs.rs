//! The jobs: word count, sort, alternating least squares, PageRank.

use std::error::Error;
use std::sync::Arc;

use jobs::{
    Counts, Graph, Model, RECORD_BYTES, Ranks, Ratings, RatingsShape, Records, SKEW, Text,
    factorise, pagerank, pagerank_timely,
};
use measure::{WorkloadInput, WorkloadOutcome};

use crate::workload::flags::{AlsFlags, JobFlags, PagerankFlags, Variant};
use crate::workload::job::Job;

const PREPARED: &str = "a job is prepared before it is run";
const RUN: &str = "a job is run before it is verified";

type Verified = Result<u64, Box<dyn Error + Send + Sync>>;

/// Word count.
pub(crate) struct Wordcount {
    size_bytes: u64,
    seed: u64,
    text: Option<Text>,
    counts: Option<Counts>,
    distinct_count: u64,
}

impl Wordcount {
    pub(crate) fn new(flags: &JobFlags) -> Self {
        let (size_bytes, seed) = (flags.size.get(), flags.seed);
        Self { size_bytes, seed, text: None, counts: None, distinct_count: 0 }
    }

    fn text(&self) -> &Text {
        self.text.as_ref().expect(PREPARED)
    }
}

impl Job for Wordcount {
    fn name(&self) -> &'static str {
        "wordcount"
    }

    fn prepare(&mut self) {
        self.text.get_or_insert_with(|| Text::generate(self.size_bytes, self.seed));
    }

    fn run(&mut self) {
        self.counts = Some(self.text().count());
    }

    fn verify(&mut self) -> Verified {
        // Taken, so that the next run begins without it in memory.
        let counts = self.counts.take().expect(RUN);
        self.text().verify(&counts)?;
        self.distinct_count = counts.distinct_count();
        Ok(counts.checksum())
    }

    fn facts(&self) -> String {
        format!("{} words, {} different", self.text().word_count(), self.distinct_count)
    }

    fn input(&self) -> WorkloadInput {
        let text = self.text();
        WorkloadInput::Wordcount {
            text_bytes: text.len(),
            word_count: text.word_count(),
            vocabulary_count: text.vocabulary_count(),
            theta: SKEW,
        }
    }

    fn outcome(&self, seconds: f64) -> WorkloadOutcome {
        let text = self.text();
        WorkloadOutcome::Wordcount {
            distinct_count: self.distinct_count,
            words_per_s: text.word_count() as f64 / seconds,
            text_bytes_per_s: text.len() as f64 / seconds,
        }
    }
}

/// Sort.
pub(crate) struct Sort {
    size_bytes: u64,
    seed: u64,
    records: Option<Records>,
}

impl Sort {
    pub(crate) fn new(flags: &JobFlags) -> Self {
        Self { size_bytes: flags.size.get(), seed: flags.seed, records: None }
    }

    fn records(&self) -> &Records {
        self.records.as_ref().expect(PREPARED)
    }
}

impl Job for Sort {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn prepare(&mut self) {
        // Records are sorted after a run. Freed first, so that memory is not needed twice.
        self.records = None;
        self.records = Some(Records::generate(self.size_bytes, self.seed));
    }

    fn run(&mut self) {
        self.records.as_mut().expect(PREPARED).sort();
    }

    fn verify(&mut self) -> Verified {
        self.records().verify()?;
        Ok(self.records().checksum())
    }

    fn facts(&self) -> String {
        format!("{} records", self.records().count())
    }

    fn input(&self) -> WorkloadInput {
        WorkloadInput::Sort {
            record_count: self.records().count(),
            record_bytes: RECORD_BYTES as u64,
        }
    }

    fn outcome(&self, seconds: f64) -> WorkloadOutcome {
        let records = self.records().count() as f64;
        WorkloadOutcome::Sort {
            records_per_s: records / seconds,
            record_bytes_per_s: records * RECORD_BYTES as f64 / seconds,
        }
    }
}

/// Alternating least squares.
pub(crate) struct Als {
    shape: RatingsShape,
    iterations: u32,
    seed: u64,
    ratings: Option<Ratings>,
    model: Option<Model>,
    rmse: Vec<f64>,
}

impl Als {
    pub(crate) fn new(flags: &AlsFlags) -> Self {
        Self {
            shape: RatingsShape::of_size(flags.job.size.get(), flags.rank),
            iterations: flags.iterations,
            seed: flags.job.seed,
            ratings: None,
            model: None,
            rmse: Vec::new(),
        }
    }

    fn ratings(&self) -> &Ratings {
        self.ratings.as_ref().expect(PREPARED)
    }
}

impl Job for Als {
    fn name(&self) -> &'static str {
        "als"
    }

    fn prepare(&mut self) {
        self.ratings.get_or_insert_with(|| Ratings::generate(self.shape, self.seed));
    }

    fn run(&mut self) {
        let model = factorise(self.ratings(), self.shape.rank, self.iterations, self.seed);
        self.model = Some(model);
    }

    fn verify(&mut self) -> Verified {
        let model = self.model.take().expect(RUN);
        model.verify(self.ratings())?;
        self.rmse = model.rmse().to_vec();
        Ok(model.checksum())
    }

    fn facts(&self) -> String {
        let (first, last) = (self.rmse.first(), self.rmse.last());
        format!(
            "{} ratings, {} iterations, RMSE {:.6} to {:.6} with noise of {}",
            self.ratings().count(),
            self.iterations,
            first.unwrap_or(&f64::NAN),
            last.unwrap_or(&f64::NAN),
            self.shape.noise,
        )
    }

    fn input(&self) -> WorkloadInput {
        let shape = &self.shape;
        WorkloadInput::Als {
            rating_count: self.ratings().count(),
            user_count: u64::from(shape.user_count),
            item_count: u64::from(shape.item_count),
            rank: u64::from(shape.rank),
            noise: shape.noise,
            iteration_count: u64::from(self.iterations),
        }
    }

    fn outcome(&self, seconds: f64) -> WorkloadOutcome {
        let ratings = self.ratings().count() as f64;
        WorkloadOutcome::Als {
            rmse: self.rmse.clone(),
            ratings_per_s: ratings * f64::from(self.iterations) / seconds,
        }
    }
}

/// PageRank.
pub(crate) struct Pagerank {
    size_bytes: u64,
    seed: u64,
    variant: Variant,
    threads: u32,
    iterations: u32,
    // Shared by Timely's workers.
    graph: Option<Arc<Graph>>,
    ranks: Option<Ranks>,
}

impl Pagerank {
    pub(crate) fn new(flags: &PagerankFlags) -> Self {
        Self {
            size_bytes: flags.job.size.get(),
            seed: flags.job.seed,
            variant: flags.variant,
            threads: flags.threads.unwrap_or(1),
            iterations: flags.iterations,
            graph: None,
            ranks: None,
        }
    }

    fn graph(&self) -> &Arc<Graph> {
        self.graph.as_ref().expect(PREPARED)
    }

    fn ranks(&self) -> &Ranks {
        self.ranks.as_ref().expect(RUN)
    }
}

impl Job for Pagerank {
    fn name(&self) -> &'static str {
        "pagerank"
    }

    fn prepare(&mut self) {
        self.ranks = None;
        self.graph.get_or_insert_with(|| Arc::new(Graph::generate(self.size_bytes, self.seed)));
    }

    fn run(&mut self) {
        self.ranks = Some(match self.variant {
            Variant::Single => pagerank(self.graph(), self.iterations),
            Variant::Timely => {
                pagerank_timely(self.graph(), self.iterations, self.threads as usize)
            }
        });
    }

    fn verify(&mut self) -> Verified {
        self.ranks().verify(self.graph())?;
        Ok(self.ranks().checksum())
    }

    fn facts(&self) -> String {
        let (graph, ranks) = (self.graph(), self.ranks());
        format!(
            "{} vertices, {} edges, {} iterations, highest rank {:.6}",
            graph.vertex_count(),
            graph.edge_count(),
            self.iterations,
            ranks.of(ranks.top()),
        )
    }

    fn input(&self) -> WorkloadInput {
        let variant = match self.variant {
            Variant::Single => "single",
            Variant::Timely => "timely",
        };
        WorkloadInput::Pagerank {
            variant: variant.to_owned(),
            vertex_count: self.graph().vertex_count(),
            edge_count: self.graph().edge_count(),
            iteration_count: u64::from(self.iterations),
            thread_count: u64::from(self.threads),
        }
    }

    fn outcome(&self, seconds: f64) -> WorkloadOutcome {
        let (edges, ranks) = (self.graph().edge_count() as f64, self.ranks());
        WorkloadOutcome::Pagerank {
            rank_max: ranks.of(ranks.top()),
            rank_sum: ranks.sum(),
            edges_per_s: edges * f64::from(self.iterations) / seconds,
        }
    }
}
