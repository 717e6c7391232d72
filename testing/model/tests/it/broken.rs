//! Each safeguard of the protocol is needed: without it, a property that it serves has a counterexample.

use std::time::Duration;

use model::catalogue::{
    LEADERSHIP, PAUSE, QUOTA, TOPIC, TWO_WISHES, WEBPUSH, WITHOUT_PINGS, one_row, sharing,
};
use model::check::{Failure, liveness, safety};
use model::delivery::{self, Bounds, Delivery, Lane, Mishaps};
use model::leadership::{self, Leadership};
use model::pause::{self, Pause, Scope};
use model::quota::{self, Quota};
use model::webpush::{self, Webpush};

/// The property that does not hold.
fn violated<T: std::fmt::Debug>(checked: Result<T, Failure>) -> &'static str {
    match checked {
        Err(Failure::Counterexample { property, .. }) => property,
        other => panic!("no counterexample: {other:?}"),
    }
}

fn push() -> Delivery {
    Delivery::new(Lane::push(2), one_row())
}

#[test]
fn completions_need_the_fence() {
    let model = push().broken(delivery::Broken::CompletionWithoutFence);
    assert_eq!(violated(safety(&model)), "no completion by a stale lease");
}

#[test]
fn the_ack_comes_after_the_commit() {
    let model = push().only_crashes().broken(delivery::Broken::AckBeforeCommit);
    assert_eq!(violated(safety(&model)), "a crash costs no message");
}

#[test]
fn the_rescuer_asks_for_the_lease() {
    let model = push().broken(delivery::Broken::RescueWithoutLeaseCheck);
    assert_eq!(violated(safety(&model)), "sent twice only for a reason");
}

#[test]
fn claims_ask_for_the_epoch() {
    let model = push().broken(delivery::Broken::ClaimWithoutEpoch);
    assert_eq!(violated(safety(&model)), "only the leader claims");
}

#[test]
fn the_dead_letter_is_part_of_the_ending() {
    let model = push().broken(delivery::Broken::DeadLetterApart);
    assert_eq!(violated(safety(&model)), "each failure has its dead letter");
}

#[test]
fn giving_back_takes_the_attempt_back() {
    let model = push().broken(delivery::Broken::HandBackKeepsAttempt);
    assert_eq!(violated(safety(&model)), "each attempt has its row");
}

#[test]
fn a_rescued_claim_counts() {
    let model = push().broken(delivery::Broken::RescueNeverGivesUp);
    assert_eq!(violated(safety(&model)), "rows change only by transition");
}

#[test]
fn a_resend_asks_whether_it_was_cancelled() {
    let model = Delivery::new(Lane::reseller(1), TWO_WISHES).only_crashes();
    let model = model.broken(delivery::Broken::ResendForgetsCancellation);
    assert_eq!(violated(safety(&model)), "rows change only by transition");
}

#[test]
fn without_a_rescuer_something_is_lost() {
    let bounds = Bounds {
        wishes: 0,
        ..one_row()
    };
    let model = Delivery::new(Lane::push(2), bounds).broken(delivery::Broken::NoRescue);
    assert!(matches!(liveness(&model), Err(Failure::NoWayOn { .. })));
}

#[test]
fn pending_pushes_have_to_be_claimed_too() {
    // Otherwise a queue that takes longer than its lease turns in circles: each message is about a push that was just rescued.
    let model = push().broken(delivery::Broken::PendingIsNotClaimed);
    assert!(matches!(liveness(&model), Err(Failure::Circles { .. })));
}

#[test]
fn sending_again_resolves_the_dead_letter() {
    let bounds = Bounds {
        mishaps: 0,
        ..one_row()
    };
    let model = Delivery::new(Lane::reseller(2), bounds).broken(delivery::Broken::ResendKeepsDeadLetter);
    assert_eq!(violated(safety(&model)), "a failure has one open dead letter");
}

#[test]
fn what_becomes_of_a_shared_message_becomes_of_all_its_rows() {
    use delivery::Broken::{ArchivesFirstRowOnly, FirstShareSettles, LastShareDecides, MarksFirstRowOnly};
    for broken in [
        FirstShareSettles,
        LastShareDecides,
        MarksFirstRowOnly,
        ArchivesFirstRowOnly,
    ] {
        let found = violated(safety(&sharing(Mishaps::Kept).broken(broken)));
        assert_eq!(found, "no row is without its message", "{broken:?}");
    }
}

fn leading(broken: leadership::Broken) -> &'static str {
    violated(safety(&Leadership {
        broken: Some(broken),
        ..LEADERSHIP
    }))
}

#[test]
fn a_successor_waits_out_the_delay() {
    let broken = leadership::Broken::SuccessorDoesNotWait;
    assert_eq!(leading(broken), "sends keep their distance");
}

#[test]
fn a_holder_looks_at_its_clock_before_each_send() {
    let broken = leadership::Broken::SendsPastTheDeadline;
    assert_eq!(leading(broken), "sends keep their distance");
}

#[test]
fn a_holder_counts_from_when_it_asked() {
    leading(leadership::Broken::CountsFromTheAnswer);
}

#[test]
fn a_lease_is_taken_by_naming_what_was_seen() {
    leading(leadership::Broken::TakesWhatItDidNotSee);
}

#[test]
fn a_leader_stops_sending_before_it_resigns() {
    leading(leadership::Broken::ResignsBeforeItStops);
}

#[test]
fn no_lease_helps_against_a_process_suspended_at_the_socket() {
    let broken = leadership::Broken::SuspendedAtTheSocket;
    assert_eq!(leading(broken), "sends keep their distance");
}

#[test]
fn clocks_that_run_apart_need_a_margin() {
    let apart = |margin| Leadership {
        ttl: 12,
        drift: 1,
        margin,
        ..LEADERSHIP
    };
    violated(safety(&apart(0)));
    violated(safety(&apart(1)));
    let product = ::leadership::Settings {
        name: "push".to_owned(),
        ttl: Duration::from_secs(12),
        poll: Duration::from_secs(1),
    };
    let margin = product.ttl - product.trusted();
    assert_eq!(margin, Duration::from_secs(2), "a tick is a second");
    assert!(safety(&apart(2)).is_ok());
}

#[test]
fn claims_and_pauses_both_need_the_lock() {
    for broken in [pause::Broken::ClaimsWithoutLock, pause::Broken::PausesWithoutLock] {
        for scope in [Scope::Lane, Scope::Subscription] {
            let broken = Some(broken);
            let found = violated(safety(&Pause {
                scope,
                broken,
                ..PAUSE
            }));
            assert!(
                [
                    "no claim after a pause was answered",
                    "a pause has the lock alone"
                ]
                .contains(&found),
                "{found}"
            );
        }
    }
}

#[test]
fn a_claim_with_an_old_snapshot_begins_again() {
    let model = Pause {
        scope: Scope::Subscription,
        broken: Some(pause::Broken::IgnoresChanges),
        ..PAUSE
    };
    assert_eq!(violated(safety(&model)), "no claim after a pause was answered");
}

#[test]
fn quotas_need_each_of_their_locks_and_the_line() {
    for broken in [
        quota::Broken::ChargesWhatItReadBefore,
        quota::Broken::JudgesBySnapshot,
        quota::Broken::PassesTheLine,
        quota::Broken::LooksBeforeItLocks,
    ] {
        let broken = Some(broken);
        violated(safety(&Quota { broken, ..QUOTA }));
    }
}

#[test]
fn web_push_keeps_what_it_has_answered() {
    use webpush::Broken::{
        AnswersWhenQueued, DeletesOlderWhenSending, MovesWhatIsNotDrained, ReplacesUnderOneIdentifier,
        StoresByItsOwnClock,
    };
    for (model, broken) in [
        (WEBPUSH, AnswersWhenQueued),
        (WEBPUSH, StoresByItsOwnClock),
        (WEBPUSH, MovesWhatIsNotDrained),
        (TOPIC, ReplacesUnderOneIdentifier),
        // The newer message may not arrive, and its sender has no answer.
        (TOPIC, DeletesOlderWhenSending),
    ] {
        let broken = Some(broken);
        let found = violated(safety(&Webpush { broken, ..model }));
        assert_eq!(found, "what was answered 201 is not lost", "{broken:?}");
    }
}

#[test]
fn web_push_takes_what_was_acknowledged_out_of_storage() {
    use webpush::Broken::{ForgetsWhatWasAcknowledgedEarly, KeepsWhatWasAcknowledgedLate};
    for broken in [ForgetsWhatWasAcknowledgedEarly, KeepsWhatWasAcknowledgedLate] {
        let broken = Some(broken);
        let found = violated(safety(&Webpush { broken, ..WEBPUSH }));
        assert_eq!(found, "nothing comes after its acknowledgement", "{broken:?}");
    }
}

#[test]
fn web_push_deletes_what_is_older_than_a_direct_message_of_its_topic() {
    use webpush::Broken::{KeepsOlder, KeepsOlderWhenLate};
    for broken in [KeepsOlder, KeepsOlderWhenLate] {
        let broken = Some(broken);
        let found = violated(safety(&Webpush { broken, ..TOPIC }));
        assert_eq!(found, "a topic shows its newest message", "{broken:?}");
    }
}

#[test]
fn web_push_loses_no_wake_up() {
    use webpush::Broken::{EntersAfterReading, ForgetsWhatItDidNotRead};
    for broken in [EntersAfterReading, ForgetsWhatItDidNotRead] {
        let broken = Some(broken);
        let checked = liveness(&Webpush {
            broken,
            ..WITHOUT_PINGS
        });
        assert!(
            matches!(checked, Err(Failure::NoWayOn { .. })),
            "{broken:?}: {checked:?}"
        );
    }
}

#[test]
fn web_push_notes_a_node_again_whichever_was_forgotten() {
    // A connection that the client has given up is noted after the one that it has, ends, and is forgotten.
    let broken = Some(webpush::Broken::NotesItsOwnOnly);
    let checked = liveness(&Webpush { broken, ..WEBPUSH });
    assert!(matches!(checked, Err(Failure::Circles { .. })), "{checked:?}");
}
