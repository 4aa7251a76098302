//! Rings of a simulated world.

use std::io::ErrorKind;
use std::sync::Arc;

use sys::ring::{Asked, Completed, Held, SimulatedRing};
use sys::stream::Stream;

use super::net::Waiting;
use super::schedule::Stage;
use super::state::{Requests, Wait};
use super::stream::{SimListener, SimStream};

/// A simulated ring, for the thread that made it.
pub(crate) struct SimRing {
    stage: Arc<Stage>,
    number: usize,
}

impl SimRing {
    pub(crate) fn new(stage: &Arc<Stage>) -> Self {
        let mut state = stage.lock();
        state.rings.push(Requests::default());
        Self { stage: Arc::clone(stage), number: state.rings.len() - 1 }
    }
}

impl SimulatedRing for SimRing {
    fn now_ns(&self) -> u64 {
        self.stage.lock().now_ns
    }

    fn ask(&mut self, asked: Asked, token: u64) {
        let ring = self.number;
        let mut state = self.stage.lock();
        state.rings[ring].in_flight += 1;
        match asked {
            Asked::Accept(listener) => {
                let place = SimListener::number_of(&listener);
                if state.places[place].is_open {
                    state.places[place].accepts = Some((ring, token));
                    state.go_on_accepting();
                } else {
                    state.end(ring, token, Err(ErrorKind::InvalidInput.into()), Held::Nothing);
                }
            }
            Asked::Receive { stream, bytes, from } => {
                let end = SimStream::number_of(&stream);
                state.ends[end].receive = Some(Waiting { ring, token, bytes, from });
                state.go_on_receiving(end);
                // Dropping the last handle takes the lock.
                drop(state);
                drop(stream);
            }
            Asked::Send { stream, bytes, from } => {
                let number = SimStream::number_of(&stream);
                let end = &mut state.ends[number];
                if end.state.is_reset || end.state.has_shut {
                    let kind = ErrorKind::BrokenPipe;
                    state.end(ring, token, Err(kind.into()), Held::Bytes(bytes));
                } else {
                    end.send = Some(Waiting { ring, token, bytes, from });
                    state.go_on_sending(number);
                }
                drop(state);
                drop(stream);
            }
            Asked::Hear { waker, block } => state.rings[ring].hears.push((token, waker, block)),
            Asked::Read { block, .. } | Asked::Write { block, .. } => {
                state.end(ring, token, Err(ErrorKind::Unsupported.into()), Held::Block(block));
            }
            Asked::Sync(_) | Asked::Clear { .. } => {
                state.end(ring, token, Err(ErrorKind::Unsupported.into()), Held::Nothing);
            }
        }
    }

    fn wait_until(&mut self, until_ns: Option<u64>) {
        self.stage.block(Wait::Ring(self.number), until_ns);
    }

    fn has_ended(&mut self) -> bool {
        !self.stage.lock().rings[self.number].ended.is_empty()
    }

    fn take_ended(&mut self) -> Option<Completed> {
        let (mut completed, end) = self.stage.lock().rings[self.number].ended.pop_front()?;
        completed.accepted =
            end.map(|end| Stream::simulated(Arc::new(SimStream::new(&self.stage, end))));
        Some(completed)
    }

    fn in_flight(&self) -> usize {
        self.stage.lock().rings[self.number].in_flight
    }
}

impl Drop for SimRing {
    fn drop(&mut self) {
        let mut state = self.stage.lock();
        state.rings[self.number].hears.clear();
        for end in &mut state.ends {
            end.receive.take_if(|waiting| waiting.ring == self.number);
            end.send.take_if(|waiting| waiting.ring == self.number);
        }
        for place in &mut state.places {
            place.accepts.take_if(|(ring, _)| *ring == self.number);
        }
    }
}
