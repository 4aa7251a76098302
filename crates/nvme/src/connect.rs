//! The data of Connect: the names of host and subsystem (Base 6.3).

use wire::{Place as _, Text};

use super::layout::connect::{BYTES, CNTLID, HOSTID, HOSTNQN, SUBNQN};
use super::status::Status;

/// Bytes of the data of Connect.
pub const CONNECT_DATA_BYTES: usize = BYTES;
/// Bytes of a qualified name at most, without the NUL (Base 4.7).
pub const NQN_BYTES_MAX: usize = 223;

/// An NVMe qualified name: 1 to 223 bytes of UTF-8 without NUL (Base 4.7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nqn(String);

/// The data of Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectData {
    /// HOSTID: identifies the host; the same on all its paths.
    pub host_id: [u8; 16],
    /// CNTLID: FFFFh requests any controller.
    pub controller_id: u16,
    /// SUBNQN.
    pub subsystem: Nqn,
    /// HOSTNQN.
    pub host: Nqn,
}

impl Nqn {
    /// The name of every discovery subsystem (Base 4.7).
    pub const DISCOVERY: &'static str = "nqn.2014-08.org.nvmexpress.discovery";

    /// A name; `None` if it is invalid.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=NQN_BYTES_MAX).contains(&name.len()) && !name.contains('\0');
        fits.then(|| Self(name.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    // Decodes a name from a field that ends with NUL.
    fn read(field: &[u8]) -> Option<Self> {
        let length = field.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&field[..length]).ok().and_then(Self::new)
    }
}

impl ConnectData {
    /// Decodes the data of Connect.
    ///
    /// # Errors
    /// The status and result with which Connect ends: the result is the offset of the first invalid
    /// field in the data (Base 6.3: IPO and IATTR).
    pub fn read(data: &[u8; CONNECT_DATA_BYTES]) -> Result<Self, (Status, u32)> {
        let name = |field: Text<256>| {
            // Bit 16: the offset is in the data.
            let wrong = 1 << 16 | u32::from(field.byte());
            Nqn::read(field.get(data))
                .ok_or((Status::CONNECT_INVALID_PARAMETERS.do_not_retry(), wrong))
        };
        Ok(Self {
            host_id: HOSTID.get(data),
            controller_id: CNTLID.get(data),
            subsystem: name(SUBNQN)?,
            host: name(HOSTNQN)?,
        })
    }

    /// Encodes the data of Connect.
    #[must_use]
    pub fn write(&self) -> [u8; CONNECT_DATA_BYTES] {
        let mut data = [0; CONNECT_DATA_BYTES];
        HOSTID.put(&mut data, &self.host_id);
        CNTLID.put(&mut data, self.controller_id);
        SUBNQN.put(&mut data, self.subsystem.0.bytes());
        HOSTNQN.put(&mut data, self.host.0.bytes());
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> ConnectData {
        ConnectData {
            host_id: [7; 16],
            controller_id: 0xffff,
            subsystem: Nqn::new("nqn.2026-11.example:disk").expect("it can be one"),
            host: Nqn::new(&"h".repeat(NQN_BYTES_MAX)).expect("it can be one"),
        }
    }

    #[test]
    fn data_comes_back() {
        assert_eq!(ConnectData::read(&data().write()), Ok(data()));
    }

    #[test]
    fn names_that_cannot_be_are_refused_with_their_place() {
        let wrong = |field: Text<256>, name: &[u8]| {
            let mut bytes = data().write();
            field.put(&mut bytes, name.iter().copied());
            ConnectData::read(&bytes).expect_err("it cannot be")
        };
        let status = Status::CONNECT_INVALID_PARAMETERS.do_not_retry();
        assert_eq!(wrong(SUBNQN, b""), (status, 0x1_0100), "empty");
        assert_eq!(wrong(HOSTNQN, &[b'x'; 256]), (status, 0x1_0200), "no NUL");
        assert_eq!(wrong(HOSTNQN, &[b'x'; 224]), (status, 0x1_0200), "too long");
        assert_eq!(wrong(HOSTNQN, &[0xff, 0xfe]), (status, 0x1_0200), "not UTF-8");
        assert_eq!(Nqn::new("a\0b"), None);
    }
}
