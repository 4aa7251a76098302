//! Places parts of a program's memory in a named tier of far memory; `include/afar.h` in Rust.
//!
//! ```text
//! afar run --local 25% --rtt 2us --tier name=slow,rtt=20us,local=10% -- ./program
//! ```
//!
//! ```
//! let archive = vec![0.0_f64; 1 << 16];
//! // False without afar, and then the program runs as before.
//! let _placed = afar_place::place(&archive, "slow");
//! ```

/// Longest name of a tier, in bytes: it travels in one register.
pub const TIER_BYTES_MAX: usize = 8;

// "afar" in hexadecimal: no prctl(2) of the kernel has this number.
const PRCTL: libc::c_int = 0x6166_6172;
const PLACE: libc::c_ulong = 3;

/// Puts the pages that hold `memory` into the tier named `tier`. Pages are whole: what else lies
/// on the first and the last one goes along.
///
/// False when the program does not run under afar, there is no such tier, or the memory is none
/// that afar manages (what the allocator and anonymous mappings give; not the stack, static data
/// or files). Nothing has changed then.
#[must_use = "false when nothing was placed; safe to ignore"]
#[expect(unsafe_code, reason = "a system call")]
pub fn place<T>(memory: &[T], tier: &str) -> bool {
    let Some(name) = pack(tier) else {
        return false;
    };
    let bytes = size_of_val(memory) as libc::c_ulong;
    // SAFETY: the kernel knows no such operation, and afar reads only the numbers: neither
    // touches the memory itself.
    unsafe { libc::prctl(PRCTL, PLACE, memory.as_ptr(), bytes, name) == 0 }
}

/// The name's bytes, first byte lowest; `None` if there are too many.
fn pack(tier: &str) -> Option<libc::c_ulong> {
    if tier.len() > TIER_BYTES_MAX {
        return None;
    }
    let bytes = tier.bytes().rev();
    Some(bytes.fold(0, |packed, byte| packed << 8 | libc::c_ulong::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack_is_little_endian() {
        assert_eq!(pack("slow"), Some(0x776f_6c73));
        assert_eq!(pack(""), Some(0));
        assert_eq!(pack("12345678"), Some(u64::from_le_bytes(*b"12345678")));
        assert_eq!(pack("123456789"), None);
    }

    #[test]
    fn place_without_afar_does_nothing() {
        let memory = vec![7_u8; 8192];
        assert!(!place(&memory, "slow"));
        assert!(!place(&memory, "a name that is too long"));
        assert!(!place::<u64>(&[], "slow"));
        assert!(memory.iter().all(|&byte| byte == 7));
    }
}
