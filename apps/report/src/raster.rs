//! PNG from SVG, with a font of this machine.

use std::path::{Path, PathBuf};

use ::raster::{DrawError, png};

/// Why a picture has no PNG.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RasterError {
    #[error(
        "--png: no font (.ttf or .otf) under {}; install one, e.g. apt-get install \
         fonts-dejavu-core, or use --svg", PLACES.join(", ")
    )]
    NoFont,
    #[error("--png: {0}; use --svg, and tell us")]
    Draw(#[from] DrawError),
}

/// Where fonts are.
const PLACES: [&str; 3] = ["/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/texmf/fonts"];
/// Fonts that have every letter of a picture, the preferred one first.
const LIKED: [&str; 5] = [
    "DejaVuSans.ttf",
    "LiberationSans-Regular.ttf",
    "NotoSans-Regular.ttf",
    "FreeSans.ttf",
    "FreeSans.otf",
];
/// The most levels of directories below a place.
const DEPTH_MAX: usize = 6;
/// Pixels for each unit of a drawing.
const SCALE: f32 = 2.0;

/// A font's file.
pub(super) struct Font(Vec<u8>);

impl Font {
    /// Finds a font of this machine, by preference one of `LIKED`.
    pub(super) fn find() -> Result<Self, RasterError> {
        let mut found = Vec::new();
        PLACES.iter().for_each(|place| walk(Path::new(place), DEPTH_MAX, &mut found));
        found.sort();
        let rank = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            LIKED.iter().position(|liked| name == *liked).unwrap_or(LIKED.len())
        };
        found.sort_by_key(rank);
        let readable = found.into_iter().find_map(|path| std::fs::read(path).ok());
        readable.map(Self).ok_or(RasterError::NoFont)
    }

    /// Draws an SVG file as PNG.
    pub(super) fn png(&self, svg: &str) -> Result<Vec<u8>, RasterError> {
        Ok(png(svg, &self.0, SCALE)?)
    }
}

/// Adds the font files below a directory to `found`.
fn walk(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() && depth > 0 {
            walk(&path, depth - 1, found);
        } else if path.extension().is_some_and(|ending| ending == "ttf" || ending == "otf") {
            found.push(path);
        }
    }
}
