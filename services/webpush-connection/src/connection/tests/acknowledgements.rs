//! Messages that are delivered directly, and their acknowledgements, also those that come before the message is stored.

use serde_json::json;
use tokio::sync::oneshot;

use super::{CHANNEL, Driven, november, stored};
use crate::connection::{Action, Answer, Event, Question, Told};

#[test]
fn a_direct_message_is_settled_when_it_is_acknowledged() {
    let mut driven = Driven::of_client();
    let mut settled = driven.deliver("1", true);
    driven.nothing();
    settled.try_recv().unwrap_err();
    driven.ack(&["1"]);
    assert_eq!(driven.settled(), (true, "1".to_owned()));
    settled.try_recv().unwrap();
    driven.nothing();
}

#[test]
fn a_message_without_ttl_is_done_with_when_it_was_sent() {
    let mut driven = Driven::of_client();
    driven.deliver("1", false);
    driven.told();
    assert_eq!(driven.asked(), Question::Read { month: november() });
}

#[test]
fn a_connection_that_ends_settles_nothing() {
    let mut driven = Driven::of_client();
    let mut settled = driven.deliver("1", true);
    drop(driven);
    assert_eq!(settled.try_recv(), Err(oneshot::error::TryRecvError::Closed));
}

#[test]
fn no_more_is_delivered_than_may_be_outstanding() {
    let mut driven = Driven::of_client();
    let _settled = ["1", "2", "3"].map(|version| {
        assert!(driven.machine.takes_deliveries(&driven.rules));
        driven.deliver(version, true)
    });
    assert!(!driven.machine.takes_deliveries(&driven.rules));
    driven.ack(&["2"]);
    assert!(driven.machine.takes_deliveries(&driven.rules));
}

#[test]
fn nothing_is_delivered_before_the_hello_is_answered() {
    let driven = Driven::opened();
    assert!(!driven.machine.takes_deliveries(&driven.rules));
}

#[test]
fn an_acknowledgement_of_nothing_changes_nothing() {
    let mut driven = Driven::of_client();
    driven.ack(&["unknown"]);
    driven.nothing();
    driven.say(&json!({"messageType": "nack", "version": "unknown", "code": 302}));
    assert!(matches!(driven.next(), Action::Tell(Told::Nacked("302"))));
    driven.nothing();
}

#[test]
fn codes_of_acknowledgements_are_counted_and_all_of_them_settle() {
    for (code, told) in [
        (json!(100), "100"),
        (json!(101), "101"),
        (json!(102), "102"),
        (json!(null), "100"),
        (json!(7), "100"),
    ] {
        let mut driven = Driven::of_client();
        let _settled = driven.deliver("1", true);
        // Once in one message counts once.
        let update = json!({"channelID": CHANNEL, "version": "1", "code": code});
        driven.say(&json!({"messageType": "ack", "updates": [update, update]}));
        assert!(
            matches!(driven.next(), Action::Tell(Told::Acked(as_told)) if as_told == told),
            "{code}"
        );
        assert_eq!(driven.settled(), (true, "1".to_owned()));
        driven.nothing();
    }
    for (code, told) in [(301, "301"), (303, "303"), (7, "0")] {
        let mut driven = Driven::of_client();
        driven.say(&json!({"messageType": "nack", "version": "1", "code": code}));
        assert!(
            matches!(driven.next(), Action::Tell(Told::Nacked(as_told)) if as_told == told),
            "{code}"
        );
        driven.nothing();
    }
}

/// A message that was acknowledged after its sender had given up waiting is stored afterwards, in spite of that.
#[test]
fn what_was_acknowledged_before_it_was_stored_is_not_sent_again() {
    let mut driven = Driven::of_client();
    let settled = driven.deliver("d", true);
    drop(settled);
    driven.ack(&["d"]);
    assert_eq!(driven.settled(), (false, "d".to_owned()));
    driven.happen(Event::NotYetStored("d".into()));
    driven.told();
    driven.asked();
    driven.answered(Answer::Read(vec![stored(7, "d"), stored(8, "e")]));
    assert_eq!(driven.sent()["version"], "e");
    driven.nothing();
    driven.ack(&["e"]);
    let delete = Question::Delete {
        month: november(),
        ids: vec![7, 8],
    };
    assert_eq!(driven.asked(), delete);
}

#[test]
fn what_was_acknowledged_before_it_was_stored_is_deleted_when_nothing_else_waits() {
    let mut driven = Driven::of_client();
    driven.happen(Event::NotYetStored("d".into()));
    driven.told();
    driven.asked();
    driven.answered(Answer::Read(vec![stored(7, "d")]));
    let delete = Question::Delete {
        month: november(),
        ids: vec![7],
    };
    assert_eq!(driven.asked(), delete);
}

#[test]
fn what_one_message_acknowledges_is_settled_at_once() {
    let mut driven = Driven::of_client();
    let _settled = ["1", "2"].map(|version| driven.deliver(version, true));
    driven.ack(&["2", "1"]);
    let Action::Settle(acked) = driven.next() else {
        panic!("nothing is settled");
    };
    let versions: Vec<&str> = acked.iter().map(|acked| &*acked.version).collect();
    assert_eq!(versions, ["2", "1"]);
    driven.nothing();
}

#[test]
fn as_many_early_acknowledgements_are_remembered_as_may_be_outstanding() {
    let mut driven = Driven::of_client();
    for version in ["1", "2", "3", "4"] {
        driven.happen(Event::NotYetStored(version.into()));
    }
    driven.told();
    driven.asked();
    driven.answered(Answer::Read(
        (1..=4).map(|id| stored(id, &id.to_string())).collect(),
    ));
    assert_eq!(driven.sent()["version"], "1");
    driven.nothing();
}
