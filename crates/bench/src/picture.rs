//! The figure of `delay`: requested against measured delay above, the error below.

use chart::{Anchor, BLUE, ORANGE, Panel, Scale, Svg, Tick};
use measure::Host;

use crate::stats::{Spread, float};

/// Mean error of DiME's busy-wait by the text of the paper; the data of its figure give 63.
pub(crate) const DIME_ERROR_NS: f64 = 68.0;

/// The results of one requested delay over rounds.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) requested_ns: u64,
    /// Runs in which the delay is below afar's floor. The other figures leave them out, unless all
    /// runs are.
    pub(crate) flagged_count: usize,
    pub(crate) run_count: usize,
    /// Quantiles of measured minus requested delay, in nanoseconds; the others likewise.
    pub(crate) p5: Spread,
    pub(crate) p50: Spread,
    pub(crate) p95: Spread,
    pub(crate) p99: Spread,
    /// Median of the absolute error.
    pub(crate) absolute: Spread,
}

/// All points of the figure.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// The shortest possible fetch of this machine, by afar's calibration.
    pub(crate) floor_ns: Spread,
    pub(crate) points: Vec<Point>,
}

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 604.0;
const LEFT: f64 = 76.0;
const PANEL_WIDTH: f64 = WIDTH - LEFT - 20.0;
const DELAYS: Scale = Scale::Logarithmic(0.8, 63.0);
const DASHED: &str = "stroke-width=\"1.5\" stroke-dasharray=\"5 4\"";
const THICK: &str = "stroke-width=\"1.6\"";

/// The figure as SVG.
pub(crate) fn draw(figure: &Figure, host: &Host) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    upper(&mut svg, figure);
    lower(&mut svg, figure);
    let machine = format!("{}, Linux {}", host.cpu_model, host.kernel);
    svg.tinted((WIDTH / 2.0, HEIGHT - 8.0), &machine, Anchor::Middle, "#666666");
    svg.finish("Requested and measured fetch delay, and the error, from 1 to 50 microseconds")
}

/// The upper panel: measured over requested delay.
fn upper(svg: &mut Svg, figure: &Figure) {
    let panel =
        Panel { left: LEFT, top: 16.0, width: PANEL_WIDTH, height: 230.0, x: DELAYS, y: DELAYS };
    let ticks = ticks(figure);
    svg.axes(&panel, ("", &ticks), ("measured delay, µs", &ticks));
    svg.line(panel.at(0.8, 0.8), panel.at(63.0, 63.0), "#666666", "stroke-width=\"1\"");
    let (x, y) = panel.at(20.0, 30.0);
    svg.tinted((x - 8.0, y), "measured = requested", Anchor::End, "#666666");
    let floor = figure.floor_ns.median / 1e3;
    if floor > 0.8 {
        svg.line(panel.at(0.8, floor), panel.at(63.0, floor), ORANGE, DASHED);
        let has_hollow = figure.points.iter().any(|point| point.is_below_floor());
        let note = if has_hollow { " (below it: hollow)" } else { "" };
        let label = format!("floor of this machine, {floor:.2} µs{note}");
        let (x, y) = panel.at(60.0, floor);
        // Beside the line, where no dot above the floor can be.
        let beside = if floor > 1.2 { y + 16.0 } else { y - 6.0 };
        svg.tinted((x, beside), &label, Anchor::End, ORANGE);
    }
    for point in &figure.points {
        let requested = float(point.requested_ns) / 1e3;
        let measured = requested + point.p50.median / 1e3;
        svg.dot(panel.at(requested, measured.max(0.8)), BLUE, point.is_below_floor());
    }
    svg.frame(&panel);
}

/// The lower panel: the error over requested delay.
fn lower(svg: &mut Svg, figure: &Figure) {
    let axis = ErrorAxis::of(&figure.points);
    let panel = Panel {
        left: LEFT,
        top: 300.0,
        width: PANEL_WIDTH,
        height: 220.0,
        x: DELAYS,
        y: Scale::Linear(axis.low, axis.high),
    };
    svg.axes(&panel, ("requested delay, µs", &ticks(figure)), ("error, ns", &axis.ticks()));
    svg.band(panel.at(0.8, -DIME_ERROR_NS), panel.at(63.0, DIME_ERROR_NS), ORANGE);
    svg.line(panel.at(0.8, 0.0), panel.at(63.0, 0.0), "#666666", "stroke-width=\"1\"");
    for point in &figure.points {
        let requested = float(point.requested_ns) / 1e3;
        // A whisker beyond the axis is cut and has no end mark.
        let clamp = |error: f64| error.clamp(axis.low, axis.high);
        let (below, above) = (clamp(point.p5.median), clamp(point.p95.median));
        svg.line(panel.at(requested, below), panel.at(requested, above), BLUE, THICK);
        for end in [point.p5.median, point.p95.median] {
            if clamp(end) != end {
                continue;
            }
            let (x, y) = panel.at(requested, end);
            svg.line((x - 4.0, y), (x + 4.0, y), BLUE, THICK);
        }
        let at = panel.at(requested, clamp(point.p50.median));
        svg.dot(at, BLUE, point.is_below_floor());
    }
    svg.frame(&panel);
    let top = panel.top - 8.0;
    let is_beyond = figure.points.iter().any(|point| point.p95.median > axis.high);
    let what = if is_beyond {
        "median, 5th to 95th (off scale)"
    } else {
        "median, 5th to 95th percentile"
    };
    svg.tinted((LEFT, top), what, Anchor::Start, BLUE);
    let label = format!("±{DIME_ERROR_NS:.0} ns: mean error of DiME");
    svg.tinted((LEFT + PANEL_WIDTH, top), &label, Anchor::End, ORANGE);
}

/// A tick for every requested delay, in microseconds.
fn ticks(figure: &Figure) -> Vec<Tick> {
    let requested = figure.points.iter().map(|point| float(point.requested_ns) / 1e3);
    requested.map(|delay| (delay, format!("{delay:.0}"))).collect()
}

/// The error axis: includes DiME's band and most points; outliers are drawn at its edge.
#[derive(Debug, Clone, Copy)]
struct ErrorAxis {
    low: f64,
    high: f64,
    step: f64,
}

impl ErrorAxis {
    /// The axis for `points`.
    fn of(points: &[Point]) -> Self {
        let low = points.iter().map(|point| point.p5.median).fold(-100.0, f64::min);
        let high = points.iter().map(|point| point.p95.median).fold(150.0, f64::max);
        let (low, high) = (low.max(-500.0), high.min(1500.0));
        let steps = [50.0, 100.0, 200.0, 500.0];
        let step = steps.into_iter().find(|step| (high - low) / step <= 8.0).unwrap_or(500.0);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    /// The ticks of the axis.
    fn ticks(self) -> Vec<Tick> {
        let values = std::iter::successors(Some(self.low), |value| Some(value + self.step));
        let values = values.take_while(|value| *value <= self.high + self.step / 2.0);
        values.map(|value| (value, format!("{value:.0}").replace('-', "−"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        let spread = |value: f64| Spread::of([value]);
        let point = |requested_ns, error: f64| Point {
            requested_ns,
            flagged_count: usize::from(requested_ns < 1_200),
            run_count: 1,
            p5: spread(error - 30.0),
            p50: spread(error),
            p95: spread(error + 210.0),
            p99: spread(error + 900.0),
            absolute: spread(error.abs()),
        };
        Figure {
            floor_ns: spread(1_200.0),
            points: vec![point(1_000, 250.0), point(5_000, 20.0), point(50_000, -10.0)],
        }
    }

    #[test]
    fn picture_shows_every_point_twice_and_below_the_floor_hollow() {
        let drawn = draw(&figure(), &Host::default());
        assert_eq!(drawn.matches("<circle").count(), 6);
        let hollow = "fill=\"#ffffff\" stroke=\"#0072B2\"";
        assert_eq!(drawn.matches(hollow).count(), 2);
        assert!(drawn.contains("1.20 µs"));
    }

    #[test]
    fn axis_of_errors_ends_on_ticks_and_holds_them() {
        let axis = ErrorAxis::of(&figure().points);
        assert_eq!((axis.low, axis.high, axis.step), (-100.0, 500.0, 100.0));
        let ticks: Vec<f64> = axis.ticks().into_iter().map(|tick| tick.0).collect();
        assert_eq!(ticks, [-100.0, 0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
    }
}
