//! Headers beside bytes as the figures of RFC 7143 have them: for what others have not been asked,
//! or have said zeros.

use scsi::Residual;
use scsi::iscsi::{
    AsyncMessage, BHS_BYTES, DataIn, DataOut, Digests, Header, LoginRequest, LoginResponse,
    LoginStage, NO_TAG, Numbers, R2t, ScsiResponse, TaskRequest, Window,
};

const LUN: [u8; 8] = [0x40, 1, 2, 3, 4, 5, 6, 7];
const NUMBERS: Numbers = Numbers { cmd_sn: 0x1122_3344, exp_stat_sn: 0x5566_7788 };
const WINDOW: Window =
    Window { stat_sn: 0x1122_3344, exp_cmd_sn: 0x5566_7788, max_cmd_sn: 0x99aa_bbcc };
const ITT: u32 = 0x0a0b_0c0d;
const TTT: u32 = 0x0e0f_1011;

/// The words of a header, four bytes each.
fn is(header: Header, words: [u32; BHS_BYTES / 4]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut ours = Vec::new();
    header.encode(Digests::default(), usize::try_from(words[1]).expect("short"), &mut ours);
    assert_eq!(ours, bytes, "{header:x?}");
    assert_eq!(Header::decode(bytes[..].try_into().expect("48 bytes")), header);
}

const N: u32 = NO_TAG;
const L: [u32; 2] = [0x4001_0203, 0x0405_0607];
const S: [u32; 3] = [0x1122_3344, 0x5566_7788, 0x99aa_bbcc];

#[test]
fn requests_are_as_the_figures_have_it() {
    let task = TaskRequest {
        is_immediate: true,
        function: 5,
        lun: LUN,
        itt: ITT,
        referenced: TTT,
        numbers: NUMBERS,
        ref_cmd_sn: 0x99aa_bbcc,
    };
    let words = [0x4285_0000, 0, L[0], L[1], ITT, TTT, S[0], S[1], S[2], 0, 0, 0];
    is(Header::TaskRequest(task), words);
    let data = DataOut {
        is_final: true,
        lun: LUN,
        itt: ITT,
        ttt: TTT,
        exp_stat_sn: S[1],
        data_sn: 3,
        offset: 0x8000,
    };
    let words = [0x0580_0000, 512, L[0], L[1], ITT, TTT, 0, S[1], 0, 3, 0x8000, 0];
    is(Header::DataOut(data), words);
    let stage = LoginStage { transits: false, continues: true, current: 1, next: 0 };
    let login = LoginRequest {
        stage,
        version_max: 2,
        version_min: 1,
        isid: [0x80, 1, 2, 3, 4, 5],
        tsih: 0x0607,
        itt: ITT,
        cid: 0x0809,
        numbers: NUMBERS,
    };
    let words =
        [0x4344_0201, 9, 0x8001_0203, 0x0405_0607, ITT, 0x0809_0000, S[0], S[1], 0, 0, 0, 0];
    is(Header::LoginRequest(login), words);
    let (itt, cid) = (ITT, 0x0809);
    let logout =
        Header::LogoutRequest { is_immediate: false, reason: 2, itt, cid, numbers: NUMBERS };
    is(logout, [0x0682_0000, 0, 0, 0, ITT, 0x0809_0000, S[0], S[1], 0, 0, 0, 0]);
    let (lun, ttt) = (LUN, TTT);
    let ping = Header::NopOut { is_immediate: true, lun, itt, ttt, numbers: NUMBERS };
    is(ping, [0x4080_0000, 4, L[0], L[1], ITT, TTT, S[0], S[1], 0, 0, 0, 0]);
}

#[test]
fn answers_are_as_the_figures_have_it() {
    let response = ScsiResponse {
        residual: Residual::Overflow(0x1234),
        response: 1,
        status: 0x18,
        itt: ITT,
        window: WINDOW,
        exp_data_sn: 7,
    };
    let words = [0x2184_0118, 0, 0, 0, ITT, 0, S[0], S[1], S[2], 7, 0, 0x1234];
    is(Header::Response(response), words);
    let data = DataIn {
        is_final: false,
        status: None,
        residual: Residual::None,
        lun: LUN,
        itt: ITT,
        window: WINDOW,
        data_sn: 3,
        offset: 0x8000,
    };
    let words = [0x2500_0000, 512, L[0], L[1], ITT, N, S[0], S[1], S[2], 3, 0x8000, 0];
    is(Header::DataIn(data), words);
    let (lun, itt, ttt, window) = (LUN, ITT, TTT, WINDOW);
    let r2t = R2t { lun, itt, ttt, window, r2t_sn: 3, offset: 0x8000, length: 0x4000 };
    let words = [0x3180_0000, 0, L[0], L[1], ITT, TTT, S[0], S[1], S[2], 3, 0x8000, 0x4000];
    is(Header::R2t(r2t), words);
    let stage = LoginStage { transits: true, continues: false, current: 0, next: 1 };
    let isid = [0x80, 1, 2, 3, 4, 5];
    let login = LoginResponse { stage, isid, tsih: 0x0607, itt, window, status: 0x0203 };
    let words = [0x2381_0000, 0, 0x8001_0203, 0x0405_0607, ITT, 0, S[0], S[1], S[2], 0x0203_0000];
    let words = [&words[..], &[0, 0]].concat().try_into().expect("twelve");
    is(Header::LoginResponse(login), words);
    let message = AsyncMessage { lun, window, event: 1, parameters: [2, 3, 4] };
    let words = [0x3280_0000, 0, L[0], L[1], N, 0, S[0], S[1], S[2], 0x0100_0002, 0x0003_0004, 0];
    is(Header::Async(message), words);
    let reject = Header::Reject { reason: 9, window };
    is(reject, [0x3f80_0900, 48, 0, 0, N, 0, S[0], S[1], S[2], 0, 0, 0]);
}
