//! The report of Figure 7, computed from its bars: table, caption, verdicts and record.

use console::layout::{NONE, row, table};
use experiment::stats;
use results::Estimate;
use serde_json::{Value, json};

use super::fig7_case::{
    BATCH, Bar, Case, Extent, PAGES_BY, PUBLISHED_COUNT, Place, SCALES, TRANSPORTS,
};
use super::fig7_picture;
use super::published::{self, Page};
use super::workloads::WORKLOADS;
use crate::report::{Report, Verdict};

const WHY_FEW: &str = "so few seeds have no interval";
const WHY_ONE: &str = "the interval of a ratio holds 1";

/// The bar of a case.
fn find(
    bars: &[Bar],
    (place, workload, transport): (Place, usize, usize),
    is_published: bool,
) -> Option<&Bar> {
    bars.iter().find(|bar| {
        let Case { place: here, workload: of, transport: by, .. } = bar.case;
        (here, of, by, bar.case.is_published) == (place, workload, transport, is_published)
    })
}

/// The report of the figure.
pub(super) fn report(extent: &Extent, bars: &[Bar]) -> Report {
    let title = "Gao et al. 2016, Fig. 7: slowdown of flows between blades, by transport";
    let text = caption(extent, bars);
    Report {
        title: title.to_owned(),
        table: format!("{}\n{text}", rows(extent, bars)),
        verdicts: verdicts(extent, bars),
        picture: fig7_picture::draw(title, extent, bars, &text),
        points: bars.iter().map(|bar| record(extent, bar)).collect(),
        paper: json!({
            "order": TRANSPORTS[..PUBLISHED_COUNT],
            "pfabric_4kib_completion_us": published::PAGES.map(|page| json!({"rate": page.rate,
                "scale": page.scale, "least": page.us.0, "most": page.us.1})),
        }),
    }
}

/// The table as text.
fn rows(extent: &Extent, bars: &[Bar]) -> String {
    let mut rows = vec![row([
        "program",
        "scale",
        "rate",
        "transport",
        "2016",
        "p99",
        "load",
        "now",
        "p99",
        "load",
        "hung 2016",
    ])];
    for place in Place::all(extent) {
        for (workload, (name, _)) in WORKLOADS.iter().enumerate() {
            for (transport, by) in TRANSPORTS.iter().enumerate() {
                let of = |is_published| find(bars, (place, workload, transport), is_published);
                if of(true).is_none() && of(false).is_none() {
                    continue;
                }
                let mut line = row([name, SCALES[place.scale], extent.rates[place.rate], by]);
                for is_published in [true, false] {
                    let none = || [NONE; 3].map(str::to_owned);
                    line.extend(of(is_published).map_or_else(none, cells));
                }
                let hung = of(true).map(|bar| bar.unfinished_count.to_string());
                line.push(hung.unwrap_or_else(|| NONE.to_owned()));
                rows.push(line);
            }
        }
    }
    table(&rows)
}

/// Slowdown, 99th percentile and load of a bar, as text.
fn cells(bar: &Bar) -> [String; 3] {
    let load = format!("{:.2} %", bar.load * 100.0);
    [bar.slowdown.text(3), format!("{:.2}", bar.p99.median), load]
}

/// The caption: what bars show, and which causes were tested.
fn caption(extent: &Extent, bars: &[Bar]) -> String {
    let [low, high] = [f64::min, f64::max].map(|of: fn(f64, f64) -> f64| {
        bars.iter().map(|bar| bar.load * 100.0).reduce(of).unwrap_or(0.0)
    });
    let by_pages = |is_batched: bool| {
        let of = |bar: &&Bar| {
            (bar.case.transport, bar.case.is_published) == (PAGES_BY, false)
                && bar.case.place.is_batched == is_batched
        };
        let all: Vec<f64> = bars.iter().filter(of).map(|bar| bar.slowdown.median).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let seeds = match extent.seed_count {
        count @ 0..5 => format!("the median of {count} seeds, too few for an interval"),
        count => format!("the median of {count} seeds, with its interval"),
    };
    format!(
        "Slowdown: mean over flows of the time until the sender knows that all of it has arrived, \
         by that time alone in the\nnetwork: the same measure in both halves; {seeds}. Load: share \
         of the time that hosts' links were sending,\nwhile the middle 80 % of flows began: \
         {low:.1} to {high:.1} %. 2016: as the simulator of the paper had the transport, with\nits \
         defects; now: as the transport's own paper has it. Hung: flows that never finished; they \
         are left out.\nBuffers: {}.\n\
         Tested as causes, each with all else equal: rack or datacenter, rate of links, program, \
         rules of 2016 or now, batches.\nWere every page a flow of its own, and not what a pair \
         moves within {BATCH}, the mean slowdown by {} now would be\n{:.2}, and not {:.2}: the \
         pages of a batch wait for one another. Not tested: batches of reads (programs here ask \
         for\none page at a time, and the swap device of the paper was given several); disks (no \
         program here reads or writes\na file); more load than these programs make.\n",
        buffers(bars),
        TRANSPORTS[PAGES_BY],
        by_pages(false),
        by_pages(true)
    )
}

/// The buffers of switches as text; names transports whose buffers differ from the paper's.
fn buffers(bars: &[Bar]) -> String {
    let other = |(transport, name): (usize, &&str)| {
        let mut all = bars.iter().filter(|bar| bar.case.transport == transport);
        let buffer = all.find(|bar| bar.buffer != PAPER_BUFFER)?.buffer.clone();
        Some(match *name {
            "homa" => format!("{buffer} of a switch with homa, which its ports share"),
            "ndp" => format!("{buffer} of a port with ndp, which cuts packets to headers"),
            other => format!("{buffer} of a port with {other}"),
        })
    };
    let others: Vec<String> = TRANSPORTS.iter().enumerate().filter_map(other).collect();
    let others = others.iter().map(|other| format!("; {other}"));
    format!("{PAPER_BUFFER} of a switch's port{}", others.collect::<String>())
}

/// The paper's buffer, as a setting.
const PAPER_BUFFER: &str = "36864B";

fn verdicts(extent: &Extent, bars: &[Bar]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for place in Place::all(extent) {
        verdicts.extend(order(extent, bars, place));
    }
    for place in Place::all(extent) {
        verdicts.extend(pages(extent, bars, place));
    }
    verdicts
}

/// The ratio of the mean slowdowns of two transports as published, over all workloads, seed by
/// seed; `None` if a bar is missing.
fn ratio(bars: &[Bar], place: Place, [worse, better]: [&str; 2]) -> Option<Estimate> {
    let sums = |name: &str| -> Option<Vec<f64>> {
        let transport = TRANSPORTS.iter().position(|known| *known == name)?;
        let of = |workload| find(bars, (place, workload, transport), true);
        let all: Vec<&Bar> = (0..WORKLOADS.len()).map(of).collect::<Option<_>>()?;
        let seeds = 0..all.first()?.means.len();
        Some(seeds.map(|seed| all.iter().map(|bar| bar.means[seed]).sum()).collect())
    };
    let ratios = sums(worse)?.into_iter().zip(sums(better)?).map(|(worse, better)| worse / better);
    stats::estimate(&ratios.collect::<Vec<_>>())
}

/// The verdicts whether the order of transports is the paper's; none if a bar is missing.
fn order(extent: &Extent, bars: &[Bar], place: Place) -> Vec<Verdict> {
    let claims: [(&[[&str; 2]], &str); 2] = [
        (
            &[["phost", "pfabric"], ["fastpass", "phost"]],
            "pFabric, pHost and Fastpass as published are in this order, as the paper has them \
             (§4.3, by its reference to pHost's)",
        ),
        (
            &[["dctcp", "pfabric"], ["dctcp", "phost"], ["tcp", "pfabric"], ["tcp", "phost"]],
            "DCTCP and TCP as published are worse than pFabric and pHost, as the paper concludes \
             (§1)",
        ),
    ];
    let verdict = |&(pairs, what): &(&[[&str; 2]], &str)| {
        let ratios = pairs.iter().map(|pair| ratio(bars, place, *pair));
        let ratios: Vec<Estimate> = ratios.collect::<Option<_>>()?;
        let shown: Vec<String> = (pairs.iter().zip(&ratios))
            .map(|([worse, better], ratio)| format!("{worse}/{better} {}", ratio.text(3)))
            .collect();
        let claim = format!(
            "{}: {what}: their slowdowns by one another {}",
            place.name(extent),
            shown.join(", ")
        );
        let ends: Option<Vec<(f64, f64)>> = ratios.iter().map(Estimate::ends).collect();
        Some(match ends {
            None => Verdict::undecided(claim, WHY_FEW),
            Some(ends) if ends.iter().all(|(low, _)| *low >= 1.0) => Verdict::new(true, claim),
            Some(ends) if ends.iter().any(|(_, high)| *high < 1.0) => Verdict::new(false, claim),
            Some(_) => Verdict::undecided(claim, WHY_ONE),
        })
    };
    claims.iter().filter_map(verdict).collect()
}

/// The verdict whether completion times of 4 KiB with pFabric as published agree with the paper's.
fn pages(extent: &Extent, bars: &[Bar], place: Place) -> Option<Verdict> {
    let (rate, scale) = (extent.rates[place.rate], SCALES[place.scale]);
    let page: &Page = published::page(rate, scale)?;
    let of = |workload| find(bars, (place, workload, 0), true)?.page_us;
    let all: Vec<f64> = (0..WORKLOADS.len()).filter_map(of).map(|us| us.median).collect();
    let low = all.iter().copied().reduce(f64::min)?;
    let high = all.iter().copied().reduce(f64::max)?;
    let claim = format!(
        "{}: 4 KiB take {low:.3} to {high:.3} µs by pFabric as published, by program; the paper \
         fed back {} to {} µs (criterion: within {:.0} % of these)",
        place.name(extent),
        page.us.0,
        page.us.1,
        page.near * 100.0
    );
    Some(Verdict::new(page.is_near(low) && page.is_near(high), claim))
}

/// A bar for the record.
fn record(extent: &Extent, bar: &Bar) -> Value {
    let Bar { case, .. } = bar;
    json!({
        "workload": WORKLOADS[case.workload].0,
        "scale": SCALES[case.place.scale],
        "flows": if case.place.is_batched { "batches" } else { "pages" },
        "rate": extent.rates[case.place.rate],
        "transport": TRANSPORTS[case.transport],
        "variant": if case.is_published { "as-published-2016" } else { "default" },
        "slowdown": bar.slowdown,
        "slowdowns": bar.means,
        "p99": bar.p99,
        "load": bar.load,
        "page_us": bar.page_us,
        "unfinished_count": bar.unfinished_count,
        "buffer": bar.buffer,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fig7_case::Point;
    use super::super::fig7_case::tests::{EXTENT, bars};
    use super::*;

    fn decided(rule: impl Fn(&Case) -> f64) -> Vec<Option<bool>> {
        let bars = bars(rule);
        let place = Place { rate: 0, scale: 0, is_batched: true };
        order(&EXTENT, &bars, place).iter().map(Verdict::decided).collect()
    }

    #[test]
    fn the_order_is_the_papers_or_is_not() {
        let by = |slowdowns: [f64; 5]| {
            move |case: &Case| slowdowns.get(case.transport).copied().unwrap_or(1.0)
        };
        assert_eq!(decided(by([1.1, 1.2, 2.0, 3.0, 4.0])), [Some(true); 2]);
        assert_eq!(decided(by([1.1, 1.2, 3.0, 2.0, 1.9])), [Some(true); 2]);
        assert_eq!(decided(by([1.3, 1.2, 2.0, 3.0, 4.0])), [Some(false), Some(true)]);
        assert_eq!(decided(by([1.1, 2.2, 2.0, 2.1, 4.0])), [Some(false); 2]);
        let place = Place { rate: 0, scale: 0, is_batched: true };
        assert!(order(&EXTENT, &[], place).is_empty());
    }

    #[test]
    fn what_seeds_decide_is_undecided() {
        // pHost is ahead with some seeds only.
        let mut bars = bars(|case| [1.1, 1.1, 2.0, 3.0, 4.0, 1.0, 1.0][case.transport]);
        for bar in bars.iter_mut().filter(|bar| bar.case.transport == 1) {
            bar.means[2] += 0.3;
            bar.means[3] -= 0.3;
        }
        let place = Place { rate: 0, scale: 1, is_batched: true };
        let first = order(&EXTENT, &bars, place).swap_remove(0);
        assert_eq!((first.decided(), first.undecided), (None, Some(WHY_ONE)));
        for bar in &mut bars {
            bar.means.truncate(2);
        }
        let few = order(&EXTENT, &bars, place);
        assert!(few.iter().all(|verdict| verdict.undecided == Some(WHY_FEW)), "{few:?}");
        assert!(few[0].claim.contains("[n too small: 2]"), "{few:?}");
    }

    #[test]
    fn a_bar_wants_every_seed() {
        let whole = bars(|_| 1.5);
        assert_eq!(whole.len(), 2 * WORKLOADS.len() * (5 + 7 + 2));
        assert!(whole.iter().all(|bar| bar.means.len() == 5 && bar.slowdown.interval.is_some()));
        let Bar { case, .. } = whole[0];
        let point = Point {
            mean: 1.0,
            p99: 1.0,
            load: 0.1,
            page_us: None,
            unfinished_count: 0,
            buffer: String::new(),
        };
        assert_eq!(Bar::all(&[case, case], &[Some(point.clone()), Some(point.clone())]).len(), 1);
        assert!(Bar::all(&[case, case], &[Some(point), None]).is_empty());
    }

    #[test]
    fn what_batches_do_is_told() {
        let bars = bars(|case| if case.place.is_batched { 1.5 } else { 9.5 });
        let told = caption(&EXTENT, &bars).replace('\n', " ");
        assert!(told.contains("by pfabric now would be 9.50, and not 1.50"), "{told}");
    }

    #[test]
    fn loads_and_other_buffers_are_told() {
        let mut bars = bars(|_| 1.5);
        let told = rows(&EXTENT, &bars);
        let shown = bars.iter().filter(|bar| bar.case.place.is_batched).count();
        assert_eq!(told.matches("10.00 %").count(), shown, "beside each bar");
        assert!(caption(&EXTENT, &bars).contains("Buffers: 36864B of a switch's port.\n"));
        for bar in bars.iter_mut().filter(|bar| TRANSPORTS[bar.case.transport] == "homa") {
            bar.buffer = "737280B".to_owned();
        }
        assert!(
            buffers(&bars).ends_with("port; 737280B of a switch with homa, which its ports share")
        );
    }
}
