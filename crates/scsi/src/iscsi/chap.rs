//! The Challenge-Handshake Authentication Protocol (RFC 7143 12.1.3, RFC 1994).

use std::fmt;

use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;
use sha3::Sha3_256;
use subtle::ConstantTimeEq as _;

/// Bytes of a challenge at most (12.1.3).
pub(crate) const CHALLENGE_BYTES_MAX: usize = 1024;
/// Bytes of the challenges that this end makes, at most.
pub(crate) const CHALLENGE_BYTES: usize = 32;

/// A shared secret, never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// A secret of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A user name and its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// CHAP_N.
    pub name: String,
    /// See [`Secret`].
    pub secret: Secret,
}

/// The credentials of both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chap {
    /// The initiator's credentials.
    pub initiator: Credentials,
    /// The target's credentials, for mutual authentication.
    pub target: Option<Credentials>,
}

/// A random challenge, fresh for every login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce {
    /// CHAP_I.
    pub id: u8,
    /// CHAP_C; as many bytes of it are sent as the algorithm's digest has, since some peers have
    /// room for no more.
    pub challenge: [u8; CHALLENGE_BYTES],
}

impl Nonce {
    /// The part of the challenge for an algorithm.
    pub(crate) fn challenge_for(&self, algorithm: Algorithm) -> &[u8] {
        let bytes = match algorithm {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 | Algorithm::Sha3_256 => CHALLENGE_BYTES,
        };
        &self.challenge[..bytes]
    }
}

/// Digest algorithms, with their numbers in CHAP_A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// MD5, which every end supports.
    Md5 = 5,
    /// SHA1.
    Sha1 = 6,
    /// SHA-256.
    Sha256 = 7,
    /// SHA3-256.
    Sha3_256 = 8,
}

impl Algorithm {
    /// All algorithms, the strongest first, as an initiator offers them.
    pub const ALL: [Self; 4] = [Self::Sha3_256, Self::Sha256, Self::Sha1, Self::Md5];

    /// The first supported algorithm of a list; `None` if none is.
    pub(crate) fn choose(list: &str) -> Option<Self> {
        list.split(',').find_map(|one| {
            let number = super::text::number(one)?;
            Self::ALL.into_iter().find(|algorithm| *algorithm as u64 == number)
        })
    }

    /// The response to a challenge (RFC 1994 4.1).
    #[must_use]
    pub fn response(self, id: u8, secret: &Secret, challenge: &[u8]) -> Vec<u8> {
        let parts = [&[id], &secret.0[..], challenge].concat();
        match self {
            Self::Md5 => Md5::digest(parts).to_vec(),
            Self::Sha1 => Sha1::digest(parts).to_vec(),
            Self::Sha256 => Sha256::digest(parts).to_vec(),
            Self::Sha3_256 => Sha3_256::digest(parts).to_vec(),
        }
    }

    /// Whether a name and response match the credentials, compared in constant time.
    pub(crate) fn proves(
        self,
        id: u8,
        credentials: &Credentials,
        challenge: &[u8],
        [name, answer]: [&[u8]; 2],
    ) -> bool {
        let expected = self.response(id, &credentials.secret, challenge);
        let is_right = expected.ct_eq(answer) & credentials.name.as_bytes().ct_eq(name);
        is_right.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        super::super::text::binary(&format!("0x{text}"), 64).expect("hexadecimal digits")
    }

    // Digests of 01h, "secret", and the bytes 0 to 15, by another implementation.
    #[test]
    fn responses_are_those_of_their_algorithms() {
        let challenge: Vec<u8> = (0..16).collect();
        let response =
            |algorithm: Algorithm| algorithm.response(1, &Secret::new(*b"secret"), &challenge);
        assert_eq!(response(Algorithm::Md5), hex("740e86463bda3a4d7017d6e0fba0699d"));
        assert_eq!(response(Algorithm::Sha1), hex("3890198f5112376188a9742805758384545583a6"));
        assert_eq!(
            response(Algorithm::Sha256),
            hex("28b96c916cf784528bbfaa6ad7e012cab293437604aae8d66a3295b319132cef")
        );
        assert_eq!(
            response(Algorithm::Sha3_256),
            hex("bdceca071be509f41acf88309bb6d12e51526c23a2d18f22c2bb8ed199c36fd8")
        );
    }

    #[test]
    fn the_first_that_there_is_is_taken() {
        assert_eq!(Algorithm::choose("9,7,5"), Some(Algorithm::Sha256));
        assert_eq!(Algorithm::choose("5"), Some(Algorithm::Md5));
        assert_eq!((Algorithm::choose("4,x,"), Algorithm::choose("")), (None, None));
    }

    #[test]
    fn only_the_right_answer_to_the_right_name_proves() {
        let credentials = Credentials { name: "me".to_owned(), secret: Secret::new(*b"12") };
        let answer = Algorithm::Sha256.response(3, &credentials.secret, b"c");
        let proves = |id, name: &[u8], answer: &[u8]| {
            Algorithm::Sha256.proves(id, &credentials, b"c", [name, answer])
        };
        assert!(proves(3, b"me", &answer));
        assert!(!proves(4, b"me", &answer) && !proves(3, b"he", &answer));
        assert!(!proves(3, b"me", &answer[1..]) && !proves(3, b"me", &[]));
        assert_eq!(format!("{credentials:?}"), "Credentials { name: \"me\", secret: Secret }");
    }
}
