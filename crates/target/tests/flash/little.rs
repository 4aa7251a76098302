//! A little iSCSI target of the protocol's own ends, with one logical unit in memory: sessions of
//! several connections, and what happens to it when it is told to be no good.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use scsi::iscsi::{
    Admission, Arrival, Expectation, Login, LoginEvent, Nonce, ScsiCommand, Session, SessionLimits,
    Task, Wishes,
};
use scsi::{
    BlockLimits, LogicalUnit, Lun, Nexus, Operation, Outcome, PersistentReservations, Step,
    TransportId, UnitData, UnitPort, report_luns,
};

pub(crate) const TARGET: &str = "iqn.2026-11.example:little";
pub(crate) const BYTES: usize = 8 << 20;

/// See the module's description; it goes when the test does.
pub(crate) struct Little {
    pub(crate) address: SocketAddr,
    /// What is in it.
    pub(crate) memory: Arc<Mutex<Vec<u8>>>,
}

/// A connection has begun, has brought bytes, or has ended.
enum Heard {
    Begun(TcpStream),
    Bytes(Vec<u8>),
    Ended,
}

enum Phase {
    Login(Box<Login>),
    Member { tsih: u16, number: u16 },
    Over,
}

struct Peer {
    stream: TcpStream,
    phase: Phase,
    /// What has come and waits for its turn.
    input: Vec<u8>,
}

/// What was asked for, what is to be done, its data, and whether all of that is there.
type Open = (ScsiCommand, Step, Vec<u8>, bool);

struct Member {
    isid: [u8; 6],
    session: Session,
    nexus: Nexus,
    /// By number in the session.
    peers: Vec<usize>,
    open: BTreeMap<Task, Open>,
}

struct Work {
    wishes: Wishes,
    unit: LogicalUnit,
    memory: Arc<Mutex<Vec<u8>>>,
    peers: BTreeMap<usize, Peer>,
    members: BTreeMap<u16, Member>,
}

impl Little {
    pub(crate) fn start(wishes: Wishes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let address = listener.local_addr().expect("it has one");
        let memory = Arc::new(Mutex::new(vec![0; BYTES]));
        let (sender, heard) = channel();
        std::thread::spawn(move || listen(&listener, &sender));
        let work = Work {
            wishes,
            unit: LogicalUnit::new(unit(), PersistentReservations::new(false)),
            memory: Arc::clone(&memory),
            peers: BTreeMap::new(),
            members: BTreeMap::new(),
        };
        std::thread::spawn(move || work.run(&heard));
        Self { address, memory }
    }

    pub(crate) fn uri(&self, query: &str) -> String {
        format!("iscsi://{}/{TARGET}/0{query}", self.address)
    }
}

fn unit() -> UnitData {
    UnitData {
        block_shift: 9,
        block_count: BYTES as u64 >> 9,
        physical_shift: 12,
        id: [0x6e; 16],
        vendor: *b"afar    ",
        product: *b"little          ",
        revision: *b"1   ",
        is_thin: true,
        has_write_cache: true,
        is_read_only: false,
        limits: BlockLimits {
            transfer_blocks: 2048,
            optimal_blocks: 256,
            // Less than what is asked for at once.
            unmap_blocks: 1000,
            unmap_ranges: 1,
            write_same_blocks: 1000,
            compare_blocks: 1,
        },
        atomic_blocks: 1,
        ports: 1,
        opening: [0x6f; 16],
    }
}

fn listen(listener: &TcpListener, sender: &Sender<(usize, Heard)>) {
    for (peer, stream) in listener.incoming().enumerate() {
        let Ok(mut stream) = stream else { return };
        let (sender, own) = (sender.clone(), stream.try_clone().expect("it is open"));
        own.set_nodelay(true).expect("it is TCP");
        std::thread::spawn(move || {
            let _gone = sender.send((peer, Heard::Begun(own)));
            let mut bytes = vec![0; 64 << 10];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                let _gone = sender.send((peer, Heard::Bytes(bytes[..count].to_vec())));
            }
            let _gone = sender.send((peer, Heard::Ended));
        });
    }
}

impl Work {
    fn run(mut self, heard: &Receiver<(usize, Heard)>) {
        while let Ok((peer, what)) = heard.recv() {
            match what {
                Heard::Begun(stream) => {
                    let login = Login::new(self.wishes, Nonce { id: 1, challenge: [1; 32] });
                    let phase = Phase::Login(Box::new(login));
                    self.peers.insert(peer, Peer { stream, phase, input: Vec::new() });
                }
                Heard::Bytes(bytes) => {
                    if let Some(one) = self.peers.get_mut(&peer) {
                        one.input.extend(bytes);
                        self.serve(peer);
                    }
                }
                Heard::Ended => self.end(peer),
            }
        }
    }

    // One connection less is one session less.
    fn end(&mut self, peer: usize) {
        let Some(Peer { phase, stream, .. }) = self.peers.remove(&peer) else { return };
        let _gone = stream.shutdown(std::net::Shutdown::Both);
        let Phase::Member { tsih, .. } = phase else { return };
        if let Some(member) = self.members.remove(&tsih) {
            self.unit.detach(member.nexus);
            for peer in member.peers {
                if let Some(peer) = self.peers.remove(&peer) {
                    let _gone = peer.stream.shutdown(std::net::Shutdown::Both);
                }
            }
        }
    }

    fn serve(&mut self, peer: usize) {
        let one = self.peers.get_mut(&peer).expect("it has begun");
        match std::mem::replace(&mut one.phase, Phase::Over) {
            Phase::Login(login) => self.log_in(peer, login),
            Phase::Member { tsih, number } => {
                one.phase = Phase::Member { tsih, number };
                self.hear(tsih, number);
            }
            Phase::Over => {}
        }
    }

    fn log_in(&mut self, peer: usize, mut login: Box<Login>) {
        let one = self.peers.get_mut(&peer).expect("it has begun");
        let (mut out, bytes) = (Vec::new(), std::mem::take(&mut one.input));
        let mut input = &bytes[..];
        let mut event = login.receive(&mut input, &mut out).expect("it is right");
        if let Some(LoginEvent::Identified(_)) = event {
            let admission = Admission { chap: None, group: 1, alias: None };
            event = login.admit(admission, &mut out).expect("it is right");
        }
        let Some(LoginEvent::Agreed(identity, _)) = event else {
            one.phase = Phase::Login(login);
            let _gone = one.stream.write_all(&out);
            return;
        };
        let (tsih, number) = match identity.tsih {
            0 => {
                // Whatever was asked in it before is over (RFC 7143 6.3.5).
                let old = self.members.values().find(|one| one.isid == identity.isid);
                if let Some(old) = old.map(|one| one.peers[0]) {
                    self.end(old);
                }
                let tsih = u16::try_from(peer).expect("few") + 1;
                let nexus = Nexus(u64::from(tsih));
                self.unit.attach(
                    nexus,
                    TransportId::iscsi(&identity.initiator, identity.isid).through(1),
                );
                let link = login.establish(tsih, None, &mut out);
                let limits = SessionLimits { commands: 16, immediate: 4 };
                let session = Session::new(limits, link);
                let (isid, peers, open) = (identity.isid, vec![peer], BTreeMap::new());
                let member = Member { isid, session, nexus, peers, open };
                self.members.insert(tsih, member);
                (tsih, 0)
            }
            tsih => {
                let Some(member) = self.members.get_mut(&tsih) else { return self.end(peer) };
                let link = login.establish(tsih, Some(member.session.window()), &mut out);
                member.peers.push(peer);
                (tsih, member.session.join(link))
            }
        };
        let one = self.peers.get_mut(&peer).expect("it has begun");
        (one.phase, one.input) = (Phase::Member { tsih, number }, input.to_vec());
        let _gone = one.stream.write_all(&out);
        self.hear(tsih, number);
    }

    // What has come on a connection, and then on others for which it is the turn.
    fn hear(&mut self, tsih: u16, number: u16) {
        let mut next = Some(number);
        while let Some(number) = next {
            let Some(member) = self.members.get_mut(&tsih) else { return };
            let Some(peer) = self.peers.get_mut(&member.peers[usize::from(number)]) else {
                return;
            };
            let (mut out, bytes) = (Vec::new(), std::mem::take(&mut peer.input));
            let mut input = &bytes[..];
            loop {
                match member.session.receive(number, &mut input, &mut out) {
                    Ok(Some(arrival)) => member.take(arrival, &mut self.unit, &mut out),
                    Ok(None) => break,
                    Err(fatal) => panic!("what this initiator says is right: {fatal}"),
                }
                member.work(&mut self.unit, &self.memory, number, &mut out);
            }
            peer.input = input.to_vec();
            let _gone = peer.stream.write_all(&out);
            next = member.session.ready();
        }
    }
}

impl Member {
    fn take(&mut self, arrival: Arrival<'_>, unit: &mut LogicalUnit, out: &mut Vec<u8>) {
        let port = UnitPort { target: TARGET, group: 1, relative: 1, states: &[] };
        match arrival {
            Arrival::Command(task, command) => {
                let sent = if command.writes { command.expected_bytes } else { 0 };
                let step = unit.begin(self.nexus, &command.cdb, sent, port);
                let is_answer = matches!(step, Step::Answer(_));
                let wanted = if is_answer { 0 } else { sent };
                let expected = self.session.expect(task, wanted, out);
                let is_ready = expected == Expectation::Met || is_answer;
                self.open.insert(task, (command, step, vec![0; wanted as usize], is_ready));
            }
            Arrival::Data(task, offset, bytes) => {
                let room = &mut self.open.get_mut(&task).expect("it is open").2;
                room[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            Arrival::AllData(task, result) => {
                result.expect("all of it comes");
                if let Some(open) = self.open.get_mut(&task) {
                    open.3 = true;
                }
            }
            Arrival::Logout(_) => {
                let _over = self.session.finish_logout(0, out);
            }
            Arrival::Pong => {}
            other => panic!("nobody asks for {other:?}"),
        }
    }

    // Does what has all its data, on this connection.
    fn work(
        &mut self,
        unit: &mut LogicalUnit,
        memory: &Mutex<Vec<u8>>,
        number: u16,
        out: &mut Vec<u8>,
    ) {
        let is_here = |task: Task| self.session.connection_of(task) == Some(number);
        let ready = self.open.iter().find(|(task, open)| open.3 && is_here(**task));
        let Some(task) = ready.map(|(task, _)| *task) else { return };
        let (_, mut step, data, _) = self.open.remove(&task).expect("it is there");
        if let Step::Parameters(command, length) = step {
            step = unit.parameters(self.nexus, &command, &data[..length as usize]);
        }
        let mut memory = memory.lock().expect("nobody has panicked");
        let outcome = match step {
            Step::Answer(outcome) => outcome,
            Step::ReportLuns { select, allocation } => {
                Outcome::data(report_luns([Lun::FIRST], select, allocation).expect("it may"))
            }
            Step::Unmap(ranges) => {
                for range in ranges {
                    let from = usize::try_from(range.offset).expect("inside");
                    memory[from..][..usize::try_from(range.length).expect("inside")].fill(0);
                }
                Outcome::good(data.len() as u64)
            }
            Step::Device(plan) => {
                let [from, length] =
                    [plan.offset, plan.length].map(|at| usize::try_from(at).expect("inside"));
                let blocks = &mut memory[from..from + length];
                match plan.operation {
                    Operation::Read => {
                        return self.session.send_data(task, blocks, plan.about_bytes, out);
                    }
                    Operation::Write { .. } => blocks.copy_from_slice(&data),
                    Operation::WriteSame { .. } => {
                        blocks.chunks_mut(512).for_each(|block| block.copy_from_slice(&data));
                    }
                    Operation::Flush => {}
                    other => panic!("nobody asks for {other:?}"),
                }
                Outcome::good(plan.about_bytes)
            }
            other => panic!("nobody asks for {other:?}"),
        };
        if outcome.data.is_empty() {
            let sense = outcome.sense.map(|sense| sense.write(false)).unwrap_or_default();
            self.session.respond(task, outcome.status, &sense, outcome.about_bytes, out);
        } else {
            self.session.send_data(task, &outcome.data, outcome.about_bytes, out);
        }
    }
}
