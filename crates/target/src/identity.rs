//! The identity of a medium: random, and stored with the medium.
//!
//! A file has its identity in an extended attribute, which survives renames and names the file it
//! belongs to (by inode and time of birth), so that a copy does not pass for the original. A block
//! device has it in a file of a state directory, named after its hardware's name. A name is no
//! identity: two machines may use the same.
//!
//! Invariants:
//! - Two media that exist at a time never have one identity.
//! - An identity that is not stored is drawn anew: hosts then see another disk, never a wrong one.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use sys::disk::FileMark;

/// 128 bits that no other medium has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity([u8; 16]);

/// An identity, and whether it outlives this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The identity.
    pub identity: Identity,
    /// Whether it is stored.
    pub is_kept: bool,
}

/// Why a medium has no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The medium has the identity of another file.
    #[error(
        "{} has the identity of the file that it was copied from; --new-identity makes it a disk \
         of its own, and nguid and uuid in a .toml say which disk it is instead",
        path.display()
    )]
    Copy {
        /// The copy.
        path: PathBuf,
    },
    /// The stored identity cannot be parsed.
    #[error(
        "{} has a damaged identity; --new-identity draws another, as which hosts do not know it",
        path.display()
    )]
    Damaged {
        /// The medium, or the file that stores its identity.
        path: PathBuf,
    },
    /// The stored identity cannot be read, or a new one cannot be stored.
    #[error("keep the identity of a disk in {}: {source}", path.display())]
    Keep {
        /// The medium, or the file that stores its identity.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

const ATTRIBUTE: &str = "user.afar.identity";
/// The first word of a stored identity: the version of its format.
const VERSION: &str = "1";

impl Identity {
    /// A new random identity.
    #[must_use]
    pub fn drawn() -> Self {
        let mut bytes = [0; 16];
        sys::random::fill(&mut bytes);
        Self(bytes)
    }

    /// The identity with these 128 bits.
    #[must_use]
    pub const fn of(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// NGUID of a namespace on the medium.
    #[must_use]
    pub const fn nguid(&self) -> [u8; 16] {
        self.0
    }

    /// UUID of a namespace on the medium (RFC 9562, version 4: random).
    #[must_use]
    pub const fn uuid(&self) -> [u8; 16] {
        let mut bytes = self.0;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        bytes
    }

    /// The identity of a file or block device, which no other process may be opening: the one
    /// stored with it or in the directory `state`; or a new one, stored there, if none is or
    /// `is_new`.
    ///
    /// # Errors
    /// When the stored identity belongs to another file, is damaged, or cannot be read or written.
    pub fn of_medium(
        path: &Path,
        state: Option<&Path>,
        is_new: bool,
    ) -> Result<Known, IdentityError> {
        let failed = |source| IdentityError::Keep { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.file_type().is_block_device() {
            let name = device_name(path).map_err(failed)?;
            return kept_in(state, &name, is_new);
        }
        let mark = sys::disk::mark(&file).map_err(|error| failed(error.source))?;
        match with_file(path, &file, mark, is_new)? {
            Some(identity) => Ok(Known { identity, is_kept: true }),
            None => kept_in(state, &format!("file-{}-{}", mark.inode, mark.born_ns), is_new),
        }
    }

    // The stored form: version, identity in hexadecimal, inode and time of birth.
    fn write(&self, mark: FileMark) -> String {
        let number = u128::from_be_bytes(self.0);
        format!("{VERSION} {number:032x} {} {}\n", mark.inode, mark.born_ns)
    }

    // Parses the stored form; `None` if it is damaged.
    fn read(text: &[u8]) -> Option<(Self, FileMark)> {
        let text = std::str::from_utf8(text).ok()?;
        let words: Vec<_> = text.strip_suffix('\n')?.split(' ').collect();
        let [VERSION, number, inode, born] = words[..] else { return None };
        let number = u128::from_str_radix(number, 16).ok().filter(|_| number.len() == 32)?;
        let mark = FileMark { inode: inode.parse().ok()?, born_ns: born.parse().ok()? };
        Some((Self(number.to_be_bytes()), mark))
    }
}

// The identity in a file's extended attribute, set if missing or `is_new`; `None` if the file
// cannot have one.
fn with_file(
    path: &Path,
    file: &File,
    mark: FileMark,
    is_new: bool,
) -> Result<Option<Identity>, IdentityError> {
    let failed = |source| IdentityError::Keep { path: path.to_owned(), source };
    let kept = || match sys::disk::attribute(file, ATTRIBUTE) {
        Ok(kept) => Ok(kept),
        Err(error) if error.source.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(failed(error.source)),
    };
    if let Some(text) = kept()?.filter(|_| !is_new) {
        return belonging(path, &text, mark).map(Some);
    }
    let drawn = Identity::drawn();
    match sys::disk::set_attribute(file, ATTRIBUTE, drawn.write(mark).as_bytes(), !is_new) {
        Ok(()) => Ok(Some(drawn)),
        Err(error) => match error.source.kind() {
            // Somebody who shares the file was faster.
            ErrorKind::AlreadyExists => {
                let text = kept()?.unwrap_or_default();
                belonging(path, &text, mark).map(Some)
            }
            ErrorKind::Unsupported
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::StorageFull => Ok(None),
            _ => Err(failed(error.source)),
        },
    }
}

// The stored identity, if it belongs to the file with this mark.
fn belonging(path: &Path, text: &[u8], mark: FileMark) -> Result<Identity, IdentityError> {
    match Identity::read(text) {
        Some((identity, of)) if of == mark => Ok(identity),
        Some(_) => Err(IdentityError::Copy { path: path.to_owned() }),
        None => Err(IdentityError::Damaged { path: path.to_owned() }),
    }
}

// The hardware's name of a block device, or else its path and size, so that a replaced device is
// recognised.
fn device_name(path: &Path) -> io::Result<String> {
    if let Some(name) = sys::disk::hardware_name(path) {
        return Ok(format!("device-{name}"));
    }
    let bytes = sys::disk::Disk::measure(&File::open(path)?).map_err(|error| error.source)?;
    Ok(format!("device-{}-{bytes}", fs::canonicalize(path)?.display()))
}

// The identity stored in the state directory under `name`, new if missing or `is_new`; without a
// directory a new one that is not stored.
fn kept_in(state: Option<&Path>, name: &str, is_new: bool) -> Result<Known, IdentityError> {
    let Some(state) = state else {
        return Ok(Known { identity: Identity::drawn(), is_kept: false });
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let path = state.join(format!("{name}.identity"));
    let failed = |source| IdentityError::Keep { path: path.clone(), source };
    match fs::read(&path) {
        Ok(text) if !is_new => {
            let read = Identity::read(&text);
            let (identity, _) =
                read.ok_or_else(|| IdentityError::Damaged { path: path.clone() })?;
            return Ok(Known { identity, is_kept: true });
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(source) => return Err(failed(source)),
    }
    let identity = Identity::drawn();
    // The rename is atomic: after a power failure the file is whole or absent.
    let beside = path.with_extension("identity.new");
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(identity.write(FileMark { inode: 0, born_ns: 0 }).as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        File::open(state)?.sync_all()
    };
    write().map_err(failed)?;
    Ok(Known { identity, is_kept: true })
}

#[cfg(test)]
mod tests {
    use test_support::Scratch;

    use super::*;

    fn of(path: &Path) -> Identity {
        Identity::of_medium(path, None, false).expect("it can be known").identity
    }

    // As cp --preserve=xattr does.
    fn copy(from: &Path, to: &Path) {
        fs::copy(from, to).expect("there is room");
        let open = |path| File::options().write(true).read(true).open(path).expect("it is there");
        let kept = sys::disk::attribute(&open(from), ATTRIBUTE).expect("there are some");
        let kept = kept.expect("it has one");
        sys::disk::set_attribute(&open(to), ATTRIBUTE, &kept, true).expect("it has none");
    }

    #[test]
    fn a_file_keeps_it_under_any_name() {
        let scratch = Scratch::new("identity-renamed");
        let directory = scratch.path();
        let [file, renamed, other] = ["a", "b", "c"].map(|name| directory.join(name));
        fs::write(&file, "x").expect("there is room");
        fs::write(&other, "x").expect("there is room");
        let identity = of(&file);
        assert_eq!(of(&file), identity);
        assert_ne!(of(&other), identity, "it is drawn, not made of anything");
        fs::rename(&file, &renamed).expect("it is there");
        assert_eq!(of(&renamed), identity);
        fs::write(&renamed, "y").expect("there is room");
        assert_eq!(of(&renamed), identity, "whatever it holds");
        // Another under the old name.
        fs::write(&file, "x").expect("there is room");
        assert_ne!(of(&file), identity);
    }

    #[test]
    fn a_copy_is_not_the_original() {
        let scratch = Scratch::new("identity-copied");
        let directory = scratch.path();
        let [file, plain, whole] = ["a", "b", "c"].map(|name| directory.join(name));
        fs::write(&file, "x").expect("there is room");
        let identity = of(&file);
        fs::copy(&file, &plain).expect("there is room");
        assert_ne!(of(&plain), identity);
        copy(&file, &whole);
        let refused = Identity::of_medium(&whole, None, false);
        assert!(matches!(refused, Err(IdentityError::Copy { .. })), "{refused:?}");
        let new = Identity::of_medium(&whole, None, true).expect("it is asked for").identity;
        assert_ne!(new, identity);
        assert_eq!((of(&whole), of(&file)), (new, identity));
    }

    #[test]
    fn what_says_nothing_is_not_taken_for_none() {
        let scratch = Scratch::new("identity-damaged");
        let directory = scratch.path();
        let path = directory.join("a");
        let file = File::create(&path).expect("there is room");
        sys::disk::set_attribute(&file, ATTRIBUTE, b"1 abc", true).expect("it has none");
        let damaged = Identity::of_medium(&path, None, false);
        assert!(matches!(damaged, Err(IdentityError::Damaged { .. })), "{damaged:?}");
        assert!(Identity::of_medium(&path, None, true).is_ok());
    }

    #[test]
    fn a_directory_keeps_what_a_medium_cannot() {
        let scratch = Scratch::new("identity-state");
        let directory = scratch.path();
        let at = |name, is_new| kept_in(Some(directory), name, is_new).expect("there is room");
        let one = at("device-wwn x/1 0", false);
        assert!(one.is_kept);
        assert_eq!(at("device-wwn x/1 0", false), one);
        assert_ne!(at("device-wwn x/1 1", false), one);
        let new = at("device-wwn x/1 0", true);
        assert_ne!(new, one);
        assert_eq!(at("device-wwn x/1 0", false), new);
        let nowhere = kept_in(None, "device", false).expect("it is drawn");
        assert!(!nowhere.is_kept);
        assert_ne!(kept_in(None, "device", false).expect("it is drawn"), nowhere);
        fs::write(directory.join("device.identity"), "1\n").expect("there is room");
        let damaged = kept_in(Some(directory), "device", false);
        assert!(matches!(damaged, Err(IdentityError::Damaged { .. })), "{damaged:?}");
    }

    #[test]
    fn identifiers_are_made_of_it() {
        let identity = Identity::of([0xff; 16]);
        assert_eq!(identity.nguid(), [0xff; 16]);
        let uuid = u128::from_be_bytes(identity.uuid());
        assert_eq!(uuid, 0xffff_ffff_ffff_4fff_bfff_ffff_ffff_ffff);
    }
}
