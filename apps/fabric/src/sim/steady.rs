//! What independent runs of one simulation say, and whether its network was in a steady state.
//!
//! Flows of one run wait for one another: their slowdowns are not independent, and an interval from
//! their variance is several times too narrow. Runs with seeds of their own are independent, so
//! each gives one mean (replication and deletion: Law 2015, §9.5.2).
//!
//! Runs are dealt to 6 batches, and the interval is of the means of these. [`experiment::stats`]
//! makes it of their order, as for every other repeated run, and it is from the least to the most:
//! it misses the mean of all flows only if every batch is on one side of it, in 3 % of experiments
//! where batches are above as often as below, and in less than 7 % as long as no more than 63 % of
//! them are on one side. More batches would be narrower, and wrong where means of runs are skewed;
//! so more runs make larger batches, which are less skewed.

use experiment::stats;
use results::{
    BinFigures, Busiest, Deepest, Estimate, Figures, Interval, Slowdowns, Spread, Steady,
};

use super::SimError;
use super::rounded::rounded;
use super::setting::Settings;
use super::window::RUNS_MAX;

/// Batches, and the least runs that have an interval: with 5 of them, 55 % on one side would be
/// too many.
pub(super) const RUNS_MIN: usize = 6;
/// Bytes under way grow by less than this of what starts, or the load is not carried.
const GROWTH_MAX: f64 = 0.02;

/// The settings of each run of a simulation, with consecutive seeds.
///
/// # Errors
/// If the number of runs or the first seed is invalid.
pub(super) fn runs(settings: &Settings) -> Result<Vec<Settings>, SimError> {
    if settings.text("traffic") != "poisson" {
        return Ok(vec![settings.clone()]);
    }
    let count = settings.number("repetitions", 1, RUNS_MAX)?;
    let seed = settings.seed()?;
    let with =
        |run: u32| settings.clone().with("seed", &seed.wrapping_add(u64::from(run)).to_string());
    Ok(if count == 1 { vec![settings.clone()] } else { (0..count).map(with).collect() })
}

/// The estimates of a single run, which have no intervals.
pub(super) fn of_run(slowdown: Spread, bins: &[BinFigures], growth: f64) -> Steady {
    Steady {
        run_count: 1,
        slowdown: slowdowns(&[slowdown]),
        bins: bins.iter().map(|bin| slowdowns(&[bin.slowdown])).collect(),
        growth: estimate(&[growth]),
    }
}

/// The figures of at least one run together: medians, sums of counts, and the largest queue.
pub(super) fn of_runs(runs: &[Figures]) -> Figures {
    let spreads: Vec<Spread> = runs.iter().map(|run| run.slowdown).collect();
    let (slowdown, sure) = together(&spreads);
    let (bins, sure_bins): (Vec<BinFigures>, Vec<Slowdowns>) = bins(runs).into_iter().unzip();
    let growth: Vec<f64> =
        runs.iter().filter_map(|run| Some(run.steady.as_ref()?.growth.median)).collect();
    let middle = |of: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        rounded(stats::median(&mut values).unwrap_or(f64::NAN))
    };
    let sum = |of: fn(&Figures) -> u64| runs.iter().map(of).sum();
    let first = &runs[0];
    Figures {
        slowdown,
        bins,
        goodput_bits_per_sec: middle(|run| run.goodput_bits_per_sec).round(),
        utilisation: middle(|run| run.utilisation),
        busiest: busiest(runs),
        dropped_at_hosts: sum(|run| run.dropped_at_hosts),
        dropped_at_switches: sum(|run| run.dropped_at_switches),
        deepest: deepest(runs),
        inflation: middle(|run| run.inflation),
        delivered_packets: sum(|run| run.delivered_packets),
        event_count: sum(|run| run.event_count),
        end_ps: runs.iter().map(|run| run.end_ps).max().unwrap_or(0),
        measured: first.measured.map(|one| results::Measured {
            utilisation: middle(|run| run.measured.map_or(f64::NAN, |one| one.utilisation)),
            ..one
        }),
        steady: Some(Steady {
            run_count: runs.len() as u64,
            slowdown: sure,
            bins: sure_bins,
            growth: estimate(&growth),
        }),
    }
}

/// Why the network was in no steady state; `None` if it was, or if too few runs tell.
pub(super) fn unsteady(figures: &Figures) -> Option<String> {
    let growth = figures.steady.as_ref()?.growth;
    let (low, high) = growth.ends()?;
    (low > GROWTH_MAX).then(|| {
        format!(
            "the load is not carried: while flows were measured, those under way grew by {:.0} % \
             [{:.0} %, {:.0} %] of the bytes that started; give a lower --load, or a longer \
             --warm-up if it was set",
            growth.median * 100.0,
            low * 100.0,
            high * 100.0
        )
    })
}

/// The busiest link of all runs.
fn busiest(runs: &[Figures]) -> Busiest {
    let by = |one: &&Busiest, other: &&Busiest| one.utilisation.total_cmp(&other.utilisation);
    let most = runs.iter().map(|run| &run.busiest).max_by(by);
    most.cloned().unwrap_or(Busiest { link: String::new(), utilisation: 0.0 })
}

/// The deepest queue of all runs.
fn deepest(runs: &[Figures]) -> Deepest {
    let most = runs.iter().map(|run| &run.deepest).max_by_key(|one| one.bytes);
    most.cloned().unwrap_or(Deepest { link: String::new(), bytes: 0 })
}

/// Each bin of sizes, from the runs that have flows in it.
fn bins(runs: &[Figures]) -> Vec<(BinFigures, Slowdowns)> {
    let all = runs.iter().flat_map(|run| &run.bins);
    let mut sizes: Vec<(u64, u64)> = all.map(|bin| (bin.over_bytes, bin.to_bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of_size = |(over_bytes, to_bytes): (u64, u64)| {
        let same = runs.iter().flat_map(|run| &run.bins).filter(|bin| bin.to_bytes == to_bytes);
        let (slowdown, sure) = together(&same.map(|bin| bin.slowdown).collect::<Vec<_>>());
        (BinFigures { over_bytes, to_bytes, slowdown }, sure)
    };
    sizes.into_iter().map(of_size).collect()
}

/// Medians and intervals of the slowdowns of several runs.
fn together(spreads: &[Spread]) -> (Spread, Slowdowns) {
    let sure = slowdowns(spreads);
    let Slowdowns { mean, p50, p99, p999 } = sure;
    let [mean, p50, p99, p999] = [mean, p50, p99, p999].map(|one| one.median);
    let count = spreads.iter().map(|spread| spread.count).sum();
    (Spread { count, mean, p50, p99, p999 }, sure)
}

/// Estimates of mean and quantiles; a quantile of too few flows has no interval.
fn slowdowns(spreads: &[Spread]) -> Slowdowns {
    let of = |value: fn(&Spread) -> f64| estimate(&spreads.iter().map(value).collect::<Vec<_>>());
    // A quantile of fewer flows is their largest.
    let least = spreads.iter().map(|spread| spread.count).min().unwrap_or(0);
    let tail = |one: Estimate, flows: usize| Estimate {
        interval: one.interval.filter(|_| least >= flows),
        ..one
    };
    Slowdowns {
        mean: of(|one| one.mean),
        p50: of(|one| one.p50),
        p99: tail(of(|one| one.p99), 100),
        p999: tail(of(|one| one.p999), 1000),
    }
}

/// Means of batches to which runs are dealt in turn.
fn batches(runs: &[f64]) -> Vec<f64> {
    let mean = |batch: usize| {
        let ours = runs.iter().skip(batch).step_by(RUNS_MIN);
        ours.clone().sum::<f64>() / ours.count() as f64
    };
    (0..runs.len().min(RUNS_MIN)).map(mean).collect()
}

/// The median of batches, with an interval from `RUNS_MIN` runs on.
fn estimate(values: &[f64]) -> Estimate {
    let none = Estimate { median: f64::NAN, interval: None, count: 0 };
    let Estimate { median, interval, .. } = stats::estimate(&batches(values)).unwrap_or(none);
    let count = values.len() as u64;
    let interval = interval.filter(|_| values.len() >= RUNS_MIN).map(|one| Interval {
        low: rounded(one.low),
        high: rounded(one.high),
        ..one
    });
    Estimate { median: rounded(median), interval, count }
}

#[cfg(test)]
mod tests {
    use results::Measured;
    use workload::Draw;

    use super::super::setting::Experiment;
    use super::super::setup::Setup;
    use super::super::{figures, run, told};
    use super::*;

    fn ran(settings: &[(&'static str, &str)]) -> (Setup, Figures, Vec<f64>) {
        let with = |all: Settings, &(name, value): &(&'static str, &str)| all.with(name, value);
        let setup =
            Setup::new(&settings.iter().fold(Settings::default(), with)).expect("it can be");
        let outcome = run::run(&setup, &mut |_| true).expect("flows finish").outcome;
        let Setup { fabric, flows, end, .. } = &setup;
        let rows = figures::rows(fabric, flows, &outcome, *end);
        let figures = figures::figures(&setup, &outcome);
        (setup, figures, rows.into_iter().map(|row| row.slowdown).collect())
    }

    const SMALL: [(&str, &str); 5] = [
        ("topology", "single-switch"),
        ("sizes", "web-search"),
        ("load", "80%"),
        ("flows", "400"),
        ("seed", "5"),
    ];

    /// By hand: of 400 flows those from the 80th to the 340th.
    #[test]
    fn flows_at_both_ends_are_not_measured() {
        let parts = [("warm-up", "20%"), ("cool-down", "15%")];
        let (setup, figures, slowdowns) = ran(&[&SMALL[..], &parts].concat());
        let within = &slowdowns[80..340];
        let mean = within.iter().sum::<f64>() / within.len() as f64;
        assert_eq!(figures.slowdown.count, 260);
        assert!((figures.slowdown.mean - mean).abs() < 1e-5, "{mean}: {:?}", figures.slowdown);
        let measured = figures.measured.expect("some are measured");
        let start = |place: usize| (setup.flows[place].start - setup.flows[0].start).as_ps();
        assert_eq!((measured.from_ps, measured.to_ps), (start(80), start(340)));
        let all = [("warm-up", "0%"), ("cool-down", "0%")];
        let (_, whole, _) = ran(&[&SMALL[..], &all].concat());
        assert_eq!((whole.slowdown.count, whole.measured), (400, None));
        assert_ne!(whole.slowdown.mean, figures.slowdown.mean);
        // The end of a run, in which hosts fall silent one by one, is no part of its load.
        assert!(
            measured.utilisation > 1.2 * whole.utilisation,
            "{measured:?} {}",
            whole.utilisation
        );
    }

    /// Of pages: three packets with 4096 B, and as many acknowledgements, at 60 % of 1500 B for
    /// 1460.
    #[test]
    fn the_load_is_that_which_was_asked_for() {
        let pages = [("topology", "single-switch"), ("sizes", "4KiB"), ("flows", "20000")];
        let (_, figures, _) = ran(&pages);
        let Measured { asked, utilisation, .. } = figures.measured.expect("some are measured");
        let expected = 0.6 * (1460.0 / 1500.0) * (4216.0 + 120.0) / 4096.0;
        assert_eq!(asked, 0.6);
        assert!((utilisation / expected - 1.0).abs() < 0.03, "{utilisation}, expected {expected}");
    }

    /// Whoever counts until the sender knows has each message acknowledged by itself.
    #[test]
    fn an_end_that_is_acknowledged_is_so_by_itself() {
        let homa = Settings::default().with("transport", "homa").with("flows", "5");
        let covered = |settings: &Settings| {
            let setup = Setup::new(settings).map_err(|error| error.to_string())?;
            let of = |(name, _): &&(&str, String)| *name == "messages-per-ack";
            Ok(setup.resolved.iter().find(of).map(|(_, value)| value.clone()))
        };
        assert_eq!(covered(&homa), Ok(Some("6".to_owned())));
        let acknowledged = homa.with("end", "acknowledged");
        assert_eq!(covered(&acknowledged), Ok(Some("1".to_owned())));
        let said: String = covered(&acknowledged.with("messages-per-ack", "6")).unwrap_err();
        assert!(said.starts_with("--messages-per-ack: ") && said.ends_with("--end received"));
    }

    /// Racks of 16 hosts with 4 links of the same rate send 128 of 143 parts through them.
    #[test]
    fn a_load_that_a_link_cannot_carry_is_refused() {
        let at = |load: &str| {
            let thin = Settings::default().with("spine-rate", "40Gbps").with("load", load);
            Setup::new(&thin.with("flows", "20")).map(|_| ()).map_err(|error| error.to_string())
        };
        let said = at("60%").expect_err("it cannot be");
        assert!(said.starts_with("--load: the link from switch "), "{said}");
        assert!(
            said.ends_with("would be busy 215 % of its time at 60 %; give at most 27%"),
            "{said}"
        );
        assert_eq!(at("27%"), Ok(()));
        assert!(at("28%").is_err());
        // 60 B have 40 of header, and each is asked for with as many.
        let short = |load: &str, exchange: &str| {
            let short = Settings::default().with("sizes", "60B").with("load", load);
            let short = short.with("flows", "20").with("exchange", exchange);
            Setup::new(&short).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(short("61%", "write"), Ok(()));
        let said = short("62%", "write").expect_err("it cannot be");
        assert!(said.ends_with("busy 101 % of its time at 62 %; give at most 61%"), "{said}");
        let said = short("61%", "read").expect_err("it cannot be");
        assert!(said.ends_with("give at most 44%"), "{said}");
        for name in ["warm-up", "cool-down"] {
            let none = Settings::default().with(name, "50%");
            let said = Setup::new(&none).map(|_| ()).map_err(|error| error.to_string());
            let said = said.expect_err("it cannot be");
            assert_eq!(said, format!("--{name}: nothing would be measured; give less than 50%"));
        }
    }

    const QUICK: [(&str, &str); 6] = [
        ("topology", "single-switch"),
        ("hosts", "64"),
        ("sizes", "14600B"),
        ("load", "80%"),
        ("repetitions", "6"),
        ("seed", "1"),
    ];

    /// What runs of so many flows each come to.
    fn repeated(of: &[(&'static str, &str)], flows: u32) -> Figures {
        let with = |all: Settings, &(name, value): &(&'static str, &str)| all.with(name, value);
        let settings = of.iter().fold(Settings::default(), with);
        let settings = settings.with("flows", &flows.to_string());
        let runs = runs(&settings).expect("they can be");
        let figures = runs.iter().map(|settings| {
            let setup = Setup::new(settings).expect("it can be");
            let outcome = run::run(&setup, &mut |_| true).expect("flows finish").outcome;
            figures::figures(&setup, &outcome)
        });
        of_runs(&figures.collect::<Vec<_>>())
    }

    fn mean(figures: &Figures) -> (f64, f64, f64) {
        let mean = figures.steady.as_ref().expect("it is by chance").slowdown.mean;
        let (low, high) = mean.ends().expect("six runs have one");
        (low, mean.median, high)
    }

    /// A run of 500 flows is 4 times shorter than its network takes to fill.
    #[test]
    fn twice_the_flows_move_a_mean_by_less_than_its_interval() {
        for (transport, load) in [("pfabric", "80%"), ("ndp", "50%")] {
            let of = [&QUICK[..], &[("transport", transport), ("load", load)]].concat();
            let all: Vec<(f64, f64, f64)> = [500, 1000, 2000, 4000]
                .iter()
                .map(|&flows| {
                    let figures = repeated(&of, flows);
                    assert_eq!(figures.slowdown.count, 6 * flows as usize, "only what is measured");
                    assert_eq!(unsteady(&figures), None, "{transport}, {flows}");
                    mean(&figures)
                })
                .collect();
            for pair in all.windows(2) {
                let (low, middle, high) = pair[0];
                let moved = (pair[1].1 - middle).abs();
                assert!(moved < high - low, "{transport}: {pair:?}");
            }
            // The longest runs are sure enough to say that the shortest do not miss them.
            let (first, last) = (all[0], all[3]);
            assert!(first.0 < last.2 && last.0 < first.2, "{transport}: {all:?}");
            assert!(last.2 - last.0 < 0.2 * (last.1 - 1.0), "{transport}: {all:?}");
        }
    }

    /// Waits of customers at a queue with arrivals by chance and one time of service, which is 1:
    /// Lindley's recursion, after a warm-up.
    fn waits(draw: &mut Draw, load: f64, warm_up: usize, count: usize) -> Vec<f64> {
        let mut wait = 0.0_f64;
        let next = |_| {
            let gap = -(1.0 - draw.unit()).ln() / load;
            wait = (wait + 1.0 - gap).max(0.0);
            wait
        };
        (0..warm_up + count).map(next).skip(warm_up).collect()
    }

    fn spread_of(values: &[f64]) -> Spread {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Spread { count: values.len(), mean, p50: mean, p99: mean, p999: mean }
    }

    /// M/D/1 waits ρ / 2(1 - ρ) times a service in the mean, and its waits depend on one another.
    #[test]
    fn an_interval_holds_the_true_mean_as_often_as_it_says() {
        const TRIALS: usize = 600;
        for (load, warm_up, count) in [(0.5, 20, 500), (0.8, 80, 500), (0.8, 80, 4000)] {
            let truth: f64 = load / (2.0 * (1.0 - load));
            for runs in [6, 8, 12] {
                let mut draw = Draw::new(23);
                let (mut held, mut naive) = (0, 0);
                for _ in 0..TRIALS {
                    let mut all = Vec::new();
                    let spreads: Vec<Spread> = (0..runs)
                        .map(|_| {
                            let values = waits(&mut draw, load, warm_up, count);
                            all.extend_from_slice(&values);
                            spread_of(&values)
                        })
                        .collect();
                    let (low, high) = slowdowns(&spreads).mean.ends().expect("runs are enough");
                    held += usize::from(low <= truth && truth <= high);
                    // As if customers did not wait for one another.
                    let Spread { mean, .. } = spread_of(&all);
                    let squares: f64 = all.iter().map(|wait| (wait - mean).powi(2)).sum();
                    let error = squares.sqrt() / all.len() as f64;
                    naive += usize::from((mean - truth).abs() <= 1.96 * error);
                }
                let share = held as f64 / TRIALS as f64;
                assert!(share >= 0.93, "load {load}, {runs} runs of {count}: {share}");
                let naive = naive as f64 / TRIALS as f64;
                assert!(naive < 0.8, "load {load}, {runs} runs of {count}: {naive} without runs");
            }
        }
    }

    /// The mean of runs is that of batches; here the middle two of 1.5, 2.5, 3, 4, 5 and 6.
    #[test]
    fn more_runs_make_larger_batches() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 2.0, 3.0];
        assert_eq!(batches(&values), [1.5, 2.5, 3.0, 4.0, 5.0, 6.0]);
        let Estimate { median, interval, count } = estimate(&values);
        let ends = interval.map(|one| (one.low, one.high));
        assert_eq!((median, ends, count), (3.5, Some((1.5, 6.0)), 8));
        assert_eq!(batches(&values[..3]), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn few_runs_have_no_interval_and_few_flows_no_tail() {
        let spread = |count| Spread { count, mean: 2.0, p50: 1.0, p99: 8.0, p999: 9.0 };
        assert_eq!(slowdowns(&[spread(5000); 5]).mean.text(1), "2.0 [n too small: 5]");
        let whole = slowdowns(&[spread(1000); 6]);
        assert!([whole.mean, whole.p99, whole.p999].iter().all(|one| one.interval.is_some()));
        let some = slowdowns(&[spread(999); 6]);
        assert!(some.p99.interval.is_some() && some.p999.interval.is_none());
        assert_eq!(slowdowns(&[spread(99); 6]).p99.interval, None);
    }

    /// At 80 % 200 bytes and their headers take 93 % of a link, and with acknowledgements 109 %.
    #[test]
    fn a_load_that_is_not_carried_has_no_result() {
        let small = [("sizes", "200B"), ("hosts", "8"), ("host-buffer", "none")];
        let of = [&QUICK[..], &small].concat();
        let said = unsteady(&repeated(&of, 4000)).expect("it is not carried");
        assert!(said.starts_with("the load is not carried: "), "{said}");
        let less = [&of[..], &[("load", "50%")]].concat();
        assert_eq!(unsteady(&repeated(&less, 4000)), None);
    }

    /// A run that begins empty, and one in which only what ended soon is measured, are not like
    /// those of a network that is full.
    #[test]
    fn what_fills_an_empty_network_is_not_like_the_rest() {
        let full = mean(&repeated(&QUICK, 500));
        let begun = [&QUICK[..], &[("warm-up", "0%"), ("cool-down", "0%")]].concat();
        let (_, _, high) = mean(&repeated(&begun, 500));
        assert!(high < full.0, "{high} in an empty network, {full:?} in a full one");
    }

    /// Its settings have the warm-up that was worked out.
    #[test]
    fn a_record_of_several_runs_is_enough_to_have_them_again() {
        let with = |all: Settings, &(name, value): &(&'static str, &str)| all.with(name, value);
        let settings = QUICK.iter().fold(Settings::default(), with).with("flows", "50");
        let first = |settings: &Settings| {
            let runs = runs(settings).expect("they can be");
            assert_eq!(runs.len(), 6);
            Setup::new(&runs[5]).expect("it can be")
        };
        let (setup, figures) = (first(&settings), repeated(&QUICK, 50));
        // It is over while flows still arrive.
        let end = run::run(&setup, &mut |_| true).expect("flows finish").outcome.end;
        assert!(setup.flows.last().is_some_and(|last| end < last.start), "{end:?}");
        let record = told::record(&settings, &setup, figures, 1, None, Vec::new());
        assert_eq!(record.settings["cool_down"], "auto");
        let text = results::write(&record);
        let again = Experiment::of_record("record.json", &text).expect("it is a record");
        let again = first(&again.cells()[0].settings);
        assert_eq!((again.flows, again.observe), (setup.flows, setup.observe));
    }
}
