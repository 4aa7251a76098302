//! Files with holes: parts that were never written. They read as zeros without reaching a medium.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use measure::Bytes;

/// Bytes of a unit of `st_blocks` (stat(3type)).
const COUNTED_BYTES: u64 = 512;

/// Bytes of holes that are filled so fast that no note is printed.
const LITTLE: u64 = 64 << 20;

/// A note, to append to a sentence, that a file is sparse; `None` if it is not.
#[must_use]
pub fn told(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let written = found.blocks() * COUNTED_BYTES;
    // `st_blocks` is rounded up and includes metadata: a file with small holes may count as full.
    (written < found.len()).then(|| {
        let percent = written.saturating_mul(100) / found.len();
        format!(", sparse: {percent} % of it is on its medium, the rest reads as zeros")
    })
}

/// A note that filling the holes of a file takes long; `None` if they are small.
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
