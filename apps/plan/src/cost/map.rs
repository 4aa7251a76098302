//! Savings when storage and compute grow apart: a table, rows, a picture.

use chart::{Anchor, BLUE, GREY, ORANGE, Panel, Scale, Svg, Tick};
use console::layout::table;
use planner::cost::{Cell, CostError, Wedge, map};
use results::plan::cost_map;

use super::file::Experiment;
use super::table::wedge;
use super::{Texts, record};
use crate::flags::CostFlags;

/// The map as table, JSON, picture and CSV.
///
/// # Errors
/// If costs cannot be computed.
pub(super) fn of(experiment: &Experiment, flags: &CostFlags) -> Result<Texts, CostError> {
    let model = &experiment.model;
    let cells = map(model, flags.axis)?;
    let edges = Wedge::of(model)?;
    Ok(Texts {
        table: text(&cells, flags.axis, &edges, experiment.is_papers),
        json: results::write(&recorded(&cells, &edges)),
        svg: draw(&cells, flags.axis, &edges),
        csv: csv(experiment, &cells),
    })
}

const PAPERS: &str = "
Klimovic et al. 2016 print this map as Fig. 8, and say that it costs 12 % on the diagonal and saves
up to 40 %, and 50 % in the upper left with flash at twice the price. The numbers of §4.3 give what
is above; those of the text need others: --set remote.drop=16.6666667% --set price.tax=100 --axis 7
gives 12.1 %, 39.3 % and, with --set price.flash=4800, 50.3 %.
";

/// The readable table of savings, and the growth from which pools pay.
fn text(cells: &[Cell], axis: u32, edges: &Wedge, is_papers: bool) -> String {
    let mut rows = Vec::new();
    for compute in (1..=axis).rev() {
        let mut row = vec![format!("compute {compute}x")];
        let of = cells.iter().filter(|cell| cell.compute == compute);
        row.extend(of.map(|cell| format!("{:.1}", cell.saving * 100.0)));
        rows.push(row);
    }
    let mut last = vec!["storage".to_owned()];
    last.extend((1..=axis).map(|storage| format!("{storage}x")));
    rows.push(last);
    let mut text =
        "Saving of disaggregation in percent, from a deployment in balance:\n".to_owned();
    text += &table(&rows);
    text += "\n";
    text += &wedge(edges);
    if is_papers {
        text += PAPERS;
    }
    text
}

/// A row for each pair of factors, with prices and the saving.
fn csv(experiment: &Experiment, cells: &[Cell]) -> String {
    let model = &experiment.model;
    let mut text = "storage_factor,compute_factor,flash_cost,server_cost,delta,multiplier,\
                    saving_percent\n"
        .to_owned();
    let prices = [model.flash.price, model.compute.price, model.tax.price];
    let [flash, compute, tax] = prices.map(|price| price.units_f64());
    let multiplier = model.multiplier();
    for Cell { storage, compute: queries, saving } in cells {
        text += &format!(
            "{storage},{queries},{flash},{compute},{tax},{multiplier:.10},{:.6}\n",
            saving * 100.0
        );
    }
    text
}

/// The record of the map.
fn recorded(cells: &[Cell], edges: &Wedge) -> cost_map::CostMap {
    let cells = cells.iter().map(|cell| cost_map::Cell {
        storage_factor: cell.storage,
        compute_factor: cell.compute,
        saving: cell.saving,
    });
    cost_map::CostMap {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        wedge: record::wedge(edges),
        cells: cells.collect(),
    }
}

const SIZE: (f64, f64) = (640.0, 600.0);
const EDGE: &str = "stroke-width=\"2\" stroke-dasharray=\"6 4\"";
/// The longest axis whose cells are labelled.
const LABELLED: u32 = 12;

/// The picture of the map, with break-even as dashed lines.
fn draw(cells: &[Cell], axis: u32, edges: &Wedge) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let most = f64::from(axis);
    let scale = Scale::Linear(0.5, most + 0.5);
    let panel = Panel { left: 76.0, top: 52.0, width: 532.0, height: 480.0, x: scale, y: scale };
    let step = axis.div_ceil(10);
    let ticks: Vec<Tick> = (1..=axis)
        .filter(|tick| (tick - 1).is_multiple_of(step))
        .map(|tick| (f64::from(tick), format!("{tick}x")))
        .collect();
    let deepest = cells.iter().map(|cell| cell.saving.abs()).fold(0.01, f64::max);
    svg.axes(&panel, ("storage", &ticks), ("compute", &ticks));
    for cell in cells {
        let (a, b) = (f64::from(cell.storage), f64::from(cell.compute));
        let corners = (panel.at(a - 0.5, b - 0.5), panel.at(a + 0.5, b + 0.5));
        svg.cell(corners.0, corners.1, cell.saving / deepest);
        if axis <= LABELLED {
            let (x, y) = panel.at(a, b);
            let text = format!("{:.0}", cell.saving * 100.0);
            svg.text((x, y + 4.0), &text, Anchor::Middle);
        }
    }
    // A ratio of growth is a straight line through the origin.
    for ratio in [edges.low, edges.high].into_iter().filter(|ratio| *ratio > 0.0) {
        let end = most + 0.5;
        let (from, to) = if ratio.is_infinite() {
            continue;
        } else if ratio < 1.0 {
            ((0.5, 0.5 / ratio), (end * ratio, end))
        } else {
            ((0.5 * ratio, 0.5), (end, end / ratio))
        };
        svg.line(panel.at(from.0, from.1), panel.at(to.0, to.1), "#222222", EDGE);
    }
    svg.frame(&panel);
    svg.key((76.0, 20.0), &[("disaggregation saves", BLUE), ("costs more", ORANGE)]);
    let note = "percent of the cost with flash in servers; dashed: break-even";
    svg.tinted((76.0, 40.0), note, Anchor::Start, GREY);
    svg.finish("Saving of disaggregated flash by growth of storage and compute")
}
