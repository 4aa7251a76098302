//! The merge operator that appends: a value is the old value followed by every operand.
//!
//! RocksDB calls it while it reads, flushes and compacts, from threads of its own.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use super::api::{Api, MergeOperator};

/// Stored in the files of a store: opening one without an operator of this name fails.
const NAME: &std::ffi::CStr = c"afar.append";

/// A new operator, for options, which take ownership of it.
#[expect(unsafe_code, reason = "calls RocksDB")]
pub(super) fn operator(api: &Api) -> *mut MergeOperator {
    let state = std::ptr::null_mut();
    // SAFETY: the functions below have the types that c.h asks for, and use no state.
    unsafe { (api.mergeoperator_create)(state, destroy, full_merge, partial_merge, delete, name) }
}

/// The operator has no state to free.
#[expect(unsafe_code, reason = "called by RocksDB")]
unsafe extern "C" fn destroy(_state: *mut c_void) {}

/// The name of the operator.
#[expect(unsafe_code, reason = "called by RocksDB")]
unsafe extern "C" fn name(_state: *mut c_void) -> *const c_char {
    NAME.as_ptr()
}

/// Frees a value that `joined` has allocated.
#[expect(unsafe_code, reason = "called by RocksDB")]
unsafe extern "C" fn delete(_state: *mut c_void, value: *const c_char, _length: usize) {
    // SAFETY: RocksDB gives back what `joined` has allocated, once.
    unsafe { libc::free(value.cast_mut().cast()) }
}

/// Appends the operands to the existing value.
#[expect(unsafe_code, reason = "called by RocksDB")]
unsafe extern "C" fn full_merge(
    _state: *mut c_void,
    _key: *const c_char,
    _key_length: usize,
    existing: *const c_char,
    existing_length: usize,
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_length: *mut usize,
) -> *mut c_char {
    // SAFETY: RocksDB hands over readable values and `count` operands, and places for the answers.
    unsafe {
        joined((existing, existing_length), (operands, lengths, count), (success, new_length))
    }
}

/// Joins several operands into one.
#[expect(unsafe_code, reason = "called by RocksDB")]
unsafe extern "C" fn partial_merge(
    _state: *mut c_void,
    _key: *const c_char,
    _key_length: usize,
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    new_length: *mut usize,
) -> *mut c_char {
    let nothing = (std::ptr::null(), 0);
    // SAFETY: as above; several operands become one, and there is no value.
    unsafe { joined(nothing, (operands, lengths, count), (success, new_length)) }
}

/// All bytes one after another, in memory of the C library; null, and `success` 0, if there is
/// none.
///
/// # Safety
/// `first` is null or has so many readable bytes, `operands` and `lengths` have `count` entries of
/// the same kind, and `answers` can be written to.
#[expect(unsafe_code, reason = "reads and writes what RocksDB points to")]
unsafe fn joined(
    first: (*const c_char, usize),
    (operands, lengths, count): (*const *const c_char, *const usize, c_int),
    answers: (*mut c_uchar, *mut usize),
) -> *mut c_char {
    let count = usize::try_from(count).unwrap_or(0);
    let part = |index: usize| {
        // SAFETY: the caller says that there are `count` of both.
        unsafe { (*operands.add(index), *lengths.add(index)) }
    };
    let parts = || std::iter::once(first).chain((0..count).map(part));
    let total = parts().try_fold(0_usize, |sum, (_, length)| sum.checked_add(length));
    // SAFETY: malloc has no requirements; a size of 0 may give null, so there is always a byte.
    let memory = total.map(|total| unsafe { libc::malloc(total.max(1)) }.cast::<c_char>());
    let memory = memory.unwrap_or(std::ptr::null_mut());
    let mut at = 0;
    for (from, length) in parts().filter(|(_, length)| !memory.is_null() && *length > 0) {
        // SAFETY: the caller says that `from` has `length` bytes; those before it and it are at
        // most the `total` that was allocated just now.
        unsafe { std::ptr::copy_nonoverlapping(from, memory.add(at), length) };
        at += length;
    }
    // SAFETY: the caller says that both can be written to.
    unsafe {
        *answers.0 = c_uchar::from(!memory.is_null());
        *answers.1 = at;
    }
    memory
}
