//! Commands of the client and their answers: hello, pings, channels, broadcasts, and how many it may send.

use std::time::Duration;

use serde_json::json;

use super::{CHANNEL, Driven, UAID, november};
use crate::broadcasts::Broadcasts;
use crate::connection::{Action, Answer, Close, Event, NotRegistered, Question};

#[test]
fn the_first_message_is_a_hello_and_comes_in_time() {
    let mut late = Driven::opened();
    late.pass(4);
    late.nothing();
    late.pass(1);
    assert_eq!(late.closed(), Close::HelloTimeout);

    for message in [
        json!({"messageType": "ping"}),
        json!({}),
        json!({"messageType": "register", "channelID": CHANNEL}),
    ] {
        let mut other = Driven::opened();
        other.say(&message);
        assert_eq!(other.closed(), Close::NoHello);
        other.pass(5);
        other.nothing();
    }
}

#[test]
fn a_hello_is_answered_with_the_identifier() {
    let mut driven = Driven::opened();
    driven.say(&json!({"messageType": "hello", "uaid": "nonsense", "use_webpush": true}));
    assert_eq!(driven.asked(), Question::Identify { uaid: None });
    driven.answered(Answer::Identified {
        uaid: UAID,
        month: None,
    });
    let hello = json!({
        "messageType": "hello", "uaid": "0000000000000000000000000000000a", "status": 200, "use_webpush": true,
        "broadcasts": {},
    });
    assert_eq!(driven.sent(), hello);
    // A client that is not stored has nothing in storage.
    driven.nothing();
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    for (message, close) in [
        (json!({"messageType": "hello"}), Close::SecondHello),
        (json!({"messageType": "greet"}), Close::Malformed),
        (json!(["hello"]), Close::Malformed),
        (
            json!({"messageType": "register", "channelID": "ABC"}),
            Close::Malformed,
        ),
    ] {
        let mut driven = Driven::of_client();
        driven.say(&message);
        assert_eq!(driven.closed(), close);
        assert_eq!(close.code(), 1011);
        driven.happen(Event::Stored);
        driven.nothing();
        assert!(!driven.machine.listens());
    }
    let mut driven = Driven::of_client();
    driven.happen(Event::NotText);
    assert_eq!(driven.closed().code(), 1003);
}

#[test]
fn codes_say_whether_it_is_worth_coming_back() {
    assert_eq!(Close::Reset.code(), 1000);
    assert_eq!(Close::GoingAway.code(), 1001);
    assert_eq!(Close::Replaced.code(), 1011);
}

#[test]
fn a_ping_of_the_protocol_may_come_every_45_seconds() {
    let mut driven = Driven::of_client();
    driven.say(&json!({}));
    assert_eq!(driven.sent(), json!({}));
    driven.pass(45);
    driven.say(&json!({"messageType": "ping"}));
    assert_eq!(driven.sent(), json!({}));
    driven.pass(44);
    driven.say(&json!({}));
    assert_eq!(driven.closed(), Close::PingTooSoon);
}

#[test]
fn a_client_that_does_not_answer_a_ping_of_the_socket_is_gone() {
    let mut driven = Driven::of_client();
    driven.pass(300);
    assert!(matches!(driven.next(), Action::Ping));
    driven.pass(3);
    driven.happen(Event::Pong);
    driven.looked();
    driven.pass(299);
    driven.nothing();
    driven.pass(1);
    assert!(matches!(driven.next(), Action::Ping));
    driven.pass(4);
    assert_eq!(driven.closed(), Close::PongTimeout);
}

#[test]
fn a_channel_gets_its_endpoint() {
    let mut driven = Driven::of_client();
    driven.say(&json!({"messageType": "register", "channelID": CHANNEL, "key": "k"}));
    let register = Question::Register {
        channel: CHANNEL,
        key: Some("k".to_owned()),
    };
    assert_eq!(driven.asked(), register);
    assert!(!driven.machine.listens());
    let endpoint = "https://push.example/wpush/v1/x".to_owned();
    driven.answered(Answer::Registered {
        channel: CHANNEL,
        endpoint: endpoint.clone(),
        month: november(),
    });
    let registered =
        json!({"messageType": "register", "channelID": CHANNEL, "status": 200, "pushEndpoint": endpoint});
    assert_eq!(driven.sent(), registered);
    driven.nothing();
}

#[test]
fn a_channel_without_endpoint_says_whose_fault_that_is() {
    for (why, status) in [(NotRegistered::BadKey, 400), (NotRegistered::Failed, 500)] {
        let mut driven = Driven::of_client();
        driven.say(&json!({"messageType": "register", "channelID": CHANNEL}));
        driven.asked();
        driven.answered(Answer::NotRegistered {
            channel: CHANNEL,
            why,
        });
        assert_eq!(driven.sent()["status"], status);
    }
}

#[test]
fn registrations_of_a_connection_are_bounded() {
    let mut driven = Driven::of_client();
    for _ in 0..2 {
        driven.say(&json!({"messageType": "register", "channelID": CHANNEL}));
        driven.asked();
        driven.answered(Answer::NotRegistered {
            channel: CHANNEL,
            why: NotRegistered::BadKey,
        });
        driven.sent();
    }
    driven.say(&json!({"messageType": "register", "channelID": CHANNEL}));
    assert_eq!(driven.closed(), Close::TooManyRegistrations);
}

#[test]
fn a_channel_that_is_taken_away_is_answered() {
    for (done, status) in [(true, 200), (false, 500)] {
        let mut driven = Driven::of_client();
        driven.say(&json!({"messageType": "unregister", "channelID": CHANNEL, "code": 200}));
        assert_eq!(driven.asked(), Question::Unregister { channel: CHANNEL });
        driven.answered(Answer::Unregistered {
            channel: CHANNEL,
            done,
        });
        let unregistered = json!({"messageType": "unregister", "channelID": CHANNEL, "status": status});
        assert_eq!(driven.sent(), unregistered);
    }
}

#[test]
fn a_client_is_told_of_the_broadcasts_that_it_follows_when_they_change() {
    let mut driven = Driven::opened();
    driven.broadcasts = broadcasts(&[("a", "1"), ("b", "1")]);
    driven.say(&json!({"messageType": "hello", "broadcasts": {"a": "0", "b": "1", "c": "1"}}));
    driven.asked();
    driven.answered(Answer::Identified {
        uaid: UAID,
        month: None,
    });
    let said = json!({"a": "1", "errors": {"c": "Broadcast not found"}});
    assert_eq!(driven.sent()["broadcasts"], said);
    driven.happen(Event::Broadcasts);
    driven.nothing();
    driven.broadcasts = broadcasts(&[("a", "1"), ("b", "2"), ("d", "1")]);
    driven.happen(Event::Broadcasts);
    let change = json!({"messageType": "broadcast", "broadcasts": {"b": "2"}});
    assert_eq!(driven.sent(), change);
    driven.say(&json!({"messageType": "broadcast_subscribe", "broadcasts": {"d": "1"}}));
    driven.nothing();
    driven.say(&json!({"messageType": "broadcast_subscribe", "broadcasts": {"e": "1"}}));
    assert_eq!(driven.sent()["broadcasts"]["errors"]["e"], "Broadcast not found");
}

#[test]
fn a_client_says_no_more_than_it_may_and_acknowledgements_of_what_it_was_sent_do_not_count() {
    let mut driven = Driven::of_client();
    let nack = json!({"messageType": "nack", "version": "1"});
    for _ in 0..5 {
        driven.say(&nack);
        assert!(matches!(driven.next(), Action::Tell(_)));
    }
    let settled = driven.deliver("1", true);
    driven.ack(&["1"]);
    assert_eq!(driven.settled(), (true, "1".to_owned()));
    drop(settled);
    driven.actions.clear();
    driven.at += Duration::from_millis(99);
    let before = driven.machine.commands_until;
    driven.at += Duration::from_millis(1);
    driven.say(&nack);
    assert!(matches!(driven.next(), Action::Tell(_)), "one in each gap");
    assert!(driven.machine.commands_until > before);
    driven.say(&nack);
    let close = driven.closed();
    assert_eq!((close, close.code()), (Close::TooManyCommands, 1008));
}

#[test]
fn acknowledgements_of_nothing_count_as_commands() {
    let mut driven = Driven::of_client();
    for _ in 0..5 {
        driven.say(&json!({"messageType": "ack", "updates": []}));
        driven.nothing();
    }
    driven.say(&json!({"messageType": "ack", "updates": []}));
    assert_eq!(driven.closed(), Close::TooManyCommands);
}

#[test]
fn acknowledgements_of_messages_without_ttl_do_not_count() {
    let mut driven = Driven::of_client();
    for _ in 0..20 {
        driven.deliver("1", false);
        driven.ack(&["1"]);
        driven.nothing();
    }
    for _ in 0..5 {
        driven.ack(&["1"]);
        driven.nothing();
    }
    driven.ack(&["1"]);
    assert_eq!(
        driven.closed(),
        Close::TooManyCommands,
        "one for each that was sent"
    );
}

fn broadcasts(versions: &[(&str, &str)]) -> Broadcasts {
    let versions = versions.iter();
    versions
        .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
        .collect()
}
