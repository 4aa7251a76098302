//! A target's end of the authentication of an initiator (RFC 7143 12.1).
//!
//! ```text
//! AuthMethod ─► CHAP_A ─► (CHAP_I, CHAP_C) ─► CHAP_N, CHAP_R ─► proved
//! ```

use super::admission::{Admission, LoginStatus};
use super::chap::{Algorithm, CHALLENGE_BYTES_MAX, Chap, Nonce};
use super::text;

/// The state of an authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Proof {
    /// No key has come.
    #[default]
    None,
    /// CHAP was chosen, but no algorithm.
    Method,
    /// The challenge was sent.
    Challenged(Algorithm),
    /// The response was right.
    Given,
}

const KEYS: [&str; 6] = ["AuthMethod", "CHAP_A", "CHAP_I", "CHAP_C", "CHAP_N", "CHAP_R"];
const FAILED: LoginStatus = LoginStatus::AuthenticationFailure;

impl Proof {
    /// Whether a key belongs to authentication.
    pub(crate) fn is_about(key: &str) -> bool {
        KEYS.contains(&key)
    }

    /// Whether the initiator is authenticated.
    pub(crate) fn is_given(self) -> bool {
        self == Self::Given
    }

    /// Takes the authentication keys among `pairs`, and appends the answers.
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
            // No authentication is needed, so its keys are an error.
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

// Appends the response to the initiator's challenge, for mutual authentication (12.1.3).
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
    // A reflected challenge would make this end answer its own (9.2.1), as would a common secret.
    if challenge == nonce.challenge_for(algorithm) || own.secret == chap.initiator.secret {
        return Err(FAILED);
    }
    text::push(answer, "CHAP_N", &own.name);
    let response = algorithm.response(id, &own.secret, &challenge);
    text::push(answer, "CHAP_R", &text::write_hex(&response));
    Ok(())
}
