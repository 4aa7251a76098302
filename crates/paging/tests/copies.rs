//! Copies that a blade keeps of pages that have come back from it.

use paging::blade::{Arrival, Blade, Content, Key, Leave, Outcome};

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
    assert_eq!(blade.left(token, |_| true), Some(Outcome::Far(key)));
    let (token, _) = blade.fetch(key).expect("it is far");
    assert_eq!(blade.arrived(token, sum(holds), false), Some(Ok(Arrival::Page(key))));
}

#[test]
fn what_has_not_changed_is_far_at_once() {
    let mut blade = Blade::new(2);
    goes_and_comes(&mut blade, (0, 7), 1);
    assert_eq!(blade.leave((0, 7), content(1)), Some(Leave::Far));
    assert!(blade.is_far((0, 7)));
    let (token, _) = blade.fetch((0, 7)).expect("it is far");
    assert_eq!(blade.arrived(token, sum(1), false), Some(Ok(Arrival::Page((0, 7)))));
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
    assert_eq!(blade.leave((0, 9), content(1)), Some(Leave::Far));
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
    assert_eq!(blade.leave((0, 9), content(10)), Some(Leave::Far));
}

#[test]
fn a_child_keeps_what_its_parent_has_fetched() {
    let mut blade = Blade::new(2);
    let Some(Leave::Sent(token, _)) = blade.leave((0, 1), content(5)) else { panic!("sent") };
    assert!(blade.left(token, |_| true).is_some());
    blade.share((0, 1), 1, 1);
    let (token, place) = blade.fetch((0, 1)).expect("it is far");
    assert_eq!(blade.arrived(token, sum(5), false), Some(Ok(Arrival::Page((0, 1)))));
    // The parent's page changes and goes elsewhere; the child's is where it was.
    let Some(Leave::Sent(_, other)) = blade.leave((0, 1), content(6)) else { panic!("sent") };
    assert_ne!(place, other);
    assert_eq!(blade.fetch((1, 1)).map(|(_, place)| place), Some(place));
}
