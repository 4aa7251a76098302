//! Text as outlines, letter by letter: without shaping, which the texts of charts do not need.

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, OutlineBuilder};

/// The outline of `text` from the origin on, and its width; `None` if nothing is to be drawn.
pub(crate) fn outline(face: &Face<'_>, text: &str, size: f32) -> Option<(Path, f32)> {
    let scale = size / f32::from(face.units_per_em());
    let mut pen = Pen { path: PathBuilder::new(), left: 0.0, scale };
    for letter in text.chars() {
        // The first glyph stands for those that the font does not have.
        let glyph = face.glyph_index(letter).unwrap_or_default();
        let _blank = face.outline_glyph(glyph, &mut pen);
        pen.left += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * scale;
    }
    let width = pen.left;
    pen.path.finish().map(|path| (path, width))
}

struct Pen {
    path: PathBuilder,
    left: f32,
    scale: f32,
}

impl Pen {
    // A point of a glyph in the drawing; fonts measure upwards.
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.left + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
