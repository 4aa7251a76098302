//! What a page takes that is asked for over a network in which nothing else happens.

use std::process::Command;

use serde_json::Value;

use crate::{answer, file, read, refused, text};

/// Links and switches of the figures of Gao et al. 2016.
const DELAY: [&str; 2] = ["--delay", "10ns,400ns,400ns,210ns"];

/// A host reads a page from each of the others, one at a time: mean time in microseconds.
fn alone(rate: &str, others: std::ops::RangeInclusive<u32>) -> f64 {
    let row = |src: u32| format!("{},{src},0,4096,read\n", src * 100);
    let rows: String = others.map(row).collect();
    let list = format!("start_us,src,dst,bytes,exchange\n{rows}");
    let list = file(&format!("alone-{rate}-{}.csv", rows.len()), &list);
    let network = ["--traffic", &list, "--rate", rate, "--csv", "-"];
    let flows = answer(&[&network[..], &DELAY].concat());
    let times = flows.lines().skip(1).map(|row| {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!((cells[6], cells[9]), ("1", "read"), "nothing is in its way: {row}");
        cells[4].parse::<f64>().expect("a time") / 1e6
    });
    let (count, sum) = times.fold((0.0, 0.0), |(count, sum), time| (count + 1.0, sum + time));
    sum / count
}

/// A page of 4 KiB alone, as the simulator of the paper has it: in a rack, and over all pairs of
/// its 144 hosts.
#[test]
fn a_page_alone_takes_what_the_paper_calls_ideal() {
    for (rate, rack_us, datacenter_us) in [("100Gbps", 0.810, 2.245), ("40Gbps", 1.364, 2.803)] {
        let (rack, datacenter) = (alone(rate, 1..=15), alone(rate, 1..=143));
        assert!((rack - rack_us).abs() <= 0.001, "{rate}, rack: {rack}");
        assert!((datacenter - datacenter_us).abs() <= 0.001, "{rate}, datacenter: {datacenter}");
    }
}

/// A page alone, from a host in the rack and from one in another, in nanoseconds.
fn simulated(rate: &str, delay: &str) -> [f64; 2] {
    let list = "start_us,src,dst,bytes,exchange\n0,1,0,4096,read\n99,16,0,4096,read\n";
    let list = file("rack-and-beyond.csv", list);
    let network = ["--traffic", &list, "--rate", rate, "--delay", delay, "--csv", "-"];
    let flows = answer(&network);
    let time = |row: &str| row.split(',').nth(4).and_then(|cell| cell.parse::<f64>().ok());
    let times: Vec<f64> = flows.lines().skip(1).filter_map(time).collect();
    [times[0] / 1e3, times[1] / 1e3]
}

/// The same network in `afar plan latency`: the example, and the parts of Table 4 in packets.
#[test]
fn a_page_alone_takes_as_long_in_plan_latency() {
    let example = "../../examples/plan/pages.toml";
    let example = read(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(example));
    let table4 = example
        .replace(
            "time = \"220ns\", count = 2 }",
            "time = \"240ns\", count = 2 }, { name = \"near\", time = \"20ns\", count = 4 }",
        )
        .replace(
            "time = \"1020ns\", count = 2 }",
            "time = \"240ns\", count = 6 }, { name = \"near\", time = \"20ns\", count = 4 }, \
             { name = \"far\", time = \"200ns\", count = 4 }",
        );
    for (name, text_of, delay) in [
        ("pages.toml", example, "10ns,400ns,400ns,210ns"),
        ("table4-packets.toml", table4, "20ns,440ns,440ns,260ns"),
    ] {
        let path = file(name, &text_of);
        let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
        let output = command.args(["plan", "latency", &path, "--json", "-"]).output();
        let output = output.expect("the afar binary was built with this test");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let record: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        for (rate, bits) in [("40Gbps", 40e9), ("100Gbps", 100e9)] {
            let of = |scope: &str| {
                let paths = record["paths"].as_array().expect("a list").iter();
                let mut paths = paths.filter(|path| {
                    path["scope"] == scope && path["rate_bps"].as_f64() == Some(bits)
                });
                paths.next().expect("it is there")["total_ns"].as_f64().expect("a time")
            };
            let planned = [of("in a rack"), of("between racks")];
            for (planned, simulated) in planned.iter().zip(simulated(rate, delay)) {
                assert!(
                    (planned - simulated).abs() <= 1.0,
                    "{name}, {rate}: {planned} {simulated}"
                );
            }
        }
    }
}

#[test]
fn requests_are_packets() {
    refused(&["--request-size", "39B"], "--request-size: a request of 39 B is no packet; give 40B");
    refused(&["--request-size", "1501B"], "--request-size: ");
    refused(&["--request-timeout", "0"], "--request-timeout: 0 ns: give a time from 1ps to 1.0 s");
    refused(&["--last-packet", "half"], "--last-packet: there is no last-packet");
    refused(&["--exchange", "steal"], "--exchange: there is no exchange \"steal\"; give one-way");
    let published = ["--variant", "as-published-2016", "--exchange", "read"];
    refused(&published, "--exchange: as-published-2016 has full packets that go one way");
    refused(&["--traffic", "blades", "--exchange", "read"], "--exchange: it says nothing with");
}
