//! Records of `afar sim`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use results::sim::{
    Port, Ports, Sensitivity, SensitivityRun, SharePoint, Shares, SimRun, Simulation, Simulations,
    Speed,
};
use results::{BinFigures, Busiest, Deepest, Figures, Slowdowns, Spread, Steady};

use super::{comes_back, estimate, is_as_before, many, number, settings};

const VERSION: &str = "0.1.0";

fn strings() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[a-z]{1,6}", ".{0,8}", 0..4)
}

fn spread() -> impl Strategy<Value = Spread> {
    let spread = (any::<usize>(), number(), number(), number(), number());
    spread.prop_map(|(count, mean, p50, p99, p999)| Spread { count, mean, p50, p99, p999 })
}

fn slowdowns() -> impl Strategy<Value = Slowdowns> {
    let all = (estimate(), estimate(), estimate(), estimate());
    all.prop_map(|(mean, p50, p99, p999)| Slowdowns { mean, p50, p99, p999 })
}

fn steady() -> impl Strategy<Value = Option<Steady>> {
    let all = (any::<u64>(), slowdowns(), many(slowdowns()), estimate());
    let all = all.prop_map(|(run_count, slowdown, bins, growth)| Steady {
        run_count,
        slowdown,
        bins,
        growth,
    });
    prop::option::of(all)
}

fn figures() -> impl Strategy<Value = Figures> {
    let bin = (any::<u64>(), any::<u64>(), spread());
    let bin = bin.prop_map(|(over_bytes, to_bytes, slowdown)| BinFigures {
        over_bytes,
        to_bytes,
        slowdown,
    });
    let links = (".{0,9}", number(), ".{0,9}", any::<u64>());
    let counts = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    let ratios = (number(), number(), number());
    (spread(), many(bin), ratios, links, counts, steady()).prop_map(
        |(slowdown, bins, ratios, links, counts, steady)| Figures {
            slowdown,
            bins,
            goodput_bits_per_sec: ratios.0,
            utilisation: ratios.1,
            busiest: Busiest { link: links.0, utilisation: links.1 },
            dropped_at_hosts: counts.0,
            dropped_at_switches: counts.1,
            deepest: Deepest { link: links.2, bytes: links.3 },
            inflation: ratios.2,
            delivered_packets: counts.2,
            event_count: counts.3,
            end_ps: counts.4,
            measured: None,
            steady,
        },
    )
}

fn ports() -> impl Strategy<Value = Ports> {
    let columns = (many(any::<u32>()), many(any::<u64>()), many(any::<u32>()));
    let port = (any::<usize>(), ".{0,9}", any::<bool>(), columns);
    let port = port.prop_map(|(link, name, at_host, columns)| Port {
        link,
        name,
        at_host,
        deepest_bytes: columns.0,
        sent_bytes: columns.1,
        dropped_packets: columns.2,
    });
    let counts = (any::<usize>(), any::<usize>(), any::<usize>());
    let columns = (many(any::<u64>()), many(any::<u64>()));
    let times = (any::<u64>(), any::<u64>(), proptest::option::of(any::<u64>()));
    (times, counts, many(port), columns).prop_map(
        |((from_ps, every_ps, end_ps), counts, ports, columns)| Ports {
            from_ps,
            every_ps,
            end_ps,
            columns: counts.0,
            port_count: counts.1,
            queued_count: counts.2,
            ports,
            dropped_packets: columns.0,
            trimmed_packets: columns.1,
        },
    )
}

fn simulation() -> impl Strategy<Value = Simulation> {
    let point = (number(), any::<u64>(), number());
    let point = point.prop_map(|(share, completion_ps, slowdown)| SharePoint {
        share,
        completion_ps,
        slowdown,
    });
    let shares = (any::<u64>(), any::<u64>(), any::<usize>(), many(point));
    let shares = shares.prop_map(|(over_bytes, to_bytes, count, points)| Shares {
        over_bytes,
        to_bytes,
        count,
        points,
    });
    let speed = (any::<u64>(), number());
    let speed =
        speed.prop_map(|(cpu_ns, packets_per_cpu_sec)| Speed { cpu_ns, packets_per_cpu_sec });
    (strings(), figures(), speed, prop::option::of(ports()), many(shares)).prop_map(
        |(settings, figures, speed, ports, shares)| Simulation {
            version: VERSION.to_owned(),
            settings,
            figures,
            speed,
            ports,
            shares,
        },
    )
}

fn simulations() -> impl Strategy<Value = Simulations> {
    let run = (strings(), prop::option::of(figures()), prop::option::of(".{0,9}"));
    let run = run.prop_map(|(settings, figures, failure)| SimRun { settings, figures, failure });
    many(run).prop_map(|runs| Simulations { version: VERSION.to_owned(), runs })
}

fn sensitivity() -> impl Strategy<Value = Sensitivity> {
    let why = || prop::option::of(".{0,9}");
    let run = (".{0,9}", ".{0,9}", why(), prop::option::of(spread()), why());
    let run = run.prop_map(|(parameter, value, changed_to, slowdown, failure)| SensitivityRun {
        parameter,
        value,
        changed_to,
        slowdown,
        failure,
    });
    (strings(), spread(), many(run)).prop_map(|(settings, slowdown, runs)| Sensitivity {
        version: VERSION.to_owned(),
        settings,
        slowdown,
        runs,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sensitivities_come_back(record in sensitivity()) {
        comes_back(&record);
    }

    #[test]
    fn simulations_come_back(record in simulation()) {
        comes_back(&record);
    }

    #[test]
    fn sweeps_of_simulations_come_back(record in simulations()) {
        comes_back(&record);
    }
}

fn some_figures() -> Figures {
    let slowdown = Spread { count: 200, mean: 1.5, p50: 1.25, p99: 4.5, p999: 9.0 };
    Figures {
        slowdown,
        bins: vec![BinFigures { over_bytes: 4096, to_bytes: u64::MAX, slowdown }],
        goodput_bits_per_sec: 1.5e10,
        utilisation: 0.5,
        busiest: Busiest { link: "host 0 to switch 0".to_owned(), utilisation: 0.75 },
        dropped_at_hosts: 1,
        dropped_at_switches: 2,
        deepest: Deepest { link: "switch 0 to host 1".to_owned(), bytes: 36_000 },
        inflation: 1.125,
        delivered_packets: 1000,
        event_count: 9000,
        end_ps: 5_000_000,
        measured: None,
        steady: None,
    }
}

#[test]
fn simulations_are_what_they_were() {
    let port = Port {
        link: 3,
        name: "switch 0 to host 1".to_owned(),
        at_host: false,
        deepest_bytes: vec![0, 36_000],
        sent_bytes: vec![1500, 3000],
        dropped_packets: vec![0, 2],
    };
    let mut record = Simulation {
        version: VERSION.to_owned(),
        settings: settings(&[("load", "60%"), ("transport", "pfabric")]),
        figures: some_figures(),
        speed: Speed { cpu_ns: 500_000_000, packets_per_cpu_sec: 2000.0 },
        ports: Some(Ports {
            from_ps: 0,
            every_ps: 1_000_000,
            columns: 2,
            port_count: 8,
            queued_count: 1,
            ports: vec![port],
            end_ps: None,
            dropped_packets: vec![0, 3],
            trimmed_packets: vec![0, 0],
        }),
        shares: vec![Shares {
            over_bytes: 4096,
            to_bytes: u64::MAX,
            count: 200,
            points: vec![SharePoint { share: 0.5, completion_ps: 2_000_000, slowdown: 1.25 }],
        }],
    };
    is_as_before("sim", &record);
    record.ports = None;
    assert!(!results::write(&record).contains("\"ports\""), "nobody has asked");
    comes_back(&record);
}

#[test]
fn sweeps_of_simulations_are_what_they_were() {
    let run = |transport, figures, failure: Option<&str>| SimRun {
        settings: settings(&[("transport", transport)]),
        figures,
        failure: failure.map(str::to_owned),
    };
    let runs =
        vec![run("pfabric", Some(some_figures()), None), run("dctcp", None, Some("it is stuck"))];
    is_as_before("sim-findings", &Simulations { version: VERSION.to_owned(), runs });
}

#[test]
fn sensitivities_are_what_they_were() {
    let slowdown = Spread { count: 200, mean: 1.5, p50: 1.25, p99: 4.5, p999: 9.0 };
    let run = |to: Option<&str>, slowdown, failure: Option<&str>| SensitivityRun {
        parameter: "window".to_owned(),
        value: "1".to_owned(),
        changed_to: to.map(str::to_owned),
        slowdown,
        failure: failure.map(str::to_owned),
    };
    let runs = vec![
        run(Some("2"), Some(Spread { mean: 1.25, ..slowdown }), None),
        run(None, None, Some("1 cannot be halved")),
    ];
    let settings = settings(&[("transport", "tcp"), ("window", "1")]);
    let version = VERSION.to_owned();
    is_as_before("sim-sensitivity", &Sensitivity { version, settings, slowdown, runs });
}
