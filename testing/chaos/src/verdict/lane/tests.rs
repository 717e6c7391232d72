//! Histories with one fault each, which the verdict must find.

use super::*;
use crate::ledger::{Arrival, HandedIn};
use crate::verdict::Rules;
use crate::verdict::accepted::{judge_bodies, judge_handed_in, judge_lost};
use crate::verdict::item::Attempt;
use crate::verdict::rows::EventRow;

const TAKEN: Ends = Ends {
    accepted: true,
    taken: true,
    refused: false,
    may_wait: false,
};

fn attempts(endings: &[Ending]) -> Vec<Attempt> {
    (1..)
        .zip(endings)
        .map(|(number, ending)| Attempt {
            number,
            ending: *ending,
        })
        .collect()
}

fn item(status: Status, endings: &[Ending]) -> Item {
    let recorded = attempts(endings);
    Item {
        id: Uuid::from_u128(1),
        key: "u-1".to_owned(),
        status,
        said: format!("{status:?}"),
        attempts: i32::try_from(recorded.len()).unwrap(),
        before: 0,
        recorded,
        open_dead_letters: i64::from(matches!(status, Status::Failed | Status::GivenUp)),
        charged_on: None,
    }
}

fn sent() -> Item {
    item(Status::Sent, &[Ending::Ok])
}

const LOST: Ending = Ending::Unknown { lost: true };

/// The checks that object to these rows, these answers given for `u-1`, and `u-1` being expected so.
fn objections_with(items: &[Item], answers: &[Answer], ends: Ends, again: u32) -> Vec<&'static str> {
    let mut arrivals = Arrivals::default();
    for (number, answer) in (0..).zip(answers) {
        let arrival = Arrival {
            at_micros: number,
            answer: *answer,
        };
        arrivals.add("u-1".to_owned(), arrival);
    }
    let lane = Lane {
        name: "push",
        items,
        arrivals: &arrivals,
        expected: &BTreeMap::from([("u-1".to_owned(), ends)]),
        again: &HashMap::from([(Uuid::from_u128(1), again)]),
        max_attempts: 3,
    };
    let mut violations = Vec::new();
    lane.judge(&mut violations);
    violations.into_iter().map(|found| found.check).collect()
}

fn objections(items: &[Item], answers: &[Answer]) -> Vec<&'static str> {
    objections_with(items, answers, TAKEN, 0)
}

const OK: Answer = Answer::Status(200);
const DOWN: Answer = Answer::Status(503);

#[test]
fn what_was_sent_once_and_arrived_once_is_right() {
    assert!(objections(&[sent()], &[OK]).is_empty());
    let retried = item(Status::Sent, &[Ending::Answered(503), Ending::Ok]);
    assert!(objections(&[retried], &[DOWN, OK]).is_empty());
}

#[test]
fn a_lost_one_is_found() {
    assert_eq!(objections(&[], &[]), ["lost"]);
    let not_accepted = Ends {
        accepted: false,
        ..TAKEN
    };
    assert!(objections_with(&[], &[], not_accepted, 0).is_empty());
}

#[test]
fn one_that_was_never_sent_is_found() {
    assert_eq!(objections(&[sent()], &[]), ["duplicates"]);
    assert_eq!(
        objections(&[sent()], &[DOWN]),
        ["duplicates"],
        "recorded as delivered, refused in truth"
    );
}

#[test]
fn one_stored_twice_is_found() {
    let mut other = sent();
    other.id = Uuid::from_u128(2);
    assert_eq!(objections(&[sent(), other], &[OK]), ["once"]);
}

#[test]
fn a_stranger_is_found() {
    let mut stranger = sent();
    stranger.key = "u-2".to_owned();
    assert_eq!(objections(&[sent(), stranger], &[OK]), ["strangers"]);
}

#[test]
fn an_arrival_of_nothing_is_found() {
    let not_accepted = Ends {
        accepted: false,
        ..TAKEN
    };
    assert_eq!(objections_with(&[], &[OK], not_accepted, 0), ["arrivals"]);
}

#[test]
fn a_duplicate_is_explained_by_an_outcome_that_was_lost_and_by_nothing_else() {
    let lost = item(Status::Sent, &[LOST, Ending::Ok]);
    assert!(objections(&[lost], &[OK, OK]).is_empty());
    assert_eq!(
        objections(&[sent()], &[OK, OK]),
        ["duplicates"],
        "no attempt for the second"
    );
    let retried = item(Status::Sent, &[Ending::Answered(503), Ending::Ok]);
    assert_eq!(
        objections(&[retried], &[OK, OK]),
        ["duplicates"],
        "an attempt that says otherwise"
    );
    let twice = item(Status::Sent, &[Ending::Ok, Ending::Ok]);
    assert_eq!(
        objections(std::slice::from_ref(&twice), &[OK, OK]),
        ["duplicates"],
        "delivered twice knowingly"
    );
    assert!(
        objections_with(&[twice], &[OK, OK], TAKEN, 1).is_empty(),
        "as an operator had asked for"
    );
}

#[test]
fn an_answer_that_was_not_recorded_or_not_given_is_found() {
    let retried = item(Status::Sent, &[Ending::Answered(503), Ending::Ok]);
    assert_eq!(
        objections(std::slice::from_ref(&retried), &[OK]),
        ["duplicates"],
        "never given"
    );
    assert_eq!(
        objections(&[retried], &[Answer::Status(500), OK]),
        ["duplicates"],
        "given, recorded otherwise"
    );
}

#[test]
fn a_stuck_one_is_found() {
    assert_eq!(objections(&[item(Status::Underway, &[])], &[]), ["ends"]);
    assert_eq!(objections(&[item(Status::Underway, &[LOST])], &[OK]), ["ends"]);
}

#[test]
fn waiting_for_a_quota_is_an_end_only_where_there_is_one() {
    let waiting = item(Status::OverQuota, &[]);
    assert_eq!(objections(std::slice::from_ref(&waiting), &[]), ["ends"]);
    let limited = Ends {
        may_wait: true,
        ..TAKEN
    };
    assert!(objections_with(&[waiting], &[], limited, 0).is_empty());
}

#[test]
fn giving_up_before_all_attempts_are_used_is_found() {
    let spent = [Ending::Answered(503); 3];
    assert!(objections(&[item(Status::GivenUp, &spent)], &[DOWN; 3]).is_empty());
    assert_eq!(
        objections(&[item(Status::GivenUp, &spent[..2])], &[DOWN; 2]),
        ["ends"]
    );
    let mut replayed = item(Status::GivenUp, &spent);
    replayed.before = 1;
    assert_eq!(objections(&[replayed], &[DOWN; 3]), ["ends"]);
}

#[test]
fn failing_what_no_receiver_refuses_is_found() {
    let failed = item(Status::Failed, &[Ending::Answered(400)]);
    let refused = Ends {
        taken: false,
        refused: true,
        ..TAKEN
    };
    let answers = [Answer::Status(400)];
    assert!(objections_with(std::slice::from_ref(&failed), &answers, refused, 0).is_empty());
    assert_eq!(objections(&[failed], &answers), ["ends"]);
    assert_eq!(
        objections_with(&[sent()], &[OK], refused, 0),
        ["ends"],
        "sent to one that takes nothing"
    );
}

#[test]
fn a_missing_and_a_superfluous_dead_letter_are_found() {
    let mut given_up = item(Status::GivenUp, &[Ending::Answered(503); 3]);
    given_up.open_dead_letters = 0;
    assert_eq!(
        objections(std::slice::from_ref(&given_up), &[DOWN; 3]),
        ["dead letters"]
    );
    given_up.open_dead_letters = 2;
    assert_eq!(objections(&[given_up], &[DOWN; 3]), ["dead letters"]);
    let mut with_dead_letter = sent();
    with_dead_letter.open_dead_letters = 1;
    assert_eq!(objections(&[with_dead_letter], &[OK]), ["dead letters"]);
}

#[test]
fn an_attempt_without_a_record_or_an_end_is_found() {
    let mut uncounted = sent();
    uncounted.attempts = 2;
    assert_eq!(objections(&[uncounted], &[OK]), ["attempts"]);
    let running = item(Status::Sent, &[Ending::Running, Ending::Ok]);
    assert_eq!(objections(&[running], &[OK]), ["attempts"]);
}

#[test]
fn an_altered_body_is_found_on_its_way_and_in_the_database() {
    let mut arrivals = Arrivals::default();
    arrivals.object("another body".to_owned());
    let lane = Lane {
        name: "notification",
        items: &[],
        arrivals: &arrivals,
        expected: &BTreeMap::new(),
        again: &HashMap::new(),
        max_attempts: 3,
    };
    let mut violations = Vec::new();
    lane.judge(&mut violations);
    let row = |altered| EventRow {
        id: Uuid::nil(),
        event_id: format!("e-{altered}"),
        altered,
    };
    judge_bodies(&[row(false), row(true)], &mut violations);
    let checks: Vec<&str> = violations.iter().map(|found| found.check).collect();
    assert_eq!(checks, ["contents", "contents"]);
}

#[test]
fn an_accepted_one_that_is_missing_or_stored_under_another_identifier_is_found() {
    let mut handed_in = HandedIn::default();
    handed_in.accepted.insert("u-1".to_owned(), Uuid::from_u128(1));
    let judge = |stored: Option<(&'static str, Uuid)>| {
        let mut violations = Vec::new();
        judge_handed_in("push", &handed_in, stored.into_iter(), &mut violations);
        violations.len()
    };
    assert_eq!(judge(Some(("u-1", Uuid::from_u128(1)))), 0);
    assert_eq!(judge(Some(("u-1", Uuid::from_u128(2)))), 1);
    assert_eq!(judge(None), 1);
}

#[test]
fn lost_claims_are_bounded_by_what_was_interrupted() {
    let rules = Rules {
        push_attempts: 3,
        notification_attempts: 3,
        gap: std::time::Duration::from_millis(4),
        freezes: 0,
        interruptions: 2,
        in_flight: 10,
        limits: HashMap::new(),
        storage_away: Vec::new(),
        longest_silence: std::time::Duration::ZERO,
    };
    let judge = |lost, duplicates| {
        let tally = Tally {
            lost,
            duplicates,
            ..Tally::default()
        };
        let mut violations = Vec::new();
        judge_lost(&tally, &rules, &mut violations);
        violations.len()
    };
    assert_eq!((judge(20, 20), judge(21, 0), judge(3, 4)), (0, 1, 1));
}
