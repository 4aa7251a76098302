//! Commands that are aborted before they have come (RFC 7143 11.6.1).

use std::io::{Read, Write};

use scsi::iscsi::{Digests, Header, Numbers, TaskRequest};
use target::Limits;

use crate::initiators::{Client, serve};

/// The response, and ExpCmdSN beside it.
fn abort(client: &mut Client, ref_cmd_sn: u32, cmd_sn: u32) -> (u8, u32) {
    let request = TaskRequest {
        is_immediate: true,
        function: 1,
        itt: 77,
        referenced: 88,
        numbers: Numbers { cmd_sn, exp_stat_sn: 0 },
        ref_cmd_sn,
        ..TaskRequest::default()
    };
    let mut bytes = Vec::new();
    Header::TaskRequest(request).encode(Digests::default(), 0, &mut bytes);
    client.streams[0].write_all(&bytes).expect("it takes it");
    let mut answer = [0; 48];
    client.streams[0].read_exact(&mut answer).expect("it answers");
    let number = |at: usize| u32::from_be_bytes(answer[at..at + 4].try_into().expect("four"));
    assert_eq!((answer[0], number(16)), (0x22, 77), "it is the answer to that");
    (answer[2], number(28))
}

#[test]
fn a_command_that_may_still_come_counts_as_come() {
    let target = serve(1, Limits::default());
    let mut client = Client::log_in(&target, 1);
    let next = client.initiator.cmd_sn();
    assert_eq!(abort(&mut client, next - 1, next), (1, next), "it has come, and ended");
    assert_eq!(abort(&mut client, next + 1, next + 2), (0, next));
    assert_eq!(abort(&mut client, next, next + 2), (0, next + 2), "and with it the one behind");
    assert_eq!(abort(&mut client, next, next + 2), (1, next + 2));
    target.stop().expect("it has not failed");
}
