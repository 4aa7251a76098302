//! afar
use farmem::runtime::*;
use measure::*;
fn main() {
    let mut args = std::env::args_os().skip(1);
    let get = |n: &str, d: &str| std::env::var(n).unwrap_or_else(|_| d.into());
    let config = RunConfig {
        program: args.by_ref().collect(),
        trap: if get("TRAP", "bpf") == "bpf" {
            TrapKind::Bpf
        } else {
            TrapKind::Userfault
        },
        tiers: vec![Tier {
            name: "far".into(),
            local: match get("LOCAL", "100%").as_str() {
                "none" => None,
                s => Some(s.parse().unwrap()),
            },
            link: LinkConfig {
                mode: LinkMode::Shared,
                rtt: get("RTT", "0us").parse().unwrap(),
                bandwidth: None,
                profile: None,
            },
        }],
        of: None,
        scope: BudgetScope::Process,
        policy: get("POLICY", "fifo").parse().unwrap(),
        prefetch: get("PREFETCH", "none").parse().unwrap(),
        probation: None,
        seed: 1,
        record: false,
        constant_ns: 950,
    };
    let mut silent = Silent;
    let outcome = Supervisor::start(config, &mut silent)
        .unwrap()
        .run()
        .unwrap();
    let mut r = outcome.results;
    r.fault_latency.total_bins.clear();
    eprintln!("{r:#?}");
}
