//! What a server prints at its start, and its summary at the end.

use std::fmt::Write as _;

use console::layout::count;
use measure::{Bytes, Duration, LatencySummary};
use results::served::{KvServed, Operation, Params, Results};

const NAME: usize = 19;

/// The lines that are printed once clients can connect.
pub(crate) fn welcome(params: &Params) -> String {
    let Params { directory, library, address, reader_count, writer_count, .. } = params;
    let plural = |count: u64, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let (readers, writers) = (plural(*reader_count, "reader"), plural(*writer_count, "writer"));
    format!(
        "afar: {directory} is served at {address} until Ctrl-C: RocksDB ({library}), {readers}, \
         {writers}\n      a server for experiments: whoever reaches it reads and writes \
         everything\n      afar load kv redis://{address} --fill\n"
    )
}

/// A sentence on commands that RocksDB failed to do; `None` if there are none.
pub(crate) fn shortfall(results: &Results) -> Option<String> {
    let errors: u64 = results.operations.iter().map(|of| of.error_count).sum();
    let first = results.first_error.as_deref().unwrap_or("it did not say why");
    (errors > 0).then(|| format!("RocksDB has not done {} commands; first: {first}", count(errors)))
}

/// The summary of a server that has ended.
pub(crate) fn text(served: &KvServed) -> String {
    let (params, results) = (&served.params, &served.results);
    let mut out =
        format!("\nafar: {} at {}: {}\n\n", params.directory, params.address, how(params));
    let mut row = |name: &str, text: String| {
        let _infallible = writeln!(out, "{name:<NAME$}{text}");
    };
    let elapsed = Duration::from_ns(results.elapsed_ns);
    row(
        "commands",
        format!(
            "{} in {elapsed}: {}/s",
            count(results.command_count),
            whole(results.commands_per_s)
        ),
    );
    row("connections", count(results.connection_count));
    let each = results.processor_ns.checked_div(results.command_count).map(|each| {
        format!(", {} a command, RocksDB's own threads included", Duration::from_ns(each))
    });
    let processor = Duration::from_ns(results.processor_ns);
    row("processor time", format!("{processor}{}", each.unwrap_or_default()));
    let store = &results.store;
    let (hits, misses) = (store.block_cache_hit_count, store.block_cache_miss_count);
    if hits + misses > 0 {
        let share = hits as f64 / (hits + misses) as f64 * 100.0;
        row("block cache", format!("{share:.1} % of {} blocks were there", count(hits + misses)));
    }
    let bytes = Bytes::new;
    row(
        "written",
        format!(
            "log {} (synced {} times), flushes {}, compactions {} of {} read",
            bytes(store.log_bytes),
            count(store.log_sync_count),
            bytes(store.flush_write_bytes),
            bytes(store.compaction_write_bytes),
            bytes(store.compaction_read_bytes)
        ),
    );
    if store.stall_ns > 0 {
        row("held up", format!("writers for {} in all", Duration::from_ns(store.stall_ns)));
    }
    for (name, number, why) in troubles(results) {
        row(name, format!("{}{why}", count(number)));
    }
    out.push_str(&latencies("served, µs", &results.operations, |of| of.served));
    out.push_str(&latencies("waited, µs", &results.operations, |of| of.waited));
    out
}

// Rows about what went wrong: name, count and reason.
fn troubles(results: &Results) -> Vec<(&'static str, u64, String)> {
    let because = |why: &Option<String>| {
        why.as_ref().map(|why| format!("; the first: {why}")).unwrap_or_default()
    };
    let errors = results.operations.iter().map(|of| of.error_count).sum();
    let all = [
        ("NOT DONE", errors, because(&results.first_error)),
        ("refused", results.refused_count, " requests that are no command here".to_owned()),
        ("violations", results.violation_count, because(&results.first_violation)),
        ("turned away", results.turned_away_count, " connections beyond 10,000".to_owned()),
    ];
    all.into_iter().filter(|(_, number, _)| *number > 0).collect()
}

// Describes the store's settings in a line.
fn how(params: &Params) -> String {
    let Params { block_cache_bytes, write_buffer_bytes, direct, sync, work_ns, .. } = *params;
    let mut parts = vec![match block_cache_bytes {
        0 => "no block cache".to_owned(),
        bytes => format!("block cache {}", Bytes::new(bytes)),
    }];
    parts.push(if direct { "direct" } else { "page cache" }.to_owned());
    parts.push(if sync { "each write synced" } else { "writes not synced" }.to_owned());
    parts.extend(write_buffer_bytes.map(|bytes| format!("flushes of {}", Bytes::new(bytes))));
    if work_ns > 0 {
        parts.push(format!("{} of work a command", Duration::from_ns(work_ns)));
    }
    parts.join(", ")
}

fn latencies(
    title: &str,
    operations: &[Operation],
    of: fn(&Operation) -> LatencySummary,
) -> String {
    // PING has no time: it is answered by the thread that receives it.
    let rows = operations.iter().filter(|one| of(one).max_ns > 0);
    crate::latencies::table(title, NAME, rows.map(|one| (one.operation.clone(), of(one))))
}

// A rate, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole(rate: f64) -> String {
    count(rate.round() as u64)
}
