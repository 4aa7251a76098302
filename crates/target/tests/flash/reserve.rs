//! A host takes a namespace for itself, and others do not get it.

use std::net::SocketAddr;

use backend::Failure;
use host::{HostConfig, Reservation, Taken};
use nvme::{ReservationHolder, Status};

use crate::disk::{any_port, attach, config_of, host, serve_at, uri};
use crate::remote::memory;

fn named(number: u8) -> HostConfig {
    HostConfig { host_id: [number; 16], ..host() }
}

fn take(address: SocketAddr, number: u8, preempts: bool) -> Taken {
    let uri = uri(&address);
    let key = u64::from(number) + 100;
    Reservation::take(&uri, &named(number), key, preempts).expect("it answers")
}

fn alone(taken: Taken) -> Reservation {
    match taken {
        Taken::Alone(reservation) => reservation,
        Taken::Held(holder) => panic!("{holder:?} has it"),
        Taken::Private | Taken::NotOffered => panic!("it is offered"),
    }
}

fn is_of(taken: &Taken, number: u8) -> bool {
    let holder = ReservationHolder { host_id: [number; 16], key: u64::from(number) + 100 };
    matches!(taken, Taken::Held(one) if *one == holder)
}

#[test]
fn one_host_has_it_until_it_gives_it_up_or_another_takes_it() {
    let target = serve_at(&memory(), vec![any_port(), any_port()], "reserved");
    let addresses = target.addresses().to_vec();
    let disk = |number| attach(config_of(&addresses, &named(number))).expect("it is there").0;
    let [one, other] = [1, 2].map(disk);
    let write = |disk: &host::Disk| disk.write_at(0, &[1; 4096], false);
    let conflict = Err(Failure::Refused(Status::RESERVATION_CONFLICT.do_not_retry().bits()));
    let first = alone(take(addresses[0], 1, false));
    // Over either way, by whatever was connected before or after.
    assert_eq!((write(&one), write(&other)), (Ok(()), conflict));
    assert_eq!(other.read_at(0, &mut [0; 4096]), conflict);
    assert!(is_of(&take(addresses[0], 2, false), 1));
    assert_eq!(write(&one), Ok(()), "who was refused has left nothing behind");
    drop(first);
    let second = alone(take(addresses[0], 2, false));
    assert_eq!((write(&one), write(&other)), (conflict, Ok(())));
    // As if it had been killed.
    let third = alone(take(addresses[0], 1, true));
    assert_eq!((write(&one), write(&other)), (Ok(()), conflict));
    // Whoever has lost it does not end what the next has.
    drop(second);
    assert_eq!((write(&one), write(&other)), (Ok(()), conflict));
    drop(third);
    assert_eq!((write(&one), write(&other)), (Ok(()), Ok(())));
    drop((one, other));
    target.stop().expect("it has not failed");
}

#[test]
fn of_hosts_that_come_at_once_one_has_it() {
    let target = serve_at(&memory(), vec![any_port()], "reserved");
    let address = target.addresses()[0];
    for round in 0..20 {
        let all: Vec<Taken> = std::thread::scope(|scope| {
            let takers = [1, 2, 3].map(|number| scope.spawn(move || take(address, number, false)));
            takers.map(|one| one.join().expect("it does not fail")).into()
        });
        let count = all.iter().filter(|one| matches!(one, Taken::Alone(_))).count();
        assert_eq!(count, 1, "round {round}");
    }
    target.stop().expect("it has not failed");
}
