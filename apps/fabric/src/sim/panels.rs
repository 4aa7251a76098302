//! One run as a picture: queues over time by port, drops, how long flows took by size, and the
//! settings of the run.

use chart::{
    Anchor, BLUE, GREY, ORANGE, PALETTE, Panel, Scale, Svg, Tick, axis, decades, slowdowns, wrap,
};
use measure::Bytes;
use results::sim::{Port, Ports, SharePoint, Shares, Simulation};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 176.0;
const INNER: f64 = WIDTH - LEFT - 24.0;
/// Heights of a port's row, of the panel of drops, and of those of distributions.
const ROW: f64 = 16.0;
const DROPS: f64 = 90.0;
const SHARES: f64 = 240.0;
/// Space above the rows of a group of ports, and below them.
const ABOVE: f64 = 56.0;
const BELOW: f64 = 44.0;
/// From one line of text to the next.
const LINE: f64 = 17.0;

const COLOURS: usize = 6;
/// From a queue that is nearly empty to the fullest: cividis backwards (Nuñez et al. 2018), whose
/// steps look alike to people with any kind of colour vision, and in print.
const HEAT: [(u8, u8, u8); 6] =
    [(255, 234, 70), (202, 185, 105), (149, 143, 120), (102, 104, 112), (49, 68, 107), (0, 32, 77)];
/// Steps of colour; neighbours of the same step are one rectangle.
const STEPS: u32 = 32;
const EMPTY: &str = "#f6f6f6";

/// Ports of switches, or of hosts, with a colour scale of their own.
struct Group<'a> {
    of: &'static str,
    ports: Vec<&'a Port>,
}

/// The picture of a run, as SVG.
pub(super) fn draw(title: &str, run: &Simulation) -> String {
    let ports = run.ports.as_ref().filter(|ports| !ports.ports.is_empty());
    let groups = ports.map_or_else(Vec::new, groups);
    let room = |group: &Group<'_>| ABOVE + group.ports.len() as f64 * ROW + BELOW;
    let heat = groups.iter().map(room).sum::<f64>();
    let heat = ports.map_or(0.0, |_| heat + DROPS + 74.0);
    let settings = settings(run);
    let height = 60.0 + heat + SHARES + 130.0 + settings.len() as f64 * LINE;
    let mut svg = Svg::new(WIDTH, height);
    svg.text((24.0, 24.0), title, Anchor::Start);
    if let Some(ports) = ports {
        let mut top = 60.0;
        for group in &groups {
            queues(&mut svg, ports, group, top);
            top += room(group);
        }
        drops(&mut svg, ports, top);
    }
    distributions(&mut svg, &run.shares, 60.0 + heat);
    for (index, line) in settings.iter().enumerate() {
        let down = 60.0 + heat + SHARES + 116.0 + index as f64 * LINE;
        svg.tinted((24.0, down), line, Anchor::Start, GREY);
    }
    svg.finish(title)
}

/// Every setting of a run, in lines.
fn settings(run: &Simulation) -> Vec<String> {
    let all = run.settings.iter();
    let words: Vec<String> =
        all.map(|(name, value)| format!("{} {value}", name.replace('_', "-"))).collect();
    wrap(&format!("afar {}, with {}", run.version, words.join(", ")), WIDTH - 48.0)
}

/// The ports of switches, and those of hosts; a group without ports is left out.
fn groups(ports: &Ports) -> Vec<Group<'_>> {
    let of = |(of, at_host)| {
        let ports: Vec<&Port> = ports.ports.iter().filter(|port| port.at_host == at_host).collect();
        (!ports.is_empty()).then_some(Group { of, ports })
    };
    [("switches", false), ("hosts", true)].into_iter().filter_map(of).collect()
}

/// Draws the deepest queue over time for each port of a group.
fn queues(svg: &mut Svg, figures: &Ports, group: &Group<'_>, top: f64) {
    let Group { of, ports } = group;
    let all = ports.iter().flat_map(|port| &port.deepest_bytes);
    let most = all.max().copied().unwrap_or(1).max(1);
    let shown = ports.len();
    let what = format!(
        "Deepest queue over time at ports of {of}: the {shown} fullest ({} of the network's {} \
         ports ever had one)",
        figures.queued_count, figures.port_count
    );
    svg.text((24.0, top), &what, Anchor::Start);
    legend(svg, most, top + 16.0);
    let top = top + ABOVE;
    let y = Scale::Linear(shown as f64, 0.0);
    let panel =
        Panel { left: LEFT, top, width: INNER, height: shown as f64 * ROW, x: time(figures), y };
    for (row, port) in ports.iter().enumerate() {
        let row = row as f64;
        svg.text((LEFT - 8.0, panel.at(0.0, row + 0.5).1 + 4.0), &port.name, Anchor::End);
        svg.bar(panel.at(0.0, row), (LEFT + INNER, panel.at(0.0, row + 1.0).1), EMPTY);
        let steps: Vec<u32> = port.deepest_bytes.iter().map(|bytes| step(*bytes, most)).collect();
        let mut from = 0;
        while let Some(&step) = steps.get(from) {
            let length = steps[from..].iter().take_while(|other| **other == step).count();
            if step > 0 {
                let x = |column: usize| column as f64 * us(figures.every_ps);
                let (one, other) = (panel.at(x(from), row), panel.at(x(from + length), row + 1.0));
                svg.bar(one, (other.0, other.1 - 1.0), &colour(step));
            }
            from += length;
        }
    }
    svg.frame(&panel);
}

/// Draws the colour scale of queues up to `most` bytes.
fn legend(svg: &mut Svg, most: u32, top: f64) {
    let (left, width) = (LEFT, 6.0);
    for step in 1..=STEPS {
        let right = left + f64::from(step - 1) * width;
        svg.bar((right, top), (right + width, top + 12.0), &colour(step));
    }
    let right = left + f64::from(STEPS) * width;
    svg.tinted((left - 8.0, top + 11.0), "nothing waits: blank", Anchor::End, GREY);
    let most = Bytes::new(most.into()).to_string();
    svg.tinted((right + 8.0, top + 11.0), &format!("{most}; steps are equal"), Anchor::Start, GREY);
}

/// The step of colour of a queue: 0 if it is empty, `STEPS` at `most` bytes.
fn step(bytes: u32, most: u32) -> u32 {
    let step = (u64::from(bytes) * u64::from(STEPS)).div_ceil(u64::from(most));
    u32::try_from(step).unwrap_or(STEPS)
}

/// The colour of a step, between two of `HEAT`.
fn colour(step: u32) -> String {
    let parts = STEPS - 1;
    let along = (step.clamp(1, STEPS) - 1) as usize * (COLOURS - 1);
    let at = (along / parts as usize).min(COLOURS - 2);
    let share = u32::try_from(along - at * parts as usize).unwrap_or(0);
    let mix = |(one, other): (u8, u8)| {
        (u32::from(one) * (parts - share) + u32::from(other) * share + parts / 2) / parts
    };
    let ((r, g, b), (s, h, c)) = (HEAT[at], HEAT[at + 1]);
    let [red, green, blue] = [(r, s), (g, h), (b, c)].map(mix);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The axis of time, microseconds from the first flow to the end.
fn time(figures: &Ports) -> Scale {
    Scale::Linear(0.0, us(figures.every_ps) * figures.columns.max(1) as f64)
}

/// Picoseconds in microseconds.
fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Ticks of the axis of time.
fn time_ticks(figures: &Ports) -> Vec<Tick> {
    let length = us(figures.every_ps) * figures.columns.max(1) as f64;
    let (_, ticks) = axis(length, short);
    ticks.into_iter().filter(|(at, _)| *at <= length).collect()
}

/// A number as text, rounded to six decimals.
fn short(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// Draws how many packets all ports dropped and trimmed over time.
fn drops(svg: &mut Svg, figures: &Ports, top: f64) {
    let sums = [&figures.dropped_packets, &figures.trimmed_packets];
    let most = sums.iter().flat_map(|sums| sums.iter()).max().copied().unwrap_or(0);
    let (high, ticks) = axis(most.max(1) as f64, short);
    let y = Scale::Linear(0.0, high);
    let panel = Panel { left: LEFT, top, width: INNER, height: DROPS, x: time(figures), y };
    let has_trimmed = figures.trimmed_packets.iter().any(|count| *count > 0);
    let mut key = vec![("dropped", ORANGE)];
    if has_trimmed {
        key.push(("trimmed", BLUE));
    }
    svg.text((24.0, top - 14.0), "Packets dropped, all ports", Anchor::Start);
    svg.key((LEFT + 120.0, top - 14.0), &key);
    let few: Vec<Tick> = ticks.into_iter().filter(|(value, _)| value.fract() == 0.0).collect();
    let length = match figures.end_ps {
        Some(end_ps) => format!(
            "µs since the first flow started; none starts later than this, and the last ends at \
             {:.0}",
            us(end_ps)
        ),
        None => "µs since the first flow started".to_owned(),
    };
    svg.axes(&panel, (&length, &time_ticks(figures)), ("", &few));
    for (sums, colour) in sums.into_iter().zip([ORANGE, BLUE]) {
        for (column, count) in sums.iter().enumerate().filter(|(_, count)| **count > 0) {
            let x = |column: usize| column as f64 * us(figures.every_ps);
            svg.bar(panel.at(x(column), 0.0), panel.at(x(column + 1), *count as f64), colour);
        }
    }
    svg.frame(&panel);
}

/// What an axis shows of a quantile.
type Axis = fn(&SharePoint) -> f64;

/// Draws the distributions of slowdown and of completion time by flow size.
fn distributions(svg: &mut Svg, shares: &[Shares], top: f64) {
    let names: Vec<String> = shares.iter().map(Shares::name).collect();
    let key: Vec<(&str, &str)> = names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.as_str(), PALETTE[index % PALETTE.len()]))
        .collect();
    svg.text((24.0, top), "Share of flows that take at most so long, by size", Anchor::Start);
    svg.key((70.0, top + 24.0), &key);
    let width = (WIDTH - 70.0 - 24.0 - 70.0) / 2.0;
    let slowdown: Axis = |point| point.slowdown;
    let time: Axis = |point| us(point.completion_ps);
    let columns: [(f64, &str, Axis, bool); 2] =
        [(70.0, "slowdown", slowdown, true), (140.0 + width, "completion time, µs", time, false)];
    for (left, name, of, is_ratio) in columns {
        let values = || shares.iter().flat_map(|bin| &bin.points).map(of);
        let low = match is_ratio {
            true => 1.0,
            false => values().fold(f64::INFINITY, f64::min).clamp(1e-3, 1e9),
        };
        let high = values().fold(low, f64::max).max(low * 1.5);
        let (x, ticks) = match is_ratio {
            true => slowdowns(high),
            false => (Scale::Logarithmic(low, high), decades(low, high)),
        };
        let y = Scale::Linear(0.0, 1.0);
        let panel = Panel { left, top: top + 44.0, width, height: SHARES, x, y };
        let percent = |share: f64| (share, format!("{:.0} %", share * 100.0));
        let shares_of: Vec<Tick> = [0.0, 0.25, 0.5, 0.75, 1.0].map(percent).into();
        svg.axes(&panel, (name, &ticks), ("", &shares_of));
        for (index, bin) in shares.iter().enumerate() {
            let point = |point: &SharePoint| panel.at(of(point).max(low), point.share);
            let points: Vec<(f64, f64)> = bin.points.iter().map(point).collect();
            svg.path(&points, PALETTE[index % PALETTE.len()], "stroke-width=\"2\"");
        }
        svg.frame(&panel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_light_to_dark() {
        assert_eq!([colour(1), colour(STEPS)], ["#ffea46", "#00204d"]);
        assert_eq!([step(0, 10), step(1, 1000), step(1000, 1000)], [0, 1, STEPS]);
        let light = |step: u32| {
            let colour = colour(step);
            let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap());
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        assert!((2..=STEPS).all(|step| light(step) < light(step - 1)), "each step is darker");
    }
}
