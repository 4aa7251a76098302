//! Holes of files: ranges without room on the medium, which read as zeros.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::Result;
use crate::error::{During, Error};

/// Length of a write.
const WRITE_BYTES: usize = 1 << 20;

/// Writes zeros to every hole of a file, up to its end, and forces them to the medium. Returns the
/// number of bytes. The contents do not change. A block device has no holes.
///
/// # Errors
/// When the file cannot be opened for writing, or its file system has no room left: what was
/// written until then stays.
pub fn fill(path: &Path) -> Result<u64> {
    let file =
        OpenOptions::new().read(true).write(true).open(path).during("open a file to fill")?;
    let end = seek(&file, SeekFrom::End(0)).during("find the end of a file")?;
    let zeros = vec![0; WRITE_BYTES];
    let mut filled = 0;
    let mut at = 0;
    while let Some([start, stop]) = next_hole(&file, at, end)? {
        at = start;
        while at < stop {
            let bytes = (stop - at).min(WRITE_BYTES as u64);
            let length = usize::try_from(bytes).unwrap_or(WRITE_BYTES);
            file.write_all_at(&zeros[..length], at).during("write to a hole of a file")?;
            at += bytes;
            filled += bytes;
        }
    }
    if filled > 0 {
        file.sync_data().during("put a file on its medium")?;
    }
    Ok(filled)
}

// The next hole from `at` on, as start and end; `None` if there is none before `end` (the end of a
// file counts as a hole to the kernel).
fn next_hole(file: &File, at: u64, end: u64) -> Result<Option<[u64; 2]>> {
    let start = match seek(file, SeekFrom::Hole(at)) {
        Ok(start) if start < end => start,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(error) => return Err(Error::new("look for a hole of a file", error)),
    };
    match seek(file, SeekFrom::Data(start)) {
        Ok(stop) => Ok(Some([start, stop.min(end)])),
        Err(Errno::NXIO) => Ok(Some([start, end])),
        Err(error) => Err(Error::new("look behind a hole of a file", error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn holes_are_written_and_the_rest_is_as_it_was() {
        let path = std::env::temp_dir().join(format!("afar-fill-{}", std::process::id()));
        let file = File::create(&path).expect("there is room");
        file.set_len(5 << 20).expect("it can grow");
        file.write_all_at(&[7; 4096], 2 << 20).expect("there is room");
        let (bytes, before) = (5 << 20, std::fs::read(&path).expect("it is there"));
        let room = |file: &File| file.metadata().expect("it is there").blocks() * 512;
        file.sync_all().expect("it is there");
        assert!(room(&file) < bytes);
        let filled = fill(&path).expect("there is room");
        assert!(filled >= bytes - (1 << 20) && room(&file) >= bytes, "{filled}, {}", room(&file));
        assert_eq!(std::fs::read(&path).expect("it is there"), before);
        assert_eq!(fill(&path).expect("there is nothing to do"), 0);
        std::fs::remove_file(&path).expect("it was made");
        assert!(fill(&path).is_err(), "it is gone");
    }
}
