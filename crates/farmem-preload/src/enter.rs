//! The entry: a thread of the program that the supervisor has diverted comes here.
//!
//! The supervisor has written a few instructions over the program's, behind the system call that it
//! holds. They save the registers of that call, map memory for this object, have the supervisor
//! fill it, and jump to [`afar_enter`]. Once the helper runs, the thread makes its call again as if
//! for the first time; by then the program's own instructions are restored.

use core::arch::naked_asm;

use crate::helper::{self, FORK_STACK, STACK_BYTES, VECTORS};
use crate::protocol::DATA_AT;

/// Where a diverted thread arrives. `rdx` is the start of this object, `ecx` the number of the call
/// to make and `r11` the address of its instruction; on the stack lie six argument registers, above
/// the 128 bytes that a function may use beyond its stack pointer.
///
/// # Safety
/// Only the instructions that the supervisor writes may jump here.
#[unsafe(naked)]
#[cfg_attr(afar_shared_object, unsafe(no_mangle))]
pub unsafe extern "C" fn afar_enter() -> ! {
    naked_asm!(
        // The distance to the other entry follows.
        "jmp 2f",
        ".long {fork} - .",
        "2:",
        "push r11",
        "push rcx",
        "push rbx",
        // mprotect(data, bytes, PROT_READ | PROT_WRITE): all of it was mapped as code is.
        "mov edi, dword ptr [rdx + {data}]",
        "add rdi, rdx",
        "mov esi, dword ptr [rdx + {data} + 4]",
        "mov edx, 3",
        "mov eax, 10",
        "syscall",
        // A system call preserves these, and the compiler may use them below.
        "fxsave64 [rip + {vectors}]",
        "mov rbx, rsp",
        "lea rsp, [rip + {stack} + {stack_bytes}]",
        "and rsp, -16",
        "call {join}",
        "mov rsp, rbx",
        "fxrstor64 [rip + {vectors}]",
        "pop rbx",
        "pop rcx",
        "pop r11",
        "pop r9",
        "pop r8",
        "pop r10",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "lea rsp, [rsp + 128]",
        "mov eax, ecx",
        "jmp r11",
        data = const DATA_AT,
        vectors = sym VECTORS,
        stack = sym FORK_STACK,
        stack_bytes = const STACK_BYTES,
        join = sym helper::join_executed,
        fork = sym crate::fork::afar_fork,
    )
}
