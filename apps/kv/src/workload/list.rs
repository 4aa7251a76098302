//! Which application each workload stands in for.

use std::fmt::Write as _;

/// A workload, and the rows of Table 2 that it stands in for.
struct Row {
    name: &'static str,
    /// Application, system and data set of Table 2.
    stands_for: &'static [&'static str],
    /// What the workload does.
    does: &'static str,
    /// What the applications do and the workload does not.
    lacks: &'static str,
}

const ROWS: [Row; 6] = [
    Row {
        name: "wordcount",
        stands_for: &[
            "WordCount, Hadoop, Wikipedia edit history",
            "WordCount, Spark, Wikipedia edit history",
            "Stream WordCount, Spark Streaming, Wikipedia edit history",
        ],
        does: "one thread counts words drawn from a Zipf distribution in a hash map",
        lacks: "no shuffle, no disk, no JVM and its collector; nothing arrives while it counts",
    },
    Row {
        name: "sort",
        stands_for: &[
            "Sort, Hadoop, sort benchmark generator",
            "Sort, Spark, sort benchmark generator",
        ],
        does: "one thread sorts gensort's records of 100 bytes in place",
        lacks: "no shuffle, no merge of runs, no disk, no JVM and its collector",
    },
    Row {
        name: "als",
        stands_for: &["Collaborative filtering, GraphLab, Netflix ratings"],
        does: "one thread fits factors to ratings with planted ones, user by user",
        lacks: "no graph engine, no partitions, no messages; users rate about as often",
    },
    Row {
        name: "pagerank",
        stands_for: &["PageRank, Timely Dataflow, Friendster"],
        does: "timely dataflow, or one thread, over an R-MAT graph",
        lacks: "no network between workers, which share one graph; vertices without locality",
    },
    Row {
        name: "sql",
        stands_for: &["SQL, Spark SQL, Big Data Benchmark"],
        does: "DuckDB runs query 2a or 3a over generated tables in memory",
        lacks: "no shuffle, no JVM and its collector; vectors of a column, not rows",
    },
    Row {
        name: "kv",
        stands_for: &["Key-value store, Memcached, YCSB", "Key-value store, HERD, YCSB"],
        does: "memcached or Redis itself, loaded by afar load kv with YCSB's requests",
        lacks: "no RDMA, by which HERD is asked; the load comes from the same machine",
    },
];

const HEAD: &str = "\
Rows of Table 2 of Gao et al., \"Network Requirements for Resource Disaggregation\" (OSDI 2016),
and the workloads that stand in for them. Data is generated and far smaller than theirs; what a
workload does with memory is meant to be alike, not how long it takes.
";

/// The table as text.
pub(crate) fn text() -> String {
    let mut out = HEAD.to_owned();
    for row in &ROWS {
        let mut name = row.name;
        out.push('\n');
        for line in row.stands_for {
            let _infallible = writeln!(out, "{name:<11}for {line}");
            name = "";
        }
        let _infallible = writeln!(out, "{:<11}{}", "", row.does);
        let _infallible = writeln!(out, "{:<11}{}", "", row.lacks);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_has_a_stand_in_and_lines_fit() {
        assert_eq!(ROWS.iter().map(|row| row.stands_for.len()).sum::<usize>(), 10);
        assert!(text().lines().all(|line| line.chars().count() <= 100));
    }
}
