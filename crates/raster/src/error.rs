//! What cannot be drawn.

/// Pixels that a side may have.
pub(crate) const SIDE_MAX: f32 = 16_384.0;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The text is no drawing of crate `chart`.
    #[error("line {line} of the drawing has something that cannot be drawn: {what}")]
    Unknown {
        /// From 1.
        line: usize,
        /// The element, attribute or value.
        what: String,
    },
    /// It has no extent, or too large a one.
    #[error("a picture of {width:.0} by {height:.0} pixels: a side has 1 to {SIDE_MAX:.0}")]
    Size {
        /// From left to right.
        width: f32,
        /// From top to bottom.
        height: f32,
    },
    /// It cannot be encoded.
    #[error("encode the picture: {0}")]
    Encode(String),
    /// The font's file has no face.
    #[error("read the font: {0}")]
    Font(#[from] ttf_parser::FaceParsingError),
}
