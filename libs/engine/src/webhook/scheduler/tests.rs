//! Who goes next, in every order of steps.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const CAPACITY: Capacity = Capacity {
    slots: 64,
    slots_each: 16,
    buffer: 100,
};

fn subscription(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn id(number: u128) -> NotificationId {
    Uuid::from_u128(number).into()
}

fn scheduler_with(waiting: &[(u128, usize)]) -> FairScheduler<()> {
    let mut scheduler = FairScheduler::new(CAPACITY);
    for (number, count) in waiting {
        for index in 0..*count {
            scheduler.arrive(subscription(*number), id(number << 64 | index as u128), ());
        }
    }
    scheduler
}

fn started(turns: &[Turn<()>], number: u128) -> usize {
    turns
        .iter()
        .filter(|turn| turn.subscription == subscription(number))
        .count()
}

#[test]
fn subscriptions_take_turns() {
    let mut scheduler = scheduler_with(&[(1, 10), (2, 10), (3, 1)]);
    let order: Vec<u128> = scheduler
        .take(5)
        .iter()
        .map(|turn| turn.subscription.as_u128())
        .collect();
    assert_eq!(order, [1, 2, 3, 1, 2]);
}

#[test]
fn one_alone_gets_a_part_and_leaves_the_rest_free() {
    let mut scheduler = scheduler_with(&[(1, 60)]);
    let turns = scheduler.take(60);
    assert_eq!(turns.len(), 7, "an eighth of what is free while it starts");
    scheduler.arrive(subscription(2), id(7), ());
    assert_eq!(started(&scheduler.take(60), 2), 1);
}

#[test]
fn many_that_hang_leave_room_for_one_that_comes_new() {
    let mut scheduler = scheduler_with(&(1..=40).map(|number| (number, 2)).collect::<Vec<_>>());
    let hanging = scheduler.take(1_000).len();
    assert!((40..64).contains(&hanging), "{hanging}");
    scheduler.arrive(subscription(99), id(99), ());
    assert_eq!(started(&scheduler.take(1_000), 99), 1);
}

#[test]
fn a_withheld_subscription_starts_nothing_but_probes_and_comes_back_for_what_waits() {
    let mut scheduler = scheduler_with(&[(1, 3), (2, 1)]);
    scheduler.note_backlog(subscription(1));
    scheduler.withhold(subscription(1));
    scheduler.arrive(subscription(1), id(7), ());
    scheduler.note_backlog(subscription(1));
    assert_eq!(scheduler.take_withheld().len(), 4);
    assert!(scheduler.overflow().is_empty() && scheduler.fetches(9).is_empty());
    assert_eq!(started(&scheduler.take(9), 1), 0);
    assert!(scheduler.is_idle(subscription(1)));
    let probe = scheduler.probe(subscription(1));
    assert!(!scheduler.is_idle(subscription(1)));
    scheduler.probed(probe, 1);
    assert!(!scheduler.is_idle(subscription(1)), "its attempt is under way");
    scheduler.release(subscription(1), 1);
    assert!(scheduler.is_idle(subscription(1)) && scheduler.fetches(9).is_empty());
    let late = scheduler.probe(subscription(1));
    scheduler.resume(subscription(1));
    scheduler.probed(late, 0);
    assert_eq!(scheduler.fetches(9)[0].subscription, subscription(1));
    scheduler.arrive(subscription(1), id(8), ());
    assert_eq!(scheduler.overflow().len(), 1, "it goes behind what waits");
    assert_eq!(scheduler.clear().len() + scheduler.take_withheld().len(), 0);
}

#[test]
fn what_does_not_fit_is_taken_from_the_one_that_has_most() {
    let mut scheduler = scheduler_with(&[(1, 90), (2, 8)]);
    assert!(scheduler.overflow().is_empty());
    for index in 0..5 {
        scheduler.arrive(subscription(2), id(500 + index), ());
    }
    let over = scheduler.overflow();
    assert_eq!(over.len(), 45);
    assert_eq!(over[0].id, id(1 << 64 | 45), "the oldest stay");
    assert_eq!(scheduler.waiting, 58);
}

#[test]
fn of_many_that_have_one_each_no_more_go_than_do_not_fit() {
    let mut scheduler = scheduler_with(&(1..=103).map(|number| (number, 1)).collect::<Vec<_>>());
    let over: HashSet<NotificationId> = scheduler.overflow().into_iter().map(|over| over.id).collect();
    assert_eq!((over.len(), scheduler.waiting), (3, 100));
    assert_eq!(scheduler.backlogs.len(), 3);
    assert_eq!(scheduler.take(64).len(), 64);
    assert!(
        scheduler.take(64).is_empty() && scheduler.fetches(64).is_empty(),
        "all slots are taken"
    );
}

#[test]
fn a_backlog_is_fetched_once_at_a_time_after_what_waits_here_and_before_what_comes() {
    let mut scheduler = scheduler_with(&[(1, 1)]);
    scheduler.note_backlog(subscription(1));
    scheduler.arrive(subscription(1), id(7), ());
    assert_eq!(scheduler.overflow().len(), 1, "it goes behind the backlog");
    assert!(scheduler.fetches(9).is_empty());
    assert_eq!(scheduler.take(9).len(), 1);
    let fetch = scheduler.fetches(9)[0];
    assert!(fetch.slots > 0 && scheduler.fetches(9).is_empty());
    scheduler.fetched(fetch, 2, true);
    assert_eq!(scheduler.in_flight(), 3);
    let again = scheduler.fetches(9)[0];
    scheduler.fetched(again, 0, false);
    assert!(scheduler.fetches(9).is_empty());
    scheduler.release(subscription(1), 3);
    assert!(scheduler.take(9).is_empty());
    assert!(scheduler.subscriptions.is_empty());
}

#[test]
fn what_was_put_aside_during_a_fetch_or_after_it_is_looked_for_once_more() {
    let mut scheduler = scheduler_with(&[]);
    scheduler.note_backlog(subscription(1));
    let fetch = scheduler.fetches(9)[0];
    scheduler.arrive(subscription(1), id(7), ());
    assert_eq!(scheduler.overflow()[0].subscription, subscription(1));
    scheduler.note_put_aside(subscription(1));
    scheduler.fetched(fetch, 0, false);
    let again = scheduler.fetches(9)[0];
    assert_eq!(again.subscription, subscription(1));
    scheduler.fetched(again, 0, false);
    assert!(scheduler.fetches(9).is_empty() && scheduler.subscriptions.is_empty());
    scheduler.note_put_aside(subscription(1));
    let after = scheduler.fetches(9)[0];
    scheduler.fetched(after, 1, true);
    assert_eq!(scheduler.fetches(9).len(), 1, "it may find more");
}

#[test]
fn what_was_put_aside_and_is_being_fetched_may_turn_out_to_have_more() {
    let mut scheduler = scheduler_with(&[]);
    scheduler.note_put_aside(subscription(1));
    let fetch = scheduler.fetches(9)[0];
    assert!(
        scheduler.fetches(9).is_empty(),
        "its turn comes while it is fetched"
    );
    scheduler.fetched(fetch, 0, true);
    assert_eq!(scheduler.fetches(9).len(), 1);
}

#[test]
fn what_comes_after_something_was_put_aside_is_kept() {
    let mut scheduler = scheduler_with(&[]);
    scheduler.note_put_aside(subscription(1));
    scheduler.arrive(subscription(1), id(7), ());
    assert!(scheduler.overflow().is_empty());
    assert_eq!(scheduler.take(9).len(), 1);
    assert_eq!(scheduler.fetches(9).len(), 1);
    scheduler.withhold(subscription(1));
    scheduler.note_put_aside(subscription(1));
    assert!(scheduler.fetches(9).is_empty(), "nothing but probes");
}

#[test]
fn many_with_a_backlog_share_the_slots_of_one_go_and_take_turns() {
    let mut scheduler = scheduler_with(&[]);
    for number in 1..=6 {
        scheduler.note_backlog(subscription(number));
    }
    let asked = |fetches: &[Fetch]| -> Vec<(u128, usize)> {
        let of = |fetch: &Fetch| (fetch.subscription.as_u128(), fetch.slots);
        fetches.iter().map(of).collect()
    };
    let first = scheduler.fetches(4);
    assert_eq!(asked(&first), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(asked(&scheduler.fetches(4)), [(4, 1), (5, 1), (6, 1)]);
    for fetch in first {
        scheduler.fetched(fetch, 0, fetch.subscription == subscription(3));
    }
    assert_eq!(
        asked(&scheduler.fetches(6)),
        [(3, 6)],
        "the others are fetched, or have no more"
    );
    for number in 1..=4 {
        scheduler.note_backlog(subscription(number));
    }
    let listed: HashSet<&Uuid> = scheduler.backlogs.iter().collect();
    assert_eq!((scheduler.backlogs.len(), listed.len()), (6, 6));
}

#[test]
fn many_whose_endpoints_hang_hold_up_no_other_that_has_a_backlog() {
    let mut scheduler = scheduler_with(&(1..=40).map(|number| (number, 2)).collect::<Vec<_>>());
    scheduler.take(1_000);
    for number in (1..=40).chain([99]) {
        scheduler.note_backlog(subscription(number));
    }
    let fetch = |slots| Fetch {
        subscription: subscription(99),
        slots,
    };
    assert_eq!(scheduler.fetches(64), [fetch(1)]);
    scheduler.fetched(fetch(1), 0, true);
    assert_eq!(
        scheduler.fetches(64),
        [fetch(1)],
        "at once, and not after a turn of the others"
    );
}

#[test]
fn a_backlog_alone_gets_the_slots_that_it_may_use() {
    let mut scheduler = scheduler_with(&[]);
    scheduler.note_backlog(subscription(1));
    assert_eq!(scheduler.fetches(64)[0].slots, 8, "an eighth of what is free");
}

proptest! {
    /// Whatever happens, slots are never exceeded, no subscription exceeds its own, nothing is lost and nothing comes twice.
    #[test]
    fn books_are_kept(steps in proptest::collection::vec((0_u8..10, 0_u128..6, 1_usize..20), 1..200)) {
        let mut scheduler: FairScheduler<()> = FairScheduler::new(CAPACITY);
        let (mut arrived, mut left, mut running) = (0_u128, HashSet::new(), Vec::new());
        let mut fetching: Vec<Fetch> = Vec::new();
        for (step, number, count) in steps {
            match step {
                0 => for _ in 0..count {
                    arrived += 1;
                    scheduler.arrive(subscription(number), id(arrived), ());
                },
                1 => for turn in scheduler.take(count) {
                    prop_assert!(left.insert(turn.id));
                    running.push(turn.subscription);
                },
                2 => for over in scheduler.overflow().into_iter().chain(scheduler.take_withheld()) {
                    prop_assert!(left.insert(over.id));
                },
                3 => scheduler.withhold(subscription(number)),
                4 => scheduler.resume(subscription(number)),
                5 => scheduler.note_backlog(subscription(number)),
                6 => fetching.extend(scheduler.fetches(count)),
                7 => if let Some(fetch) = fetching.pop() {
                    let used = count.min(fetch.slots);
                    running.extend(std::iter::repeat_n(fetch.subscription, used));
                    scheduler.fetched(fetch, used, count.is_multiple_of(2));
                },
                8 => scheduler.note_put_aside(subscription(number)),
                _ => for _ in 0..count.min(running.len()) {
                    let finished = running.swap_remove(0);
                    scheduler.release(finished, 1);
                },
            }
            prop_assert!(scheduler.in_flight() <= CAPACITY.slots);
            let kept: usize = fetching.iter().map(|fetch| fetch.slots).sum();
            prop_assert_eq!(scheduler.in_flight(), running.len() + kept);
            let listed: HashSet<&Uuid> = scheduler.backlogs.iter().collect();
            prop_assert_eq!(listed.len(), scheduler.backlogs.len());
            for (whose, entry) in &scheduler.subscriptions {
                prop_assert!(!(entry.backlog || entry.put_aside) || listed.contains(whose));
                prop_assert!(!entry.withheld || (entry.waiting.is_empty() && !entry.backlog && !entry.put_aside));
                prop_assert!(entry.in_flight <= CAPACITY.slots_each);
            }
            prop_assert_eq!(scheduler.waiting + scheduler.behind.len() + scheduler.withheld.len() + left.len(), arrived as usize);
        }
    }
}
