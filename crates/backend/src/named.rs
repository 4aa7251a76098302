//! A device by name before it is opened: what it is made of, and the files that it needs.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use measure::Bytes;
use sys::disk::Claim;

use crate::device::Backend;
use crate::open_error::OpenError;

/// What a namespace is made of, as text: see [`crate::kinds`] for what there is.
///
/// Two are equal if they are made of the same, however it was written.
#[derive(Clone)]
pub struct BackendUri(Arc<dyn Device>);

/// A kind of device: a row of [`crate::kinds::ALL`].
pub(crate) struct Kind {
    /// What stands before the first colon.
    pub scheme: &'static str,
    /// An example of its beginning, for an error that lists all kinds.
    pub example: &'static str,
    /// How to write it, for an error about it.
    pub remedy: &'static str,
    /// What it does with the text after the colon.
    pub parse: Parse,
}

/// How the text of a kind is read. Errors are a clause that says what is wrong.
pub(crate) enum Parse {
    /// Of one that holds the bytes: the text up to `?`, and the options after it.
    Medium(fn(&str, Options<'_>) -> Result<BackendUri, String>),
    /// Of one around another: the text up to the next colon.
    Around(fn(&str) -> Result<Around, String>),
}

/// What makes of a device the same with another around it.
pub(crate) type Around = Box<dyn FnOnce(BackendUri) -> Result<BackendUri, String>>;

/// The options of a medium.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    /// Two to the power of this is its block, if that was said.
    pub block_shift: Option<u8>,
    /// Name and value of each that is its own; no value is an empty one.
    pub own: &'a [(&'a str, &'a str)],
}

/// A device that was named and is not open.
pub(crate) trait Device: fmt::Debug + Send + Sync + Any {
    /// Opens it, and those inside; `claim` says who else may have the file or block device that
    /// holds the bytes.
    ///
    /// # Errors
    /// See [`BackendUri::open`].
    fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError>;

    /// The device inside.
    fn inside(&self) -> Option<&BackendUri> {
        None
    }

    /// The file or block device that holds the bytes, if it is this one that has it.
    fn medium(&self) -> Option<Medium<'_>> {
        None
    }

    /// A file beside the medium that it writes.
    fn written(&self) -> Option<&Path> {
        None
    }

    /// Its size and what its block is two to the power of, if it is memory.
    fn memory(&self) -> Option<(Bytes, u8)> {
        None
    }

    /// Whether each host sees a disk of its own in it.
    fn is_leased(&self) -> bool {
        false
    }

    /// Whether `other` is the same kind and has the same settings.
    fn equals(&self, other: &dyn Any) -> bool;
}

/// A file or block device that holds the bytes.
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

    /// Whether each host sees a disk of its own in it: a [`crate::Lease`].
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.0.is_leased()
    }

    // This device, the one inside it, and so on.
    fn devices(&self) -> impl Iterator<Item = &dyn Device> {
        let one = std::iter::successors(Some(self), |one| one.0.inside());
        one.map(|one| &*one.0)
    }

    fn medium(&self) -> Option<Medium<'_>> {
        self.devices().find_map(Device::medium)
    }

    /// Opens the device, and those around it; `claim` says who else may have the file or block
    /// device that holds the bytes.
    ///
    /// # Errors
    /// When it is not there, may not be used, is another's, or is not one; when a trace cannot be
    /// written.
    pub fn open(&self, claim: Claim) -> Result<Arc<dyn Backend>, OpenError> {
        self.0.open(claim)
    }

    /// Whether its file or block device is opened to be read only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.medium().is_some_and(|medium| medium.is_read_only)
    }

    /// The file or block device that holds the bytes in the end, whatever is around it; what is
    /// written to the device is written there.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.medium().map(|medium| medium.path)
    }

    /// The file whose holes are to be filled when it is opened, which can take as long as writing
    /// all of it.
    #[must_use]
    pub fn fills(&self) -> Option<&Path> {
        self.medium().filter(|medium| medium.fills).map(|medium| medium.path)
    }

    /// All files that are opened for it: that of [`Self::file`], and traces.
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

/// Whether `other` is a `T` that equals `one`: what every [`Device::equals`] says.
pub(crate) fn same<T: PartialEq + 'static>(one: &T, other: &dyn Any) -> bool {
    other.downcast_ref() == Some(one)
}

/// The size of a medium.
///
/// # Errors
/// When it is not one, or less than a block.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if bytes.get() < 4096 { Err(format!("{bytes} is less than a block")) } else { Ok(bytes) }
}

impl Options<'_> {
    /// What the block is two to the power of, for a medium that takes any.
    pub(crate) fn block_shift(&self) -> u8 {
        self.block_shift.unwrap_or(BLOCK_SHIFTS[0])
    }

    /// # Errors
    /// When there are options of its own: `scheme` has none.
    pub(crate) fn none_of_its_own(&self, scheme: &str) -> Result<(), String> {
        self.own.first().map_or(Ok(()), |(name, _)| Err(unknown(scheme, name, BLOCK_ONLY)))
    }
}

/// Says that `scheme` has no option `name`, and what it has.
pub(crate) fn unknown(scheme: &str, name: &str, has: &str) -> String {
    format!("{scheme} has no option {name:?}; {has}")
}

const BLOCK_ONLY: &str = "its only option is block";

/// Blocks that hosts take.
pub(crate) const BLOCK_SHIFTS: [u8; 2] = [9, 12];
