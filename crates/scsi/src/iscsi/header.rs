//! Encodes headers into bytes, and decodes them (11).

use crate::Residual;

use super::layout::{
    ASYNC_EVENT, ATTR, BHS_BYTES, BUFFER_OFFSET, CDB, CID, CMD_SN, CONTINUE, CSG, DATA_SN,
    DESIRED_LENGTH, EXP_CMD_SN, EXP_DATA_SN, EXP_STAT_SN, EXPECTED_LENGTH, FINAL, FLAGS, FUNCTION,
    HAS_STATUS, IMMEDIATE, ISID, ITT, LOGIN_STATUS, LUN, MAX_CMD_SN, NSG, OPCODE, OVERFLOW,
    PARAMETER_1, READS, REASON, REF_CMD_SN, REFERENCED_TASK_TAG, RESIDUAL_COUNT, RESPONSE, STAT_SN,
    STATUS, TSIH, TTT, UNDERFLOW, VERSION_MAX, VERSION_MIN, WRITES,
};
use super::pdu::{
    AsyncMessage, DataIn, DataOut, Header, LoginRequest, LoginResponse, LoginStage, NO_TAG,
    Numbers, R2t, ScsiCommand, ScsiResponse, TaskRequest, TextRequest, TextResponse, Window,
};

type Bytes = [u8; BHS_BYTES];

impl Header {
    /// Encodes a header of an initiator's PDU; does nothing for another.
    pub(super) fn put_request(&self, bytes: &mut Bytes) {
        match *self {
            Self::NopOut { is_immediate, lun, itt, ttt, numbers } => {
                IMMEDIATE.put(bytes, is_immediate);
                FLAGS.put(bytes, FINAL);
                LUN.put(bytes, &lun);
                ITT.put(bytes, itt);
                TTT.put(bytes, ttt);
                numbers.put(bytes);
            }
            Self::Command(command) => command.put(bytes),
            Self::TaskRequest(request) => request.put(bytes),
            Self::LoginRequest(request) => request.put(bytes),
            Self::TextRequest(request) => {
                IMMEDIATE.put(bytes, request.is_immediate);
                FLAGS.put(bytes, text_flags(request.is_final, request.continues));
                ITT.put(bytes, request.itt);
                TTT.put(bytes, request.ttt);
                request.numbers.put(bytes);
            }
            Self::DataOut(data) => data.put(bytes),
            Self::LogoutRequest { is_immediate, reason, itt, cid, numbers } => {
                IMMEDIATE.put(bytes, is_immediate);
                FLAGS.put(bytes, FINAL);
                REASON.put(bytes, reason);
                ITT.put(bytes, itt);
                CID.put(bytes, cid);
                numbers.put(bytes);
            }
            Self::Snack { itt, exp_stat_sn } => {
                FLAGS.put(bytes, FINAL);
                ITT.put(bytes, itt);
                EXP_STAT_SN.put(bytes, exp_stat_sn);
            }
            Self::Other { is_immediate, itt, cmd_sn, .. } => {
                IMMEDIATE.put(bytes, is_immediate);
                ITT.put(bytes, itt);
                CMD_SN.put(bytes, cmd_sn);
            }
            _ => {}
        }
    }

    /// Encodes a header of a target's PDU; does nothing for another.
    pub(super) fn put_answer(&self, bytes: &mut Bytes) {
        match *self {
            Self::NopIn { lun, itt, ttt, window } => {
                FLAGS.put(bytes, FINAL);
                LUN.put(bytes, &lun);
                ITT.put(bytes, itt);
                TTT.put(bytes, ttt);
                window.put(bytes);
            }
            Self::Response(response) => response.put(bytes),
            Self::TaskResponse { response, itt, window }
            | Self::LogoutResponse { response, itt, window } => {
                FLAGS.put(bytes, FINAL);
                RESPONSE.put(bytes, response);
                ITT.put(bytes, itt);
                window.put(bytes);
            }
            Self::LoginResponse(response) => response.put(bytes),
            Self::TextResponse(response) => {
                FLAGS.put(bytes, text_flags(response.is_final, response.continues));
                ITT.put(bytes, response.itt);
                TTT.put(bytes, response.ttt);
                response.window.put(bytes);
            }
            Self::DataIn(data) => data.put(bytes),
            Self::R2t(r2t) => r2t.put(bytes),
            Self::Async(message) => {
                FLAGS.put(bytes, FINAL);
                LUN.put(bytes, &message.lun);
                ITT.put(bytes, NO_TAG);
                message.window.put(bytes);
                ASYNC_EVENT.put(bytes, message.event);
                for (index, parameter) in (0..).zip(message.parameters) {
                    PARAMETER_1.nth(index).put(bytes, parameter);
                }
            }
            Self::Reject { reason, window } => {
                FLAGS.put(bytes, FINAL);
                RESPONSE.put(bytes, reason);
                ITT.put(bytes, NO_TAG);
                window.put(bytes);
            }
            _ => {}
        }
    }

    /// Decodes a header.
    #[must_use]
    pub fn decode(bytes: &[u8; BHS_BYTES]) -> Self {
        let is_immediate = IMMEDIATE.get(bytes);
        let (opcode, flags) = (OPCODE.get(bytes), FLAGS.get(bytes));
        let (lun, itt, ttt) = (LUN.get(bytes), ITT.get(bytes), TTT.get(bytes));
        let (numbers, window) = (Numbers::read(bytes), Window::read(bytes));
        let (is_final, continues) = (flags & FINAL != 0, flags & CONTINUE != 0);
        match opcode {
            0x00 => Self::NopOut { is_immediate, lun, itt, ttt, numbers },
            0x01 => Self::Command(ScsiCommand::read(bytes)),
            0x02 => Self::TaskRequest(TaskRequest::read(bytes)),
            0x03 => Self::LoginRequest(LoginRequest::read(bytes)),
            0x04 => {
                let request = TextRequest { is_immediate, is_final, continues, itt, ttt, numbers };
                Self::TextRequest(request)
            }
            0x05 => Self::DataOut(DataOut::read(bytes)),
            0x06 => {
                let (reason, cid) = (REASON.get(bytes), CID.get(bytes));
                Self::LogoutRequest { is_immediate, reason, itt, cid, numbers }
            }
            0x10 => Self::Snack { itt, exp_stat_sn: numbers.exp_stat_sn },
            0x20 => Self::NopIn { lun, itt, ttt, window },
            0x21 => Self::Response(ScsiResponse::read(bytes)),
            0x22 => Self::TaskResponse { response: RESPONSE.get(bytes), itt, window },
            0x23 => Self::LoginResponse(LoginResponse::read(bytes)),
            0x24 => Self::TextResponse(TextResponse { is_final, continues, itt, ttt, window }),
            0x25 => Self::DataIn(DataIn::read(bytes)),
            0x26 => Self::LogoutResponse { response: RESPONSE.get(bytes), itt, window },
            0x31 => Self::R2t(R2t::read(bytes)),
            0x32 => Self::Async(AsyncMessage {
                lun,
                window,
                event: ASYNC_EVENT.get(bytes),
                parameters: [0, 1, 2].map(|index| PARAMETER_1.nth(index).get(bytes)),
            }),
            0x3f => Self::Reject { reason: RESPONSE.get(bytes), window },
            _ => Self::Other { opcode, is_immediate, itt, cmd_sn: numbers.cmd_sn },
        }
    }
}

// The flags byte of a text PDU.
const fn text_flags(is_final: bool, continues: bool) -> u8 {
    (if is_final { FINAL } else { 0 }) | (if continues { CONTINUE } else { 0 })
}

// The flags of a residual count.
const fn residual_flags(residual: Residual) -> u8 {
    match residual {
        Residual::None => 0,
        Residual::Overflow(_) => OVERFLOW,
        Residual::Underflow(_) => UNDERFLOW,
    }
}

// The residual that flags and a count denote.
fn residual_of(flags: u8, count: u32) -> Residual {
    match flags & (OVERFLOW | UNDERFLOW) {
        OVERFLOW => Residual::Overflow(count),
        UNDERFLOW => Residual::Underflow(count),
        _ => Residual::None,
    }
}

impl Numbers {
    fn put(self, bytes: &mut Bytes) {
        CMD_SN.put(bytes, self.cmd_sn);
        EXP_STAT_SN.put(bytes, self.exp_stat_sn);
    }

    fn read(bytes: &Bytes) -> Self {
        Self { cmd_sn: CMD_SN.get(bytes), exp_stat_sn: EXP_STAT_SN.get(bytes) }
    }
}

impl Window {
    fn put(self, bytes: &mut Bytes) {
        STAT_SN.put(bytes, self.stat_sn);
        EXP_CMD_SN.put(bytes, self.exp_cmd_sn);
        MAX_CMD_SN.put(bytes, self.max_cmd_sn);
    }

    fn read(bytes: &Bytes) -> Self {
        Self {
            stat_sn: STAT_SN.get(bytes),
            exp_cmd_sn: EXP_CMD_SN.get(bytes),
            max_cmd_sn: MAX_CMD_SN.get(bytes),
        }
    }
}

impl LoginStage {
    fn put(self, bytes: &mut Bytes) {
        FLAGS.put(bytes, text_flags(self.transits, self.continues));
        CSG.put(bytes, self.current);
        NSG.put(bytes, self.next);
    }

    fn read(bytes: &Bytes) -> Self {
        let flags = FLAGS.get(bytes);
        Self {
            transits: flags & FINAL != 0,
            continues: flags & CONTINUE != 0,
            current: CSG.get(bytes),
            next: NSG.get(bytes),
        }
    }
}

impl ScsiCommand {
    fn put(&self, bytes: &mut Bytes) {
        IMMEDIATE.put(bytes, self.is_immediate);
        let flags = [(self.is_final, FINAL), (self.reads, READS), (self.writes, WRITES)];
        let set = flags.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit);
        FLAGS.put(bytes, set);
        ATTR.put(bytes, self.attribute);
        LUN.put(bytes, &self.lun);
        ITT.put(bytes, self.itt);
        EXPECTED_LENGTH.put(bytes, self.expected_bytes);
        self.numbers.put(bytes);
        CDB.put(bytes, &self.cdb);
    }

    fn read(bytes: &Bytes) -> Self {
        let flags = FLAGS.get(bytes);
        Self {
            is_immediate: IMMEDIATE.get(bytes),
            is_final: flags & FINAL != 0,
            reads: flags & READS != 0,
            writes: flags & WRITES != 0,
            attribute: ATTR.get(bytes),
            lun: LUN.get(bytes),
            itt: ITT.get(bytes),
            expected_bytes: EXPECTED_LENGTH.get(bytes),
            numbers: Numbers::read(bytes),
            cdb: CDB.get(bytes),
        }
    }
}

impl ScsiResponse {
    fn put(&self, bytes: &mut Bytes) {
        FLAGS.put(bytes, FINAL | residual_flags(self.residual));
        RESPONSE.put(bytes, self.response);
        STATUS.put(bytes, self.status);
        ITT.put(bytes, self.itt);
        EXP_DATA_SN.put(bytes, self.exp_data_sn);
        self.window.put(bytes);
        RESIDUAL_COUNT.put(bytes, self.residual.count());
    }

    fn read(bytes: &Bytes) -> Self {
        Self {
            residual: residual_of(FLAGS.get(bytes), RESIDUAL_COUNT.get(bytes)),
            response: RESPONSE.get(bytes),
            status: STATUS.get(bytes),
            itt: ITT.get(bytes),
            window: Window::read(bytes),
            exp_data_sn: EXP_DATA_SN.get(bytes),
        }
    }
}

impl TaskRequest {
    fn put(&self, bytes: &mut Bytes) {
        IMMEDIATE.put(bytes, self.is_immediate);
        FLAGS.put(bytes, FINAL);
        FUNCTION.put(bytes, self.function);
        LUN.put(bytes, &self.lun);
        ITT.put(bytes, self.itt);
        REFERENCED_TASK_TAG.put(bytes, self.referenced);
        self.numbers.put(bytes);
        REF_CMD_SN.put(bytes, self.ref_cmd_sn);
    }

    fn read(bytes: &Bytes) -> Self {
        Self {
            is_immediate: IMMEDIATE.get(bytes),
            function: FUNCTION.get(bytes),
            lun: LUN.get(bytes),
            itt: ITT.get(bytes),
            referenced: REFERENCED_TASK_TAG.get(bytes),
            numbers: Numbers::read(bytes),
            ref_cmd_sn: REF_CMD_SN.get(bytes),
        }
    }
}

impl DataOut {
    fn put(&self, bytes: &mut Bytes) {
        FLAGS.put(bytes, if self.is_final { FINAL } else { 0 });
        LUN.put(bytes, &self.lun);
        ITT.put(bytes, self.itt);
        TTT.put(bytes, self.ttt);
        EXP_STAT_SN.put(bytes, self.exp_stat_sn);
        DATA_SN.put(bytes, self.data_sn);
        BUFFER_OFFSET.put(bytes, self.offset);
    }

    fn read(bytes: &Bytes) -> Self {
        Self {
            is_final: FLAGS.get(bytes) & FINAL != 0,
            lun: LUN.get(bytes),
            itt: ITT.get(bytes),
            ttt: TTT.get(bytes),
            exp_stat_sn: EXP_STAT_SN.get(bytes),
            data_sn: DATA_SN.get(bytes),
            offset: BUFFER_OFFSET.get(bytes),
        }
    }
}

impl DataIn {
    fn put(&self, bytes: &mut Bytes) {
        let mut flags = if self.is_final { FINAL } else { 0 };
        LUN.put(bytes, &self.lun);
        ITT.put(bytes, self.itt);
        TTT.put(bytes, NO_TAG);
        DATA_SN.put(bytes, self.data_sn);
        BUFFER_OFFSET.put(bytes, self.offset);
        self.window.put(bytes);
        // Residuals are valid with a status only (11.7.2).
        if let Some(status) = self.status {
            flags |= HAS_STATUS | residual_flags(self.residual);
            STATUS.put(bytes, status);
            RESIDUAL_COUNT.put(bytes, self.residual.count());
        }
        FLAGS.put(bytes, flags);
    }

    fn read(bytes: &Bytes) -> Self {
        let flags = FLAGS.get(bytes);
        let has_status = flags & HAS_STATUS != 0;
        let of_status = if has_status { flags } else { 0 };
        Self {
            is_final: flags & FINAL != 0,
            status: has_status.then_some(STATUS.get(bytes)),
            residual: residual_of(of_status, RESIDUAL_COUNT.get(bytes)),
            lun: LUN.get(bytes),
            itt: ITT.get(bytes),
            window: Window::read(bytes),
            data_sn: DATA_SN.get(bytes),
            offset: BUFFER_OFFSET.get(bytes),
        }
    }
}

impl R2t {
    fn put(&self, bytes: &mut Bytes) {
        FLAGS.put(bytes, FINAL);
        LUN.put(bytes, &self.lun);
        ITT.put(bytes, self.itt);
        TTT.put(bytes, self.ttt);
        DATA_SN.put(bytes, self.r2t_sn);
        BUFFER_OFFSET.put(bytes, self.offset);
        DESIRED_LENGTH.put(bytes, self.length);
        self.window.put(bytes);
    }

    fn read(bytes: &Bytes) -> Self {
        Self {
            lun: LUN.get(bytes),
            itt: ITT.get(bytes),
            ttt: TTT.get(bytes),
            window: Window::read(bytes),
            r2t_sn: DATA_SN.get(bytes),
            offset: BUFFER_OFFSET.get(bytes),
            length: DESIRED_LENGTH.get(bytes),
        }
    }
}

impl LoginRequest {
    fn put(&self, bytes: &mut Bytes) {
        IMMEDIATE.put(bytes, true);
        self.stage.put(bytes);
        VERSION_MAX.put(bytes, self.version_max);
        VERSION_MIN.put(bytes, self.version_min);
        ISID.put(bytes, &self.isid);
        TSIH.put(bytes, self.tsih);
        ITT.put(bytes, self.itt);
        CID.put(bytes, self.cid);
        self.numbers.put(bytes);
    }

    fn read(bytes: &Bytes) -> Self {
        Self {
            stage: LoginStage::read(bytes),
            version_max: VERSION_MAX.get(bytes),
            version_min: VERSION_MIN.get(bytes),
            isid: ISID.get(bytes),
            tsih: TSIH.get(bytes),
            itt: ITT.get(bytes),
            cid: CID.get(bytes),
            numbers: Numbers::read(bytes),
        }
    }
}

impl LoginResponse {
    fn put(&self, bytes: &mut Bytes) {
        self.stage.put(bytes);
        ISID.put(bytes, &self.isid);
        TSIH.put(bytes, self.tsih);
        ITT.put(bytes, self.itt);
        self.window.put(bytes);
        LOGIN_STATUS.put(bytes, self.status);
    }

    fn read(bytes: &Bytes) -> Self {
        Self {
            stage: LoginStage::read(bytes),
            isid: ISID.get(bytes),
            tsih: TSIH.get(bytes),
            itt: ITT.get(bytes),
            window: Window::read(bytes),
            status: LOGIN_STATUS.get(bytes),
        }
    }
}
