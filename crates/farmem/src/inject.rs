//! Entering an image: the object with the helper is mapped at its first call for memory.
//!
//! ```text
//! first call held  -> instructions behind it saved, ours written there -> call answered
//! ours             -> map room -> INJECTED held: object written -> enter it -> helper greets
//! first call again -> instructions behind it put back -> acted on as any other
//! ```
//!
//! DESIGN NOTES
//!
//! * Before its first call for memory an image has nothing that could be managed. So that is early
//!   enough, whatever the program is: dynamic, static, of another user, in another root or
//!   namespace, with an empty environment, or under a debugger. Nothing is asked of a loader, the
//!   file system or the environment, and ptrace is left to those who debug.
//! * The thread is alone in its process and waits in the kernel each time that its instructions
//!   are changed. The program's bytes come from the process itself, so what a debugger has put
//!   among them stays.
//! * A supervisor that dies meanwhile puts nothing back, and its filter then answers ENOSYS. So our
//!   instructions end the process at that answer: it would go round them for ever.
//! * Registers are those of the call when it is made again: a system call changes none but its
//!   answer and two that are lost anyway.

mod steps;

use sys::remote::Remote;

use super::images::Reason;
use super::loader::Loader;
use super::protocol::{self, COOKIE};

const EPERM: i64 = 1;
const ENOMEM: i64 = 12;
const EFAULT: i64 = 14;
/// Addresses to try for the object: between what a program places and what the kernel does.
const PLACES: std::ops::Range<u64> = 0x7e80_0000_0000..0x7ec0_0000_0000;
pub(crate) const PLACE_STEP: u64 = 1 << 30;
pub(crate) const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// The code that an image is made to run, in machine code; `way_in` fills in the variable parts.
#[rustfmt::skip]
const WAY_IN: [u8; 150] = [
    0x48, 0x8d, 0x64, 0x24, 0x80,                   // lea rsp, [rsp - 128]
    0x57, 0x56, 0x52,                               // push rdi, rsi, rdx
    0x41, 0x52, 0x41, 0x50, 0x41, 0x51,             // push r10, r8, r9
    0xb8, 9, 0, 0, 0,                               // mov eax, mmap
    0x48, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0,             // mov rdi, where
    0xbe, 0, 0, 0, 0,                               // mov esi, bytes
    0xba, 5, 0, 0, 0,                               // mov edx, PROT_READ | PROT_EXEC
    0x41, 0xba, 0x22, 0x00, 0x10, 0x00,             // mov r10d, PRIVATE | ANONYMOUS | NOREPLACE
    0x49, 0xb8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, // mov r8, COOKIE | no descriptor
    0x45, 0x31, 0xc9,                               // xor r9d, r9d
    0x0f, 0x05,                                     // syscall
    0x48, 0x89, 0xc2,                               // mov rdx, rax
    0xb8, 0x9d, 0, 0, 0,                            // mov eax, prctl
    0xbf, 0, 0, 0, 0,                               // mov edi, PRCTL
    0xbe, 0, 0, 0, 0,                               // mov esi, INJECTED
    0x0f, 0x05,                                     // syscall
    0x48, 0x83, 0xf8, 0xda,                         // cmp rax, -ENOSYS
    0x74, 0x29,                                     // je gone
    0x4c, 0x8d, 0x1d, 0xa1, 0xff, 0xff, 0xff,       // lea r11, [the program's syscall]
    0xb9, 0, 0, 0, 0,                               // mov ecx, number of the program's call
    0x48, 0x85, 0xc0,                               // test rax, rax
    0x78, 0x02,                                     // js back
    0xff, 0xe0,                                     // jmp rax
    0x41, 0x59, 0x41, 0x58, 0x41, 0x5a,             // back: pop r9, r8, r10
    0x5a, 0x5e, 0x5f,                               // pop rdx, rsi, rdi
    0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0,          // lea rsp, [rsp + 128]
    0x89, 0xc8,                                     // mov eax, ecx
    0x41, 0xff, 0xe3,                               // jmp r11
    0xb8, 39, 0, 0, 0,                              // gone: mov eax, getpid
    0x0f, 0x05,                                     // syscall
    0x89, 0xc7,                                     // mov edi, eax
    0xbe, 9, 0, 0, 0,                               // mov esi, SIGKILL
    0xb8, 62, 0, 0, 0,                              // mov eax, kill
    0x0f, 0x05,                                     // syscall
    0x0f, 0x0b,                                     // ud2
];

/// An image on its way to being managed.
pub(crate) struct Injection {
    remote: Remote,
    /// The program's own instructions, and the address where they belong (`behind`).
    replaced: [u8; WAY_IN.len()],
    behind: u64,
    base: u64,
    loader: Option<Loader>,
    failed: Option<Reason>,
}

impl Injection {
    /// The loader of the image, if a loader has made its first call.
    pub(crate) fn loader(&self) -> Option<Loader> {
        self.loader.clone()
    }

    /// The memory of the image.
    pub(crate) const fn memory(&self) -> &Remote {
        &self.remote
    }

    /// Notes why the image cannot be managed.
    pub(crate) fn fail(&mut self, reason: Reason) {
        self.failed = Some(reason);
    }
}

// `WAY_IN` for an object of `bytes` at `base`, in place of the program's call `number`.
fn way_in(base: u64, bytes: u64, number: i32) -> [u8; WAY_IN.len()] {
    let mut code = WAY_IN;
    let half = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(0).to_le_bytes();
    code[21..29].copy_from_slice(&base.to_le_bytes());
    code[30..34].copy_from_slice(&half(bytes));
    code[51..55].copy_from_slice(&half(COOKIE >> 32));
    code[69..73].copy_from_slice(&half(protocol::PRCTL));
    code[74..78].copy_from_slice(&half(protocol::INJECTED));
    code[94..98].copy_from_slice(&number.to_le_bytes());
    code
}

// A free address range of `bytes` in process `tgid`; `None` if there is none.
fn free_place(tgid: u32, bytes: u64) -> Option<u64> {
    let taken = sys::maps::read(tgid, PLACES.start, PLACES.end);
    let free = |&at: &u64| !taken.iter().any(|m| m.start < at + bytes && m.end > at);
    PLACES.step_by(usize::try_from(PLACE_STEP).unwrap_or(usize::MAX)).find(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_in_has_its_numbers_where_the_instructions_want_them() {
        let code = way_in(0x1122_3344_5566_7788, 0x9_a000, 231);
        // As an assembler writes the same text.
        assert_eq!(code[19..29], [0x48, 0xbf, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(code[29..34], [0xbe, 0x00, 0xa0, 0x09, 0x00]);
        assert_eq!(code[45..55], [0x49, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xfa, 0x5a, 0, 0]);
        assert_eq!(code[68..78], [0xbf, 0x72, 0x61, 0x66, 0x61, 0xbe, 4, 0, 0, 0]);
        assert_eq!(code[93..98], [0xb9, 231, 0, 0, 0]);
        // The program's own call is two bytes before ours.
        let distance = i32::from_le_bytes([code[89], code[90], code[91], code[92]]);
        assert_eq!(93 + distance, -2);
        // Without a supervisor it goes where the process ends.
        assert_eq!(code[84..86], [0x74, 0x29]);
        assert_eq!(code[86 + 0x29..][..5], [0xb8, 39, 0, 0, 0]);
    }
}
