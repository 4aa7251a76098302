//! A registry as text, to be read back after a restart.
//!
//! ```text
//! reservations 2
//! generation NUMBER
//! registrant WHO KEY
//! held KIND WHO|all
//! end
//! ```
//!
//! KEY has 16 hexadecimal digits; KIND is a number from 1 in the order of [`Kind::ALL`]; WHO is
//! one word of the protocol.

use std::fmt::Write as _;

use super::registry::{Held, Kind, REGISTRANTS_MAX, Registrant, Registry};

const FIRST: &str = "reservations 2";

/// An identity as one word: no blanks, not empty, and not `all`.
pub trait Identity: Sized {
    /// The word.
    fn write(&self) -> String;

    /// Parses the word; `None` if it is no identity.
    fn read(word: &str) -> Option<Self>;
}

/// An identity of 16 bytes: 32 hexadecimal digits.
impl Identity for [u8; 16] {
    fn write(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(*self))
    }

    fn read(word: &str) -> Option<Self> {
        let is_hex = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u128::from_str_radix(word, 16).ok()).flatten().map(u128::to_be_bytes)
    }
}

impl<I: Clone + Eq + Identity> Registry<I> {
    /// Writes the registry as text.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = format!("{FIRST}\ngeneration {}\n", self.generation);
        for one in &self.registrants {
            let _infallible = writeln!(text, "registrant {} {:016x}", one.who.write(), one.key);
        }
        if let Some(Held { kind, holder }) = &self.held {
            let holder = holder.as_ref().map_or_else(|| "all".to_owned(), I::write);
            let number = Kind::ALL.iter().position(|one| one == kind).map_or(0, |at| at + 1);
            let _infallible = writeln!(text, "held {number} {holder}");
        }
        text + "end\n"
    }

    /// Parses the text of [`Registry::write`]; `None` if it is malformed or truncated. The registry
    /// then persists through a power loss.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut read = Self { persists: true, ..Self::new(true) };
        let mut lines = text.lines();
        if lines.next()? != FIRST {
            return None;
        }
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["generation", number] => read.generation = number.parse().ok()?,
                ["registrant", who, key] if read.registrants.len() < REGISTRANTS_MAX => {
                    let (who, key) = (I::read(who)?, u64::from_str_radix(key, 16).ok()?);
                    if read.key_of(&who).is_some() {
                        return None;
                    }
                    read.registrants.push(Registrant { who, key });
                }
                ["held", kind, holder] => read.held = Some(read.read_held(kind, holder)?),
                ["end"] => return Some(read),
                _ => return None,
            }
        }
        None
    }

    // Parses a reservation; `None` if it does not fit the registrants.
    fn read_held(&self, kind: &str, holder: &str) -> Option<Held<I>> {
        let kind = *Kind::ALL.get(kind.parse::<usize>().ok()?.checked_sub(1)?)?;
        let holder = match holder {
            "all" => None,
            holder => Some(I::read(holder)?),
        };
        let fits = match &holder {
            None => kind.is_of_all() && !self.registrants.is_empty(),
            Some(holder) => !kind.is_of_all() && self.key_of(holder).is_some(),
        };
        fits.then_some(Held { kind, holder })
    }
}
