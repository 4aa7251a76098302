//! `afar plan`: answers that the papers print, and input that cannot be.

use measure::Host;
use results::plan::admit::Admission;
use results::plan::cost::Bill;
use results::plan::fleet::FleetDemand;
use results::plan::latency::RoundTrips;
use results::plan::place::Placement;
use results::plan::pool::PoolSizing;
use results::{Record, Requirement, Requirements, Side, Standing};
use std::path::Path;
use std::process::{Command, Output};
use test_support::{scratch, skip};

fn plan(arguments: &[&str]) -> Output {
    // An empty directory: nothing may be needed but the binary.
    let empty = scratch("empty");
    std::fs::create_dir_all(&empty).expect("a directory under target");
    let mut command = Command::new(env!("CARGO_BIN_EXE_afar"));
    command.arg("plan").args(arguments).current_dir(empty);
    command.output().expect("the afar binary was built with this test")
}

fn answer(arguments: &[&str]) -> String {
    let output = plan(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn record<R: Record>(arguments: &[&str]) -> R {
    let all = [arguments, &["--json", "-"]].concat();
    results::read(&answer(&all)).expect("it is such a record")
}

fn refused(arguments: &[&str], wanted: &str) {
    let output = plan(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("afar plan"), "{said}");
    assert!(said.contains(wanted), "{wanted} is missing in {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(name: &str, text: &str) -> String {
    let path = scratch(name);
    std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory");
    std::fs::write(&path, text).expect("a file under target");
    path.display().to_string()
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plan").join(name);
    path.display().to_string()
}

#[test]
fn the_papers_example_in_an_empty_directory() {
    let said = answer(&["cost"]);
    for wanted in ["$960,000", "$812,500", "15.36 %", "83.33", "35.786 %", "1.33x", "1.42x", "14 %"]
    {
        assert!(said.contains(wanted), "{wanted} is missing in {said}");
    }
    let bill: Bill = record(&["cost"]);
    assert_eq!((bill.direct_cost, bill.pooled_cost), (960_000.0, 812_500.0));
    assert_eq!(bill.tenants[0].direct.binding, "qps");
}

#[test]
fn drops_of_other_protocols() {
    let saving = |drop: &str| record::<Bill>(&["cost", "--set", drop]).saving;
    assert!((saving("remote.drop=guz-nvmeof") - 0.268_44).abs() < 5e-6);
    let lost = answer(&["cost", "--set", "remote.drop=guz-iscsi"]);
    assert!(lost.contains("Do not disaggregate: it costs $52,500 more, 5.47 %"), "{lost}");
}

#[test]
fn what_print_gives_can_be_read() {
    let path = file("printed.toml", &answer(&["cost", "--print"]));
    assert_eq!(record::<Bill>(&["cost", &path]), record(&["cost"]));
}

#[test]
fn the_example_of_tenants() {
    let bill: Bill = record(&["cost", &example("tenants.toml")]);
    assert_eq!(bill.tenants.len(), 3);
    assert!(bill.disaggregate);
    assert!(bill.pooled_cost <= bill.apart_cost);
}

/// Klimovic et al., Fig. 8, by the numbers of §4.3 and by four others. `AFAR_ORACLE_DIR` names a
/// directory with `klimovic_fig8.csv`: storage factor, compute factor, the prices, the multiplier
/// of servers, the saving in percent.
#[test]
fn the_map_is_the_reference_grid() {
    let cells = cells(&answer(&["cost", "--map", "--csv", "-"]));
    let at = |a, b| cells.iter().find(|cell| cell[..2] == [a, b]).expect("it is there")[6];
    // By hand: 1 − 8,550/9,600 where compute doubles, 1 − 8,100/9,600 where storage does.
    assert_eq!((at(1.0, 1.0), at(1.0, 2.0), at(2.0, 1.0)), (-15.625, 10.9375, 15.625));
    let Some(directory) = std::env::var_os("AFAR_ORACLE_DIR") else {
        skip("oracle::plan", "AFAR_ORACLE_DIR does not name a directory with klimovic_fig8.csv");
        return;
    };
    let reference = std::fs::read_to_string(Path::new(&directory).join("klimovic_fig8.csv"));
    let mut wanted = self::cells(&reference.expect("it is there"));
    assert_eq!(wanted.len(), 500);
    while let Some(first) = wanted.first().cloned() {
        let [_, _, flash, compute, tax, multiplier, _] = first[..] else { panic!("{first:?}") };
        let settings = [
            format!("price.flash={flash}"),
            format!("price.compute={compute}"),
            format!("price.tax={tax}"),
            format!("remote.drop={:.9}", 1.0 - 1.0 / multiplier),
        ];
        let mut flags = vec!["cost", "--map", "--csv", "-"];
        settings.iter().for_each(|setting| flags.extend(["--set", setting]));
        let ours = self::cells(&answer(&flags));
        let (these, others) = wanted.into_iter().partition(|cell| cell[2..6] == first[2..6]);
        let these: Vec<Vec<f64>> = these;
        assert_eq!(these.len(), ours.len());
        for (one, other) in these.iter().zip(&ours) {
            assert_eq!(one[..2], other[..2]);
            assert!((one[6] - other[6]).abs() <= 1e-6, "{one:?}: {}", other[6]);
        }
        wanted = others;
    }
}

fn cells(csv: &str) -> Vec<Vec<f64>> {
    let cell = |cell: &str| cell.parse().expect("a number");
    csv.lines().skip(1).map(|row| row.split(',').map(cell).collect()).collect()
}

#[test]
fn the_map_as_a_picture() {
    let picture = answer(&["cost", "--map", "--svg", "-"]);
    assert!(picture.starts_with("<svg"));
    // Cells, the background, the frame and two names.
    assert_eq!(picture.matches("<rect").count(), 100 + 1 + 1 + 2);
    assert_eq!(picture.matches("stroke-dasharray").count(), 2, "two edges of the wedge");
}

#[test]
fn what_costs_cannot_be_is_said_in_a_sentence() {
    refused(&["cost", "/no/such.toml"], "/no/such.toml: No such file");
    refused(&["cost", "--set", "price.tax=-1"], "\"-1\": a price cannot be negative");
    refused(&["cost", "--set", "demand.qps=nan"], "\"nan\": not a count");
    refused(&["cost", "--set", "server.qps=0"], "a server has no qps; give it more than zero");
    refused(&["cost", "--set", "demand.capacity=1000000000000000000T"], "can be at most 16 EiB");
    refused(&["cost", "--set", "demand.qps=10000000000G"], "the bill goes beyond");
    refused(&["cost", "--set", "demand.memory=1G"], "[server] does not say how much");
    refused(&["cost", "--set", "prize.tax=1"], "unknown field `prize`");
    refused(&["cost", "--csv", "x.csv"], "--map");
    let print = answer(&["cost", "--print"]);
    let wrong = file("wrong.toml", &print.replace("2400  ", "-240  "));
    refused(&["cost", &wrong], "wrong.toml:11:9: \"-240\": a price cannot be negative");
    let nowhere = scratch("kept.json");
    std::fs::write(&nowhere, "kept").expect("a file under target");
    refused(&["cost", &wrong, "--json", &nowhere.display().to_string()], "wrong.toml:11:9");
    assert_eq!(std::fs::read_to_string(&nowhere).expect("it is there"), "kept");
}

/// Gao et al., Table 4; the text has 3.59 where the table adds up to 3.65.
#[test]
fn the_papers_table_of_latencies() {
    let said = answer(&["latency"]);
    let total = |rate: &str| {
        let line = said.lines().find(|line| line.starts_with(&format!("total at {rate}")));
        let cells = line.expect("it is there").split_whitespace().skip(4);
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(total("40 Gb/s"), ["7.04", "5.28", "5.14", "3.38", "4.14", "2.38"]);
    assert_eq!(total("100 Gb/s"), ["6.55", "4.79", "4.65", "2.89", "3.65", "1.89"]);
    assert!(said.contains("3.59"), "{said}");
    let paths = record::<RoundTrips>(&["latency"]).paths;
    let meets = |at: usize| paths[at].meets.len();
    // By design, scope and rate: RDMA in a rack at 40 Gb/s is for class A, integrated for both.
    assert_eq!((paths.len(), meets(0), meets(6), meets(7), meets(10)), (12, 0, 1, 2, 2));
}

#[test]
fn waiting_and_requirements() {
    let half: RoundTrips = record(&["latency", "--set", "sharing.load=50%"]);
    assert_eq!(half.paths[0].wait_ns, 409.6);
    let found = |standing, invalid: Option<&str>| Requirements {
        version: String::new(),
        command: Vec::new(),
        started_unix_ns: 0,
        host: Host::default(),
        workload: Vec::new(),
        seed: 1,
        slowdown_max: 1.05,
        held: [].into(),
        of_bytes: None,
        requirements: vec![Requirement {
            axis: "rtt".to_owned(),
            last_good: Some(Side { value: "4us".to_owned(), slowdown: None }),
            first_bad: None,
            standing,
            invalid: invalid.map(str::to_owned),
        }],
    };
    let write = |name: &str, record| file(name, &results::write(&record));
    let path = write("redis.json", found(Standing::Confirmed, None));
    let said = answer(&["latency", "--sweep", &path]);
    assert!(said.contains("redis (4.0 µs)"), "{said}");
    let invalid = write("invalid.json", found(Standing::Invalid, Some("invalid: why")));
    refused(&["latency", "--sweep", &invalid], "no round trip was found: invalid: why");
    let open = write("open.json", found(Standing::Undecided, None));
    refused(&["latency", "--sweep", &open], "that was found is not confirmed");
    refused(&["latency", "--set", "sharing.load=100%"], "a load of 100.0 % never ends");
    refused(
        &["latency", "--sweep", &file("x.json", "{")],
        "x.json: it cannot be read as a record: EOF",
    );
    refused(
        &["latency", "--sweep", &file("y.json", "{}")],
        "it is no record of afar, not of \"afar.requirement/",
    );
    let rows = answer(&["latency", "--csv", "-"]);
    assert!(rows.starts_with("design,scope,rate_bps,fixed_ns,"), "{rows}");
    assert_eq!(rows.lines().count(), 1 + record::<RoundTrips>(&["latency"]).paths.len());
    let directory = scratch("").display().to_string();
    refused(&["latency", "--sweep", &directory], "run afar sweep --find 5% on it");
    let printed = file("latency.toml", &answer(&["latency", "--print"]));
    assert_eq!(record::<RoundTrips>(&["latency", &printed]), record(&["latency"]));
}

#[test]
fn a_placement_and_what_becomes_of_it() {
    let example = example("place.toml");
    assert!(record::<Placement>(&["place", &example]).is_best);
    let now = file("now.csv", &answer(&["place", &example, "--csv", "-"]));
    let said = answer(&["place", &example, "--now", &now]);
    assert!(said.contains("Nobody moves."), "{said}");
    let moves = |arguments: &[&str]| {
        let all = [&["place", &example, "--now", &now], arguments].concat();
        record::<Placement>(&all).migration.expect("it was said where tenants are").moves
    };
    let lost = moves(&["--lose-server", "0"]);
    assert!(!lost.is_empty());
    assert!(lost.iter().all(|one| one.to != 0), "{lost:?}");
    let nobody = ["place", &example, "--now", &now, "--lose-server", "99"];
    refused(&nobody, "nobody is on server 99");
    let more = moves(&["--add-tenant", "name=new,capacity=1TB,iops=5k"]);
    assert_eq!(more.iter().map(|one| &one.tenant[..]).collect::<Vec<_>>(), ["new"]);
    let printed = answer(&["place", "--print"]);
    assert_eq!(printed, std::fs::read_to_string(&example).expect("it is there"));
}

#[test]
fn made_up_tenants_are_the_same_each_time() {
    let place = |seed| answer(&["place", "--synthetic", "300", "--seed", seed, "--csv", "-"]);
    assert_eq!(place("1"), place("1"));
    assert_ne!(place("1"), place("2"));
}

#[test]
fn what_placements_cannot_be_is_said_in_a_sentence() {
    let print = answer(&["place", "--print"]);
    let with = |name: &str, from: &str, to: &str| file(name, &print.replacen(from, to, 1));
    let few = with("few.toml", "count = 12", "count = 2");
    refused(&["place", &few], "tenant \"profiles\" has 3 replicas for 2 servers");
    let few = with("fewer.toml", "count = 12", "count = 3");
    refused(&["place", &few], "more servers would do");
    let large = with("large.toml", "capacity = \"6TB\"", "capacity = \"9TB\"");
    refused(&["place", &large], "tenant \"logs\" needs 9 TB of capacity, a server has 8 TB");
    let circle = with("circle.toml", "workload = \"A\"", "with = \"profiles-index\"");
    refused(&["place", &circle], "circle.toml:13:1: tenant \"profiles\" is to be with itself");
    let unknown = with("unknown.toml", "with = \"profiles\"", "with = \"profile\"");
    refused(&["place", &unknown], "unknown.toml:25:8: there is no tenant \"profile\"");
    refused(&["place", &few, "--add-tenant", "capacity"], "write KEY=VALUE");
    refused(&["place", &few, "--now", &file("x.csv", "a,b\n")], "x.csv:1:1: begin it with");
    let row = file("y.csv", "tenant,replica,server\nnobody,0,1\n");
    refused(&["place", &few, "--now", &row], "y.csv:2:1: there is no tenant \"nobody\"");
}

#[test]
fn who_may_share_a_device() {
    let print = answer(&["admit", "--print"]);
    let path = file("admit.toml", &print);
    let tenants = record::<Admission>(&["admit", &path]).tenants;
    let admitted: Vec<bool> = tenants.iter().map(|one| one.admitted).collect();
    assert_eq!(admitted, [true, true, false, false]);
    let said = answer(&["admit", &path]);
    assert!(said.contains(": no: a second bursty writer"), "{said}");
    let with = |from: &str, to: &str| file("not.toml", &print.replacen(from, to, 1));
    refused(&["admit", &with("p95 = \"2ms\"", "p95 = \"0ms\"")], "a tail of nothing");
    refused(&["admit", &with("reads = \"60k\"", "reads = -1")], "a count cannot be negative");
    refused(&["admit", &with("cores = 1", "cores = 0")], "there are no cores");
    refused(&["admit", &file("none.toml", "[device]\npoints = []\n")], "3 points or more");
    // The same loads from a table and from a record.
    let rows = "reads,writes,p95\n20k,0,110us\n80k,0,150us\n160k,0,290us\n";
    file("loads.csv", rows);
    let job = |iops: u32, p95: u32| {
        let latency = format!("{{\"percentile\": {{\"95.000000\": {p95}000}}}}");
        let read = format!("{{\"iops\": {iops}, \"lat_ns\": {latency}}}");
        format!("{{\"afar\": {{\"rate_per_s\": 1}}, \"read\": {read}}}")
    };
    let jobs = [job(20_000, 110), job(80_000, 150), job(160_000, 290)].join(", ");
    file("loads.json", &format!("{{\"jobs\": [{{\"afar\": {{\"rate_per_s\": null}}}}, {jobs}]}}"));
    let of = |name: &str, text: &str| {
        let device = format!("records = [\"{text}\"]\nread = \"2us\"\nwrite = \"20us\"\n");
        let tenant = "name = \"a\"\nreads = \"50k\"\nwrites = 100\np95 = \"200us\"\n";
        file(name, &format!("[device]\n{device}[[tenant]]\n{tenant}"))
    };
    let admission: Admission = record(&["admit", &of("of-csv.toml", "loads.csv")]);
    assert_eq!(admission, record(&["admit", &of("of-json.toml", "loads.json")]));
    assert!(admission.tenants[0].admitted);
    // M/G/1 of 50,100 a second: W = (50,000 · 4 + 100 · 400)/2/(1 − 0.102) in µs · 10⁻⁶.
    let wait = admission.interference.expect("read and write are known").wait_ns;
    assert!((wait - 133.63).abs() < 0.01, "{wait}");
    file("bad.csv", "reads,writes,p95\n20k,0,-1us\n");
    refused(&["admit", &of("bad.toml", "bad.csv")], "bad.csv:2:7: \"-1us\"");
}

#[test]
fn what_is_worth_moving() {
    let priced = std::fs::read_to_string(example("place.toml")).expect("it is there");
    let priced = file("priced.toml", &(priced + "[price]\nserver = 9000\nmoved = 50\n"));
    let spread = "tenant,replica,server\nlogs,0,9\nindex,0,4\nads,0,6\nads,1,7\n";
    let now = file("spread.csv", spread);
    let moved = ["--now", &now, "--move-at-most", "10TB"];
    let placement: Placement = record(&[&["place", &priced][..], &moved].concat());
    let migration = placement.migration.expect("it was said where tenants are");
    assert!(migration.bytes > 0 && migration.benefit.is_some());
    assert!(migration.cost > Some(0.0));
    let said = answer(&[&["place", &priced][..], &moved].concat());
    assert!(said.contains("that moving costs"), "{said}");
}

#[test]
fn memory_of_servers_and_pools() {
    let said = answer(&["pool"]);
    assert!(said.contains("Disaggregate: it saves $"), "{said}");
    let sizing: PoolSizing = record(&["pool"]);
    assert_eq!(sizing.server_count, 32);
    let (with, without) = (sizing.with.expect("it pays"), sizing.without);
    assert!(with.bytes < without.bytes && with.unused_at_peak < without.unused_at_peak);
    // Nobody has less than its programs need.
    assert!(with.server_bytes >= sizing.local_min.bytes);
    for (setting, reason) in [
        ("price.pool=60", "the pool and its ports make it"),
        ("price.port=1M", "the pool and its ports make it"),
        ("pool.servers=1", "the pool and its ports make it"),
    ] {
        let said = answer(&["pool", "--set", setting]);
        assert!(said.contains("Do not disaggregate") && said.contains(reason), "{said}");
    }
    let alike = "[[program]]\nname = \"a\"\nbound = \"5%\"\nservers = 4\nmemory = \"8GiB\"\n\
                 low = \"50%\"\ncurve = [{ local = \"50%\", slowdown = 1.0 }]\n";
    let said = answer(&["pool", &file("alike.toml", alike)]);
    assert!(said.contains("Do not disaggregate: servers want most at the same time"), "{said}");
    let printed = answer(&["pool", "--print"]);
    let strict = printed.replace("15%", "0%").replace("\"5%\"", "\"0%\"");
    let said = answer(&["pool", &file("strict.toml", &strict)]);
    assert!(said.contains("can have no less than 512.0 GiB"), "{said}");
    let wrong = file("wrong-pool.toml", &printed.replacen("local = 5", "local = -5", 1));
    refused(&["pool", &wrong], "wrong-pool.toml:13:9: \"-5\": a price cannot be negative");
    let none = file("none-pool.toml", "[price]\nlocal = 5\n");
    refused(&["pool", &none], "nobody wants memory");
    refused(&["pool", "--set", "price.pool=nan"], "--set price.pool=nan: \"nan\"");
    let bars = answer(&["pool", "--svg", "-"]);
    assert!(bars.starts_with("<svg") && bars.contains("▸"), "{bars}");
}

#[test]
fn curves_of_a_sweep_and_demand_of_a_fleet() {
    let memory = scratch("memory.parquet").display().to_string();
    let tables =
        ["--memory", &memory, "--series", &scratch("series.parquet").display().to_string()];
    answer(&[&["fleet", "--synthetic", "40"][..], &tables].concat());
    let csv = scratch("memory.csv").display().to_string();
    answer(&["fleet", "--synthetic", "40", "--memory", &csv]);
    file("curve.csv", "cell,rtt,local,slowdown,low,high\nfar,5us,50%,1.02,1.0,1.04\n");
    let program = "[[program]]\nname = \"*\"\nbound = \"5%\"\nsweep = \"curve.csv\"\n";
    let with = |demand: &str| {
        let path = file("fleet.toml", &format!("demand = \"{demand}\"\n{program}"));
        record::<PoolSizing>(&["pool", &path])
    };
    let of_parquet = with("memory.parquet");
    assert_eq!(of_parquet, with("memory.csv"));
    assert_eq!((of_parquet.period_count, of_parquet.programs[0].local_min), (24, 0.5));
    let bill = answer(&["cost", "--print"]).replace("[demand]", "[other]");
    let bill = bill.split("[other]").next().expect("the first part").to_owned();
    let more = "iops = \"28k\"\ntraffic = \"25Gb/s\"\nmemory = \"56GiB\"\nnetwork = \"2Gb/s\"\n";
    let bill = bill.replace("qps = \"50k\"\n", &format!("qps = \"50k\"\n{more}"));
    let bill = file("bill.toml", &format!("tenants = \"series.parquet\"\n{bill}"));
    let bill: Bill = record(&["cost", &bill]);
    assert_eq!(bill.tenants.len(), 40);
    assert!(bill.pooled_cost <= bill.apart_cost);
    refused(&["pool", &file("lost.toml", &format!("demand = \"no.csv\"\n{program}"))], "No such");
    file("cut.parquet", "PAR1");
    let cut = file("cut.toml", &format!("demand = \"cut.parquet\"\n{program}"));
    refused(&["pool", &cut], "cut.parquet: a table in Parquet");
}

#[test]
fn traces_become_fleets() {
    let tenants = scratch("tenants.csv").display().to_string();
    let rows = "0,,7,0,m1,1,ann,2,9,0.5,0.25,0.1,0\n7200000000,,7,1,m2,1,bob,2,9,0.25,0.5,0.1,0\n";
    let google = ["fleet", "--google", &file("task.csv", rows), "--tenants", &tenants];
    let fleet: FleetDemand = record(&google);
    assert_eq!((fleet.tenant_count, fleet.hour_count), (2, 2));
    let placed = file(
        "traced.toml",
        "tenants = \"tenants.csv\"\n[server]\ncapacity = \"4TB\"\n\
                                      qps = \"1M\"\nmemory = \"256GiB\"\nnetwork = \"25Gb/s\"\n\
                                      iops = 1\ntraffic = \"1Gb/s\"\n",
    );
    assert_eq!(record::<Placement>(&["place", &placed]).server_count, 1);
    let none = file("none.csv", "1,2\n");
    refused(&["fleet", "--google", &none], "none.csv:1:1: a row of such a trace has 13 cells");
    refused(&["fleet", "--alibaba", "/no/such.csv"], "/no/such.csv: No such file");
    refused(&["fleet", "--azure", &none], "none.csv: this is no SQLite database");
    refused(&["fleet", "--synthetic", "1", "--server", "memory=0"], "a machine has no memory");
    refused(&["fleet"], "there is nobody; give --synthetic NUMBER or a trace");
}

#[test]
fn azures_trace_is_read_by_sqlite() {
    if Command::new("sqlite3").arg("-version").output().is_err() {
        skip("plan::azure", "there is no sqlite3");
        return;
    }
    let path = scratch("packing.sqlite");
    std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory");
    let _gone = std::fs::remove_file(&path);
    let path = path.display().to_string();
    let make = |statements: &str| {
        let made = Command::new("sqlite3").arg(&path).arg(statements).status();
        assert!(made.expect("it can be started").success());
    };
    make(
        "CREATE TABLE vm (vmId INTEGER, tenantId INTEGER, vmTypeId INTEGER, priority INTEGER,
                          starttime REAL, endtime REAL);
         CREATE TABLE vmType (id INTEGER, vmTypeId INTEGER, machineId INTEGER, core REAL,
                              memory REAL, hdd REAL, ssd REAL, nic REAL);
         INSERT INTO vmType VALUES (1, 1, 16, 0.5, 0.25, NULL, 0.1, 0.1),
                                   (2, 2, 16, 0.25, 0.75, 0, 0, 0.1), (3, 2, 17, 0.5, 0.5, 0, 0, 0);
         INSERT INTO vm VALUES (1, 10, 1, 0, -3.5, NULL), (2, 10, 1, 0, 0.5, 1.0),
                               (3, 11, 2, 1, 0.51, 0.52), (4, 11, 2, 1, 13.0, 90.0);",
    );
    let fleet: FleetDemand = record(&["fleet", "--azure", &path]);
    assert_eq!((fleet.tenant_count, fleet.stay_count), (2, 3));
    assert_eq!((fleet.short_stay_count, fleet.hour_count), (1, 336));
    // At 13 days there are half and a quarter of the processors, and all memory.
    let of = |name: &str| {
        let one = fleet.dimensions.iter().find(|one| one.dimension == name);
        one.expect("it is there").hours[13 * 24]
    };
    assert_eq!((of("qps"), of("memory")), (750_000.0, (256_u64 << 30) as f64));
    let one: FleetDemand = record(&["fleet", "--azure", &path, "--machine", "17"]);
    assert_eq!(one.tenant_count, 1);
    refused(&["fleet", "--azure", &path, "--machine", "18"], "nobody can be on machine 18");
    make("UPDATE vmType SET core = 1.5 WHERE id = 1;");
    refused(&["fleet", "--azure", &path], "\"1.5\": there should be a number from 0 to 1");
    make("DROP TABLE vm;");
    refused(&["fleet", "--azure", &path], "no such table: vm");
}

#[test]
fn every_plan_has_its_picture() {
    for (arguments, wanted) in [
        (&["cost", "--svg", "-"][..], "tax of flash servers"),
        (&["latency", "--svg", "-"], "RDMA + NIC integration"),
        (&["place", "--synthetic", "50", "--svg", "-"], "capacity"),
        (&["fleet", "--synthetic", "50", "--svg", "-"], "busiest hour"),
        (&["admit", &example("admit.toml"), "--svg", "-"], "tokens per second"),
    ] {
        let picture = answer(arguments);
        assert!(picture.starts_with("<svg") && picture.contains(wanted), "{arguments:?}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{arguments:?}");
    }
}

/// 10¹⁸ bytes and beyond: an answer or a sentence, never a wrong number.
#[test]
fn large_amounts_are_counted_or_refused() {
    let bill: Bill = record(&["cost", "--set", "demand.capacity=1000000TB"]);
    assert_eq!(bill.direct_cost, 4e9);
    refused(&["cost", "--set", "demand.capacity=99000000TB"], "99000000TB");
    let large = "[[program]]\nname = \"a\"\nbound = \"5%\"\nservers = 1000000\n\
                 memory = \"1000000TB\"\ncurve = [{ local = \"50%\", slowdown = 1.0 }]\n";
    refused(&["pool", &file("large-pool.toml", large)], "large-pool.toml:1:1: the ");
}
