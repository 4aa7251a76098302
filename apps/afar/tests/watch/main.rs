//! `afar watch`: what goes on is shown, whatever happens to it, to nobody else, and at no cost
//! while nobody looks.

#[path = "../support/mod.rs"]
mod support;

mod browser;
mod live;
mod refused;
mod sweep;
