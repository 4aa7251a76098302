//! What is computed of a bill, and its forms.

use planner::cost::{Comparison, Knob, Sensitivity, Usage, Wedge};

/// Everything that is computed of a bill.
pub(super) struct Answer {
    pub(super) bill: Comparison,
    pub(super) usage: Vec<Usage>,
    pub(super) sensitivity: Vec<Sensitivity>,
    pub(super) wedge: Wedge,
}

/// One answer in several forms; those that make no sense are empty.
pub(super) struct Texts {
    pub(super) table: String,
    pub(super) json: String,
    pub(super) svg: String,
    pub(super) csv: String,
}

/// The key of a knob in a file.
pub(super) fn key(knob: Knob) -> String {
    match knob {
        Knob::FlashPrice => "price.flash".to_owned(),
        Knob::ComputePrice => "price.compute".to_owned(),
        Knob::TaxPrice => "price.tax".to_owned(),
        Knob::Drop => "remote.drop".to_owned(),
        Knob::Demand(dimension) => format!("demand.{dimension}"),
        Knob::Server(dimension) => format!("server.{dimension}"),
    }
}
