use std::collections::BTreeSet;

use proptest::prelude::*;
use workload::Draw;

use super::*;
use crate::cost::{Demand, Dimension, Server};

const THREE: [Dimension; 3] = [Dimension::Capacity, Dimension::Iops, Dimension::Traffic];

fn guest(index: usize, sizes: &[u64]) -> Guest {
    let mut wants = Demand::default();
    for (dimension, size) in Dimension::ALL.into_iter().zip(sizes) {
        wants = wants.with(dimension, *size);
    }
    Guest { name: format!("t{index}"), wants, replicas: 1, ..Guest::default() }
}

fn problem(each: u64, items: &[&[u64]]) -> Problem {
    let mut server = Server::default();
    for dimension in THREE {
        server = server.with(dimension, each);
    }
    let tenants = items.iter().enumerate().map(|(index, sizes)| guest(index, sizes)).collect();
    Problem { tenants, pool: Pool { server, racks: 1, ..Pool::default() } }
}

#[test]
fn a_case_that_first_fit_gets_wrong() {
    let (a, b, c, d) = ([5, 2, 2], [2, 5, 2], [2, 2, 5], [3, 3, 3]);
    let problem = problem(10, &[&a, &a, &b, &b, &c, &c, &d, &d]);
    assert_eq!(lower_bound(&problem), Ok(3));
    assert_eq!(first_fit(&problem), Ok(4));
    let placement = place(&problem).expect("it can be");
    assert_eq!((placement.servers, placement.is_best), (3, true));
    assert_eq!(check(&problem, &placement), []);
}

// The fewest servers by trying every way to split the tenants: nothing of `place` is used.
fn brute_force(problem: &Problem) -> u32 {
    let count = problem.tenants.len();
    let fits = |mask: usize| {
        let inside = || (0..count).filter(|at| mask >> at & 1 == 1).map(|at| &problem.tenants[at]);
        let has_room = THREE.iter().all(|&dimension| {
            let sum: u64 = inside().map(|one| one.wants.get(dimension)).sum();
            sum <= problem.pool.server.get(dimension).expect("it is said")
        });
        let words: Vec<_> = inside().filter_map(|one| one.apart.as_ref()).collect();
        let bursty = inside().filter(|one| one.bursty).count();
        has_room
            && words.iter().collect::<BTreeSet<_>>().len() == words.len()
            && (bursty < 2 || !inside().any(|one| one.tail))
    };
    let feasible: Vec<bool> = (0..1_usize << count).map(fits).collect();
    let mut fewest = vec![u32::MAX; 1 << count];
    fewest[0] = 0;
    for mask in 1..1_usize << count {
        let mut part = mask;
        while part > 0 {
            let rest = fewest[mask & !part];
            if feasible[part] && rest < u32::MAX {
                fewest[mask] = fewest[mask].min(rest + 1);
            }
            part = (part - 1) & mask;
        }
    }
    fewest[(1 << count) - 1]
}

#[test]
fn two_hundred_random_problems_against_brute_force() {
    let mut draw = Draw::new(3);
    let mut hard = 0;
    for round in 0..200 {
        let count = 4 + usize::try_from(draw.below(9)).expect("small");
        let most = if round % 2 == 0 { 60 } else { 40 };
        let items: Vec<Vec<u64>> =
            (0..count).map(|_| (0..3).map(|_| 5 + draw.below(most)).collect()).collect();
        let items: Vec<&[u64]> = items.iter().map(Vec::as_slice).collect();
        let mut problem = problem(100, &items);
        for tenant in &mut problem.tenants {
            tenant.bursty = draw.below(3) == 0;
            tenant.tail = draw.below(3) == 0;
            tenant.apart = (draw.below(4) == 0).then(|| "word".to_owned());
        }
        let placement = place(&problem).expect("everybody fits");
        assert!(placement.is_best, "{round}");
        assert_eq!(placement.servers, brute_force(&problem), "{round}");
        assert_eq!(check(&problem, &placement), [], "{round}");
        hard += u32::from(placement.bound < placement.servers);
    }
    assert!(hard > 10, "only {hard} were harder than their bound");
}

fn made_up(count: usize, seed: u64) -> Problem {
    let pool = Pool { server: fleet_server(), racks: 1, ..Pool::default() };
    Problem { tenants: fleet(count, seed), pool }
}

#[test]
fn ten_thousand_tenants_are_near_the_bound() {
    let problem = made_up(10_000, 1);
    let placement = place(&problem).expect("everybody fits");
    let gap = f64::from(placement.servers) / f64::from(placement.bound) - 1.0;
    assert!(gap <= 0.03, "{} for {}", placement.servers, placement.bound);
    assert_eq!(check(&problem, &placement), []);
}

#[test]
fn the_same_problem_has_the_same_placement() {
    assert_eq!(place(&made_up(1_000, 2)), place(&made_up(1_000, 2)));
    assert_ne!(made_up(10, 2), made_up(10, 3));
}

#[test]
fn what_cannot_be_says_who_what_and_by_how_much() {
    let refused = |problem: &Problem| place(problem).expect_err("it cannot be").to_string();
    let large = problem(10, &[&[1, 1, 1], &[1, 12, 1]]);
    assert_eq!(
        refused(&large),
        "tenant \"t1\" needs 12 of iops, a server has 10; it would fit a server with as much, or \
         with 2 less"
    );
    let mut few = problem(10, &[&[6, 1, 1], &[6, 1, 1], &[6, 1, 1]]);
    few.pool.count = Some(2);
    let said = refused(&few);
    assert!(said.starts_with("3 servers are needed and there are 2: tenant \"t2\""), "{said}");
    assert!(said.ends_with("for want of capacity; 1 more servers would do"), "{said}");
    let mut circle = problem(10, &[&[1, 1, 1], &[1, 1, 1]]);
    circle.tenants[0].with = Some(1);
    circle.tenants[1].with = Some(0);
    assert!(refused(&circle).starts_with("tenant \"t0\" is to be with itself"));
    circle.tenants[1].with = None;
    for tenant in &mut circle.tenants {
        tenant.apart = Some("x".to_owned());
    }
    assert!(refused(&circle).contains("are to be together and apart"));
    let mut copies = problem(10, &[&[1, 1, 1]]);
    copies.tenants[0].replicas = 3;
    copies.pool.racks = 2;
    assert!(refused(&copies).contains("has 3 replicas for 2 racks"));
    assert_eq!(place(&Problem::default()), Err(PlaceError::NoTenants));
    let mut most = problem(u64::MAX - 1, &[&[u64::MAX - 1, 1, 1], &[u64::MAX - 1, 1, 1]]);
    assert_eq!(place(&most).map(|found| found.servers), Ok(2));
    most.tenants[1].with = Some(0);
    assert_eq!(place(&most), Err(PlaceError::Amount(Dimension::Capacity)));
}

#[test]
fn who_must_be_near_is_in_its_rack() {
    let mut problem = problem(10, &[&[6, 1, 1], &[6, 1, 1], &[3, 1, 1], &[3, 1, 1], &[1, 1, 1]]);
    problem.pool.racks = 3;
    for tenant in &mut problem.tenants[..2] {
        tenant.rack = Some(2);
    }
    problem.tenants[2].rack = Some(0);
    let placement = place(&problem).expect("it can be");
    // Two are too large for one server of rack 2, and one must be in rack 0.
    assert_eq!((placement.servers, placement.is_best), (3, true));
    assert_eq!(check(&problem, &placement), []);
    let mut moved = placement;
    moved.places[2] = vec![1];
    assert!(check(&problem, &moved).contains(&Violation::Elsewhere(2)));
    let refused = |problem: &Problem| place(problem).expect_err("it cannot be").to_string();
    problem.tenants[3].rack = Some(3);
    assert!(refused(&problem).contains("\"t3\" is in rack 3, and there are 3"));
    problem.tenants[3].rack = Some(1);
    problem.tenants[3].replicas = 2;
    assert!(refused(&problem).contains("2 replicas that must be in rack 1"));
    problem.tenants[3].replicas = 1;
    problem.tenants[3].with = Some(0);
    assert!(refused(&problem).contains("\"t0\" and \"t3\" are to be together and apart"));
}

#[test]
fn a_lost_server_moves_only_its_own() {
    let problem = problem(10, &[&[5, 1, 1], &[5, 1, 1], &[5, 1, 1], &[4, 1, 1]]);
    let now = [vec![0], vec![0], vec![1], vec![2]];
    let found = migrate(&problem, &now, &BTreeSet::from([1]), 0).expect("it can be");
    assert_eq!(found.moves, [Move { tenant: 2, from: None, to: 2 }]);
    assert_eq!(check(&problem, &found.placement), []);
    // Nine bytes may move, and one server is enough less.
    let found = migrate(&problem, &now, &BTreeSet::new(), 9).expect("it can be");
    assert_eq!(found.moves, [Move { tenant: 3, from: Some(2), to: 1 }]);
    assert_eq!((found.placement.servers, found.placement.bound), (2, 2));
}

fn any_problem() -> impl Strategy<Value = Problem> {
    let tenant = (
        prop::array::uniform3(0..40_u64),
        1..4_u32,
        any::<(bool, bool)>(),
        prop::option::of(0..4_u8),
        prop::option::of(0..60_usize),
        prop::option::of(0..3_u32),
    );
    let pool = (3..5_u32, prop::option::of(4..9_u32));
    (prop::collection::vec(tenant, 1..60), pool).prop_map(|(tenants, (racks, tenants_max))| {
        let sizes: Vec<[u64; 3]> = tenants.iter().map(|one| one.0).collect();
        let items: Vec<&[u64]> = sizes.iter().map(<[u64; 3]>::as_slice).collect();
        let mut problem = problem(100, &items);
        for (index, (_, replicas, (bursty, tail), apart, with, rack)) in
            tenants.into_iter().enumerate()
        {
            let tenant = &mut problem.tenants[index];
            tenant.replicas = replicas;
            (tenant.bursty, tenant.tail) = (bursty, tail && !bursty);
            tenant.apart = apart.map(|word| word.to_string());
            tenant.rack = rack.filter(|_| replicas == 1 && with.is_none());
            // Now and then with an earlier one that nobody is kept apart from.
            tenant.with = with.filter(|other| *other + 20 < index);
            if let Some(other) = tenant.with {
                let leader = problem.tenants[other].clone();
                let tenant = &mut problem.tenants[index];
                tenant.replicas = leader.replicas;
                (tenant.apart, tenant.bursty, tenant.tail) = (None, false, false);
                tenant.wants = Demand::default();
                if leader.with.is_some() {
                    tenant.with = None;
                }
            }
        }
        problem.pool = Pool { racks, tenants_max, ..problem.pool };
        problem
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_constraint_is_ever_violated(problem in any_problem()) {
        // Too many that stay together is the only thing that cannot be here.
        if let Ok(placement) = place(&problem) {
            prop_assert_eq!(check(&problem, &placement), vec![]);
            prop_assert!(placement.bound <= placement.servers);
        } else {
            let is_crowd = matches!(place(&problem), Err(PlaceError::TooMany { .. }));
            prop_assert!(is_crowd);
        }
    }

    #[test]
    fn migrations_violate_nothing_either(problem in any_problem(), lost in 0..6_u32, budget: u16) {
        if let Ok(placement) = place(&problem) {
            let lost = BTreeSet::from([lost]);
            let found = migrate(&problem, &placement.places, &lost, u64::from(budget));
            let found = found.expect("servers are no limit");
            prop_assert_eq!(check(&problem, &found.placement), vec![]);
            prop_assert!(found.placement.places.iter().flatten().all(|at| !lost.contains(at)));
        }
    }
}

#[cfg(feature = "highs")]
mod with_highs {
    use std::time::Duration;

    use super::super::unit::Units;
    use super::super::{milp, place_exactly};
    use super::*;

    // Replicas, racks, words, tails: everything that is a row.
    fn random(draw: &mut Draw, count: usize) -> Problem {
        let items: Vec<Vec<u64>> =
            (0..count).map(|_| (0..3).map(|_| 15 + draw.below(45)).collect()).collect();
        let items: Vec<&[u64]> = items.iter().map(Vec::as_slice).collect();
        let mut problem = problem(100, &items);
        problem.pool.racks = 1 + u32::try_from(draw.below(3)).expect("small");
        problem.pool.tenants_max = Some(4);
        for tenant in &mut problem.tenants {
            tenant.bursty = draw.below(3) == 0;
            tenant.tail = draw.below(3) == 0;
            tenant.apart = (draw.below(4) == 0).then(|| "word".to_owned());
            match draw.below(8) {
                0 if problem.pool.racks > 1 => tenant.replicas = 2,
                1 => tenant.rack = Some(0),
                _ => {}
            }
        }
        problem
    }

    // Time may end a proof; nothing may be wrong.
    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn it_agrees_with_our_own_search_and_breaks_no_rule() {
        let mut draw = Draw::new(5);
        let mut proven = 0;
        for round in 0..25 {
            let count = 6 + usize::try_from(draw.below(6)).expect("small");
            let problem = random(&mut draw, count);
            let own = place(&problem).expect("everybody fits");
            assert!(own.is_best, "{round}");
            // Ours proves these already, so it is asked on its own.
            let units = Units::of(&problem).expect("it is a problem");
            let more = milp::search(&units, own.servers + 1, 1, LIMIT).expect("it is small");
            assert!(more.bound <= own.servers, "{round}");
            assert!(more.better.is_none_or(|found| found.used() == own.servers), "{round}");
            let none = milp::search(&units, own.servers, 1, LIMIT).expect("it is small");
            assert!(none.better.is_none() && none.bound <= own.servers, "{round}");
            proven += u32::from(more.bound == own.servers && none.bound == own.servers);
        }
        assert!(proven > 12, "{proven} of 25 proven");
    }

    #[test]
    fn it_finds_or_proves_what_our_own_search_does_not() {
        let mut draw = Draw::new(11);
        let (mut proven, mut fewer) = (0, 0);
        for round in 0..6 {
            let problem = random(&mut draw, 26);
            let before = place(&problem).expect("everybody fits");
            let exact = place_exactly(&problem, LIMIT).expect("everybody fits");
            assert_eq!(check(&problem, &exact), [], "{round}");
            assert!(exact.servers <= before.servers && exact.bound >= before.bound, "{round}");
            proven += u32::from(exact.is_best && !before.is_best);
            fewer += u32::from(exact.servers < before.servers);
        }
        assert!(proven + fewer > 0, "{proven} proven, {fewer} with fewer servers");
    }
}
