//! Random bytes for secrets.

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills `bytes` from the kernel's generator (getrandom(2)), after waiting for its seed if need be.
///
/// # Panics
/// When the kernel has no generator, which those with io_uring all have.
pub fn fill(bytes: &mut [u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        match getrandom(&mut *rest, GetRandomFlags::empty()) {
            Ok(count) => rest = &mut rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("getrandom: {error}"),
        }
    }
}

/// A random number that cannot be guessed.
#[must_use]
pub fn number() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        let [mut one, mut other] = [[0; 32]; 2];
        fill(&mut one);
        fill(&mut other);
        assert_ne!(one, other);
        fill(&mut []);
    }
}
