//! Copies that a blade keeps of pages that have come back from it.

use paging::blade::{Arrival, Blade, Content, Key, Leave, Meanwhile, Outcome};

fn sum(holds: u32) -> u32 {
    holds.wrapping_mul(0x9e37_79b9)
}

fn content(holds: u32) -> Content {
    Content { sum: sum(holds), print: holds.into() }
}

// A page on its way out and far, and back.
fn goes_and_comes(blade: &mut Blade, key: Key, holds: u32) {
    let Some(Leave::Sent(token, _)) = blade.leave(key, content(holds)) else {
        panic!("{key:?} is to be sent")
    };
    assert_eq!(blade.left(token, |_| Meanwhile::Untouched), Some(Outcome::Far(key)));
    let (token, _) = blade.fetch(key).expect("it is far");
    assert_eq!(blade.arrived(token, sum(holds), || false), Some(Ok(Arrival::Page(key))));
}

// A page that the blade has leaves without being sent.
fn leaves_as_it_came(blade: &mut Blade, key: Key, holds: u32) {
    let Some(Leave::Held(token)) = blade.leave(key, content(holds)) else {
        panic!("the blade has {key:?}")
    };
    assert!(!blade.is_far(key), "its frame is not needed yet");
    assert_eq!(blade.left(token, |_| Meanwhile::Untouched), Some(Outcome::Far(key)));
    assert!(blade.is_far(key));
}

#[test]
fn what_was_touched_on_its_way_out_is_not_sent_again_unless_it_has_changed() {
    let key = (0, 7);
    for holds in [1, 2] {
        let mut blade = Blade::new(2);
        let Some(Leave::Sent(token, _)) = blade.leave(key, content(1)) else { panic!("sent") };
        assert_eq!(blade.left(token, |_| Meanwhile::Touched), Some(Outcome::Stays));
        match blade.leave(key, content(holds)) {
            Some(Leave::Held(_)) => assert_eq!(holds, 1, "it has changed"),
            Some(Leave::Sent(..)) => assert_eq!(holds, 2, "it is there already"),
            None => panic!("there is room"),
        }
    }
}

#[test]
fn what_was_freed_on_its_way_out_has_no_copy() {
    let mut blade = Blade::new(1);
    let Some(Leave::Sent(token, _)) = blade.leave((0, 7), content(1)) else { panic!("sent") };
    assert_eq!(blade.left(token, |_| Meanwhile::Gone), Some(Outcome::Stays));
    assert!(matches!(blade.leave((0, 7), content(1)), Some(Leave::Sent(..))));
}

#[test]
fn what_has_not_changed_is_not_sent() {
    let mut blade = Blade::new(2);
    goes_and_comes(&mut blade, (0, 7), 1);
    leaves_as_it_came(&mut blade, (0, 7), 1);
    let (token, _) = blade.fetch((0, 7)).expect("it is far");
    assert_eq!(blade.arrived(token, sum(1), || false), Some(Ok(Arrival::Page((0, 7)))));
    // A checksum alone proves nothing.
    let other = Content { sum: sum(1), print: 2 };
    assert!(matches!(blade.leave((0, 7), other), Some(Leave::Sent(..))));
}

#[test]
fn what_was_emptied_has_no_copy() {
    let mut blade = Blade::new(2);
    goes_and_comes(&mut blade, (0, 7), 1);
    blade.forget((0, 0), 10);
    assert!(matches!(blade.leave((0, 7), content(1)), Some(Leave::Sent(..))));
}

#[test]
fn a_copy_moves_with_its_page() {
    let mut blade = Blade::new(2);
    goes_and_comes(&mut blade, (0, 7), 1);
    blade.rename((0, 7), 9, 1);
    leaves_as_it_came(&mut blade, (0, 9), 1);
    assert!(matches!(blade.leave((0, 7), content(1)), Some(Leave::Sent(..))));
}

#[test]
fn copies_give_way_where_the_blade_is_full() {
    let mut blade = Blade::new(2);
    for page in 0..10 {
        goes_and_comes(&mut blade, (0, page.into()), page + 1);
    }
    assert_eq!(blade.peak(), 1);
    // The newest are still there.
    leaves_as_it_came(&mut blade, (0, 9), 10);
}

#[test]
fn a_child_keeps_what_its_parent_has_fetched() {
    let mut blade = Blade::new(2);
    let Some(Leave::Sent(token, _)) = blade.leave((0, 1), content(5)) else { panic!("sent") };
    assert!(blade.left(token, |_| Meanwhile::Untouched).is_some());
    blade.share((0, 1), 1, 1);
    let (token, place) = blade.fetch((0, 1)).expect("it is far");
    assert_eq!(blade.arrived(token, sum(5), || false), Some(Ok(Arrival::Page((0, 1)))));
    // The parent's page changes and goes elsewhere; the child's is where it was.
    let Some(Leave::Sent(_, other)) = blade.leave((0, 1), content(6)) else { panic!("sent") };
    assert_ne!(place, other);
    assert_eq!(blade.fetch((1, 1)).map(|(_, place)| place), Some(place));
}
