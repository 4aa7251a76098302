//! The messages between the supervisor and the object in its programs.

#[path = "../../farmem-preload/src/protocol.rs"]
#[expect(unreachable_pub, reason = "one file for both sides; each uses its part")]
mod both;

pub(crate) use both::{
    BORN, COOKIE, DATA_AT, DETOUR, DEVICE, FORK_MADE, FORKED, HELLO, INJECTED, PLACE, PRCTL,
    SETTLED, VERSION, WORDS_MAX, command, reply,
};
