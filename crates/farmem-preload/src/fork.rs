//! Forks inside this object, for threads that another tracer has.
//!
//! The supervisor cannot stop the child of such a thread at birth. So the fork is made here, where
//! the child asks for its memory before it returns to the program; until then it touches nothing
//! but registers. Its parent waits here until the memory that the child is to see is preserved.

use core::arch::naked_asm;

use crate::helper::{FORK_STACK, STACK_BYTES, VECTORS, join_forked};
use crate::protocol::{BORN, DETOUR, FORK_MADE, PRCTL, SETTLED};
use crate::system;

static ALL_SIGNALS: u64 = u64::MAX;

/// Target of the jump that replaces the program's instructions behind a call. `rax` is the number
/// of the call to be made, or the answer to a call of another thread that came along meanwhile; the
/// supervisor knows which, and returns where to go on: the negative of that for the latter.
///
/// # Safety
/// Only the jump that the supervisor writes may lead here.
#[unsafe(naked)]
#[cfg_attr(afar_shared_object, unsafe(no_mangle))]
pub unsafe extern "C" fn afar_fork() -> ! {
    naked_asm!(
        // Below what a function may use beyond its stack pointer.
        "lea rsp, [rsp - 128]",
        "push rbx; push rbp; push r12; push r13",
        "push rdi; push rsi; push rdx",
        "push r10; push r8; push r9; push rax",
        "mov rbx, rsp; sub rsp, 16",
        "mov esi, {detour}; call 9f",
        "mov r12, rax; mov r13, [rbx]",
        "neg rax; cmovns r12, rax; jns 4f",
        // rt_sigprocmask(SIG_BLOCK, all, before, 8)
        "xor edi, edi; lea rsi, [rip + {all}]; lea rdx, [rbx - 16]",
        "mov r10d, 8; mov eax, 14; syscall",
        // The program's call.
        "mov rax, [rbx]; mov r9, [rbx + 8]; mov r8, [rbx + 16]; mov r10, [rbx + 24]",
        "mov rdx, [rbx + 32]; mov rsi, [rbx + 40]; mov rdi, [rbx + 48]; syscall",
        // From here on no memory of the program is touched, its stack included, until the
        // supervisor answers.
        "lea rsp, [rip + {stack} + {stack_bytes}]; and rsp, -16",
        "mov r13, rax; test rax, rax; jz 2f",
        "mov rdx, rax; mov esi, {made}; mov eax, 157; mov edi, {prctl}; syscall",
        "cmp rax, -38; je 8f; jmp 3f",
        "2:",
        "mov esi, {born}; call 9f",
        "fxsave64 [rip + {vectors}]; call {join}; fxrstor64 [rip + {vectors}]",
        "mov esi, {settled}; call 9f",
        "3:",
        // rt_sigprocmask(SIG_SETMASK, before, 0, 8)
        "mov edi, 2; lea rsi, [rbx - 16]; xor edx, edx",
        "mov r10d, 8; mov eax, 14; syscall",
        "4:",
        // The child of a clone may have a stack of its own.
        "xor ecx, ecx; test r13, r13; jnz 5f",
        "cmp qword ptr [rbx], 56; jne 5f; mov rcx, [rbx + 40]",
        "5:",
        "mov rax, r13; mov r11, r12; lea rsp, [rbx + 8]",
        "pop r9; pop r8; pop r10",
        "pop rdx; pop rsi; pop rdi",
        "pop r13; pop r12; pop rbp; pop rbx",
        "lea rsp, [rsp + 128]; test rcx, rcx; cmovnz rsp, rcx; jmp r11",
        // Without a supervisor the process ends.
        "8:",
        "and rsp, -16; call {die}",
        // prctl(PRCTL, esi)
        "9:",
        "mov eax, 157; mov edi, {prctl}; syscall",
        "cmp rax, -38; je 8b; ret",
        detour = const DETOUR,
        made = const FORK_MADE,
        born = const BORN,
        settled = const SETTLED,
        prctl = const PRCTL,
        all = sym ALL_SIGNALS,
        vectors = sym VECTORS,
        stack = sym FORK_STACK,
        stack_bytes = const STACK_BYTES,
        join = sym join_forked,
        die = sym system::die,
    )
}
