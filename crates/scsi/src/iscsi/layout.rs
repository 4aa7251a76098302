//! Where the fields of headers lie (RFC 7143 11).

use crate::Residual;
use wire::{array, be16_at, be32_at, put};

use super::pdu::{
    AsyncMessage, BHS_BYTES, DataIn, DataOut, Header, LoginRequest, LoginResponse, LoginStage,
    NO_TAG, Numbers, R2t, ScsiCommand, ScsiResponse, TaskRequest, TextRequest, TextResponse,
    Window,
};

const IMMEDIATE: u8 = 1 << 6;
const FINAL: u8 = 1 << 7;
const CONTINUE: u8 = 1 << 6;
// Of a Data-In PDU: residual overflow and underflow, status (11.7.2).
const OVERFLOW: u8 = 1 << 2;
const UNDERFLOW: u8 = 1 << 1;
const STATUS: u8 = 1 << 0;

impl Header {
    pub(super) fn put_request(&self, bytes: &mut [u8; BHS_BYTES]) {
        match *self {
            Self::NopOut { is_immediate, lun, itt, ttt, numbers } => {
                bytes[0] |= immediate(is_immediate);
                bytes[1] = FINAL;
                put(bytes, 8, &lun);
                put_all(bytes, [(16, itt), (20, ttt)]);
                numbers.put(bytes);
            }
            Self::Command(command) => command.put(bytes),
            Self::TaskRequest(request) => {
                bytes[0] |= immediate(request.is_immediate);
                bytes[1] = FINAL | request.function & 0x7f;
                put(bytes, 8, &request.lun);
                put_all(bytes, [(16, request.itt), (20, request.referenced)]);
                request.numbers.put(bytes);
                put_all(bytes, [(32, request.ref_cmd_sn)]);
            }
            Self::LoginRequest(request) => {
                bytes[0] |= IMMEDIATE;
                bytes[1] = request.stage.byte();
                (bytes[2], bytes[3]) = (request.version_max, request.version_min);
                put(bytes, 8, &request.isid);
                put(bytes, 14, &request.tsih.to_be_bytes());
                put_all(bytes, [(16, request.itt)]);
                put(bytes, 20, &request.cid.to_be_bytes());
                request.numbers.put(bytes);
            }
            Self::TextRequest(request) => {
                bytes[0] |= immediate(request.is_immediate);
                bytes[1] = text_flags(request.is_final, request.continues);
                put_all(bytes, [(16, request.itt), (20, request.ttt)]);
                request.numbers.put(bytes);
            }
            Self::DataOut(data) => {
                bytes[1] = if data.is_final { FINAL } else { 0 };
                put(bytes, 8, &data.lun);
                put_all(bytes, [(16, data.itt), (20, data.ttt), (28, data.exp_stat_sn)]);
                put_all(bytes, [(36, data.data_sn), (40, data.offset)]);
            }
            Self::LogoutRequest { is_immediate, reason, itt, cid, numbers } => {
                bytes[0] |= immediate(is_immediate);
                bytes[1] = FINAL | reason & 0x7f;
                put_all(bytes, [(16, itt)]);
                put(bytes, 20, &cid.to_be_bytes());
                numbers.put(bytes);
            }
            Self::Snack { itt, exp_stat_sn } => {
                bytes[1] = FINAL;
                put_all(bytes, [(16, itt), (28, exp_stat_sn)]);
            }
            Self::Other { is_immediate, itt, cmd_sn, .. } => {
                bytes[0] |= immediate(is_immediate);
                put_all(bytes, [(16, itt), (24, cmd_sn)]);
            }
            _ => {}
        }
    }

    pub(super) fn put_answer(&self, bytes: &mut [u8; BHS_BYTES]) {
        match *self {
            Self::NopIn { lun, itt, ttt, window } => {
                bytes[1] = FINAL;
                put(bytes, 8, &lun);
                put_all(bytes, [(16, itt), (20, ttt)]);
                window.put(bytes);
            }
            Self::Response(response) => {
                bytes[1] = FINAL | residual_flags(response.residual);
                (bytes[2], bytes[3]) = (response.response, response.status);
                put_all(bytes, [(16, response.itt), (36, response.exp_data_sn)]);
                response.window.put(bytes);
                put_all(bytes, [(44, response.residual.count())]);
            }
            Self::TaskResponse { response, itt, window }
            | Self::LogoutResponse { response, itt, window } => {
                (bytes[1], bytes[2]) = (FINAL, response);
                put_all(bytes, [(16, itt)]);
                window.put(bytes);
            }
            Self::LoginResponse(response) => {
                bytes[1] = response.stage.byte();
                put(bytes, 8, &response.isid);
                put(bytes, 14, &response.tsih.to_be_bytes());
                put_all(bytes, [(16, response.itt)]);
                response.window.put(bytes);
                put(bytes, 36, &response.status.to_be_bytes());
            }
            Self::TextResponse(response) => {
                bytes[1] = text_flags(response.is_final, response.continues);
                put_all(bytes, [(16, response.itt), (20, response.ttt)]);
                response.window.put(bytes);
            }
            Self::DataIn(data) => data.put(bytes),
            Self::R2t(r2t) => {
                bytes[1] = FINAL;
                put(bytes, 8, &r2t.lun);
                put_all(bytes, [(16, r2t.itt), (20, r2t.ttt), (36, r2t.r2t_sn)]);
                put_all(bytes, [(40, r2t.offset), (44, r2t.length)]);
                r2t.window.put(bytes);
            }
            Self::Async(message) => {
                bytes[1] = FINAL;
                put(bytes, 8, &message.lun);
                put_all(bytes, [(16, NO_TAG)]);
                message.window.put(bytes);
                bytes[36] = message.event;
                for (index, parameter) in message.parameters.into_iter().enumerate() {
                    put(bytes, 38 + 2 * index, &parameter.to_be_bytes());
                }
            }
            Self::Reject { reason, window } => {
                (bytes[1], bytes[2]) = (FINAL, reason);
                put_all(bytes, [(16, NO_TAG)]);
                window.put(bytes);
            }
            _ => {}
        }
    }

    /// Reads a header.
    #[must_use]
    pub fn decode(bytes: &[u8; BHS_BYTES]) -> Self {
        let is_immediate = bytes[0] & IMMEDIATE != 0;
        let (opcode, flags) = (bytes[0] & 0x3f, bytes[1]);
        let (lun, itt, ttt) = (array(bytes, 8), be32_at(bytes, 16), be32_at(bytes, 20));
        let (numbers, window) = (Numbers::read(bytes), Window::read(bytes));
        let (is_final, continues) = (flags & FINAL != 0, flags & CONTINUE != 0);
        match opcode {
            0x00 => Self::NopOut { is_immediate, lun, itt, ttt, numbers },
            0x01 => Self::Command(ScsiCommand::read(bytes)),
            0x02 => Self::TaskRequest(TaskRequest {
                is_immediate,
                function: flags & 0x7f,
                lun,
                itt,
                referenced: ttt,
                numbers,
                ref_cmd_sn: be32_at(bytes, 32),
            }),
            0x03 => Self::LoginRequest(LoginRequest::read(bytes)),
            0x04 => {
                let request = TextRequest { is_immediate, is_final, continues, itt, ttt, numbers };
                Self::TextRequest(request)
            }
            0x05 => Self::DataOut(DataOut {
                is_final,
                lun,
                itt,
                ttt,
                exp_stat_sn: numbers.exp_stat_sn,
                data_sn: be32_at(bytes, 36),
                offset: be32_at(bytes, 40),
            }),
            0x06 => {
                let (reason, cid) = (flags & 0x7f, be16_at(bytes, 20));
                Self::LogoutRequest { is_immediate, reason, itt, cid, numbers }
            }
            0x10 => Self::Snack { itt, exp_stat_sn: numbers.exp_stat_sn },
            0x20 => Self::NopIn { lun, itt, ttt, window },
            0x21 => Self::Response(ScsiResponse::read(bytes)),
            0x22 => Self::TaskResponse { response: bytes[2], itt, window },
            0x23 => Self::LoginResponse(LoginResponse::read(bytes)),
            0x24 => Self::TextResponse(TextResponse { is_final, continues, itt, ttt, window }),
            0x25 => Self::DataIn(DataIn::read(bytes)),
            0x26 => Self::LogoutResponse { response: bytes[2], itt, window },
            0x31 => {
                let [r2t_sn, offset, length] = [36, 40, 44].map(|at| be32_at(bytes, at));
                Self::R2t(R2t { lun, itt, ttt, window, r2t_sn, offset, length })
            }
            0x32 => Self::Async(AsyncMessage {
                lun,
                window,
                event: bytes[36],
                parameters: [38, 40, 42].map(|at| be16_at(bytes, at)),
            }),
            0x3f => Self::Reject { reason: bytes[2], window },
            _ => Self::Other { opcode, is_immediate, itt, cmd_sn: numbers.cmd_sn },
        }
    }
}

const fn immediate(is_immediate: bool) -> u8 {
    if is_immediate { IMMEDIATE } else { 0 }
}

const fn text_flags(is_final: bool, continues: bool) -> u8 {
    (if is_final { FINAL } else { 0 }) | (if continues { CONTINUE } else { 0 })
}

const fn residual_flags(residual: Residual) -> u8 {
    match residual {
        Residual::None => 0,
        Residual::Overflow(_) => OVERFLOW,
        Residual::Underflow(_) => UNDERFLOW,
    }
}

fn residual_of(flags: u8, count: u32) -> Residual {
    match flags & (OVERFLOW | UNDERFLOW) {
        OVERFLOW => Residual::Overflow(count),
        UNDERFLOW => Residual::Underflow(count),
        _ => Residual::None,
    }
}

fn put_all<const N: usize>(bytes: &mut [u8], fields: [(usize, u32); N]) {
    for (at, field) in fields {
        put(bytes, at, &field.to_be_bytes());
    }
}

impl Numbers {
    fn put(self, bytes: &mut [u8]) {
        put_all(bytes, [(24, self.cmd_sn), (28, self.exp_stat_sn)]);
    }

    fn read(bytes: &[u8]) -> Self {
        Self { cmd_sn: be32_at(bytes, 24), exp_stat_sn: be32_at(bytes, 28) }
    }
}

impl Window {
    fn put(self, bytes: &mut [u8]) {
        put_all(bytes, [(24, self.stat_sn), (28, self.exp_cmd_sn), (32, self.max_cmd_sn)]);
    }

    fn read(bytes: &[u8]) -> Self {
        let [stat_sn, exp_cmd_sn, max_cmd_sn] = [24, 28, 32].map(|at| be32_at(bytes, at));
        Self { stat_sn, exp_cmd_sn, max_cmd_sn }
    }
}

impl LoginStage {
    const fn byte(self) -> u8 {
        let transit = if self.transits { FINAL } else { 0 };
        let more = if self.continues { CONTINUE } else { 0 };
        transit | more | (self.current & 3) << 2 | self.next & 3
    }

    const fn read(byte: u8) -> Self {
        Self {
            transits: byte & FINAL != 0,
            continues: byte & CONTINUE != 0,
            current: byte >> 2 & 3,
            next: byte & 3,
        }
    }
}

impl ScsiCommand {
    fn put(&self, bytes: &mut [u8; BHS_BYTES]) {
        bytes[0] |= immediate(self.is_immediate);
        let flags = [(self.is_final, FINAL), (self.reads, 1 << 6), (self.writes, 1 << 5)];
        let set = flags.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit);
        bytes[1] = set | self.attribute & 7;
        put(bytes, 8, &self.lun);
        put_all(bytes, [(16, self.itt), (20, self.expected_bytes)]);
        self.numbers.put(bytes);
        put(bytes, 32, &self.cdb);
    }

    fn read(bytes: &[u8; BHS_BYTES]) -> Self {
        let flags = bytes[1];
        Self {
            is_immediate: bytes[0] & IMMEDIATE != 0,
            is_final: flags & FINAL != 0,
            reads: flags & 1 << 6 != 0,
            writes: flags & 1 << 5 != 0,
            attribute: flags & 7,
            lun: array(bytes, 8),
            itt: be32_at(bytes, 16),
            expected_bytes: be32_at(bytes, 20),
            numbers: Numbers::read(bytes),
            cdb: array(bytes, 32),
        }
    }
}

impl ScsiResponse {
    fn read(bytes: &[u8; BHS_BYTES]) -> Self {
        Self {
            residual: residual_of(bytes[1], be32_at(bytes, 44)),
            response: bytes[2],
            status: bytes[3],
            itt: be32_at(bytes, 16),
            window: Window::read(bytes),
            exp_data_sn: be32_at(bytes, 36),
        }
    }
}

impl DataIn {
    fn put(&self, bytes: &mut [u8; BHS_BYTES]) {
        bytes[1] = if self.is_final { FINAL } else { 0 };
        put(bytes, 8, &self.lun);
        put_all(bytes, [(16, self.itt), (20, NO_TAG), (36, self.data_sn), (40, self.offset)]);
        self.window.put(bytes);
        // Residuals come with a status only (11.7.2).
        if let Some(status) = self.status {
            bytes[1] |= STATUS | residual_flags(self.residual);
            bytes[3] = status;
            put_all(bytes, [(44, self.residual.count())]);
        }
    }

    fn read(bytes: &[u8; BHS_BYTES]) -> Self {
        let has_status = bytes[1] & STATUS != 0;
        let flags = if has_status { bytes[1] } else { 0 };
        Self {
            is_final: bytes[1] & FINAL != 0,
            status: has_status.then_some(bytes[3]),
            residual: residual_of(flags, be32_at(bytes, 44)),
            lun: array(bytes, 8),
            itt: be32_at(bytes, 16),
            window: Window::read(bytes),
            data_sn: be32_at(bytes, 36),
            offset: be32_at(bytes, 40),
        }
    }
}

impl LoginRequest {
    fn read(bytes: &[u8; BHS_BYTES]) -> Self {
        Self {
            stage: LoginStage::read(bytes[1]),
            version_max: bytes[2],
            version_min: bytes[3],
            isid: array(bytes, 8),
            tsih: be16_at(bytes, 14),
            itt: be32_at(bytes, 16),
            cid: be16_at(bytes, 20),
            numbers: Numbers::read(bytes),
        }
    }
}

impl LoginResponse {
    fn read(bytes: &[u8; BHS_BYTES]) -> Self {
        Self {
            stage: LoginStage::read(bytes[1]),
            isid: array(bytes, 8),
            tsih: be16_at(bytes, 14),
            itt: be32_at(bytes, 16),
            window: Window::read(bytes),
            status: be16_at(bytes, 36),
        }
    }
}
