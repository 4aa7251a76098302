//! Errors of drawing.

/// The longest side of a picture, in pixels.
pub(crate) const SIDE_MAX: f32 = 16_384.0;

/// Why a picture cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The text has something that crate `chart` does not draw.
    #[error("line {line} of the drawing has something that cannot be drawn: {what}")]
    Unknown {
        /// Line number from 1.
        line: usize,
        /// The element, attribute or value.
        what: String,
    },
    /// A side of the picture is too short or too long.
    #[error("a picture of {width:.0} by {height:.0} pixels: a side has 1 to {SIDE_MAX:.0}")]
    Size {
        /// Width in pixels.
        width: f32,
        /// Height in pixels.
        height: f32,
    },
    /// The picture cannot be encoded as PNG.
    #[error("encode the picture: {0}")]
    Encode(String),
    /// The font cannot be parsed.
    #[error("read the font: {0}")]
    Font(#[from] ttf_parser::FaceParsingError),
}
