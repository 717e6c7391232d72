//! Arrivals with one fault each, which must be found.

use std::collections::BTreeMap;

use super::*;

fn push(user: &str) -> simulators::swrve::Received {
    let order = PushOrder {
        user: user.to_owned(),
    };
    simulators::swrve::Received {
        number: 1,
        arrival_micros: 0.0,
        push_key: order.push_key().to_owned(),
        user: user.to_owned(),
        message: order.message(),
        test: false,
        outcome: simulators::swrve::Outcome::Answered,
        status: Some(200),
    }
}

fn notification() -> simulators::receiver::Received {
    let order = EventOrder::number(1);
    let body = order.delivered();
    let headers = [
        ("webhook-id", order.id.clone()),
        ("event-id", order.id.clone()),
        ("idempotency-key", signing::idempotency_key(body.as_bytes())),
    ];
    simulators::receiver::Received {
        number: 1,
        received_at: chrono::DateTime::UNIX_EPOCH,
        arrival_micros: 0,
        method: "POST".to_owned(),
        path: "/everything".to_owned(),
        headers: BTreeMap::from(headers.map(|(name, value)| (name.to_owned(), value))),
        body,
        id: order.id,
        event_type: order.event_type.to_owned(),
        arrivals: 1,
        verdict: Verdict::Verified,
        delay_millis: None,
        outcome: simulators::receiver::Outcome::Answered,
        status: Some(200),
    }
}

#[test]
fn a_push_must_be_what_was_handed_in() {
    assert_eq!(about_push(&push("plain-1")), None);
    let mut altered = push("plain-1");
    altered.message.push('!');
    let mut elsewhere = push("plain-1");
    elsewhere.push_key.push('!');
    for wrong in [altered, elsewhere, push("unknown")] {
        assert!(about_push(&wrong).is_some(), "{wrong:?}");
    }
}

#[test]
fn a_notification_must_be_what_was_handed_in_and_be_signed() {
    assert_eq!(about_notification(&notification()), None);
    let mut altered = notification();
    altered.body = altered.body.replace("\"data\":{ ", "\"data\":{");
    let mut other_key = notification();
    other_key
        .headers
        .insert("idempotency-key".to_owned(), "other".to_owned());
    let mut forged = notification();
    forged.verdict = Verdict::Forged;
    for wrong in [altered, other_key, forged] {
        assert!(about_notification(&wrong).is_some(), "{wrong:?}");
    }
}
