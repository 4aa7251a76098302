//! The functions of RocksDB's C interface (`rocksdb/c.h`) that are used, looked up by name.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::sync::OnceLock;

use crate::library::{Library, LoaderError};

/// Names of the library: Debian 12 and 13, Ubuntu 24.04, and one built by the user.
const NAMES: [&CStr; 4] =
    [c"librocksdb.so.7.8", c"librocksdb.so.9.10", c"librocksdb.so.8.9", c"librocksdb.so"];

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])* #[repr(C)] pub(super) struct $name { _private: [u8; 0] })*
    };
}

opaque! {
    /// `rocksdb_t`
    Db
    /// `rocksdb_options_t`
    Options
    /// `rocksdb_block_based_table_options_t`
    TableOptions
    /// `rocksdb_cache_t`
    Cache
    /// `rocksdb_readoptions_t`
    ReadOptions
    /// `rocksdb_writeoptions_t`
    WriteOptions
    /// `rocksdb_pinnableslice_t`
    Slice
    /// `rocksdb_iterator_t`
    Iterator
    /// `rocksdb_mergeoperator_t`
    MergeOperator
}

/// `full_merge` of `rocksdb_mergeoperator_create`.
pub(super) type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

/// `partial_merge` of `rocksdb_mergeoperator_create`.
pub(super) type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

macro_rules! api {
    ($($name:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// Functions of the library, without the `rocksdb_` of their names.
        pub(super) struct Api {
            /// The name under which the library was found.
            pub(super) library: &'static str,
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Api {
            /// Looks all functions up.
            #[expect(unsafe_code, reason = "gives addresses their types")]
            fn find(library: &Library) -> Result<Self, LoaderError> {
                $(let $name = library.symbol(concat!("rocksdb_", stringify!($name)))?;)*
                Ok(Self {
                    library: library.name().to_str().unwrap_or("librocksdb"),
                    $($name: {
                        type Function = unsafe extern "C" fn($($argument),*) $(-> $answer)?;
                        // SAFETY: the symbol is a function, which c.h declares with this type in
                        // all versions of NAMES; the library is never unloaded.
                        unsafe { std::mem::transmute::<*mut c_void, Function>($name.as_ptr()) }
                    },)*
                })
            }
        }
    };
}

api! {
    open: fn(*const Options, *const c_char, *mut *mut c_char) -> *mut Db;
    close: fn(*mut Db);
    put: fn(*mut Db, *const WriteOptions, *const c_char, usize, *const c_char, usize,
        *mut *mut c_char);
    merge: fn(*mut Db, *const WriteOptions, *const c_char, usize, *const c_char, usize,
        *mut *mut c_char);
    delete: fn(*mut Db, *const WriteOptions, *const c_char, usize, *mut *mut c_char);
    get_pinned: fn(*mut Db, *const ReadOptions, *const c_char, usize, *mut *mut c_char)
        -> *mut Slice;
    pinnableslice_value: fn(*const Slice, *mut usize) -> *const c_char;
    pinnableslice_destroy: fn(*mut Slice);
    create_iterator: fn(*mut Db, *const ReadOptions) -> *mut Iterator;
    iter_destroy: fn(*mut Iterator);
    iter_seek: fn(*mut Iterator, *const c_char, usize);
    iter_valid: fn(*const Iterator) -> c_uchar;
    iter_next: fn(*mut Iterator);
    iter_key: fn(*const Iterator, *mut usize) -> *const c_char;
    iter_get_error: fn(*const Iterator, *mut *mut c_char);
    property_int: fn(*mut Db, *const c_char, *mut u64) -> c_int;
    free: fn(*mut c_void);
    options_create: fn() -> *mut Options;
    options_destroy: fn(*mut Options);
    options_set_create_if_missing: fn(*mut Options, c_uchar);
    options_set_compression: fn(*mut Options, c_int);
    options_set_use_direct_reads: fn(*mut Options, c_uchar);
    options_set_use_direct_io_for_flush_and_compaction: fn(*mut Options, c_uchar);
    options_set_write_buffer_size: fn(*mut Options, usize);
    options_set_merge_operator: fn(*mut Options, *mut MergeOperator);
    options_set_block_based_table_factory: fn(*mut Options, *mut TableOptions);
    options_enable_statistics: fn(*mut Options);
    options_statistics_get_string: fn(*mut Options) -> *mut c_char;
    block_based_options_create: fn() -> *mut TableOptions;
    block_based_options_destroy: fn(*mut TableOptions);
    block_based_options_set_block_cache: fn(*mut TableOptions, *mut Cache);
    block_based_options_set_no_block_cache: fn(*mut TableOptions, c_uchar);
    cache_create_lru: fn(usize) -> *mut Cache;
    cache_destroy: fn(*mut Cache);
    readoptions_create: fn() -> *mut ReadOptions;
    readoptions_destroy: fn(*mut ReadOptions);
    writeoptions_create: fn() -> *mut WriteOptions;
    writeoptions_destroy: fn(*mut WriteOptions);
    writeoptions_set_sync: fn(*mut WriteOptions, c_uchar);
    mergeoperator_create: fn(*mut c_void, unsafe extern "C" fn(*mut c_void), FullMerge,
        PartialMerge, unsafe extern "C" fn(*mut c_void, *const c_char, usize),
        unsafe extern "C" fn(*mut c_void) -> *const c_char) -> *mut MergeOperator;
}

impl Api {
    /// The functions of the library, which is looked for once in a process.
    pub(super) fn get() -> Result<&'static Self, LoaderError> {
        static FOUND: OnceLock<Result<Api, LoaderError>> = OnceLock::new();
        let found = FOUND.get_or_init(|| Library::open(&NAMES).and_then(|it| Self::find(&it)));
        found.as_ref().map_err(Clone::clone)
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("librocksdb")
    }
}
