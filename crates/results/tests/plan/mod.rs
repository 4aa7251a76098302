//! Records of `afar plan`.

mod golden;

use proptest::prelude::*;
use results::plan::admit::{self, Admission};
use results::plan::cost::{self, Bill, Pools, Sensitivity, Side, Usage, Wedge};
use results::plan::cost_map::{Cell, CostMap};
use results::plan::fleet::{Dimension, FleetDemand};
use results::plan::latency::{Path, RoundTrips, Target};
use results::plan::place::{self, Amounts, Migration, Move, Placement, Server};
use results::plan::pool::{Bought, LocalMin, PoolSizing, Program};

use super::{comes_back, many, number, texts};

const VERSION: &str = "0.1.0";

fn perhaps() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(number())
}

fn side() -> impl Strategy<Value = Side> {
    (number(), ".{0,9}", any::<u64>(), number(), number()).prop_map(
        |(machines, binding, period, price, cost)| Side { machines, binding, period, price, cost },
    )
}

fn pools() -> impl Strategy<Value = Pools> {
    (side(), side()).prop_map(|(flash, compute)| Pools { flash, compute })
}

fn wedge() -> impl Strategy<Value = Wedge> {
    (perhaps(), perhaps()).prop_map(|(storage_per_compute_low, storage_per_compute_high)| Wedge {
        storage_per_compute_low,
        storage_per_compute_high,
    })
}

fn bill() -> impl Strategy<Value = Bill> {
    let tenant = (".{0,9}", side(), pools());
    let tenant = tenant.prop_map(|(name, direct, apart)| cost::Tenant { name, direct, apart });
    let usage = (".{0,9}", number(), number());
    let usage = usage.prop_map(|(dimension, direct, pooled)| Usage { dimension, direct, pooled });
    let change = (".{0,9}", number(), perhaps(), perhaps(), perhaps(), perhaps());
    let change = change.prop_map(|(key, value, less, more, below, above)| Sensitivity {
        key,
        value,
        saving_tenth_less: less,
        saving_tenth_more: more,
        verdict_changes_below: below,
        verdict_changes_above: above,
    });
    let costs = (number(), number(), number(), number());
    (".{0,2}", many(tenant), costs, pools(), any::<bool>(), many(usage), many(change), wedge())
        .prop_map(|(currency, tenants, costs, pooled, disaggregate, usage, sensitivity, wedge)| {
            Bill {
                version: VERSION.to_owned(),
                currency,
                tenants,
                direct_cost: costs.0,
                apart_cost: costs.1,
                pooled,
                pooled_cost: costs.2,
                saving: costs.3,
                disaggregate,
                usage,
                sensitivity,
                wedge,
            }
        })
}

fn cost_map() -> impl Strategy<Value = CostMap> {
    let cell = (any::<u32>(), any::<u32>(), number());
    let cell = cell.prop_map(|(storage_factor, compute_factor, saving)| Cell {
        storage_factor,
        compute_factor,
        saving,
    });
    (wedge(), many(cell)).prop_map(|(wedge, cells)| CostMap {
        version: VERSION.to_owned(),
        wedge,
        cells,
    })
}

fn round_trips() -> impl Strategy<Value = RoundTrips> {
    let target = (".{0,9}", number()).prop_map(|(name, rtt_ns)| Target { name, rtt_ns });
    let times = (number(), number(), number(), number());
    let path = (".{0,9}", ".{0,9}", any::<u64>(), times, texts());
    let path = path.prop_map(|(design, scope, rate_bps, times, meets)| Path {
        design,
        scope,
        rate_bps,
        fixed_ns: times.0,
        transmission_ns: times.1,
        wait_ns: times.2,
        total_ns: times.3,
        meets,
    });
    (any::<u64>(), many(target), many(path)).prop_map(|(page_bytes, targets, paths)| RoundTrips {
        version: VERSION.to_owned(),
        page_bytes,
        targets,
        paths,
    })
}

fn amounts() -> impl Strategy<Value = Amounts> {
    prop::collection::btree_map("[a-z]{1,6}", number(), 0..4)
}

fn servers() -> impl Strategy<Value = Vec<Server>> {
    let one = (any::<u64>(), 0..9_u64, any::<u64>(), amounts());
    many(one.prop_map(|(server, rack, tenant_count, used)| Server {
        server,
        rack,
        tenant_count,
        used,
    }))
}

fn migration() -> impl Strategy<Value = Migration> {
    let one = (".{0,9}", prop::option::of(any::<u64>()), any::<u64>(), any::<u64>());
    let one = one.prop_map(|(tenant, from, to, bytes)| Move { tenant, from, to, bytes });
    let counts = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    (many(one), counts, servers(), perhaps(), perhaps()).prop_map(
        |(moves, counts, servers_before, benefit, cost)| Migration {
            moves,
            bytes: counts.0,
            rate_bps: counts.1,
            server_count_before: counts.2,
            servers_before,
            server_count_freed: counts.3,
            benefit,
            cost,
        },
    )
}

fn placement() -> impl Strategy<Value = Placement> {
    let tenant = (".{0,9}", many(any::<u64>()));
    let tenant = tenant.prop_map(|(name, servers)| place::Tenant { name, servers });
    let counts = (any::<u64>(), any::<u64>(), any::<bool>());
    (counts, amounts(), servers(), many(tenant), prop::option::of(migration())).prop_map(
        |((server_count, server_count_min, is_best), limits, servers, tenants, migration)| {
            Placement {
                version: VERSION.to_owned(),
                server_count,
                server_count_min,
                is_best,
                server_limits: limits,
                servers,
                tenants,
                migration,
            }
        },
    )
}

fn bought() -> impl Strategy<Value = Bought> {
    let bytes = (any::<u64>(), many(any::<u64>()), any::<u64>());
    (bytes, number(), number(), number()).prop_map(
        |((server_bytes, pool_bytes, bytes), cost, unused_at_peak, unused_mean)| Bought {
            server_bytes,
            pool_bytes,
            bytes,
            cost,
            unused_at_peak,
            unused_mean,
        },
    )
}

fn pool_sizing() -> impl Strategy<Value = PoolSizing> {
    let program = (".{0,9}", number(), number());
    let program = program.prop_map(|(name, bound, local_min)| Program { name, bound, local_min });
    let least = (".{0,9}", any::<u64>(), any::<u64>());
    let least = least.prop_map(|(server, period, bytes)| LocalMin { server, period, bytes });
    let numbers = (any::<u64>(), any::<u64>(), number());
    let sides = (bought(), prop::option::of(bought()));
    (".{0,2}", numbers, many(program), least, sides, any::<bool>(), ".{0,9}").prop_map(
        |(currency, numbers, programs, local_min, (without, with), disaggregate, reason)| {
            PoolSizing {
                version: VERSION.to_owned(),
                currency,
                server_count: numbers.0,
                period_count: numbers.1,
                programs,
                local_min,
                peak_bytes: numbers.2,
                without,
                with,
                disaggregate,
                reason,
            }
        },
    )
}

fn admission() -> impl Strategy<Value = Admission> {
    let point = (number(), number());
    let point = point.prop_map(|(tokens_per_sec, p95_us)| admit::Point { tokens_per_sec, p95_us });
    let tenant = (".{0,9}", number(), perhaps(), any::<bool>(), ".{0,9}");
    let tenant = tenant.prop_map(|(name, tokens_per_sec, p95_us, admitted, reason)| {
        admit::Tenant { name, tokens_per_sec, p95_us, admitted, reason }
    });
    let meeting = (number(), number(), number());
    let meeting = meeting.prop_map(|(load, wait_ns, wait_of_reads_ns)| admit::Interference {
        load,
        wait_ns,
        wait_of_reads_ns,
    });
    let most = prop::option::of(any::<u64>());
    (number(), most, many(point), many(tenant), prop::option::of(meeting)).prop_map(
        |(write_tokens, tenant_count_max, curve, tenants, interference)| Admission {
            version: VERSION.to_owned(),
            write_tokens,
            tenant_count_max,
            curve,
            tenants,
            interference,
        },
    )
}

fn fleet_demand() -> impl Strategy<Value = FleetDemand> {
    let numbers = (number(), number(), number(), many(number()));
    let dimension = (".{0,9}", prop::option::of(any::<u64>()), numbers);
    let dimension = dimension.prop_map(|(dimension, machine, numbers)| Dimension {
        dimension,
        machine,
        max: numbers.0,
        mean: numbers.1,
        largest_tenth: numbers.2,
        hours: numbers.3,
    });
    (prop::array::uniform6(any::<u64>()), many(dimension)).prop_map(|(counts, dimensions)| {
        let [tenant_count, machine_count, stay_count, short_stay_count, hour_count, busiest_hour] =
            counts;
        FleetDemand {
            version: VERSION.to_owned(),
            tenant_count,
            machine_count,
            stay_count,
            short_stay_count,
            hour_count,
            busiest_hour,
            dimensions,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bills_come_back(record in bill()) {
        comes_back(&record);
    }

    #[test]
    fn cost_maps_come_back(record in cost_map()) {
        comes_back(&record);
    }

    #[test]
    fn round_trips_come_back(record in round_trips()) {
        comes_back(&record);
    }

    #[test]
    fn placements_come_back(record in placement()) {
        comes_back(&record);
    }

    #[test]
    fn pool_sizings_come_back(record in pool_sizing()) {
        comes_back(&record);
    }

    #[test]
    fn admissions_come_back(record in admission()) {
        comes_back(&record);
    }

    #[test]
    fn fleet_demands_come_back(record in fleet_demand()) {
        comes_back(&record);
    }
}
