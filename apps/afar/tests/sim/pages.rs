//! What a page takes that is asked for over a network in which nothing else happens.

use crate::{answer, file, refused};

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

#[test]
fn requests_are_packets() {
    refused(&["--request-size", "39B"], "--request-size: a request of 39 B is no packet; give 40B");
    refused(&["--request-size", "1501B"], "--request-size: ");
    refused(&["--request-timeout", "0"], "--request-timeout: no time; give it at least 1ps");
    refused(&["--last-packet", "half"], "--last-packet: there is no last-packet");
    refused(&["--exchange", "steal"], "--exchange: there is no exchange \"steal\"; give one-way");
    let published = ["--variant", "as-published-2016", "--exchange", "read"];
    refused(&published, "--exchange: as-published-2016 has full packets that go one way");
    refused(&["--traffic", "blades", "--exchange", "read"], "--exchange: it says nothing with");
}
