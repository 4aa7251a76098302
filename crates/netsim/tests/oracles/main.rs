//! What must come out, by arithmetic: closed forms, queueing theory, exact drains.

mod alone;
mod chance;
mod dctcp;
mod fastpass;
mod observed;
mod papers;
mod queueing;
mod support;
mod transports;
