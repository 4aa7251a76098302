//! Who an initiator is, as it proves to a target (RFC 7143 12.1).
//!
//! ```text
//! AuthMethod ─► CHAP_A ─► (CHAP_I, CHAP_C) ─► CHAP_N, CHAP_R ─► proved
//! ```

use super::admission::{Admission, LoginStatus};
use super::chap::{Algorithm, CHALLENGE_BYTES_MAX, Chap, Nonce};
use super::text;

/// How far the proof is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Proof {
    /// Nothing has been said.
    #[default]
    None,
    /// CHAP, but not how.
    Method,
    /// The challenge has been sent.
    Challenged(Algorithm),
    /// It was right.
    Given,
}

const KEYS: [&str; 6] = ["AuthMethod", "CHAP_A", "CHAP_I", "CHAP_C", "CHAP_N", "CHAP_R"];
const FAILED: LoginStatus = LoginStatus::AuthenticationFailure;

impl Proof {
    /// Whether a key is about this.
    pub(crate) fn is_about(key: &str) -> bool {
        KEYS.contains(&key)
    }

    pub(crate) fn is_given(self) -> bool {
        self == Self::Given
    }

    /// Goes on with what an initiator says, if that is about this.
    pub(crate) fn take(
        &mut self,
        pairs: &[(&str, &str)],
        admission: &Admission,
        nonce: &Nonce,
        answer: &mut Vec<u8>,
    ) -> Result<(), LoginStatus> {
        let value = |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
        if let Some(methods) = value("AuthMethod") {
            let mut methods = methods.split(',');
            let method = if admission.chap.is_some() { "CHAP" } else { "None" };
            if *self != Self::None || !methods.any(|one| one == method) {
                return Err(FAILED);
            }
            text::push(answer, "AuthMethod", method);
            if admission.chap.is_some() {
                *self = Self::Method;
            }
        }
        let Some(chap) = &admission.chap else {
            // Nobody has asked for a proof.
            let has_any = KEYS[1..].iter().any(|key| value(key).is_some());
            return if has_any { Err(LoginStatus::InitiatorError) } else { Ok(()) };
        };
        if let Some(list) = value("CHAP_A") {
            let algorithm = Algorithm::choose(list).filter(|_| *self == Self::Method);
            let algorithm = algorithm.ok_or(FAILED)?;
            text::push(answer, "CHAP_A", &(algorithm as u8).to_string());
            text::push(answer, "CHAP_I", &nonce.id.to_string());
            text::push(answer, "CHAP_C", &text::write_hex(nonce.challenge_for(algorithm)));
            *self = Self::Challenged(algorithm);
            return if value("CHAP_R").is_some() { Err(FAILED) } else { Ok(()) };
        }
        let keys = ["CHAP_N", "CHAP_R", "CHAP_I", "CHAP_C"].map(value);
        if keys.iter().all(Option::is_none) {
            return Ok(());
        }
        let (Self::Challenged(algorithm), [Some(name), Some(response), id, challenge]) =
            (*self, keys)
        else {
            return Err(FAILED);
        };
        let response = text::binary(response, CHALLENGE_BYTES_MAX).ok_or(FAILED)?;
        let said = [name.as_bytes(), &response];
        let own = nonce.challenge_for(algorithm);
        if !algorithm.proves(nonce.id, &chap.initiator, own, said) {
            return Err(FAILED);
        }
        match (id, challenge) {
            (None, None) => {}
            (Some(id), Some(challenge)) => {
                prove(chap, algorithm, [id, challenge], nonce, answer)?;
            }
            _ => return Err(FAILED),
        }
        *self = Self::Given;
        Ok(())
    }
}

// What this end proves in turn (12.1.3).
fn prove(
    chap: &Chap,
    algorithm: Algorithm,
    [id, challenge]: [&str; 2],
    nonce: &Nonce,
    answer: &mut Vec<u8>,
) -> Result<(), LoginStatus> {
    let own = chap.target.as_ref().ok_or(FAILED)?;
    let id = text::number(id).and_then(|id| u8::try_from(id).ok()).ok_or(FAILED)?;
    let challenge = text::binary(challenge, CHALLENGE_BYTES_MAX).ok_or(FAILED)?;
    // Its own challenge sent back would have this end answer it (9.2.1), as would one secret for
    // both ends.
    if challenge == nonce.challenge_for(algorithm) || own.secret == chap.initiator.secret {
        return Err(FAILED);
    }
    text::push(answer, "CHAP_N", &own.name);
    let response = algorithm.response(id, &own.secret, &challenge);
    text::push(answer, "CHAP_R", &text::write_hex(&response));
    Ok(())
}
