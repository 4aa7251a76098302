use measure::Money;

use super::{Demand, Dimension, Facility, Model, Part, Server, Tenant};

/// A published measurement of the queries that a server loses by remote flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drop {
    /// Its name in a model file.
    pub name: &'static str,
    /// The queries per second that are lost, in billionths.
    pub ppb: u32,
    /// The paper and its figure or section.
    pub source: &'static str,
}

/// The drops that users can choose by name.
pub const DROPS: [Drop; 3] = [
    Drop {
        name: "klimovic-iscsi",
        ppb: 200_000_000,
        source: "Klimovic et al. 2016 §4.2: SSDB, iSCSI",
    },
    Drop {
        name: "guz-nvmeof",
        ppb: 20_000_000,
        source: "Guz et al. 2017, Fig. 10: RocksDB, NVMe-oF",
    },
    Drop {
        name: "guz-iscsi",
        ppb: 400_000_000,
        source: "Guz et al. 2017, Fig. 10: RocksDB, iSCSI",
    },
];

/// The requests of an application for each terabyte of its data on flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Its name in a model file.
    pub name: &'static str,
    /// Reads per second: the lowest and the highest rate.
    pub read_iops: (u64, u64),
    /// Reads per second in bursts, 1 % of the time.
    pub burst_iops: Option<u64>,
    /// Bytes of a read.
    pub read_bytes: u64,
    /// Writes per second.
    pub write_iops: u64,
    /// Bytes of a write.
    pub write_bytes: u64,
}

/// Klimovic et al., Table 1: key-value stores of Facebook.
pub const WORKLOADS: [Workload; 4] = [
    workload("A", (2_000, 10_000), 10_000, 100, 500_000),
    workload("B", (2_000, 6_000), 50_000, 1_000, 700_000),
    Workload { burst_iops: Some(75_000), ..workload("C", (2_000, 4_000), 15_000, 500, 2_000_000) },
    workload("D", (2_000, 4_000), 25_000, 150, 500_000),
];

/// A workload without bursts.
const fn workload(
    name: &'static str,
    read_iops: (u64, u64),
    read_bytes: u64,
    write_iops: u64,
    write_bytes: u64,
) -> Workload {
    Workload { name, read_iops, burst_iops: None, read_bytes, write_iops, write_bytes }
}

const TERABYTE: u64 = 1_000_000_000_000;

impl Workload {
    /// Its demand at its peak if it stores `capacity` bytes: capacity, requests and their traffic.
    #[must_use]
    pub fn peak(&self, capacity: u64) -> Demand {
        let of = |per_terabyte: u64| {
            let product = u128::from(capacity) * u128::from(per_terabyte);
            u64::try_from(product.div_ceil(u128::from(TERABYTE))).unwrap_or(u64::MAX)
        };
        let requests = self.read_iops.1 + self.write_iops;
        let bytes = self.read_iops.1 * self.read_bytes + self.write_iops * self.write_bytes;
        Demand::default()
            .with(Dimension::Capacity, capacity)
            .with(Dimension::Iops, of(requests))
            .with(Dimension::Traffic, of(bytes * 8))
    }
}

/// The example calculation of Klimovic et al. §4.3: 100 TB and ten million queries per second.
#[must_use]
pub fn example() -> (Model, Vec<Tenant>) {
    let part = |units| Part { price: Money::from_units(units), ..Part::default() };
    let model = Model {
        server: Server::default()
            .with(Dimension::Capacity, 1_200_000_000_000)
            .with(Dimension::Qps, 50_000),
        flash: part(2400),
        compute: part(2400),
        // Three tenants on a flash server, 50 each.
        tax: part(3 * 50),
        facility: Facility::default(),
        drop_ppb: DROPS[0].ppb,
        whole: false,
        spares: 0,
    };
    let demand = Demand::default()
        .with(Dimension::Capacity, 100 * TERABYTE)
        .with(Dimension::Qps, 10_000_000);
    (model, vec![Tenant { name: "application".to_owned(), series: vec![demand] }])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Klimovic et al., Table 1.
    #[test]
    fn workloads_are_those_of_the_table() {
        let rows = WORKLOADS.map(|one| {
            let kilobytes = (one.read_bytes / 1000, one.write_bytes / 1000);
            (one.name, one.read_iops, kilobytes.0, one.write_iops, kilobytes.1)
        });
        assert_eq!(
            rows,
            [
                ("A", (2_000, 10_000), 10, 100, 500),
                ("B", (2_000, 6_000), 50, 1_000, 700),
                ("C", (2_000, 4_000), 15, 500, 2_000),
                ("D", (2_000, 4_000), 25, 150, 500),
            ]
        );
        assert_eq!(WORKLOADS[2].burst_iops, Some(75_000));
        let peak = WORKLOADS[0].peak(2 * TERABYTE);
        assert_eq!(peak.get(Dimension::Iops), 20_200);
        assert_eq!(peak.get(Dimension::Traffic), 2 * 8 * (10_000 * 10_000 + 100 * 500_000));
    }
}
