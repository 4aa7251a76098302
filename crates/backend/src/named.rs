//! A device that is parsed and not yet open: the devices inside it, and the files that it needs.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use measure::Bytes;
use sys::disk::Claim;

use crate::device::Backend;
use crate::open_error::OpenError;

/// The device of a namespace, parsed from text: see [`crate::kinds`] for the syntax.
///
/// Two are equal if they have the same devices and settings, however these were written.
#[derive(Clone)]
pub struct BackendUri(Arc<dyn Device>);

/// A kind of device: a row of [`crate::kinds::ALL`].
pub(crate) struct Kind {
    /// The text before the first colon.
    pub scheme: &'static str,
    /// An example of its beginning, for errors that list all kinds.
    pub example: &'static str,
    /// How to write it, for errors about this kind.
    pub remedy: &'static str,
    /// The parser of the text after the colon.
    pub parse: Parse,
}

/// The parser of a kind. Its errors are a clause that describes the mistake.
pub(crate) enum Parse {
    /// For a device that stores the bytes: parses the text up to `?`, and the options after it.
    Medium(fn(&str, Options<'_>) -> Result<BackendUri, String>),
    /// For a device around another: parses the text up to the next colon.
    Around(fn(&str) -> Result<Around, String>),
}

/// Wraps a device in another.
pub(crate) type Around = Box<dyn FnOnce(BackendUri) -> Result<BackendUri, String>>;

/// The options of a medium.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    /// Log2 of the bytes of a block, if given.
    pub block_shift: Option<u8>,
    /// Names and values of the kind's own options; a missing value is empty.
    pub own: &'a [(&'a str, &'a str)],
}

/// A device that is parsed and not yet open.
pub(crate) trait Device: fmt::Debug + Send + Sync + Any {
    /// Opens the device and those inside; `claim` determines who else may use the file or block
    /// device that stores the bytes.
    ///
    /// # Errors
    /// See [`BackendUri::open`].
    fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError>;

    /// The device inside; `None` for a medium.
    fn inside(&self) -> Option<&BackendUri> {
        None
    }

    /// The file or block device of this device itself, if it stores the bytes in one.
    fn medium(&self) -> Option<Medium<'_>> {
        None
    }

    /// A file besides the medium that the device writes, if any.
    fn written(&self) -> Option<&Path> {
        None
    }

    /// Size and log2 of the block size, if the device is memory.
    fn memory(&self) -> Option<(Bytes, u8)> {
        None
    }

    /// Whether each host sees its own disk.
    fn is_leased(&self) -> bool {
        false
    }

    /// Whether `other` is the same kind and has the same settings.
    fn equals(&self, other: &dyn Any) -> bool;
}

/// A file or block device that stores the bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Medium<'a> {
    pub path: &'a Path,
    pub is_read_only: bool,
    /// Whether zeros are written to its holes when it is opened.
    pub fills: bool,
}

impl BackendUri {
    pub(crate) fn new(device: impl Device) -> Self {
        Self(Arc::new(device))
    }

    /// See [`Device::memory`].
    pub(crate) fn memory(&self) -> Option<(Bytes, u8)> {
        self.0.memory()
    }

    /// Whether each host sees its own disk: a [`crate::Lease`].
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.0.is_leased()
    }

    // This device and all those inside, from the outside in.
    fn devices(&self) -> impl Iterator<Item = &dyn Device> {
        let one = std::iter::successors(Some(self), |one| one.0.inside());
        one.map(|one| &*one.0)
    }

    // The file or block device of the innermost device, if any.
    fn medium(&self) -> Option<Medium<'_>> {
        self.devices().find_map(Device::medium)
    }

    /// Opens the device and those inside; `claim` determines who else may use the file or block
    /// device that stores the bytes.
    ///
    /// # Errors
    /// When the file or device is missing, not permitted, claimed by another process or unsuitable,
    /// or when a trace cannot be written.
    pub fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        self.0.open(claim)
    }

    /// Whether its file or block device is opened read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.medium().is_some_and(|medium| medium.is_read_only)
    }

    /// The file or block device that stores the bytes, whatever devices are around it; `None` for
    /// memory and null.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.medium().map(|medium| medium.path)
    }

    /// The file whose holes are filled on opening, which can take as long as writing all of it;
    /// `None` without the option `fill`.
    #[must_use]
    pub fn fills(&self) -> Option<&Path> {
        self.medium().filter(|medium| medium.fills).map(|medium| medium.path)
    }

    /// All files that opening the device opens: that of [`Self::file`], and traces.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        let mut files = Vec::new();
        for device in self.devices() {
            files.extend(device.written());
            files.extend(device.medium().map(|medium| medium.path));
        }
        files
    }
}

impl fmt::Debug for BackendUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for BackendUri {
    fn eq(&self, other: &Self) -> bool {
        let other: &dyn Any = &*other.0;
        self.0.equals(other)
    }
}

impl Eq for BackendUri {}

/// Whether `other` is a `T` equal to `one`; the body of every [`Device::equals`].
pub(crate) fn same<T: PartialEq + 'static>(one: &T, other: &dyn Any) -> bool {
    other.downcast_ref() == Some(one)
}

/// Parses the size of a medium.
///
/// # Errors
/// When the text is no size, or the size is less than 4096 bytes.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    match bytes.get() {
        0..4096 => Err(format!("{bytes} is less than 4096 bytes, the smallest disk")),
        _ => Ok(bytes),
    }
}

impl Options<'_> {
    /// Log2 of the block size: the given one, or else that of 512 bytes.
    pub(crate) fn block_shift(&self) -> u8 {
        self.block_shift.unwrap_or(BLOCK_SHIFTS[0])
    }

    /// Checks that only common options are given.
    ///
    /// # Errors
    /// When there is any other option: `scheme` has none of its own.
    pub(crate) fn none_of_its_own(&self, scheme: &str) -> Result<(), String> {
        self.own.first().map_or(Ok(()), |(name, _)| Err(unknown(scheme, name, BLOCK_ONLY)))
    }
}

/// The error that `scheme` has no option `name`; `has` lists those it has.
pub(crate) fn unknown(scheme: &str, name: &str, has: &str) -> String {
    format!("{scheme} has no option {name:?}; {has}")
}

const BLOCK_ONLY: &str = "its only option is block";

/// Log2 of the block sizes that hosts support.
pub(crate) const BLOCK_SHIFTS: [u8; 2] = [9, 12];
