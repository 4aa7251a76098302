//! Writes families of metrics.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

pub(super) const COUNTER: MetricType = MetricType::Counter;
pub(super) const GAUGE: MetricType = MetricType::Gauge;

/// Name, type and help text of a family.
pub(super) type About = (&'static str, MetricType, &'static str);

/// Writes a family of metrics: its description and a sample for each set of labels.
pub(super) fn family<L: EncodeLabelSet, V: EncodeCounterValue + EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, kind, help): About,
    samples: impl IntoIterator<Item = (L, V)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in samples {
        let mut sample = family.encode_family(&labels)?;
        match kind {
            MetricType::Counter => sample.encode_counter::<NoLabelSet, _, f64>(&value, None)?,
            _ => sample.encode_gauge(&value)?,
        }
    }
    Ok(())
}
