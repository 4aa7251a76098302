//! The part of afar that runs inside the program.
//!
//! ```text
//! constructor -> greet the supervisor -> userfaultfd -> helper thread -> return to the program
//! helper      -> receive a command -> mmap / munmap / madvise -> reply        (for ever)
//! forked child, before its first instruction -> the same, with a map of its own -> breakpoint
//! ```
//!
//! Rules, because this code shares a process with a program that knows nothing of it:
//! - No libc, no thread-local storage, no allocation, no panics: system calls and the stack only.
//! - It never touches the program's memory, and keeps no descriptor in the program's table.
//! - Without a supervisor it does nothing at all.
//! - When the supervisor dies, the program is killed: it would not find its memory manager any
//!   more.
#![no_std]
#![allow(unsafe_code, reason = "system calls made by hand")]

mod helper;
pub mod protocol;
mod system;

pub use helper::{fork_entry, start};

#[cfg(afar_shared_object)]
mod shared_object {
    #[panic_handler]
    fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
        crate::system::exit_group(125)
    }

    extern "C" fn constructor() {
        crate::start();
    }

    // SAFETY: the loader calls each entry of this section once, before the program's own code.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static CONSTRUCTOR: extern "C" fn() = constructor;
}
