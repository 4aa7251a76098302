//! A run whose pages are far and its blade, killed in any order: nothing of them is left but the
//! socket of the run, which `afar doctor --repair` removes, and the blade can be used again.
//!
//! The supervisor is the process of `afar run`; the thread that polls the blade is one of its
//! threads and dies with it. `AFAR_FAR_KILLS` says how many rounds each order has.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rounds::{begun, stress};
use crate::support::{Launch, Running, kill, program, scratch, usable};
use crate::{AFAR, TRAPS, is_usable, keeps, serve};

/// Rounds of each order in the suite.
const ROUNDS: usize = 1;
/// Rounds at a time.
const AT_ONCE: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Supervisor,
    Program,
    Blade,
}

use Victim::{Blade, Program, Supervisor};

/// Every order of one, two and three of them.
const ORDERS: [&[Victim]; 15] = [
    &[Supervisor],
    &[Program],
    &[Blade],
    &[Supervisor, Program],
    &[Supervisor, Blade],
    &[Program, Supervisor],
    &[Program, Blade],
    &[Blade, Supervisor],
    &[Blade, Program],
    &[Supervisor, Program, Blade],
    &[Supervisor, Blade, Program],
    &[Program, Supervisor, Blade],
    &[Program, Blade, Supervisor],
    &[Blade, Supervisor, Program],
    &[Blade, Program, Supervisor],
];

struct Round {
    order: &'static [Victim],
    trap: &'static str,
    seed: u64,
}

impl Round {
    /// A number below `bound` that the seed decides.
    fn draw(&self, nth: u64, bound: u64) -> u64 {
        let mixed = (self.seed * 8 + nth).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) % bound
    }

    fn run(&self) {
        let name = format!("far-kill-{:?}-{}-{}", self.order, self.trap, self.seed);
        let (blade, uri) = serve("memory:256MiB");
        let flags = ["--local", "1MiB", "--trap", self.trap, "--far", &uri, "--far-timeout", "1s"];
        let until = scratch(&format!("far-kill-{}.until", self.seed));
        let running = stress(self.seed, &until).under_afar(&flags).start();
        begun(&running);
        let supervisor = running.pid();
        sleep(Duration::from_millis(50 + self.draw(0, 400)));
        for (nth, victim) in (1..).zip(self.order) {
            match victim {
                Supervisor => running.signal("KILL"),
                Program => others(&running, supervisor).for_each(|pid| kill("KILL", &pid)),
                Blade => blade.signal("KILL"),
            }
            // At once, in the middle of what the death of one does to the others, or after that.
            sleep(Duration::from_millis([0, self.draw(nth, 20), 300][usize::from(nth % 3 == 0)]));
        }
        let ended = running.wait();
        assert!(!ended.stderr.contains("not so"), "{name}: wrong bytes: {}", ended.stderr);
        assert_ne!(ended.status, 0, "{name}: {}", ended.stderr);
        ended.leaves_nothing(&name);
        only_a_socket_is_left(&name, supervisor, self.order.contains(&Supervisor));
        if !self.order.contains(&Blade) {
            is_usable_again(&name, &uri, self.trap);
        }
        blade.signal("KILL");
        blade.wait().leaves_nothing(&name);
        let _none = std::fs::remove_file(&until);
    }
}

// Processes of a run but the first, as numbers for kill(1).
fn others(running: &Running, first: u32) -> impl Iterator<Item = String> {
    running.processes().into_iter().filter(move |&pid| pid != first).map(|pid| pid.to_string())
}

// What the doctor finds of a run. Other tests have runs of their own.
fn left_of(supervisor: u32, flags: &[&str]) -> Vec<Value> {
    let words = [&[AFAR, "doctor", "--json", "-"], flags].concat();
    let text = Launch::new(words).run().text();
    let report: Value = serde_json::from_str(&text).expect("a record is JSON");
    let all = report["leftovers"].as_array().expect("a list").clone();
    let (number, path) = (Some(u64::from(supervisor)), format!("run-{supervisor}-"));
    let is_its = |left: &Value| {
        let what = &left["what"];
        what["pid"].as_u64() == number
            || what["keeper"].as_u64() == number
            || what["path"].as_str().is_some_and(|text| text.contains(&path))
    };
    all.into_iter().filter(is_its).collect()
}

fn only_a_socket_is_left(name: &str, supervisor: u32, is_killed: bool) {
    let left = left_of(supervisor, &[]);
    let is_socket = |left: &Value| left["what"]["kind"] == "socket";
    assert!(left.len() <= usize::from(is_killed) && left.iter().all(is_socket), "{name}: {left:?}");
    if is_killed {
        left_of(supervisor, &["--repair"]);
        assert_eq!(left_of(supervisor, &[]), [] as [Value; 0], "{name}");
    }
}

// A blade that a killed run has left takes the next one, whose bytes are right.
fn is_usable_again(name: &str, uri: &str, trap: &str) {
    let flags = ["--local", "1MiB", "--trap", trap, "--far", uri, "--far-take"];
    let launch = keeps("alone", "1").env("KEEPS_STEPS", "300");
    launch.under_afar(&flags).run().expect(0, name).leaves_nothing(name);
}

#[test]
fn whatever_is_killed_the_host_is_as_it_was() {
    if !is_usable("whatever_is_killed_the_host_is_as_it_was") {
        return;
    }
    let wanted = std::env::var("AFAR_FAR_KILLS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds = wanted.unwrap_or(ROUNDS) * ORDERS.len();
    let traps: Vec<&str> =
        TRAPS.into_iter().filter(|trap| usable(trap, "far::whatever_is_killed")).collect();
    // Compiled before threads ask for it.
    program("keeps");
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= rounds {
                        return;
                    }
                    let began = Instant::now();
                    let (order, turn) = (ORDERS[number % ORDERS.len()], number / ORDERS.len());
                    let trap = traps[(number + turn) % traps.len()];
                    Round { order, trap, seed: number as u64 }.run();
                    let took = began.elapsed().as_secs_f64();
                    println!("round {} of {rounds}: {order:?} by {trap}, {took:.1} s", number + 1);
                }
            });
        }
    });
}
