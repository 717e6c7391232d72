//! What each of Swrve's answers does to a push, its attempt and the dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;

use broker::Broker;
use chrono::TimeDelta;
use domain::clock::Clock;
use domain::push::{AttemptStatus, ErrorType, PushId, PushStatus};
use simulators::swrve::Rule;
use testkit::Installation;

use crate::rig::{DeadLetter, dead_letters, enqueue_for, for_device, saturday_noon, start, start_at};

/// An answer, and what a failed attempt records of it.
struct Case {
    rule: Rule,
    status: u16,
    code: i64,
    message: &'static str,
    fingerprint: &'static str,
}

fn json(status: u16, message: &'static str, fingerprint: &'static str) -> Case {
    Case {
        rule: Rule {
            status: Some(status),
            ..Rule::default()
        },
        status,
        code: i64::from(status),
        message,
        fingerprint,
    }
}

fn coded(status: u16, code: i64, message: &'static str, fingerprint: &'static str) -> Case {
    Case {
        rule: Rule {
            status: Some(status),
            code: Some(code),
            message: Some(message.to_owned()),
            ..Rule::default()
        },
        status,
        code,
        message,
        fingerprint,
    }
}

fn body(status: u16, body: &str, message: &'static str, fingerprint: &'static str) -> Case {
    Case {
        rule: Rule {
            status: Some(status),
            body: Some(body.to_owned()),
            ..Rule::default()
        },
        status,
        code: i64::from(status),
        message,
        fingerprint,
    }
}

/// Lets each rule answer one push, and waits until each push has `status`.
async fn answer_each(
    it: &Installation,
    broker: &Broker,
    rules: impl Iterator<Item = Rule>,
    status: PushStatus,
) -> Vec<PushId> {
    let rules: Vec<Rule> = rules
        .enumerate()
        .map(|(number, rule)| for_device(&format!("device-{number}"), rule))
        .collect();
    let count = rules.len();
    it.sim.script(rules).unwrap();
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(enqueue_for(it, broker, &format!("device-{number}")).await);
    }
    for id in &ids {
        it.settled(*id, status).await;
    }
    ids
}

#[testkit::test]
async fn any_2xx_is_a_success_whatever_its_body(it: Installation) {
    let (_dispatcher, broker) = (start(&it.config), it.broker());
    let delayed = Rule {
        delay_millis: Some(30),
        ..Rule::default()
    };
    let rules = [
        delayed,
        json(204, "", "").rule,
        body(200, "<html>", "", "").rule,
        body(202, "", "", "").rule,
    ];
    let statuses = [200, 204, 200, 202];
    let ids = answer_each(&it, &broker, rules.into_iter(), PushStatus::Sent).await;
    for (number, id) in ids.into_iter().enumerate() {
        let push = it.settled(id, PushStatus::Sent).await;
        let [attempt] = &push.history[..] else {
            panic!("{push:?}")
        };
        assert!(!push.claimed && push.attempts == 1 && push.finished_at.is_some());
        assert_eq!((push.next_attempt_at, push.leased_until), (None, None));
        assert_eq!((attempt.number, attempt.status), (1, AttemptStatus::Ok));
        assert_eq!(attempt.response_status, Some(statuses[number]));
        assert_eq!((attempt.error_type, attempt.swrve_error_code), (None, None));
        assert_eq!(
            (&attempt.swrve_error_message, &attempt.other_error),
            (&None, &None)
        );
        assert!(attempt.millis.unwrap() >= if number == 0 { 30 } else { 0 });
        assert_eq!(dead_letters(&it.pool, id).await, []);
    }
}

#[testkit::test]
async fn the_five_retryable_statuses_schedule_a_retry(it: Installation) {
    let clock = saturday_noon();
    let _dispatcher = start_at(&it.config, Arc::new(clock.clone()));
    let broker = it.broker();
    let cases = [
        json(429, "Too Many Requests", ""),
        json(500, "Internal Server Error", ""),
        json(502, "Bad Gateway", ""),
        json(503, "Service Unavailable", ""),
        json(504, "Gateway Timeout", ""),
        coded(503, 77, "try later", ""),
        body(502, "<html>Bad Gateway</html>", "502 Bad Gateway", ""),
        body(500, "", "500 Internal Server Error", ""),
    ];
    let rules = cases.iter().map(|case| case.rule.clone());
    let ids = answer_each(&it, &broker, rules, PushStatus::Retry).await;
    let due = clock.now() + TimeDelta::from_std(it.config.push.retry.delay).unwrap();
    for (id, case) in ids.into_iter().zip(cases) {
        let push = it.settled(id, PushStatus::Retry).await;
        assert_eq!(push.next_attempt_at, Some(due));
        assert_eq!((push.leased_until, push.finished_at), (None, None));
        assert_attempt(&it, id, &case).await;
        assert_eq!(dead_letters(&it.pool, id).await, []);
    }
}

#[testkit::test]
async fn every_other_status_fails_the_push_and_leaves_a_dead_letter(it: Installation) {
    let (_dispatcher, broker) = (start(&it.config), it.broker());
    let mut moved = json(301, "Moved Permanently", "swrve/301/301");
    let elsewhere = format!("http://{}/push", it.sim.addr());
    moved.rule.headers = BTreeMap::from([("Location".to_owned(), elsewhere)]);
    let cases = [
        json(400, "Bad Request", "swrve/400/400"),
        json(404, "Not Found", "swrve/404/404"),
        json(418, "I'm a teapot", "swrve/418/418"),
        json(501, "Not Implemented", "swrve/501/501"),
        moved,
        coded(400, 1042, "no such campaign", "swrve/400/1042"),
        body(403, "<html>no</html>", "403 Forbidden", "swrve/403"),
        body(410, "", "410 Gone", "swrve/410"),
    ];
    let rules = cases.iter().map(|case| case.rule.clone());
    let ids = answer_each(&it, &broker, rules, PushStatus::Failed).await;
    for (id, case) in ids.into_iter().zip(cases) {
        let push = it.settled(id, PushStatus::Failed).await;
        assert_eq!((push.next_attempt_at, push.leased_until), (None, None));
        assert!(push.finished_at.is_some());
        assert_attempt(&it, id, &case).await;
        let letter = DeadLetter {
            reason: "FAILED".to_owned(),
            fingerprint: case.fingerprint.to_owned(),
            attempts: Some(1),
            error_type: Some("SWRVE".to_owned()),
            detail: case.message.to_owned(),
        };
        assert_eq!(dead_letters(&it.pool, id).await, [letter]);
    }
    assert_eq!(it.sim.report().repeats, 0, "a redirect must not be followed");
}

/// That the one attempt of a push is recorded as failed with this answer.
async fn assert_attempt(it: &Installation, id: PushId, case: &Case) {
    let push = it.store.find_push(id).await.unwrap().unwrap();
    let [attempt] = &push.history[..] else {
        panic!("{push:?}")
    };
    assert!(!push.claimed && push.attempts == 1);
    assert_eq!((attempt.number, attempt.status), (1, AttemptStatus::Error));
    assert_eq!(attempt.error_type, Some(ErrorType::Swrve));
    assert_eq!(attempt.response_status, Some(case.status));
    assert_eq!(attempt.swrve_error_code, Some(case.code));
    assert_eq!(attempt.swrve_error_message.as_deref(), Some(case.message));
    assert_eq!(attempt.other_error, None);
    assert!(attempt.millis.is_some());
}
