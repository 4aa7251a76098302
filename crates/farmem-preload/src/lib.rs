//! The part of afar that runs inside the program.
//!
//! ```text
//! enter       -> helper thread -> greet the supervisor -> userfaultfd -> return to the program
//! helper      -> receive a command -> mmap / munmap / madvise -> reply        (for ever)
//! forked child, before its first instruction -> the same, with a map of its own -> breakpoint
//! fork of a thread that is traced -> made here -> its child the same -> return to the program
//! ```
//!
//! Rules, because this code shares a process with a program that knows nothing of it:
//! - No libc, no thread-local storage, no allocation, no panics: system calls and the stack only.
//! - It never touches the program's memory, and keeps no descriptor in the program's table: the
//!   helper has a table of its own.
//! - The helper blocks every signal, so none of the program's is delivered to it.
//! - It is not believed: the supervisor knows threads by the kernel's numbers, never by what a
//!   message says.
//! - The helper has no right that the program does not have at that moment (`rights`).
//! - When the supervisor dies, the program is killed: it would not find its memory manager any
//!   more.
#![no_std]
#![allow(unsafe_code, reason = "system calls made by hand")]

mod enter;
mod fork;
mod helper;
pub mod protocol;
mod rights;
mod system;

pub use enter::afar_enter;
pub use fork::afar_fork;
pub use helper::fork_entry;

#[cfg(afar_shared_object)]
mod shared_object {
    #[panic_handler]
    fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
        crate::system::die()
    }

    /// The compiler calls this to clear large values.
    ///
    /// # Safety
    /// As in C.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(start: *mut u8, value: i32, bytes: usize) -> *mut u8 {
        // SAFETY: the caller says that the range is writable.
        unsafe {
            core::arch::asm!(
                "rep stosb",
                inout("rdi") start => _,
                inout("rcx") bytes => _,
                in("al") value.to_ne_bytes()[0],
                options(nostack, preserves_flags),
            );
        }
        start
    }
}
