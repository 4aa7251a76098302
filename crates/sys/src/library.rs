//! A shared library that is loaded when it is needed, and whose symbols are checked.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;

/// Why a library, or what should be in it, cannot be used: the loader's reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoaderError(String);

/// A library that has been loaded. It stays loaded: a library with threads of its own cannot be
/// taken from under them.
#[derive(Debug)]
pub(crate) struct Library {
    name: &'static CStr,
    handle: NonNull<c_void>,
}

impl Library {
    /// Loads the first of `names` that the loader finds (dlopen(3)).
    pub(crate) fn open(names: &[&'static CStr]) -> Result<Self, LoaderError> {
        let mut first = None;
        for name in names {
            match open(name) {
                Ok(handle) => return Ok(Self { name, handle }),
                Err(error) => {
                    let _the_best_name = first.get_or_insert(error);
                }
            }
        }
        Err(first.unwrap_or_else(|| LoaderError("no name to look for".to_owned())))
    }

    /// The name under which the loader found it.
    pub(crate) const fn name(&self) -> &'static CStr {
        self.name
    }

    /// The address of symbol `name`.
    #[expect(unsafe_code, reason = "asks the loader")]
    pub(crate) fn symbol(&self, name: &str) -> Result<NonNull<c_void>, LoaderError> {
        let text = CString::new(name).map_err(|error| LoaderError(error.to_string()))?;
        // SAFETY: the handle is that of a library that is never unloaded; the text ends in NUL.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), text.as_ptr()) };
        NonNull::new(address).ok_or_else(|| LoaderError(format!("it has no {name}")))
    }
}

/// Loads library `name`.
#[expect(unsafe_code, reason = "asks the loader")]
fn open(name: &CStr) -> Result<NonNull<c_void>, LoaderError> {
    // SAFETY: the text ends in NUL. Initializers of the library run, as they would if afar were
    // linked with it.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    NonNull::new(handle).ok_or_else(|| {
        // SAFETY: dlerror has no requirements; what it returns is this thread's until its next
        // call of the loader.
        let reason: *const c_char = unsafe { libc::dlerror() };
        let text = NonNull::new(reason.cast_mut()).map(|reason| {
            // SAFETY: it is not null, ends in NUL, and is copied before the loader is called again.
            unsafe { CStr::from_ptr(reason.as_ptr()) }.to_string_lossy().into_owned()
        });
        LoaderError(text.unwrap_or_else(|| "the loader gives no reason".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_takes_the_first_that_is_there() {
        let library = Library::open(&[c"libafar-no-such.so.1", c"libc.so.6"]).expect("glibc");
        assert!(library.symbol("getpid").is_ok());
        let error = library.symbol("afar_no_such").expect_err("it is not there");
        assert_eq!(error.to_string(), "it has no afar_no_such");
        assert!(library.symbol("a\0b").is_err());
    }

    #[test]
    fn open_tells_of_the_first_name() {
        let names = [c"libafar-no-such.so.1", c"libafar-no-such.so.2"];
        let error = Library::open(&names).expect_err("neither is there").to_string();
        assert!(error.starts_with("libafar-no-such.so.1: cannot open"), "{error}");
        assert!(Library::open(&[]).is_err());
    }
}
