//! The status of a command (SAM-5 5.3) and its sense data (SPC-4 4.5).

use wire::Place;

use super::layout::sense::{DESCRIPTORS, FIXED, RESPONSE_CODE, descriptor, fixed, header, pointer};

/// The status of a command (SAM-5 5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Status {
    /// The command succeeded.
    #[default]
    Good = 0x00,
    /// Sense data describes the error or condition.
    CheckCondition = 0x02,
    /// The requested condition is met.
    ConditionMet = 0x04,
    /// The unit cannot execute the command now.
    Busy = 0x08,
    /// Another initiator has reserved it.
    ReservationConflict = 0x18,
    /// No more commands can be queued.
    TaskSetFull = 0x28,
    /// An ACA condition has to be cleared first.
    AcaActive = 0x30,
    /// Another initiator has aborted the command.
    TaskAborted = 0x40,
}

/// Sense keys (SPC-4 4.5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing.
    NoSense = 0x0,
    /// The command succeeded after recovery.
    RecoveredError = 0x1,
    /// The logical unit cannot be used now.
    NotReady = 0x2,
    /// The medium failed.
    MediumError = 0x3,
    /// Something else failed.
    HardwareError = 0x4,
    /// The command or its parameters are invalid.
    IllegalRequest = 0x5,
    /// A unit attention: something has changed since the last command.
    UnitAttention = 0x6,
    /// The medium is protected.
    DataProtect = 0x7,
    /// The blocks were never written.
    BlankCheck = 0x8,
    /// The target aborted the command; a retry may succeed.
    AbortedCommand = 0xb,
    /// Compared data differs.
    Miscompare = 0xe,
}

/// A pointer to an invalid field (SPC-4 4.5.2.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Field {
    /// Whether it is in the CDB; otherwise it is in the parameter list.
    pub is_in_cdb: bool,
    /// Its first byte.
    pub byte: u16,
    /// Its highest bit; `None` if it consists of whole bytes.
    pub bit: Option<u8>,
}

/// The contents of sense data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sense {
    /// The sense key.
    pub key: SenseKey,
    /// Additional sense code and its qualifier.
    pub code: u16,
    /// INFORMATION: for a miscompare, the offset of the byte; for a medium error, the block.
    pub information: Option<u64>,
    /// The invalid field.
    pub field: Option<Field>,
}

macro_rules! senses {
    ($($(#[$doc:meta])* $name:ident = $key:ident, $code:literal;)*) => {
        impl Sense {
            $($(#[$doc])* pub const $name: Self = Self::new(SenseKey::$key, $code);)*
        }
    };
}

senses! {
    /// Nothing to say.
    NONE = NoSense, 0x0000;
    /// The port is going to be in another state.
    PORT_IN_TRANSITION = NotReady, 0x040a;
    /// The port is in standby.
    PORT_IN_STANDBY = NotReady, 0x040b;
    /// The port is unavailable.
    PORT_UNAVAILABLE = NotReady, 0x040c;
    /// The data could not be written.
    WRITE_ERROR = MediumError, 0x0c00;
    /// Data came that was not asked for (RFC 7143 11.4.7.2).
    UNEXPECTED_UNSOLICITED_DATA = AbortedCommand, 0x0c0c;
    /// Not as much data as there should be (RFC 7143 11.4.7.2).
    NOT_ENOUGH_UNSOLICITED_DATA = AbortedCommand, 0x0c0d;
    /// Not as many bytes come as the command takes.
    INVALID_FIELD_IN_INFORMATION_UNIT = IllegalRequest, 0x0e03;
    /// The data could not be read.
    UNRECOVERED_READ_ERROR = MediumError, 0x1100;
    /// Parameters end too early, or are too long.
    PARAMETER_LIST_LENGTH = IllegalRequest, 0x1a00;
    /// The data is not what it was compared with.
    MISCOMPARE = Miscompare, 0x1d00;
    /// There is no such command.
    INVALID_OPCODE = IllegalRequest, 0x2000;
    /// Blocks beyond the end.
    LBA_OUT_OF_RANGE = IllegalRequest, 0x2100;
    /// A field of the command has an impossible value.
    INVALID_FIELD_IN_CDB = IllegalRequest, 0x2400;
    /// There is no such logical unit.
    LOGICAL_UNIT_NOT_SUPPORTED = IllegalRequest, 0x2500;
    /// A field of the parameters has an impossible value.
    INVALID_FIELD_IN_PARAMETERS = IllegalRequest, 0x2600;
    /// A reservation of another scope or type is held.
    INVALID_RELEASE = IllegalRequest, 0x2604;
    /// The medium is not to be written.
    WRITE_PROTECTED = DataProtect, 0x2700;
    /// An initiator has said that it is not to be written.
    SOFTWARE_WRITE_PROTECTED = DataProtect, 0x2702;
    /// No room left.
    SPACE_ALLOCATION_FAILED = DataProtect, 0x2707;
    /// Parameters are not kept.
    SAVING_NOT_SUPPORTED = IllegalRequest, 0x3900;
    /// Something inside failed.
    INTERNAL_TARGET_FAILURE = HardwareError, 0x4400;
    /// Data did not arrive as it was sent (RFC 7143 11.4.7.2).
    PROTOCOL_SERVICE_CRC_ERROR = AbortedCommand, 0x4705;
    /// As many registrants as there may be.
    NO_ROOM_FOR_REGISTRATION = IllegalRequest, 0x5504;
}

impl SenseKey {
    const ALL: [Self; 11] = [
        Self::NoSense,
        Self::RecoveredError,
        Self::NotReady,
        Self::MediumError,
        Self::HardwareError,
        Self::IllegalRequest,
        Self::UnitAttention,
        Self::DataProtect,
        Self::BlankCheck,
        Self::AbortedCommand,
        Self::Miscompare,
    ];

    // The sense key with this number; `None` for an unknown one.
    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|key| *key as u8 == number)
    }
}

impl Status {
    const ALL: [Self; 8] = [
        Self::Good,
        Self::CheckCondition,
        Self::ConditionMet,
        Self::Busy,
        Self::ReservationConflict,
        Self::TaskSetFull,
        Self::AcaActive,
        Self::TaskAborted,
    ];

    /// The status with this code; `None` for a reserved one.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u8 == byte)
    }
}

impl Sense {
    /// Sense data with a key and a code only.
    #[must_use]
    pub const fn new(key: SenseKey, code: u16) -> Self {
        Self { key, code, information: None, field: None }
    }

    /// An invalid field in the CDB: its byte, and its highest bit unless it consists of whole
    /// bytes.
    #[must_use]
    pub const fn in_cdb(byte: u16, bit: Option<u8>) -> Self {
        let field = Some(Field { is_in_cdb: true, byte, bit });
        Self { field, ..Self::INVALID_FIELD_IN_CDB }
    }

    /// As [`Sense::in_cdb`], in the parameter list.
    #[must_use]
    pub const fn in_parameters(byte: u16, bit: Option<u8>) -> Self {
        let field = Some(Field { is_in_cdb: false, byte, bit });
        Self { field, ..Self::INVALID_FIELD_IN_PARAMETERS }
    }

    /// An invalid field in the CDB.
    pub(crate) fn wrong(field: impl Place) -> Self {
        Self::in_cdb(field.byte(), field.bit())
    }

    /// An invalid field in the parameter list, in a structure that begins at byte `begin`.
    pub(crate) fn wrong_parameter(begin: usize, field: impl Place) -> Self {
        let begin = u16::try_from(begin).unwrap_or(u16::MAX);
        Self::in_parameters(begin.saturating_add(field.byte()), field.bit())
    }

    /// The same sense with a value in INFORMATION.
    #[must_use]
    pub const fn about(self, information: u64) -> Self {
        Self { information: Some(information), ..self }
    }

    /// Encodes the sense data in descriptor format (SPC-4 4.5.2) or fixed format (SPC-4 4.5.3).
    #[must_use]
    pub fn write(&self, is_descriptor: bool) -> Vec<u8> {
        if is_descriptor { self.write_descriptors() } else { self.write_fixed() }
    }

    // Encodes fixed format sense data.
    fn write_fixed(&self) -> Vec<u8> {
        use fixed::*;
        let mut bytes = vec![0; BYTES];
        RESPONSE_CODE.put(&mut bytes, FIXED);
        KEY.put(&mut bytes, self.key as u8);
        ADDITIONAL_LENGTH.put(&mut bytes, additional(BYTES - BEFORE));
        // A larger value is left out (SPC-4 4.5.3).
        if let Some(Ok(information)) = self.information.map(u32::try_from) {
            VALID.put(&mut bytes, true);
            INFORMATION.put(&mut bytes, information);
        }
        CODE.put(&mut bytes, self.code);
        SPECIFIC.put(&mut bytes, &self.field.map_or([0; 3], Field::write));
        bytes
    }

    // Encodes descriptor format sense data.
    fn write_descriptors(&self) -> Vec<u8> {
        use descriptor::*;
        let mut bytes = vec![0; header::BYTES];
        RESPONSE_CODE.put(&mut bytes, DESCRIPTORS);
        header::KEY.put(&mut bytes, self.key as u8);
        header::CODE.put(&mut bytes, self.code);
        if let Some(information) = self.information {
            let mut one = [0; INFORMATION_BYTES];
            TYPE.put(&mut one, OF_INFORMATION);
            LENGTH.put(&mut one, additional(INFORMATION_BYTES - BEFORE));
            VALID.put(&mut one, true);
            INFORMATION.put(&mut one, information);
            bytes.extend_from_slice(&one);
        }
        if let Some(field) = self.field {
            let mut one = [0; SPECIFIC_BYTES];
            TYPE.put(&mut one, OF_SPECIFIC);
            LENGTH.put(&mut one, additional(SPECIFIC_BYTES - BEFORE));
            SPECIFIC.put(&mut one, &field.write());
            bytes.extend_from_slice(&one);
        }
        let length = additional(bytes.len() - header::BYTES);
        header::ADDITIONAL_LENGTH.put(&mut bytes, length);
        bytes
    }

    /// Decodes current sense data of either format; `None` if it is neither.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first()?;
        match RESPONSE_CODE.get(bytes) {
            FIXED if bytes.len() >= fixed::BYTES_MIN => {
                let key = SenseKey::from_number(fixed::KEY.get(bytes))?;
                let is_valid = fixed::VALID.get(bytes);
                let information = is_valid.then(|| u64::from(fixed::INFORMATION.get(bytes)));
                let has_field = bytes.len() >= fixed::BYTES;
                let field = has_field.then(|| fixed::SPECIFIC.get(bytes)).and_then(Field::read);
                Some(Self { key, code: fixed::CODE.get(bytes), information, field })
            }
            DESCRIPTORS if bytes.len() >= header::BYTES => {
                let key = SenseKey::from_number(header::KEY.get(bytes))?;
                let mut sense = Self::new(key, header::CODE.get(bytes));
                sense.read_descriptors(&bytes[header::BYTES..]);
                Some(sense)
            }
            _ => None,
        }
    }

    // Decodes the descriptors of information and of the sense-key specific field; skips others.
    fn read_descriptors(&mut self, mut rest: &[u8]) {
        use descriptor::*;
        while rest.len() >= BEFORE {
            let length = BEFORE + usize::from(LENGTH.get(rest));
            let Some((one, next)) = rest.split_at_checked(length) else { break };
            match (TYPE.get(one), length) {
                (OF_INFORMATION, INFORMATION_BYTES) => {
                    self.information = Some(INFORMATION.get(one));
                }
                (OF_SPECIFIC, SPECIFIC_BYTES) => self.field = Field::read(SPECIFIC.get(one)),
                _ => {}
            }
            rest = next;
        }
    }
}

// An ADDITIONAL LENGTH field; sense data is always short enough.
fn additional(bytes: usize) -> u8 {
    u8::try_from(bytes).unwrap_or(u8::MAX)
}

impl Field {
    // Encodes the field pointer (sense-key specific).
    fn write(self) -> [u8; 3] {
        use pointer::*;
        let mut bytes = [0; 3];
        SKSV.put(&mut bytes, true);
        C_D.put(&mut bytes, self.is_in_cdb);
        BPV.put(&mut bytes, self.bit.is_some());
        BIT_POINTER.put(&mut bytes, self.bit.unwrap_or(0));
        FIELD_POINTER.put(&mut bytes, self.byte);
        bytes
    }

    // Decodes a field pointer; `None` if SKSV is clear.
    fn read(bytes: [u8; 3]) -> Option<Self> {
        use pointer::*;
        let bit = BPV.get(&bytes).then(|| BIT_POINTER.get(&bytes));
        let field = Self { is_in_cdb: C_D.get(&bytes), byte: FIELD_POINTER.get(&bytes), bit };
        SKSV.get(&bytes).then_some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_sense_data_is_where_spc_has_it() {
        let bytes = Sense::in_cdb(1, Some(7)).write(false);
        assert_eq!(bytes, [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xcf, 0, 1]);
        let bytes = Sense::MISCOMPARE.about(0x0102).write(false);
        assert_eq!(bytes[..8], [0xf0, 0, 0xe, 0, 0, 1, 2, 10]);
        // A block above 32 bits has no place in it.
        assert_eq!(Sense::WRITE_ERROR.about(1 << 32).write(false)[..7], [0x70, 0, 3, 0, 0, 0, 0]);
    }

    #[test]
    fn descriptors_hold_everything() {
        let bytes = Sense::in_parameters(0x0203, None).about(1 << 32).write(true);
        assert_eq!(bytes[..8], [0x72, 5, 0x26, 0, 0, 0, 0, 20]);
        assert_eq!(bytes[8..20], [0, 10, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(bytes[20..], [2, 6, 0, 0, 0x80, 2, 3, 0]);
    }

    #[test]
    fn what_is_written_is_read() {
        let all = [
            Sense::NONE,
            Sense::in_cdb(9, None),
            Sense::in_parameters(300, Some(0)).about(77),
            Sense::MISCOMPARE.about(511),
        ];
        for sense in all {
            for is_descriptor in [false, true] {
                assert_eq!(Sense::read(&sense.write(is_descriptor)), Some(sense));
            }
        }
        let whole = Sense::in_cdb(1, Some(2)).about(3).write(true);
        for length in 0..whole.len() {
            assert_eq!(Sense::read(&whole[..length]).is_some(), length >= 8);
        }
        assert_eq!(Sense::read(&[0x7f; 32]), None);
    }
}
