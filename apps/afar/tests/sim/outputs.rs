//! What a run leaves beside its table: ports over time, distributions, a picture, a capture and a
//! page.

use serde_json::Value;

use crate::{SMALL, answer, file, read, refused, scratch, sim, text};

const INCAST: [&str; 10] = [
    "--topology",
    "single-switch",
    "--hosts",
    "9",
    "--traffic",
    "incast",
    "--size",
    "15000B",
    "--transport",
    "dctcp",
];

fn path(name: &str) -> String {
    scratch(name).display().to_string()
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|row| row.split(',').collect()).collect()
}

#[test]
fn ports_over_time_add_up_to_the_result() {
    let directory = path("ports");
    answer(&[&INCAST[..], &["--buffer", "9000B", "--every", "500ns", "-o", &directory]].concat());
    let kept = |name: &str| read(&scratch("ports").join(name));
    let record: Value = serde_json::from_str(&kept("result.json")).expect("it is JSON");
    let table = kept("ports.csv");
    assert!(table.starts_with("from_ps,every_ps,link,queued_bytes,deepest_bytes,sent_bytes,"));
    let number = |row: &[&str], column: usize| -> u64 { row[column].parse().expect("a number") };
    let cells = rows(&table);
    assert!(cells.iter().all(|row| number(row, 0) % 500_000 == 0 && row[1] == "500000"));
    let sum = |column| cells.iter().map(|row| number(row, column)).sum::<u64>();
    let figures = &record["figures"];
    let dropped = [&figures["dropped_at_hosts"], &figures["dropped_at_switches"]];
    let dropped: u64 = dropped.iter().filter_map(|count| count.as_u64()).sum();
    assert!(dropped > 0);
    assert_eq!(sum(6), dropped);
    let deepest = cells.iter().map(|row| number(row, 4)).max();
    assert_eq!(deepest, figures["deepest"]["bytes"].as_u64());
    // The port that all send to is the fullest at a switch, and where packets are dropped.
    let ports = record["ports"]["ports"].as_array().expect("a list");
    let fullest = ports.iter().find(|port| port["name"] == "switch 0 to host 0").expect("a port");
    let drops = fullest["dropped_packets"].as_array().expect("a list");
    assert_eq!(drops.iter().filter_map(Value::as_u64).sum::<u64>(), dropped);
    assert_eq!(drops.len() as u64, record["ports"]["columns"].as_u64().expect("a number"));
    let parquet = std::fs::File::open(scratch("ports").join("ports.parquet")).expect("a file");
    assert_eq!(records::read_table(parquet).expect("a table"), table);
}

#[test]
fn a_result_is_the_same_whoever_looks_on() {
    let flows = |more: &[&str]| answer(&[&SMALL[..], &["--csv", "-"], more].concat());
    let (ports, picture) = (path("looked.csv"), path("looked.svg"));
    let (capture, page) = (path("looked.pcapng"), path("looked.html"));
    let sizes = ["--sizes", "6000B"];
    let looked = ["--ports", &ports, "--svg", &picture, "--pcap", &capture, "--steps", &page];
    assert_eq!(flows(&sizes), flows(&[&sizes[..], &looked].concat()));
}

#[test]
fn distributions_are_quantiles_of_the_flows() {
    let shares = path("shares.csv");
    let all = ["--warm-up", "0%", "--cool-down", "0%"];
    let flows = answer(&[&SMALL[..], &all, &["--csv", "-", "--cdf", &shares]].concat());
    let table = read(&scratch("shares.csv"));
    let shares = rows(&table);
    let number = |cell: &str| cell.parse::<f64>().expect("a number");
    let small: Vec<_> = shares.iter().filter(|row| row[1] == "4096").collect();
    let mut slowdowns: Vec<f64> = rows(&flows)
        .iter()
        .filter(|row| number(row[3]) <= 4096.0)
        .map(|row| number(row[6]))
        .collect();
    slowdowns.sort_by(f64::total_cmp);
    let of = |share: &str| {
        let row = small.iter().find(|row| row[3] == share).expect("a quantile");
        number(row[5])
    };
    assert_eq!(small[0][2], slowdowns.len().to_string());
    assert_eq!(of("0"), slowdowns[0]);
    assert_eq!(of("1"), slowdowns[slowdowns.len() - 1]);
    assert_eq!(of("0.5"), slowdowns[slowdowns.len().div_ceil(2) - 1]);
}

#[test]
fn the_picture_has_queues_drops_and_distributions() {
    let picture = path("run.svg");
    answer(&[&INCAST[..], &["--buffer", "9000B", "--svg", &picture]].concat());
    let drawn = read(&scratch("run.svg"));
    for wanted in [
        "switch 0 to host 0",
        "Deepest queue over time at ports of switches: the 1 fullest",
        "Deepest queue over time at ports of hosts: the ",
        "Packets dropped, all ports",
        "completion time, µs",
        // A tick where nothing is slowed down, and what was simulated.
        ">1</text>",
        "buffer 9000B, ",
    ] {
        assert!(drawn.contains(wanted), "{wanted}");
    }
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
}

/// Blocks of a capture: their types, and bodies without what comes before and after.
fn blocks(capture: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().expect("4 bytes"));
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < capture.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length, "both ends of a block say its length");
        blocks.push((word(at), &capture[at + 8..at + length - 4]));
        at += length;
    }
    blocks
}

/// The first packet by hand: 10 packets of 1500 B from host 1 to host 0, alone at 40 Gb/s.
#[test]
fn a_capture_has_each_packet_as_it_leaves_and_arrives() {
    let list = file("one.csv", "start_ns,src,dst,bytes\n0,1,0,14600\n");
    let network = ["--topology", "single-switch", "--hosts", "2", "--traffic", &list];
    let capture = path("one.pcapng");
    answer(&[&network[..], &["--pcap", &capture]].concat());
    let bytes = std::fs::read(&capture).expect("it was written");
    let blocks = blocks(&bytes);
    let of = |kind: u32| blocks.iter().filter(move |block| block.0 == kind).map(|block| block.1);
    assert_eq!((of(0x0A0D_0D0A).count(), of(1).count()), (1, 2));
    assert!(of(1).all(|interface| interface[..2] == [1, 0]), "they are Ethernet");
    let resolution = [9, 0, 1, 0, 9, 0, 0, 0];
    let has = |body: &[u8]| body.windows(8).any(|option| option == resolution);
    assert!(of(1).all(has), "their times are nanoseconds");
    assert!(of(0x0A0D_0D0A).all(|section| section[8..16] == [0xFF; 8]), "its length is not said");
    let word =
        |body: &[u8], at: usize| u32::from_le_bytes(body[at..at + 4].try_into().expect("4 bytes"));
    let times: Vec<u64> =
        of(6).map(|body| u64::from(word(body, 4)) << 32 | u64::from(word(body, 8))).collect();
    assert!(times.is_sorted());
    // Ten packets and ten acknowledgements, twice each.
    assert_eq!(times.len(), 40);
    let data = |body: &&[u8]| body[20 + 43] == 0;
    let first = of(6).find(data).expect("data");
    assert_eq!([word(first, 12), word(first, 16)], [54, 1514]);
    let packet = &first[20..74];
    assert_eq!(packet[..14], [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0]);
    assert_eq!(packet[14..18], [0x45, 0, 0x05, 0xDC]);
    assert_eq!(packet[26..34], [10, 0, 0, 2, 10, 0, 0, 1]);
    assert_eq!(packet[34..38], [0xC0, 0x00, 0x80, 0x00], "ports 49152 and 32768");
    assert_eq!(packet[42..46], [1, 0, 0, packet[45]]);
    let words = packet[14..34].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    assert_eq!(words.sum::<u32>() % 0xFFFF, 0, "the sum of the header is right");
    let numbers: Vec<u8> = of(6).filter(data).map(|body| body[20 + 53]).collect();
    let arrived = of(6).filter(data).filter(|body| body[74 + 2 + 4] == 1).count();
    assert_eq!((numbers.len(), arrived), (20, 10));
    // Its header is at the switch after 8 + 200 ns; the rest goes on at once: 300 + 200 ns more.
    let came = of(6).position(|body| data(&body) && body[80] == 1).expect("it arrives");
    assert_eq!(times[came], 708);
}

#[test]
fn a_capture_that_is_cut_says_so_and_drops_are_comments() {
    let capture = path("cut.pcapng");
    let flags = ["--buffer", "9000B", "--pcap", &capture, "-q"];
    let whole = sim(&[&INCAST[..], &flags].concat());
    assert!(whole.status.success() && whole.stderr.is_empty(), "{}", text(&whole.stderr));
    let bytes = std::fs::read(&capture).expect("it was written");
    let has =
        |bytes: &[u8], words: &str| bytes.windows(words.len()).any(|at| at == words.as_bytes());
    assert!(has(&bytes, "dropped at switch 0 to host 0"));
    let cut = sim(&[&INCAST[..], &flags, &["--pcap-packets", "7"]].concat());
    let said = text(&cut.stderr);
    assert!(said.contains("has the first 7 packets, and not the "), "{said}");
    let bytes = std::fs::read(&capture).expect("it was written");
    assert!(has(&bytes, "packets that were sent last are left out"));
    let packets = blocks(&bytes).iter().filter(|block| block.0 == 6).count();
    assert!((8..=14).contains(&packets), "{packets}");
}

#[test]
fn a_page_has_every_packet_of_a_small_run_and_asks_nobody() {
    let page = path("steps.html");
    answer(&[&INCAST[..], &["--buffer", "9000B", "--steps", &page]].concat());
    let html = read(&scratch("steps.html"));
    for forbidden in ["http://", "https://", "src=", "@import", "url("] {
        let asks = html.replace("http://www.w3.org/2000/svg", "").contains(forbidden);
        assert!(!asks, "{forbidden}");
    }
    let data = html.lines().find_map(|line| line.strip_prefix("const DATA = ")).expect("data");
    let data: Value = serde_json::from_str(data.trim_end_matches(';')).expect("it is JSON");
    let list = |name: &str| data[name].as_array().expect("a list").clone();
    assert_eq!((list("flows").len(), list("nodes").len()), (8, 10));
    let sent = list("packets").iter().filter(|packet| packet[1] == "data").count();
    assert!(sent >= 8 * 11, "{sent}");
    // Each packet ends once: with its host, or dropped.
    let hops = list("hops");
    for (number, packet) in list("packets").iter().enumerate() {
        let mine: Vec<&Value> = hops.iter().filter(|hop| hop[0] == number as u64).collect();
        let last = mine.last().expect("it went somewhere");
        let link =
            list("links")[usize::try_from(last[1].as_u64().expect("a link")).unwrap()].clone();
        let end = format!("to host {}", packet[4]);
        let arrived = link[2].as_str().is_some_and(|name| name.ends_with(&end));
        assert!(last[3].is_null() || arrived, "{packet}: {last}");
    }
}

#[test]
fn what_is_too_much_or_says_nothing_is_refused() {
    let page = path("large.html");
    refused(&["--steps", &page], "--steps: ");
    refused(&["--steps", &page], "packets were sent, and a page shows at most 5000; give fewer");
    refused(&["--pcap", "-"], "--pcap: a capture is not for standard output");
    let ports = path("ports.csv");
    refused(&["--every", "0", "--ports", &ports], "--every: intervals of no time");
    refused(
        &["--every", "1us"],
        "--every: nothing that is written has intervals; add --ports FILE",
    );
    let many = file("many.toml", "load = [\"20%\", \"30%\"]\nflows = 10\n");
    for flag in ["--ports", "--cdf", "--svg", "--pcap", "--steps"] {
        refused(&[&many, flag, "x"], &format!("{flag}: it is for one run, and these are 2"));
    }
}
