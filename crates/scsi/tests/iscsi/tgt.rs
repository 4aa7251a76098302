//! Headers as others write them, byte for byte: what tgtd 1.0.85 answers, and what libiscsi 1.19
//! asks (`asked-*`), both of Debian, kept by a relay between them and by an initiator written by
//! hand. So a layout that both of our ends have wrong is found.
//!
//! `tgt/*.hex` have the lines that are not all zeros. The disk is that of `scsi tgt`.

use scsi::ask;
use scsi::iscsi::{
    BHS_BYTES, DataIn, Digests, Header, LoginRequest, LoginResponse, LoginStage, NO_TAG, Numbers,
    R2t, ScsiCommand, ScsiResponse, TextRequest, TextResponse, Window,
};
use scsi::{Residual, Sense, SenseKey, Status};
use test_support::read_hex;

macro_rules! golden {
    ($name:literal) => {
        read_hex(include_str!(concat!("tgt/", $name, ".hex")))
    };
}

const LUN_1: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];
const TO_FULL_FEATURE: LoginStage =
    LoginStage { transits: true, continues: false, current: 1, next: 3 };

/// A header says this, and is written so again before as much data.
fn says(bytes: &[u8], header: Header, data_bytes: usize) {
    let bytes: &[u8; BHS_BYTES] = bytes.first_chunk().expect("a header");
    assert_eq!(Header::decode(bytes), header);
    let mut ours = Vec::new();
    header.encode(Digests::default(), data_bytes, &mut ours);
    assert_eq!(ours, bytes);
}

fn window(stat_sn: u32, exp_cmd_sn: u32, max_cmd_sn: u32) -> Window {
    Window { stat_sn, exp_cmd_sn, max_cmd_sn }
}

#[test]
fn a_login_is_answered() {
    let response = LoginResponse {
        stage: TO_FULL_FEATURE,
        isid: [0, 2, 0x3d, 0, 0, 1],
        tsih: 0x100,
        itt: 0x11,
        window: window(0, 0x102, 0x103),
        status: 0,
    };
    says(&golden!("login"), Header::LoginResponse(response), 0x59);
}

#[test]
fn commands_are_answered() {
    let data = DataIn {
        is_final: true,
        status: Some(Status::Good as u8),
        residual: Residual::Underflow(256 - 40),
        lun: [0; 8],
        itt: 0x25,
        window: window(5, 0x107, 0x187),
        data_sn: 0,
        offset: 0,
    };
    says(&golden!("data-in"), Header::DataIn(data), 40);
    let r2t = R2t {
        lun: LUN_1,
        itt: 0x35,
        ttt: 0x70cb_bbc3,
        window: window(0x15, 0x117, 0x197),
        r2t_sn: 0,
        offset: 0,
        length: 8192,
    };
    says(&golden!("r2t"), Header::R2t(r2t), 0);
    let response = ScsiResponse {
        residual: Residual::None,
        response: 0,
        status: Status::CheckCondition as u8,
        itt: 0x21,
        window: window(1, 0x103, 0x183),
        exp_data_sn: 0,
    };
    let bytes = golden!("response");
    says(&bytes, Header::Response(response), 20);
    // Two bytes with its length go before sense data.
    let sense = Sense::read(&bytes[BHS_BYTES + 2..]).expect("sense data");
    assert_eq!((sense.key, sense.code), (SenseKey::UnitAttention, 0x2900));
}

#[test]
fn the_rest_is_answered() {
    let nop =
        Header::NopIn { lun: [0; 8], itt: 0x99, ttt: NO_TAG, window: window(0x1c, 0x11d, 0x19d) };
    says(&golden!("nop-in"), nop, 4);
    let task = Header::TaskResponse { response: 1, itt: 0x9a, window: window(0x1d, 0x11d, 0x19d) };
    says(&golden!("task"), task, 0);
    let logout =
        Header::LogoutResponse { response: 0, itt: 0x9c, window: window(0x1e, 0x11e, 0x19e) };
    says(&golden!("logout"), logout, 0);
    let text = TextResponse {
        is_final: true,
        continues: false,
        itt: 0x604b_431d,
        ttt: NO_TAG,
        window: window(1, 0x779a_6217, 0x779a_6218),
    };
    says(&golden!("text"), Header::TextResponse(text), 70);
}

#[test]
fn what_libiscsi_asks_is_read() {
    let login = LoginRequest {
        stage: TO_FULL_FEATURE,
        version_max: 0,
        version_min: 0,
        isid: [0x80, 0x64, 0x95, 0xc6, 0, 0],
        tsih: 0,
        itt: 0x399a_ef5e,
        cid: 0,
        numbers: Numbers { cmd_sn: 0x11b0_f54b, exp_stat_sn: 1 },
    };
    says(&golden!("asked-login"), Header::LoginRequest(login), 0x1b6);
    let inquiry = ScsiCommand {
        is_immediate: false,
        is_final: true,
        reads: true,
        writes: false,
        attribute: 1,
        lun: LUN_1,
        itt: 0x399a_ef61,
        expected_bytes: 64,
        numbers: Numbers { cmd_sn: 0x11b0_f54d, exp_stat_sn: 3 },
        cdb: ask::inquiry(None, 64),
    };
    says(&golden!("asked-inquiry"), Header::Command(inquiry), 0);
    let capacity = ScsiCommand {
        itt: 0x71db_c072,
        expected_bytes: 32,
        numbers: Numbers { cmd_sn: 0x2e2e_8efe, exp_stat_sn: 3 },
        cdb: ask::read_capacity_long(32),
        ..inquiry
    };
    says(&golden!("asked-capacity"), Header::Command(capacity), 0);
    let text = TextRequest {
        is_immediate: true,
        is_final: true,
        continues: false,
        itt: 0x604b_431d,
        ttt: NO_TAG,
        numbers: Numbers { cmd_sn: 0x779a_6217, exp_stat_sn: 1 },
    };
    says(&golden!("asked-text"), Header::TextRequest(text), 16);
    let logout = Header::LogoutRequest {
        is_immediate: true,
        reason: 0,
        itt: 0x399a_ef63,
        cid: 0,
        numbers: Numbers { cmd_sn: 0x11b0_f54f, exp_stat_sn: 5 },
    };
    says(&golden!("asked-logout"), logout, 0);
}
