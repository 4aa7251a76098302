//! A target's end in full feature phase, beside an initiator that keeps to the rules.

use scsi::iscsi::{
    Answer, Arrival, DataIn, DataOut, Decoder, Expectation, Header, Initiator, Logout, NO_TAG,
    Numbers, R2t, ScsiCommand, ScsiResponse, Session, SessionLimits, TargetRecord, Task,
    TaskRequest, Wishes,
};
use scsi::{Residual, Sense, Status};

use crate::{Got, Handshake, entry_config, pdu, read};

pub(crate) const LIMITS: SessionLimits = SessionLimits { commands: 8, immediate: 2 };

/// What arrived, with data of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    Command(Task, u32),
    Data(u32, Vec<u8>),
    AllData(Result<(), Sense>),
    Manage(scsi::iscsi::Management, TaskRequest),
    SendTargets(String),
    Logout(Logout),
    Pong,
}

/// A session of one connection, and what its initiator has heard.
pub(crate) struct Pair {
    pub(crate) session: Session,
    pub(crate) ear: Decoder,
    pub(crate) wishes: Wishes,
    pub(crate) out: Vec<u8>,
    max_cmd_sn: u32,
}

impl Pair {
    pub(crate) fn new(wishes: Wishes) -> Self {
        Self::of(wishes, wishes)
    }

    pub(crate) fn of(initiator: Wishes, target: Wishes) -> Self {
        let (link, entered) =
            Handshake::default().run(entry_config(initiator), target).expect("they agree");
        let mut ear = Decoder::new();
        ear.agree(entered.link.parameters().digests, initiator.data_bytes);
        let session = Session::new(LIMITS, link);
        let max_cmd_sn = session.window()[1];
        Self { session, ear, wishes: initiator, out: Vec::new(), max_cmd_sn }
    }

    /// What arrives of a PDU; commands take as much data as their initiator has.
    pub(crate) fn send(&mut self, header: Header, data: &[u8]) -> Vec<Came> {
        let bytes = pdu(header, self.session.digests(0), data);
        self.send_raw(&bytes).expect("it may be sent")
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> Result<Vec<Came>, scsi::iscsi::Fatal> {
        let (mut input, mut came) = (bytes, Vec::new());
        while let Some(arrival) = self.session.receive(0, &mut input, &mut self.out)? {
            let one = match arrival {
                Arrival::Command(task, command) => {
                    came.push(Came::Command(task, command.itt));
                    match self.session.expect(task, command.expected_bytes, &mut self.out) {
                        Expectation::Met => Came::AllData(Ok(())),
                        Expectation::Failed(sense) => Came::AllData(Err(sense)),
                        Expectation::Coming => continue,
                    }
                }
                Arrival::Data(_, offset, data) => Came::Data(offset, data.to_vec()),
                Arrival::AllData(_, result) => Came::AllData(result),
                Arrival::Manage(management, request) => Came::Manage(management, request),
                Arrival::SendTargets(name) => Came::SendTargets(name),
                Arrival::Logout(logout) => Came::Logout(logout),
                Arrival::Pong => Came::Pong,
            };
            came.push(one);
        }
        let [exp_cmd_sn, max_cmd_sn] = self.session.window();
        assert!(max_cmd_sn.wrapping_sub(self.max_cmd_sn) < 1 << 31, "the window never shrinks");
        assert!(max_cmd_sn.wrapping_sub(exp_cmd_sn).wrapping_add(1) <= u32::from(LIMITS.commands));
        self.max_cmd_sn = max_cmd_sn;
        Ok(came)
    }

    /// What the initiator has been told since it last asked.
    pub(crate) fn heard(&mut self) -> Vec<Got> {
        let out = std::mem::take(&mut self.out);
        let (got, result) = read(&mut self.ear, [&out[..]]);
        result.expect("a target keeps to the rules");
        got
    }

    /// The next command.
    pub(crate) fn command(&self, itt: u32, expected_bytes: u32) -> ScsiCommand {
        let numbers = Numbers { cmd_sn: self.session.window()[0], exp_stat_sn: 0 };
        ScsiCommand { is_final: true, itt, expected_bytes, numbers, ..ScsiCommand::default() }
    }

    pub(crate) fn write(&self, itt: u32, expected_bytes: u32) -> ScsiCommand {
        ScsiCommand { writes: true, ..self.command(itt, expected_bytes) }
    }

    pub(crate) fn read(&self, itt: u32, expected_bytes: u32) -> ScsiCommand {
        ScsiCommand { reads: true, ..self.command(itt, expected_bytes) }
    }

    pub(crate) fn begin(&mut self, command: ScsiCommand, data: &[u8]) -> (Task, Vec<Came>) {
        let mut came = self.send(Header::Command(command), data);
        let Came::Command(task, _) = came.remove(0) else { panic!("{came:?}") };
        (task, came)
    }

    /// Reasons for Reject among what was heard.
    pub(crate) fn rejects(&mut self) -> Vec<u8> {
        let reason = |got: &Got| match got {
            Got::Header(Header::Reject { reason, .. }, 48) => Some(*reason),
            _ => None,
        };
        self.heard().iter().filter_map(reason).collect()
    }
}

pub(crate) fn small() -> Wishes {
    Wishes {
        data_bytes: 1024,
        max_burst_bytes: 2048,
        first_burst_bytes: 1024,
        max_outstanding_r2t: 2,
        ..Wishes::default()
    }
}

pub(crate) const fn data_out(itt: u32, ttt: u32, data_sn: u32, offset: u32) -> DataOut {
    DataOut { is_final: false, lun: [0; 8], itt, ttt, exp_stat_sn: 0, data_sn, offset }
}

pub(crate) fn r2ts(got: &[Got]) -> Vec<R2t> {
    let r2t = |got: &Got| match got {
        Got::Header(Header::R2t(r2t), 0) => Some(*r2t),
        _ => None,
    };
    got.iter().filter_map(r2t).collect()
}

/// Offset, length, F, status and residual of each PDU of data.
fn data_ins(got: &[Got]) -> Vec<(u32, u32, bool, Option<u8>, Residual)> {
    let pdus = got.iter().filter_map(|got| match got {
        Got::Header(Header::DataIn(data), length) => Some((*data, *length)),
        _ => None,
    });
    let mut data_sn = 0;
    let check = |(data, length): (DataIn, u32)| {
        assert_eq!(data.data_sn, data_sn);
        data_sn += 1;
        (data.offset, length, data.is_final, data.status, data.residual)
    };
    pdus.map(check).collect()
}

#[test]
fn data_is_sent_in_pieces_and_ends_with_its_status() {
    let mut pair = Pair::new(small());
    let (task, came) = pair.begin(pair.read(1, 5000), &[]);
    assert_eq!(came, [Came::AllData(Ok(()))]);
    let data: Vec<u8> = (0..5000_u32).map(|at| at.to_le_bytes()[0]).collect();
    pair.session.send_data(task, &data, 5000, &mut pair.out);
    let got = pair.heard();
    let none = Residual::None;
    assert_eq!(
        data_ins(&got),
        [
            (0, 1024, false, None, none),
            (1024, 1024, true, None, none),
            (2048, 1024, false, None, none),
            (3072, 1024, true, None, none),
            (4096, 904, true, Some(0), none),
        ]
    );
    let sent: Vec<u8> = got
        .into_iter()
        .filter_map(|got| if let Got::Data(data, true) = got { Some(data) } else { None })
        .flatten()
        .collect();
    assert!(sent == data);
    assert_eq!(pair.session.outstanding(), 0);
}

#[test]
fn residuals_are_exact() {
    let mut pair = Pair::new(small());
    for (expected, about, moved, residual) in [
        (512, 512, 512, Residual::None),
        (200, 512, 200, Residual::Overflow(312)),
        (1000, 512, 512, Residual::Underflow(488)),
    ] {
        let (task, _) = pair.begin(pair.read(1, expected), &[]);
        pair.session.send_data(task, &[7; 512], about, &mut pair.out);
        let got = data_ins(&pair.heard());
        assert_eq!(got, [(0, moved, true, Some(0), residual)], "{expected}");
    }
    // Nothing to be sent: a response says the same.
    for (expected, about, residual) in [
        (0, 512, Residual::Overflow(512)),
        (u32::MAX, 0, Residual::Underflow(u32::MAX)),
        (0, 0, Residual::None),
    ] {
        let (task, _) = pair.begin(pair.read(1, expected), &[]);
        let data = &[0; 512][..usize::try_from(about).expect("few")];
        pair.session.send_data(task, data, about, &mut pair.out);
        let got = pair.heard();
        let [Got::Header(Header::Response(response), 0)] = got[..] else { panic!("{got:?}") };
        assert_eq!((response.residual, response.exp_data_sn), (residual, 0));
    }
    // An error has its sense data, with its length before it.
    let (task, _) = pair.begin(pair.read(9, 512), &[]);
    let sense = Sense::LBA_OUT_OF_RANGE.write(false);
    pair.session.respond(task, Status::CheckCondition, &sense, 0, &mut pair.out);
    let got = pair.heard();
    let [Got::Header(Header::Response(response), 20), Got::Data(data, true)] = &got[..] else {
        panic!("{got:?}")
    };
    let ScsiResponse { itt, status, residual, .. } = *response;
    assert_eq!((itt, status, residual), (9, 2, Residual::Underflow(512)));
    assert_eq!((data[..2].to_vec(), &data[2..]), (vec![0, 18], &sense[..]));
}

#[test]
fn data_comes_with_its_command_after_it_and_when_asked_for() {
    let mut pair = Pair::new(small());
    let write = ScsiCommand { is_final: false, ..pair.write(5, 8000) };
    let (task, came) = pair.begin(write, &[1; 512]);
    assert_eq!(came, [Came::Data(0, vec![1; 512])]);
    assert_eq!(pair.heard(), [], "more comes unasked");
    let last = DataOut { is_final: true, ..data_out(5, NO_TAG, 0, 512) };
    let came = pair.send(Header::DataOut(last), &[2; 512]);
    assert_eq!(came, [Came::Data(512, vec![2; 512])]);
    // Two at a time, each as long as a burst.
    let asked = r2ts(&pair.heard());
    let of: Vec<_> = asked.iter().map(|r2t| (r2t.r2t_sn, r2t.offset, r2t.length)).collect();
    assert_eq!(of, [(0, 1024, 2048), (1, 3072, 2048)]);
    assert!(asked[0].ttt != asked[1].ttt && asked.iter().all(|r2t| r2t.ttt != NO_TAG));
    for (data_sn, is_final) in [(0, false), (1, true)] {
        let offset = 1024 + 1024 * data_sn;
        let data = DataOut { is_final, ..data_out(5, asked[0].ttt, data_sn, offset) };
        assert_eq!(pair.send(Header::DataOut(data), &[3; 1024]).len(), 1);
    }
    let more = r2ts(&pair.heard());
    assert_eq!((more.len(), more[0].offset, more[0].length, more[0].r2t_sn), (1, 5120, 2048, 2));
    for r2t in [asked[1], more[0]] {
        for data_sn in 0..2 {
            let offset = r2t.offset + 1024 * data_sn;
            let data = DataOut { is_final: data_sn == 1, ..data_out(5, r2t.ttt, data_sn, offset) };
            assert_eq!(pair.send(Header::DataOut(data), &[4; 1024]).len(), 1);
        }
    }
    let last = r2ts(&pair.heard());
    assert_eq!((last.len(), last[0].offset, last[0].length), (1, 7168, 832));
    let data = DataOut { is_final: true, ..data_out(5, last[0].ttt, 0, 7168) };
    let came = pair.send(Header::DataOut(data), &[5; 832]);
    assert_eq!(came, [Came::Data(7168, vec![5; 832]), Came::AllData(Ok(()))]);
    pair.session.respond(task, Status::Good, &[], 8000, &mut pair.out);
    let got = pair.heard();
    assert!(matches!(got[..], [Got::Header(Header::Response(ScsiResponse { itt: 5, .. }), 0)]));
}

#[test]
fn no_more_is_asked_for_than_is_wanted() {
    let mut pair = Pair::new(small());
    let command = Header::Command(pair.write(5, 8000));
    let bytes = pdu(command, pair.session.digests(0), &[1; 1024]);
    let mut input = &bytes[..];
    let arrival = pair.session.receive(0, &mut input, &mut pair.out).expect("it may");
    let Some(Arrival::Command(task, _)) = arrival else { panic!("{arrival:?}") };
    assert_eq!(pair.session.expect(task, 512, &mut pair.out), Expectation::Coming);
    let arrival = pair.session.receive(0, &mut input, &mut pair.out).expect("it may");
    assert_eq!(arrival, Some(Arrival::Data(task, 0, &[1; 512])));
    let arrival = pair.session.receive(0, &mut input, &mut pair.out).expect("it may");
    assert_eq!(arrival, Some(Arrival::AllData(task, Ok(()))));
    assert_eq!(pair.heard(), []);
    pair.session.respond(task, Status::Good, &[], 512, &mut pair.out);
    let got = pair.heard();
    let [Got::Header(Header::Response(response), 0)] = got[..] else { panic!("{got:?}") };
    assert_eq!(response.residual, Residual::Underflow(7488));
}

#[test]
fn aborted_commands_are_not_answered_and_have_their_places() {
    let mut pair = Pair::new(small());
    let (task, _) = pair.begin(pair.write(5, 4096), &[]);
    let ttt = r2ts(&pair.heard())[0].ttt;
    let request = TaskRequest {
        is_immediate: true,
        function: 1,
        itt: 90,
        referenced: 5,
        ..TaskRequest::default()
    };
    let came = pair.send(Header::TaskRequest(request), &[]);
    let [Came::Manage(management, asked)] = came[..] else { panic!("{came:?}") };
    assert_eq!(pair.session.affected(&asked), [task]);
    pair.session.abort(task);
    // Whoever aborts it once more waits for its end, too.
    assert_eq!(pair.session.affected(&asked), [task]);
    pair.session.answer_management(management, 0, &mut pair.out);
    let got = pair.heard();
    assert!(matches!(got[..], [Got::Header(Header::TaskResponse { response: 0, itt: 90, .. }, 0)]));
    // Its data is on its way still; its tag can be used again; its place is taken.
    let late = DataOut { is_final: true, ..data_out(5, ttt, 0, 0) };
    assert_eq!(pair.send(Header::DataOut(late), &[1; 512]), []);
    assert_eq!((pair.heard(), pair.session.outstanding()), (vec![], 1));
    let (again, _) = pair.begin(pair.write(5, 512), &[2; 512]);
    assert_ne!(again, task);
    pair.session.respond(task, Status::Good, &[], 0, &mut pair.out);
    assert_eq!((pair.heard(), pair.session.outstanding()), (vec![], 1));
    // Unknown, other logical units, all.
    let unknown = TaskRequest { referenced: 77, ..request };
    let other = TaskRequest { function: 5, lun: [0, 9, 0, 0, 0, 0, 0, 0], ..request };
    let all = TaskRequest { function: 6, ..request };
    let affected = [unknown, other, all].map(|one| pair.session.affected(&one));
    assert_eq!(affected, [vec![], vec![], vec![again]]);
}

// RFC 7143 11.6.1: what is aborted before it has come counts as come.
#[test]
fn a_command_is_aborted_before_it_comes() {
    let wishes = Wishes { max_connections: 2, initial_r2t: false, ..small() };
    let mut pair = Pair::new(wishes);
    let handshake = Handshake { window: Some(pair.session.window()), ..Handshake::default() };
    let config = scsi::iscsi::EntryConfig { cid: 1, tsih: 7, ..entry_config(wishes) };
    pair.session.join(handshake.run(config, wishes).expect("they agree").0);
    let [first, last] = pair.session.window();
    let abort = |referenced, ref_cmd_sn, cmd_sn| TaskRequest {
        is_immediate: true,
        function: 1,
        itt: 90,
        referenced,
        numbers: Numbers { cmd_sn, exp_stat_sn: 0 },
        ref_cmd_sn,
        ..TaskRequest::default()
    };
    // Before the window, behind it, and not sent before the request: nothing is to come.
    for (ref_cmd_sn, cmd_sn) in
        [(first - 1, first + 2), (last + 1, last + 2), (first, first), (first + 2, first)]
    {
        assert!(!pair.session.forestall(&abort(6, ref_cmd_sn, cmd_sn)), "{ref_cmd_sn} {cmd_sn}");
    }
    assert_eq!(pair.session.window(), [first, last]);
    let set = TaskRequest { function: 2, ..abort(6, first + 1, first + 3) };
    assert!(!pair.session.forestall(&set));
    // The third waits on its connection, the second is aborted, and the first has not come.
    let mut third = pair.read(7, 512);
    third.numbers.cmd_sn = first + 2;
    let bytes = pdu(Header::Command(third), pair.session.digests(1), &[]);
    let mut input = &bytes[..];
    assert_eq!(pair.session.receive(1, &mut input, &mut pair.out), Ok(None));
    for _ in 0..2 {
        assert!(pair.session.forestall(&abort(6, first + 1, first + 3)));
    }
    assert_eq!((pair.session.window(), pair.session.ready()), ([first, last], None));
    let mut second = ScsiCommand { is_final: false, ..pair.write(6, 1024) };
    second.numbers.cmd_sn = first + 1;
    assert_eq!(pair.send(Header::Command(second), &[]), []);
    let late = DataOut { is_final: true, ..data_out(6, NO_TAG, 0, 0) };
    assert_eq!(pair.send(Header::DataOut(late), &[1; 1024]), []);
    assert_eq!(pair.heard(), []);
    // With the first it is the third's turn, which is aborted where it waits.
    pair.begin(pair.read(5, 512), &[]);
    assert_eq!((pair.session.window()[0], pair.session.ready()), (first + 2, Some(1)));
    assert!(pair.session.forestall(&abort(7, first + 2, first + 3)));
    assert_eq!((pair.session.window()[0], pair.session.ready()), (first + 3, Some(1)));
    assert_eq!(pair.session.receive(1, &mut input, &mut pair.out), Ok(None));
    assert_eq!((pair.session.ready(), pair.session.outstanding()), (None, 1));
    pair.begin(pair.read(6, 512), &[]);
}

#[test]
fn a_logout_waits_for_what_is_under_way() {
    let mut pair = Pair::new(small());
    let (task, _) = pair.begin(pair.read(5, 512), &[]);
    let numbers = Numbers { cmd_sn: pair.session.window()[0], exp_stat_sn: 0 };
    let request =
        |reason, cid| Header::LogoutRequest { is_immediate: true, reason, itt: 90, cid, numbers };
    for (reason, cid, expected) in [(1, 3, 1), (2, 0, 2), (9, 0, 2)] {
        assert_eq!(pair.send(request(reason, cid), &[]), []);
        let got = pair.heard();
        let [Got::Header(Header::LogoutResponse { response, .. }, 0)] = got[..] else {
            panic!("{got:?}")
        };
        assert_eq!(response, expected, "{reason} of {cid}");
    }
    assert_eq!(pair.send(request(1, 0), &[]), [Came::Logout(Logout::Connection(0))]);
    assert_eq!(pair.session.finish_logout(0, &mut pair.out), None);
    // Nothing follows it.
    assert_eq!(pair.send(Header::Command(pair.read(6, 512)), &[]), []);
    pair.session.respond(task, Status::Good, &[], 0, &mut pair.out);
    assert_eq!(pair.heard(), []);
    let done = pair.session.finish_logout(0, &mut pair.out);
    assert_eq!(done, Some(Logout::Connection(0)));
    let got = pair.heard();
    assert!(matches!(
        got[..],
        [Got::Header(Header::LogoutResponse { response: 0, itt: 90, .. }, 0)]
    ));
}

#[test]
fn commands_wait_for_those_of_other_connections() {
    let wishes = Wishes { max_connections: 2, ..small() };
    let mut pair = Pair::new(wishes);
    let handshake = Handshake { window: Some(pair.session.window()), ..Handshake::default() };
    let config = scsi::iscsi::EntryConfig { cid: 1, tsih: 7, ..entry_config(wishes) };
    let (link, _) = handshake.run(config, wishes).expect("they agree");
    assert_eq!(pair.session.join(link), 1);
    let (first, mut second) = (pair.read(1, 512), pair.read(2, 512));
    second.numbers.cmd_sn += 1;
    let bytes = pdu(Header::Command(second), pair.session.digests(1), &[]);
    let mut input = &bytes[..];
    let arrival = pair.session.receive(1, &mut input, &mut pair.out);
    assert_eq!((arrival, pair.session.ready()), (Ok(None), None));
    pair.begin(first, &[]);
    assert_eq!(pair.session.ready(), Some(1));
    let arrival = pair.session.receive(1, &mut input, &mut pair.out).expect("it may");
    let Some(Arrival::Command(task, command)) = arrival else { panic!("{arrival:?}") };
    assert_eq!((command.itt, pair.session.connection_of(task)), (2, Some(1)));
    assert_eq!(pair.session.ready(), None);
    // With its connection, a command is gone, and its place when its owner is done with it.
    pair.session.cut(1);
    assert_eq!(pair.session.connections().collect::<Vec<_>>(), [(0, 0)]);
    pair.session.respond(task, Status::Good, &[], 0, &mut pair.out);
    assert_eq!((pair.heard(), pair.session.outstanding()), (vec![], 1));
}

#[test]
fn an_initiator_learns_of_ten_thousand_targets() {
    let config = scsi::iscsi::EntryConfig { target: None, ..entry_config(small()) };
    let (link, entered) = Handshake::default().run(config, small()).expect("they agree");
    let (mut target, mut initiator) = (Session::new(LIMITS, link), Initiator::new(1, entered.link));
    let targets: Vec<TargetRecord> = (0..10_000)
        .map(|number| TargetRecord {
            name: format!("iqn.2001-04.com.example:disk-{number}"),
            addresses: vec!["192.0.2.1:3260,1".to_owned(), "[2001:db8::1]:3260,1".to_owned()],
        })
        .collect();
    let (mut to_target, mut to_initiator) = (Vec::new(), Vec::new());
    initiator.send_targets(0, &mut to_target);
    for _ in 0..2000 {
        let bytes = std::mem::take(&mut to_target);
        let mut input = &bytes[..];
        while let Some(arrival) =
            target.receive(0, &mut input, &mut to_initiator).expect("it may be sent")
        {
            assert_eq!(arrival, Arrival::SendTargets("All".to_owned()));
            target.answer_text(0, &targets, &mut to_initiator);
        }
        let bytes = std::mem::take(&mut to_initiator);
        let answer = initiator.receive(0, &mut &bytes[..], &mut to_target).expect("it is right");
        if let Some(answer) = answer {
            assert!(answer == Answer::Targets(targets), "all of them, in order");
            return;
        }
    }
    panic!("it does not end");
}

#[test]
fn both_ends_ask_whether_the_other_is_there() {
    let (link, entered) =
        Handshake::default().run(entry_config(small()), small()).expect("they agree");
    let (mut target, mut initiator) = (Session::new(LIMITS, link), Initiator::new(1, entered.link));
    let (mut to_target, mut to_initiator) = (Vec::new(), Vec::new());
    target.ping(0, &mut to_initiator);
    initiator.ping(0, &mut to_target);
    let bytes = std::mem::take(&mut to_initiator);
    assert_eq!(initiator.receive(0, &mut &bytes[..], &mut to_target), Ok(None));
    let mut input = &to_target[..];
    assert_eq!(target.receive(0, &mut input, &mut to_initiator), Ok(Some(Arrival::Pong)));
    let answer = initiator.receive(0, &mut &to_initiator[..], &mut Vec::new());
    assert_eq!(answer, Ok(Some(Answer::Pong)));
    let mut event = Vec::new();
    target.announce(0, 1, [0, 0, 30], &mut event);
    let answer = initiator.receive(0, &mut &event[..], &mut Vec::new()).expect("it may");
    assert!(matches!(answer, Some(Answer::Event(event)) if event.parameters == [0, 0, 30]));
}
