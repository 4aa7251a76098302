//! The variant as-published-2016 against flow-by-flow results of the simulator it follows.
//!
//! The results are found through AFAR_ORACLE_DIR, a directory with `network/*.csv.gz`; without it
//! these tests say SKIPPED. Where that simulator is not chaotic every flow must match to a
//! nanosecond; elsewhere the order of simultaneous events decides, and distributions must match.

#![expect(clippy::print_stdout, reason = "what was compared, and what was skipped, must be seen")]

mod case;
mod compare;
mod homa;
mod htsim;
mod tcp;

use netsim::Published;

use case::Case;
use compare::{assert_close, assert_exact};

const ALL: [Published; 5] =
    [Published::PFabric, Published::PHost, Published::Fastpass, Published::Dctcp, Published::Tcp];

#[test]
fn every_flow_that_is_alone() {
    for name in ["iso_f10__f10", "iso_fast__f40", "iso_fast__d100"] {
        let Some(case) = Case::read(name) else { return };
        for transport in ALL {
            assert_exact(&case, transport, 1.0);
        }
    }
}

#[test]
fn every_flow_of_pages_and_incast() {
    let Some(case) = Case::read("page_d100_02_20k__d100") else { return };
    assert_exact(&case, Published::PFabric, 1.0);
    assert_exact(&case, Published::PHost, 1.0);
    assert_exact(&case, Published::Dctcp, 0.99);
    let Some(case) = Case::read("incast__f40") else { return };
    for transport in [Published::PFabric, Published::PHost, Published::Fastpass, Published::Tcp] {
        assert_exact(&case, transport, 1.0);
    }
}

/// Where ties decide: the order of simultaneous events is kept, so these match even there.
#[test]
fn every_flow_under_load() {
    for name in LOADED {
        let Some(case) = Case::read(name) else { return };
        assert_exact(&case, Published::PFabric, 1.0);
        assert_exact(&case, Published::PHost, 1.0);
    }
}

#[test]
fn distributions_under_load() {
    for name in LOADED {
        let Some(case) = Case::read(name) else { return };
        for transport in [Published::Fastpass, Published::Dctcp, Published::Tcp] {
            assert_close(&case, transport);
        }
    }
}

const LOADED: [&str; 7] = [
    "imc10_f40_06_10k__f40",
    "ws_f40_06_1k__f40",
    "ddc_d100_06_3k__d100",
    "perm1000__f40",
    "incast__f40",
    "wc_rs_20k__d100",
    "wc_dc_20k__d100",
];
