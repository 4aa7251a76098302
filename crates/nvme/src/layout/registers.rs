//! Registers of a controller, which fabrics hosts read and write as properties (Base 3.1.4): where
//! each is, and which of its bits mean what.

pub(crate) const CAP: u32 = 0x00; // Controller Capabilities
pub(crate) const VS: u32 = 0x08; // Version
pub(crate) const CC: u32 = 0x14; // Controller Configuration
pub(crate) const CSTS: u32 = 0x1c; // Controller Status
pub(crate) const NSSR: u32 = 0x20; // NVM Subsystem Reset
pub(crate) const CRTO: u32 = 0x68; // Controller Ready Timeouts

/// CAP (Base 3.1.4.1).
pub(crate) mod cap {
    use crate::layout::part::Part;

    pub(crate) const MQES: Part = Part::at(15, 0); // Maximum Queue Entries Supported, less one
    pub(crate) const CQR: Part = Part::at(16, 16); // Contiguous Queues Required
    pub(crate) const TO: Part = Part::at(31, 24); // Timeout, in half seconds
    pub(crate) const CSS_NVM: Part = Part::at(37, 37); // Command Sets Supported: NVM
    pub(crate) const CRMS_CRWMS: Part = Part::at(59, 59); // Ready Modes: ready with its media
}

/// CC (Base 3.1.4.5).
pub(crate) mod cc {
    use crate::layout::part::Part;

    pub(crate) const EN: Part = Part::at(0, 0); // Enable
    pub(crate) const CSS: Part = Part::at(6, 4); // I/O Command Set Selected
    pub(crate) const MPS: Part = Part::at(10, 7); // Memory Page Size
    pub(crate) const AMS: Part = Part::at(13, 11); // Arbitration Mechanism Selected
    pub(crate) const SHN: Part = Part::at(15, 14); // Shutdown Notification
    pub(crate) const IOSQES: Part = Part::at(19, 16); // I/O Submission Queue Entry Size
    pub(crate) const IOCQES: Part = Part::at(23, 20); // I/O Completion Queue Entry Size
}

/// CSTS (Base 3.1.4.6).
pub(crate) mod csts {
    use crate::layout::part::Part;

    pub(crate) const RDY: Part = Part::at(0, 0); // Ready
    pub(crate) const CFS: Part = Part::at(1, 1); // Controller Fatal Status
    pub(crate) const SHST: Part = Part::at(3, 2); // Shutdown Status
}
