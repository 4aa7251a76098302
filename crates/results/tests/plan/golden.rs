//! Texts of records are what they were.

use results::plan::admit::{self, Admission, Interference};
use results::plan::cost::{self, Bill, Pools, Sensitivity, Side, Usage, Wedge};
use results::plan::cost_map::{Cell, CostMap};
use results::plan::fleet::{Dimension, FleetDemand};
use results::plan::latency::{Path, RoundTrips, Target};
use results::plan::place::{self, Amounts, Migration, Move, Placement, Server};
use results::plan::pool::{Bought, LocalMin, PoolSizing, Program};

use super::VERSION;
use crate::is_as_before;

fn side(machines: f64, binding: &str, price: f64) -> Side {
    Side { machines, binding: binding.to_owned(), period: 1, price, cost: machines * price }
}

fn pools() -> Pools {
    Pools { flash: side(62.5, "iops", 3000.0), compute: side(156.25, "qps", 4000.0) }
}

#[test]
fn bills_are_what_they_were() {
    let sure = Sensitivity {
        key: "price.flash".to_owned(),
        value: 2400.0,
        saving_tenth_less: Some(0.125),
        saving_tenth_more: Some(0.1875),
        verdict_changes_below: Some(1200.5),
        verdict_changes_above: None,
    };
    let edge = Sensitivity {
        key: "remote.drop".to_owned(),
        value: 0.0,
        saving_tenth_less: None,
        saving_tenth_more: None,
        verdict_changes_below: None,
        verdict_changes_above: Some(0.375),
    };
    is_as_before(
        "plan-cost",
        &Bill {
            version: VERSION.to_owned(),
            currency: "$".to_owned(),
            tenants: vec![cost::Tenant {
                name: "shop".to_owned(),
                direct: side(100.0, "qps", 9600.0),
                apart: pools(),
            }],
            direct_cost: 960_000.0,
            apart_cost: 812_500.0,
            pooled: pools(),
            pooled_cost: 812_500.0,
            saving: 0.153_645_833_333_333_34,
            disaggregate: true,
            usage: vec![Usage { dimension: "capacity".to_owned(), direct: 0.25, pooled: 0.5 }],
            sensitivity: vec![sure, edge],
            wedge: Wedge { storage_per_compute_low: Some(0.75), storage_per_compute_high: None },
        },
    );
}

#[test]
fn cost_maps_are_what_they_were() {
    let cell =
        |storage_factor, compute_factor, saving| Cell { storage_factor, compute_factor, saving };
    is_as_before(
        "plan-cost-map",
        &CostMap {
            version: VERSION.to_owned(),
            wedge: Wedge { storage_per_compute_low: None, storage_per_compute_high: Some(1.25) },
            cells: vec![cell(1, 1, -0.15625), cell(2, 1, 0.15625)],
        },
    );
}

#[test]
fn round_trips_are_what_they_were() {
    is_as_before(
        "plan-latency",
        &RoundTrips {
            version: VERSION.to_owned(),
            page_bytes: 4096,
            targets: vec![Target { name: "class A".to_owned(), rtt_ns: 5000.0 }],
            paths: vec![Path {
                design: "RDMA".to_owned(),
                scope: "in a rack".to_owned(),
                rate_bps: 40_000_000_000,
                fixed_ns: 2560.0,
                transmission_ns: 819.2,
                wait_ns: 409.6,
                total_ns: 3788.8,
                meets: vec!["class A".to_owned()],
            }],
        },
    );
}

#[test]
fn placements_are_what_they_were() {
    let amounts = |capacity, iops| -> Amounts {
        [("capacity".to_owned(), capacity), ("iops".to_owned(), iops)].into()
    };
    let server = |server, used| Server { server, rack: server % 2, tenant_count: 1, used };
    is_as_before(
        "plan-place",
        &Placement {
            version: VERSION.to_owned(),
            server_count: 1,
            server_count_min: 1,
            is_best: true,
            server_limits: amounts(4e12, 100_000.0),
            servers: vec![server(3, amounts(1e12, 25_000.0))],
            tenants: vec![place::Tenant { name: "logs".to_owned(), servers: vec![3] }],
            migration: Some(Migration {
                moves: vec![
                    Move { tenant: "logs".to_owned(), from: Some(0), to: 3, bytes: 1 << 40 },
                    Move { tenant: "new".to_owned(), from: None, to: 3, bytes: 0 },
                ],
                bytes: 1 << 40,
                rate_bps: 10_000_000_000,
                server_count_before: 2,
                servers_before: vec![server(0, amounts(1e12, 25_000.0))],
                server_count_freed: 1,
                benefit: Some(9000.0),
                cost: None,
            }),
        },
    );
}

#[test]
fn pool_sizings_are_what_they_were() {
    let bought = |server_bytes, pool_bytes: &[u64], cost| Bought {
        server_bytes,
        pool_bytes: pool_bytes.to_vec(),
        bytes: server_bytes * 2 + pool_bytes.iter().sum::<u64>(),
        cost,
        unused_at_peak: 0.25,
        unused_mean: 0.5,
    };
    is_as_before(
        "plan-pool",
        &PoolSizing {
            version: VERSION.to_owned(),
            currency: "$".to_owned(),
            server_count: 2,
            period_count: 24,
            programs: vec![Program { name: "shop".to_owned(), bound: 0.05, local_min: 0.486_667 }],
            local_min: LocalMin { server: "shop-1".to_owned(), period: 14, bytes: 1 << 37 },
            peak_bytes: 1e12,
            without: bought(1 << 39, &[], 5120.0),
            with: Some(bought(1 << 38, &[1 << 38], 4096.5)),
            disaggregate: true,
            reason: "cheaper".to_owned(),
        },
    );
}

#[test]
fn admissions_are_what_they_were() {
    let tenant = |name: &str, p95_us, admitted, reason: &str| admit::Tenant {
        name: name.to_owned(),
        tokens_per_sec: 50_000.0,
        p95_us,
        admitted,
        reason: reason.to_owned(),
    };
    is_as_before(
        "plan-admit",
        &Admission {
            version: VERSION.to_owned(),
            write_tokens: 10.5,
            tenant_count_max: Some(3),
            curve: vec![admit::Point { tokens_per_sec: 20_000.0, p95_us: 110.25 }],
            tenants: vec![
                tenant("shop", Some(200.0), true, "admitted"),
                tenant("logs", None, false, "the cores serve 3 tenants; add a core"),
            ],
            interference: Some(Interference {
                load: 0.125,
                wait_ns: 133.5,
                wait_of_reads_ns: 50.0,
            }),
        },
    );
}

#[test]
fn fleet_demands_are_what_they_were() {
    is_as_before(
        "plan-fleet",
        &FleetDemand {
            version: VERSION.to_owned(),
            tenant_count: 50,
            machine_count: 40,
            stay_count: 60,
            short_stay_count: 1,
            hour_count: 2,
            busiest_hour: 1,
            dimensions: vec![Dimension {
                dimension: "memory".to_owned(),
                machine: Some(1 << 38),
                max: 2e12,
                mean: 1.5e12,
                largest_tenth: 0.25,
                hours: vec![1e12, 2e12],
            }],
        },
    );
}
