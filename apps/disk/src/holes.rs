//! Files with holes: parts that were never written read as zeros, without asking any medium.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use measure::Bytes;

/// What `st_blocks` counts (stat(3type)).
const COUNTED_BYTES: u64 = 512;

/// Holes of no more than this are filled before anybody wonders.
const LITTLE: u64 = 64 << 20;

/// What is to be said of a file that is sparse, after what else is said of it.
#[must_use]
pub fn told(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let written = found.blocks() * COUNTED_BYTES;
    // File systems round up, and keep what they know of a file in a block or two.
    (written < found.len()).then(|| {
        let percent = written.saturating_mul(100) / found.len();
        format!(", sparse: {percent} % of it is on its medium, the rest reads as zeros")
    })
}

/// What is to be said before the holes of a file are filled, if it has any: that can take long.
pub(crate) fn filling(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let missing = found.len().saturating_sub(found.blocks() * COUNTED_BYTES);
    let bytes = Bytes::new(missing);
    (missing > LITTLE).then(|| format!("writing zeros to {bytes} of holes in {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_whole_has_none() {
        let path = std::env::temp_dir().join(format!("afar-holes-{}", std::process::id()));
        std::fs::write(&path, vec![1; 1 << 20]).expect("there is room");
        std::fs::File::open(&path).and_then(|file| file.sync_all()).expect("it is there");
        assert_eq!(told(&path), None);
        let file = std::fs::File::options().write(true).open(&path).expect("it is there");
        file.set_len(4 << 20).expect("it can grow");
        let text = told(&path).expect("three quarters were never written");
        assert!(text.contains("sparse: 25 % of it"), "{text}");
        std::fs::remove_file(&path).expect("it is there");
    }
}
