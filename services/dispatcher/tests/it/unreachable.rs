//! Attempts without an answer: they are retried like a temporary failure of Swrve's.

use std::time::Duration;

use config::Config;
use domain::push::{AttemptStatus, ErrorType, PushStatus};
use simulators::swrve::Rule;
use store::push::{AttemptView, PushView};
use testkit::Installation;

use crate::rig::{dead_letters, enqueue_for, start};

/// Has a dispatcher with `config` send one push, which must come to be retried; returns its attempt.
async fn failed_attempt(it: &Installation, config: &Config) -> AttemptView {
    let (push, attempt) = attempt_that_ends_as(it, config, PushStatus::Retry).await;
    assert!(push.next_attempt_at.is_some() && push.attempts == 1);
    assert_eq!(
        (attempt.status, attempt.error_type),
        (AttemptStatus::Error, Some(ErrorType::Swrve))
    );
    assert_eq!(
        (
            attempt.response_status,
            attempt.swrve_error_code,
            &attempt.other_error
        ),
        (None, None, &None)
    );
    assert_eq!(dead_letters(&it.pool, push.id).await, []);
    attempt
}

/// Has a dispatcher with `config` send one push, which must come to be `status`; returns both it and its attempt.
async fn attempt_that_ends_as(
    it: &Installation,
    config: &Config,
    status: PushStatus,
) -> (PushView, AttemptView) {
    let (dispatcher, broker) = (start(config), it.broker());
    let id = enqueue_for(it, &broker, "device-1").await;
    let push = it.settled(id, status).await;
    dispatcher.stop().await;
    let [attempt] = &push.history[..] else {
        panic!("{push:?}")
    };
    let attempt = attempt.clone();
    (push, attempt)
}

#[testkit::test]
async fn a_closed_connection_is_retried(it: Installation) {
    let closing = Rule {
        drop: true,
        ..Rule::default()
    };
    it.sim.script(vec![closing]).unwrap();
    let attempt = failed_attempt(&it, &it.config).await;
    assert!(!attempt.swrve_error_message.unwrap().is_empty());
    assert_eq!(
        it.sim.report().received,
        1,
        "the client must not send again by itself"
    );
}

#[testkit::test]
async fn no_answer_in_time_is_retried_and_the_attempt_says_how_long_it_waited(mut it: Installation) {
    let silent = Rule {
        hang: true,
        ..Rule::default()
    };
    it.sim.script(vec![silent]).unwrap();
    it.config.swrve.timeout = Duration::from_millis(300);
    let attempt = failed_attempt(&it, &it.config).await;
    assert_eq!(
        attempt.swrve_error_message.as_deref(),
        Some("no answer within 300 ms")
    );
    assert!(attempt.millis.unwrap() >= 300);
}

#[testkit::test]
async fn a_refused_connection_is_retried(mut it: Installation) {
    it.config.swrve.url = config::Secret::new("http://127.0.0.1:1");
    let attempt = failed_attempt(&it, &it.config).await;
    let message = attempt.swrve_error_message.unwrap();
    assert!(message.contains("refused"), "{message}");
    assert_eq!(it.sim.report().received, 0);
}

#[testkit::test]
async fn without_retries_on_timeout_a_push_that_is_not_answered_has_failed(mut it: Installation) {
    let silent = Rule {
        hang: true,
        ..Rule::default()
    };
    it.sim.script(vec![silent]).unwrap();
    it.config.swrve.timeout = Duration::from_millis(300);
    it.config.swrve.retry_on_timeout = false;
    let (push, attempt) = attempt_that_ends_as(&it, &it.config, PushStatus::Failed).await;
    assert_eq!(dead_letters(&it.pool, push.id).await.len(), 1);
    assert_eq!(attempt.error_type, Some(ErrorType::Other));
    assert_eq!(attempt.other_error.as_deref(), Some("no answer within 300 ms"));
    assert_eq!(attempt.swrve_error_message, None);
}
