//! A store of RocksDB: the library is found at run time, and every handle is released.
//!
//! ```text
//! Settings ─► Store::open ─► get, put, append, delete, keys, statistics ─► drop: closed
//! ```
//!
//! RocksDB is called through its C interface, which takes any number of threads at once.

#![expect(unsafe_code, reason = "calls RocksDB; each block says why it is sound")]

mod api;
mod append;

use std::ffi::{CStr, CString, c_char, c_int, c_uchar};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use api::Api;

use crate::library::LoaderError;

/// How a store is opened. All else is RocksDB's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its directory, created if need be.
    pub directory: PathBuf,
    /// Bytes of the block cache; 0 for none.
    pub block_cache_bytes: u64,
    /// Bytes of writes in memory before they are flushed into a table; RocksDB's default if `None`.
    pub write_buffer_bytes: Option<u64>,
    /// Whether tables are read and written without the kernel's page cache. The log is not.
    pub direct: bool,
    /// Whether a write returns only once it is on the medium.
    pub sync: bool,
}

/// Why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The library cannot be used.
    #[error("RocksDB's library cannot be used here: {0}")]
    Library(#[from] LoaderError),
    /// Another handle has the store open.
    #[error("another process has this store open, or this one has it twice")]
    Held,
    /// An error of RocksDB, in its words.
    #[error("{0}")]
    Rocks(String),
}

/// Values are not compressed: their sizes on the medium are those that were chosen.
const NO_COMPRESSION: c_int = 0;

/// An open store. One per directory; it is closed when dropped.
#[derive(Debug)]
pub struct Store {
    api: &'static Api,
    db: NonNull<api::Db>,
    options: NonNull<api::Options>,
    reads: NonNull<api::ReadOptions>,
    writes: NonNull<api::WriteOptions>,
}

// SAFETY: RocksDB's database may be used by any thread, and by all of them at once; options are
// only read after the store was opened.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

/// A value in RocksDB's memory, which it pins.
#[derive(Debug)]
pub struct Value<'a> {
    store: &'a Store,
    slice: NonNull<api::Slice>,
}

impl Store {
    /// Opens a store, and creates it if there is none.
    ///
    /// # Errors
    /// If the library is not installed, another handle has the store open, or RocksDB refuses.
    ///
    /// # Panics
    /// If there is no memory for a handle.
    pub fn open(settings: &Settings) -> Result<Self, StoreError> {
        let api = Api::get()?;
        let path = CString::new(settings.directory.as_os_str().as_bytes())
            .map_err(|_| StoreError::Rocks("the path has a zero byte".to_owned()))?;
        let options = options(api, settings);
        // SAFETY: options are a handle of our own, and the path ends in NUL.
        let opened =
            checked(api, |error| unsafe { (api.open)(options.as_ptr(), path.as_ptr(), error) });
        let refused = |error| {
            // SAFETY: nothing uses the options: no store has come of them.
            unsafe { (api.options_destroy)(options.as_ptr()) };
            held(error, &settings.directory)
        };
        let db = handle(opened.map_err(refused)?);
        // SAFETY: these take no arguments.
        let (reads, writes) =
            unsafe { (handle((api.readoptions_create)()), handle((api.writeoptions_create)())) };
        // SAFETY: a handle of our own.
        unsafe { (api.writeoptions_set_sync)(writes.as_ptr(), c_uchar::from(settings.sync)) };
        Ok(Self { api, db, options, reads, writes })
    }

    /// The name of the loaded library, such as `librocksdb.so.7.8`.
    #[must_use]
    pub const fn library(&self) -> &'static str {
        self.api.library
    }

    /// The value of `key`; `None` if the store does not have the key.
    ///
    /// # Errors
    /// If the value cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>, StoreError> {
        let (db, reads) = (self.db.as_ptr(), self.reads.as_ptr());
        // SAFETY: handles of our own; the key is only read.
        let slice = checked(self.api, |error| unsafe {
            (self.api.get_pinned)(db, reads, key.as_ptr().cast(), key.len(), error)
        })?;
        Ok(NonNull::new(slice).map(|slice| Value { store: self, slice }))
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// If RocksDB cannot write.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let (at, to) = (key.as_ptr().cast(), value.as_ptr().cast());
        let (db, writes) = (self.db.as_ptr(), self.writes.as_ptr());
        // SAFETY: handles of our own; RocksDB copies key and value.
        checked(self.api, |error| unsafe {
            (self.api.put)(db, writes, at, key.len(), to, value.len(), error);
        })
    }

    /// Appends `bytes` to the value of `key`, which is empty if there is none, without reading it:
    /// a merge.
    ///
    /// # Errors
    /// If RocksDB cannot write.
    pub fn append(&self, key: &[u8], bytes: &[u8]) -> Result<(), StoreError> {
        let (at, to) = (key.as_ptr().cast(), bytes.as_ptr().cast());
        let (db, writes) = (self.db.as_ptr(), self.writes.as_ptr());
        // SAFETY: as above.
        checked(self.api, |error| unsafe {
            (self.api.merge)(db, writes, at, key.len(), to, bytes.len(), error);
        })
    }

    /// Removes `key`, if it is there.
    ///
    /// # Errors
    /// If RocksDB cannot write.
    pub fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        let (db, writes) = (self.db.as_ptr(), self.writes.as_ptr());
        // SAFETY: as above.
        checked(self.api, |error| unsafe {
            (self.api.delete)(db, writes, key.as_ptr().cast(), key.len(), error);
        })
    }

    /// At most `count` keys from `from` on, in the order of their bytes, and the next key after
    /// them.
    ///
    /// # Errors
    /// If the keys cannot be read.
    #[expect(clippy::type_complexity, reason = "keys, and the next one")]
    pub fn keys(
        &self,
        from: &[u8],
        count: usize,
    ) -> Result<(Vec<Vec<u8>>, Option<Vec<u8>>), StoreError> {
        let cursor = Cursor::new(self, from);
        let mut keys = Vec::new();
        while let Some(key) = cursor.key() {
            if keys.len() == count {
                return Ok((keys, Some(key)));
            }
            keys.push(key);
            cursor.next();
        }
        cursor.end()?;
        Ok((keys, None))
    }

    /// RocksDB's counters, a line for each.
    #[must_use]
    pub fn statistics(&self) -> String {
        // SAFETY: the options are those of the open store; what comes is null or ends in NUL.
        let text = unsafe { (self.api.options_statistics_get_string)(self.options.as_ptr()) };
        taken(self.api, text).unwrap_or_default()
    }

    /// The value of a numeric property, such as `rocksdb.estimate-num-keys`; `None` if RocksDB does
    /// not have it.
    #[must_use]
    pub fn property(&self, name: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: a handle of our own, a text that ends in NUL, and a place for the number.
        let status =
            unsafe { (self.api.property_int)(self.db.as_ptr(), name.as_ptr(), &raw mut value) };
        (status == 0).then_some(value)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: handles of our own that nobody has any more: values and cursors borrow the store.
        // The options go last, for the statistics in them are the store's.
        unsafe {
            (self.api.close)(self.db.as_ptr());
            (self.api.readoptions_destroy)(self.reads.as_ptr());
            (self.api.writeoptions_destroy)(self.writes.as_ptr());
            (self.api.options_destroy)(self.options.as_ptr());
        }
    }
}

impl Deref for Value<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let mut length = 0;
        let api = self.store.api;
        // SAFETY: a handle of our own, and a place for the length.
        let data = unsafe { (api.pinnableslice_value)(self.slice.as_ptr(), &raw mut length) };
        // SAFETY: RocksDB keeps these bytes as they are while the slice is there.
        unsafe { bytes(data, length) }
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle of our own that nobody has any more.
        unsafe { (self.store.api.pinnableslice_destroy)(self.slice.as_ptr()) }
    }
}

/// A position in the order of keys.
struct Cursor<'a> {
    api: &'static Api,
    iterator: NonNull<api::Iterator>,
    _store: &'a Store,
}

impl<'a> Cursor<'a> {
    fn new(store: &'a Store, from: &[u8]) -> Self {
        let api = store.api;
        let (db, reads) = (store.db.as_ptr(), store.reads.as_ptr());
        // SAFETY: handles of our own; the key is only read.
        let iterator = unsafe {
            let iterator = handle((api.create_iterator)(db, reads));
            (api.iter_seek)(iterator.as_ptr(), from.as_ptr().cast(), from.len());
            iterator
        };
        Self { api, iterator, _store: store }
    }

    /// The key at the position; `None` at the end or after an error.
    fn key(&self) -> Option<Vec<u8>> {
        let at = self.iterator.as_ptr();
        // SAFETY: a handle of our own; a key is asked for where there is one, and copied before
        // the iterator moves.
        unsafe {
            if (self.api.iter_valid)(at) == 0 {
                return None;
            }
            let mut length = 0;
            let key = (self.api.iter_key)(at, &raw mut length);
            Some(bytes(key, length).to_vec())
        }
    }

    fn next(&self) {
        // SAFETY: a handle of our own that stands at a key.
        unsafe { (self.api.iter_next)(self.iterator.as_ptr()) }
    }

    // Checks that the cursor stopped at the end, and not at an error.
    fn end(&self) -> Result<(), StoreError> {
        let at = self.iterator.as_ptr();
        // SAFETY: a handle of our own.
        checked(self.api, |error| unsafe { (self.api.iter_get_error)(at, error) })
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle of our own that nobody has any more.
        unsafe { (self.api.iter_destroy)(self.iterator.as_ptr()) }
    }
}

/// RocksDB's options for `settings`.
fn options(api: &Api, settings: &Settings) -> NonNull<api::Options> {
    let Settings { block_cache_bytes, write_buffer_bytes, direct, .. } = *settings;
    let direct = c_uchar::from(direct);
    // SAFETY: every handle is our own until it is given to another: the operator belongs to the
    // options. Options copy what a table's options and a cache refer to.
    unsafe {
        let options = handle((api.options_create)());
        let at = options.as_ptr();
        (api.options_set_create_if_missing)(at, 1);
        (api.options_set_compression)(at, NO_COMPRESSION);
        (api.options_set_use_direct_reads)(at, direct);
        (api.options_set_use_direct_io_for_flush_and_compaction)(at, direct);
        if let Some(bytes) = write_buffer_bytes {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            (api.options_set_write_buffer_size)(at, bytes);
        }
        (api.options_set_merge_operator)(at, append::operator(api));
        (api.options_enable_statistics)(at);
        let table = handle((api.block_based_options_create)()).as_ptr();
        if block_cache_bytes == 0 {
            (api.block_based_options_set_no_block_cache)(table, 1);
        } else {
            let bytes = usize::try_from(block_cache_bytes).unwrap_or(usize::MAX);
            let cache = handle((api.cache_create_lru)(bytes)).as_ptr();
            (api.block_based_options_set_block_cache)(table, cache);
            (api.cache_destroy)(cache);
        }
        (api.options_set_block_based_table_factory)(at, table);
        (api.block_based_options_destroy)(table);
        options
    }
}

/// A handle that RocksDB has made; for lack of memory it ends the process instead.
fn handle<T>(pointer: *mut T) -> NonNull<T> {
    NonNull::new(pointer).expect("RocksDB makes a handle or ends the process")
}

/// Calls a function that may set an error text, and turns that into an error.
fn checked<T>(api: &Api, call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, StoreError> {
    let mut error = ptr::null_mut();
    let answer = call(&raw mut error);
    match taken(api, error) {
        None => Ok(answer),
        Some(text) => Err(StoreError::Rocks(text)),
    }
}

/// Copies a text that RocksDB has allocated, and frees it; `None` if it is null.
fn taken(api: &Api, text: *mut c_char) -> Option<String> {
    let text = NonNull::new(text)?;
    // SAFETY: it ends in NUL, is ours, and is given back once after it was copied.
    unsafe {
        let copy = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
        (api.free)(text.as_ptr().cast());
        Some(copy)
    }
}

/// The `length` bytes at `data`.
///
/// # Safety
/// `data` is null or has `length` bytes that do not change for `'a`.
unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

// Turns the error of a locked store into [`StoreError::Held`]. RocksDB has no code for it: the text
// names the file.
fn held(error: StoreError, directory: &Path) -> StoreError {
    let lock = directory.join("LOCK");
    match &error {
        StoreError::Rocks(text)
            if text.contains("lock") && text.contains(&*lock.to_string_lossy()) =>
        {
            // A directory without write permission fails at the same file.
            if text.contains("Permission denied") || text.contains("Read-only") {
                return error;
            }
            StoreError::Held
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests;
