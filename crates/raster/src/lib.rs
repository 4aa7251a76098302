//! Drawings of crate `chart` as PNG.
//!
//! ```text
//! SVG ─► element (name, attributes, text) ─► path, or glyphs of a font ─► pixels ─► PNG
//! ```
//!
//! Only what `chart` draws is supported: one element per line, of seven kinds, with colours in six
//! digits. Anything else is an error; nothing is left out silently. A renderer for all of SVG takes
//! two minutes to compile, this one seconds.

mod element;
mod error;
mod glyphs;

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash,
    Transform,
};
use ttf_parser::Face;

use element::{Element, elements};

pub use error::DrawError;
use error::SIDE_MAX;

/// Draws an SVG as PNG with `scale` pixels per unit, and all its text in one font.
///
/// # Errors
/// If `svg` is no drawing of crate `chart`, `font` is no font, or the picture is too large.
pub fn png(svg: &str, font: &[u8], scale: f32) -> Result<Vec<u8>, DrawError> {
    let face = Face::parse(font, 0)?;
    let mut canvas: Option<Canvas<'_>> = None;
    for element in elements(svg) {
        let element = element?;
        match (&mut canvas, element.name) {
            (None, "svg") => canvas = Some(Canvas::new(&element, &face, scale)?),
            (Some(canvas), _) => canvas.draw(&element)?,
            (None, _) => return Err(element.unknown("it comes before <svg>")),
        }
    }
    let Some(canvas) = canvas else { return Err(DrawError::Size { width: 0.0, height: 0.0 }) };
    canvas.pixels.encode_png().map_err(|error| DrawError::Encode(error.to_string()))
}

struct Canvas<'a> {
    pixels: Pixmap,
    face: &'a Face<'a>,
    scale: f32,
    /// Colour of text without an attribute for it.
    ink: Color,
    font_size: f32,
}

impl<'a> Canvas<'a> {
    fn new(svg: &Element<'_>, face: &'a Face<'a>, scale: f32) -> Result<Self, DrawError> {
        let (width, height) = (svg.number("width")? * scale, svg.number("height")? * scale);
        let side = |side: f32| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            (1.0..=SIDE_MAX).contains(&side).then_some(side.round() as u32)
        };
        let pixels = side(width).zip(side(height)).and_then(|(w, h)| Pixmap::new(w, h));
        let pixels = pixels.ok_or(DrawError::Size { width, height })?;
        let ink = svg.colour("fill")?.unwrap_or(Color::BLACK);
        Ok(Self { pixels, face, scale, ink, font_size: svg.number("font-size")? })
    }

    /// Draws an element.
    fn draw(&mut self, element: &Element<'_>) -> Result<(), DrawError> {
        let path = match element.name {
            "rect" => {
                let [x, y] = [element.number_or("x", 0.0)?, element.number_or("y", 0.0)?];
                let [width, height] = [element.number("width")?, element.number("height")?];
                // A rectangle without extent is invisible.
                Rect::from_xywh(x, y, width, height).map(PathBuilder::from_rect)
            }
            "circle" => {
                let [x, y] = [element.number("cx")?, element.number("cy")?];
                PathBuilder::from_circle(x, y, element.number("r")?)
            }
            "line" => {
                let mut path = PathBuilder::new();
                path.move_to(element.number("x1")?, element.number("y1")?);
                path.line_to(element.number("x2")?, element.number("y2")?);
                path.finish()
            }
            "polyline" => polygon(&element.points()?, false),
            "polygon" => polygon(&element.points()?, true),
            "text" => return self.text(element),
            "svg" | "title" => return Ok(()),
            other => return Err(element.unknown(other)),
        };
        let Some(path) = path else { return Ok(()) };
        self.fill(&path, element, Transform::identity())?;
        self.stroke(&path, element)
    }

    /// Fills a path as its element says; without a colour, only text is filled.
    fn fill(&mut self, path: &Path, of: &Element<'_>, at: Transform) -> Result<(), DrawError> {
        let inherited = (of.name == "text").then_some(self.ink);
        let Some(mut colour) = of.colour("fill")?.or(inherited) else { return Ok(()) };
        colour.apply_opacity(of.number_or("fill-opacity", 1.0)?);
        let mut paint = Paint { anti_alias: true, ..Paint::default() };
        paint.set_color(colour);
        let at = at.post_scale(self.scale, self.scale);
        self.pixels.fill_path(path, &paint, FillRule::Winding, at, None);
        Ok(())
    }

    /// Strokes a path as its element says.
    fn stroke(&mut self, path: &Path, of: &Element<'_>) -> Result<(), DrawError> {
        let Some(colour) = of.colour("stroke")? else { return Ok(()) };
        let mut paint = Paint { anti_alias: true, ..Paint::default() };
        paint.set_color(colour);
        let dashes = of.numbers("stroke-dasharray")?;
        let stroke = Stroke {
            width: of.number_or("stroke-width", 1.0)?,
            line_cap: if of.get("stroke-linecap") == Some("round") {
                LineCap::Round
            } else {
                LineCap::Butt
            },
            line_join: match of.get("stroke-linejoin") {
                Some("round") => LineJoin::Round,
                _ => LineJoin::Miter,
            },
            dash: StrokeDash::new(dashes, 0.0),
            ..Stroke::default()
        };
        let at = Transform::from_scale(self.scale, self.scale);
        self.pixels.stroke_path(path, &paint, &stroke, at, None);
        Ok(())
    }

    /// Draws a text.
    fn text(&mut self, element: &Element<'_>) -> Result<(), DrawError> {
        let (x, y) = (element.number("x")?, element.number("y")?);
        let size = element.number_or("font-size", self.font_size)?;
        let Some((path, width)) = glyphs::outline(self.face, &element.text, size) else {
            return Ok(());
        };
        let left = match element.get("text-anchor") {
            Some("middle") => width / 2.0,
            Some("end") => width,
            _ => 0.0,
        };
        let mut at = Transform::from_translate(x - left, y);
        if let Some([degrees, x, y]) = element.rotation()? {
            at = at.post_concat(Transform::from_rotate_at(degrees, x, y));
        }
        self.fill(&path, element, at)
    }
}

/// The path through `points`; `None` without points.
fn polygon(points: &[(f32, f32)], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.0, first.1);
    rest.iter().for_each(|point| path.line_to(point.0, point.1));
    if is_closed {
        path.close();
    }
    path.finish()
}

#[cfg(test)]
mod tests {
    use chart::{Anchor, Svg};
    use test_support::skip;

    use super::*;

    /// The font of Debian's package fonts-dejavu-core, or a word that a test did not run.
    fn font(test: &str) -> Option<Vec<u8>> {
        let font = std::fs::read("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf").ok();
        if font.is_none() {
            skip(test, "no DejaVuSans.ttf; install fonts-dejavu-core");
        }
        font
    }

    fn pixel(pixels: &Pixmap, x: u32, y: u32) -> [u8; 3] {
        let pixel = pixels.pixel(x, y).map(|pixel| pixel.demultiply());
        pixel.map_or([0; 3], |pixel| [pixel.red(), pixel.green(), pixel.blue()])
    }

    #[test]
    fn marks_are_where_they_were_drawn() {
        let Some(font) = font("marks_are_where_they_were_drawn") else { return };
        let mut svg = Svg::new(100.0, 50.0);
        svg.bar((10.0, 10.0), (30.0, 40.0), "#0072B2");
        svg.line((50.0, 5.0), (50.0, 45.0), "#D55E00", "stroke-width=\"4\"");
        svg.dot((80.0, 25.0), "#009E73", false);
        svg.path(&[(60.0, 10.0), (70.0, 10.0), (70.0, 20.0)], "#000000", "stroke-width=\"2\"");
        let png = png(&svg.finish("t"), &font, 2.0).expect("it is a drawing");
        let pixels = Pixmap::decode_png(&png).expect("it was encoded just now");
        assert_eq!((pixels.width(), pixels.height()), (200, 100));
        let at = |x: u32, y: u32| pixel(&pixels, 2 * x, 2 * y);
        assert_eq!(at(20, 25), [0x00, 0x72, 0xB2]);
        assert_eq!(at(50, 25), [0xD5, 0x5E, 0x00]);
        assert_eq!(at(80, 25), [0x00, 0x9E, 0x73]);
        // A line of several pieces has no inside.
        assert_eq!(at(66, 14), [0xff; 3]);
        assert_eq!(at(65, 10), [0; 3]);
        assert_eq!(at(40, 25), [0xff; 3]);
    }

    #[test]
    fn text_is_drawn_and_stands_where_its_anchor_says() {
        let Some(font) = font("text_is_drawn_and_stands_where_its_anchor_says") else { return };
        for (anchor, dark) in
            [(Anchor::Start, 50..100), (Anchor::Middle, 25..75), (Anchor::End, 0..50)]
        {
            let mut svg = Svg::new(100.0, 50.0);
            svg.text((50.0, 30.0), "a<&µ", anchor);
            let png = png(&svg.finish("t"), &font, 1.0).expect("it is a drawing");
            let pixels = Pixmap::decode_png(&png).expect("it was encoded just now");
            let columns = (0..100).filter(|x| (0..50).any(|y| pixel(&pixels, *x, y)[0] < 128));
            let columns: Vec<u32> = columns.collect();
            assert!(columns.len() > 12, "{columns:?}");
            assert!(columns.iter().all(|x| dark.contains(x)), "{anchor:?} {columns:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let Some(font) = font("what_is_not_known_is_refused") else { return };
        let told = |body: &str| {
            let svg = format!(
                "<svg width=\"9\" height=\"9\" fill=\"#222222\" font-size=\"13\">\n{body}\n</svg>\n"
            );
            png(&svg, &font, 1.0).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(told("<rect width=\"1\" height=\"1\" fill=\"#ffffff\"/>"), "");
        for body in [
            "<image x=\"1\"/>",
            "<rect width=\"1\" height=\"1\" fill=\"red\"/>",
            "<rect width=\"x\" height=\"1\"/>",
            "<circle cx=\"1\" cy=\"1\"/>",
            "nothing",
        ] {
            assert!(told(body).contains("line 2 of the drawing"), "{body}: {}", told(body));
        }
        let huge = "<svg width=\"1e9\" height=\"9\" fill=\"#222222\" font-size=\"13\">\n</svg>\n";
        let told = png(huge, &font, 1.0).expect_err("it is too large").to_string();
        assert!(told.contains("a side has 1 to 16384"), "{told}");
        assert!(png("<svg", b"no font", 1.0).is_err());
    }
}
