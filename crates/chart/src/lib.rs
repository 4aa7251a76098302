//! Parts of charts as SVG: scales, panels with axes, marks; and whole charts. Lengths are in units
//! of the drawing, from its upper left corner.
//!
//! ```text
//! Plot, Heat, Bars ─► Svg (marks, and what a pointer is told where) ─► Drawing
//! ```

mod axis;
mod bars;
mod clear;
mod heat;
mod number;
mod plot;
mod point;
mod svg;
mod text;
mod thin;

pub use axis::{Axis, Kind};
pub use bars::{Bar, Bars, BarsScale};
pub use heat::{Cell, Heat};
pub use number::{in_bytes, short};
pub use plot::{Look, Plot, Series};
pub use point::Point;
pub use svg::{
    Anchor, BLUE, Drawing, GREEN, GREY, Hint, ORANGE, PALETTE, PURPLE, Panel, SKY, Scale, Svg,
    Tick, WHITE, axis, decades, escape, shortened, slowdowns,
};
pub use text::{key_width, text_width, wrap};
pub use thin::thin;
