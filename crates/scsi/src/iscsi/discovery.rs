//! Text requests in full feature phase: SendTargets (RFC 7143 11.10, 11.11, Appendix C).

use super::decoder::Fatal;
use super::pdu::{Digests, Header, NO_TAG, TextRequest, TextResponse, trailer};
use super::session::{Arrival, Coming, Reject, Session};
use super::text;
use super::text_state::TextState;

/// A target and its addresses, as SendTargets reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRecord {
    /// TargetName.
    pub name: String,
    /// TargetAddress: `host:port,group`, each.
    pub addresses: Vec<String>,
}

impl Session {
    /// Takes a Text Request: begins or continues a text, or sends the next part of an answer.
    pub(crate) fn text<'a>(
        &mut self,
        number: u16,
        request: TextRequest,
        length: u32,
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let connection = self.connection_mut(number)?;
        let state = &mut connection.text;
        let is_new = request.ttt == NO_TAG;
        if !is_new && (state.tag == 0 || request.ttt != state.tag || request.itt != state.itt) {
            self.reject(number, Reject::InvalidField, out);
            return None;
        }
        // 11.10.1: the text continues, or a new one replaces it.
        if is_new {
            let tag = state.tag.wrapping_add(1).max(1);
            *state = TextState { itt: request.itt, tag, ..TextState::default() };
            connection.gathered.clear();
        } else if length == 0 && state.sent < state.answer.len() {
            self.send_text(number, out);
            return None;
        }
        let state = &mut self.connection_mut(number)?.text;
        state.continues = request.continues;
        if length > 0 {
            self.connection_mut(number)?.coming = Coming::Text;
            return None;
        }
        self.text_has_come(number, out)
    }

    /// Handles a text whose request PDU is complete.
    pub(crate) fn text_has_come<'a>(
        &mut self,
        number: u16,
        out: &mut Vec<u8>,
    ) -> Option<Arrival<'a>> {
        let connection = self.connection_mut(number)?;
        if connection.text.continues {
            self.text_response(number, &[], false, out);
            return None;
        }
        let gathered = std::mem::take(&mut connection.gathered);
        let is_too_long = gathered.len() >= text::TEXT_BYTES_MAX;
        let Some(pairs) = text::read(&gathered).ok().filter(|_| !is_too_long) else {
            self.reject(number, Reject::Protocol, out);
            return None;
        };
        let (mut asked, mut is_understood, mut is_refused) = (None, pairs.is_empty(), false);
        for (key, value) in pairs {
            is_understood |= matches!(key, "SendTargets" | "MaxRecvDataSegmentLength");
            match key {
                "SendTargets" if is_wish(value) => asked = Some(value.to_owned()),
                "SendTargets" => is_refused = true,
                // The only key that may be declared again (13.12).
                "MaxRecvDataSegmentLength" => {
                    let bytes = text::number(value).and_then(|bytes| u32::try_from(bytes).ok());
                    match bytes.filter(|bytes| (512..1 << 24).contains(bytes)) {
                        Some(bytes) => connection.peer_data_bytes = bytes,
                        None => text::push(&mut connection.text.answer, key, "Reject"),
                    }
                }
                _ => text::push(&mut connection.text.answer, key, "NotUnderstood"),
            }
        }
        // 6.2 answers every unknown key with NotUnderstood. Initiators that know only SendTargets
        // (libiscsi) then end the session, so a text without any known key is rejected as a whole,
        // as by Linux's target.
        if is_refused || !is_understood {
            connection.text.answer.clear();
            self.reject(number, Reject::Protocol, out);
            return None;
        }
        if let Some(asked) = asked {
            return Some(Arrival::SendTargets(asked));
        }
        self.send_text(number, out);
        None
    }

    /// Answers [`Arrival::SendTargets`].
    pub fn answer_text(&mut self, number: u16, targets: &[TargetRecord], out: &mut Vec<u8>) {
        let Some(connection) = self.connection_mut(number) else { return };
        for target in targets {
            text::push(&mut connection.text.answer, "TargetName", &target.name);
            for address in &target.addresses {
                text::push(&mut connection.text.answer, "TargetAddress", address);
            }
        }
        self.send_text(number, out);
    }

    // Sends the next part of the answer, as long as one PDU may be.
    fn send_text(&mut self, number: u16, out: &mut Vec<u8>) {
        let Some(connection) = self.connection_mut(number) else { return };
        let most = connection.peer_data_bytes as usize;
        let state = &mut connection.text;
        let end = state.answer.len().min(state.sent + most);
        let piece = state.answer[state.sent..end].to_vec();
        state.sent = end;
        let is_final = end == state.answer.len();
        self.text_response(number, &piece, is_final, out);
        if is_final && let Some(connection) = self.connection_mut(number) {
            let tag = connection.text.tag;
            connection.text = TextState { tag, ..TextState::default() };
        }
    }

    // Appends a Text Response.
    fn text_response(&mut self, number: u16, data: &[u8], is_final: bool, out: &mut Vec<u8>) {
        let window = self.answer_window(number, true);
        let Some(connection) = self.connection(number) else { return };
        let (itt, digests) = (connection.text.itt, connection.digests);
        let ttt = if is_final { NO_TAG } else { connection.text.tag };
        // 11.11.2: more of the same text follows.
        let continues = !is_final && !data.is_empty();
        let response = TextResponse { is_final, continues, itt, ttt, window };
        Header::TextResponse(response).encode(digests, data.len(), out);
        out.extend_from_slice(data);
        trailer(data, digests, out);
    }
}

/// Appends an initiator's SendTargets request, or the request for the rest of its answer.
pub(crate) fn ask(request: TextRequest, digests: Digests, out: &mut Vec<u8>) {
    let mut data = Vec::new();
    if request.ttt == NO_TAG {
        text::push(&mut data, "SendTargets", "All");
    }
    Header::TextRequest(request).encode(digests, data.len(), out);
    out.extend_from_slice(&data);
    trailer(&data, digests, out);
}

/// Decodes the answer to SendTargets.
pub(crate) fn told(gathered: &[u8]) -> Result<Vec<TargetRecord>, Fatal> {
    let bad = Fatal::Unasked { opcode: 0x24 };
    let mut targets: Vec<TargetRecord> = Vec::new();
    for pair in gathered.split(|byte| *byte == 0).filter(|pair| !pair.is_empty()) {
        let pair = std::str::from_utf8(pair).map_err(|_| bad)?;
        match (pair.split_once('='), targets.last_mut()) {
            (Some(("TargetName", name)), _) => {
                targets.push(TargetRecord { name: name.to_owned(), addresses: Vec::new() });
            }
            (Some(("TargetAddress", address)), Some(target)) => {
                target.addresses.push(address.to_owned());
            }
            _ => return Err(bad),
        }
    }
    Ok(targets)
}

// Whether SendTargets may have this value (Appendix C): all, this target, or a name (4.2.7.2).
fn is_wish(value: &str) -> bool {
    let is_name = ["iqn.", "eui.", "naa."].iter().any(|kind| value.starts_with(kind));
    is_name || matches!(value, "" | "All")
}
