//! A ring: the kernel's during recording, the tape's during replay.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sys::ring::{Asked, Completed, Held, Ring, SimulatedRing};
use sys::stream::Stream;

use super::stream::{TapedListener, TapedStream};
use super::turns::{Came, Effect, Input, State, Tape};

/// A request under way.
struct Request {
    /// The memory that the request was given; empty while the kernel has it.
    held: Held,
    /// Where a receive begins in the memory; `None` for other requests.
    from: Option<usize>,
    /// Holds the stream of the request open.
    _stream: Option<Stream>,
}

pub(crate) struct TapedRing {
    tape: Arc<Tape>,
    real: Option<Ring>,
    under_way: BTreeMap<u64, Request>,
    ended: VecDeque<Completed>,
}

impl TapedRing {
    pub(crate) fn new(tape: &Arc<Tape>, entries: u32) -> sys::Result<Self> {
        let real = if tape.is_played() { None } else { Some(Ring::new(entries)?) };
        let (under_way, ended) = (BTreeMap::new(), VecDeque::new());
        Ok(Self { tape: Arc::clone(tape), real, under_way, ended })
    }

    // Starts a request: with the kernel during recording.
    fn begin(&mut self, asked: Asked, token: u64) -> Request {
        let real_of = |state: &State, stream: &Stream| {
            state.streams[TapedStream::number_of(stream)].clone().expect("it is open")
        };
        let nothing = Request { held: Held::Nothing, from: None, _stream: None };
        let state = self.tape.lock();
        match (asked, &mut self.real) {
            (Asked::Accept(listener), Some(ring)) => {
                let place = TapedListener::number_of(&listener);
                ring.accept(state.places[place].as_ref().expect("it listens"), token);
                nothing
            }
            (Asked::Receive { stream, bytes, from }, Some(ring)) => {
                ring.receive(&real_of(&state, &stream), token, bytes, from);
                Request { from: Some(from), _stream: Some(stream), ..nothing }
            }
            (Asked::Send { stream, bytes, from }, Some(ring)) => {
                ring.send(&real_of(&state, &stream), token, bytes, from);
                Request { _stream: Some(stream), ..nothing }
            }
            (Asked::Hear { waker, block }, Some(ring)) => {
                ring.hear(&waker, token, block);
                nothing
            }
            (Asked::Receive { stream, bytes, from }, None) => {
                Request { held: Held::Bytes(bytes), from: Some(from), _stream: Some(stream) }
            }
            (Asked::Send { stream, bytes, .. }, None) => {
                Request { held: Held::Bytes(bytes), from: None, _stream: Some(stream) }
            }
            (Asked::Hear { block, .. }, None) => Request { held: Held::Block(block), ..nothing },
            _ => nothing,
        }
    }

    // Takes the kernel's completions, in the tape's form; their memory returns to `under_way`.
    fn harvest(
        ring: &mut Ring,
        under_way: &mut BTreeMap<u64, Request>,
        state: &mut State,
    ) -> Vec<Came> {
        let mut all = Vec::new();
        while let Some(mut completed) = ring.take_ended() {
            let (token, has_more) = (completed.token, completed.has_more);
            let request = under_way.get_mut(&token).expect("it is under way");
            let mut received = Vec::new();
            if let (Held::Bytes(bytes), Some(from), Ok(count)) =
                (&completed.held, request.from, &completed.result)
            {
                received.extend_from_slice(&bytes[from..from + *count as usize]);
            }
            request.held = completed.held;
            let accepted = completed.accepted.take().map(|stream| {
                let ends = [stream.local_address(), stream.peer_address()];
                let _best_effort = stream.send_at_once();
                state.streams.push(Some(stream));
                ends.map(|end| end.expect("it is connected"))
            });
            let result = completed.result.map_err(|error| error.kind());
            all.push(Came { token, result, bytes: received, accepted, has_more });
        }
        all
    }

    // Turns an entry of the tape into a completion for the thread.
    fn give(&mut self, came: Came) {
        let Came { token, result, bytes, accepted, has_more } = came;
        let accepted = accepted.map(|addresses| {
            let mut state = self.tape.lock();
            // During recording, the socket has been stored already, in the same order.
            let number = self.accepted_number(&mut state);
            drop(state);
            Stream::simulated(Arc::new(TapedStream::new(&self.tape, number, addresses)))
        });
        let mut held = Held::Nothing;
        if let Some(request) = self.under_way.get_mut(&token) {
            std::mem::swap(&mut held, &mut request.held);
            if let (Held::Bytes(memory), Some(from)) = (&mut held, request.from) {
                memory[from..from + bytes.len()].copy_from_slice(&bytes);
            }
        }
        if !has_more {
            self.under_way.remove(&token);
        }
        let result = result.map_err(Into::into);
        self.ended.push_back(Completed {
            token,
            result,
            held,
            accepted,
            has_more,
            is_notice: false,
        });
    }

    /// The number of the next accepted stream.
    fn accepted_number(&self, state: &mut State) -> usize {
        if self.real.is_none() {
            state.streams.push(None);
        }
        state.given += 1;
        state.given - 1
    }
}

impl SimulatedRing for TapedRing {
    fn now_ns(&self) -> u64 {
        self.tape.lock().now_ns
    }

    fn ask(&mut self, asked: Asked, token: u64) {
        self.tape.ask(match &asked {
            Asked::Accept(listener) => {
                Effect::Accept { place: TapedListener::number_of(listener), token }
            }
            Asked::Receive { stream, bytes, from } => Effect::Receive {
                stream: TapedStream::number_of(stream),
                token,
                room: bytes.len() - from,
            },
            Asked::Send { stream, bytes, from } => Effect::Send {
                stream: TapedStream::number_of(stream),
                token,
                bytes: bytes[*from..].to_vec(),
            },
            Asked::Hear { .. } => Effect::Hear { token },
            other => panic!("a tape has no files: {other:?}"),
        });
        let request = self.begin(asked, token);
        self.under_way.insert(token, request);
    }

    fn wait_until(&mut self, until_ns: Option<u64>) {
        let own = self.tape.let_go();
        if let Some(ring) = &mut self.real {
            ring.wait_until(until_ns).expect("the kernel has a ring");
        }
        let (real, under_way) = (&mut self.real, &mut self.under_way);
        let input = self.tape.turn(own, |state| {
            let all = real.as_mut().map(|ring| Self::harvest(ring, under_way, state));
            Input::Ring(all.unwrap_or_default())
        });
        match input {
            Input::Ring(all) => all.into_iter().for_each(|came| self.give(came)),
            other => panic!("a thread that waits for its ring gets {other:?}"),
        }
    }

    fn has_ended(&mut self) -> bool {
        !self.ended.is_empty()
    }

    fn take_ended(&mut self) -> Option<Completed> {
        self.ended.pop_front()
    }

    fn in_flight(&self) -> usize {
        self.under_way.len()
    }
}
