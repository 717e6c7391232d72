//! Each kind of outcome, once or a known number of times, and what the processes count of it.

use std::collections::BTreeMap;

use domain::push::PushStatus;
use simulators::swrve::Rule;
use testkit::{Installation, eventually};

use crate::rig::{Ended, Fleet, Process, Push, answer_to, pushes, rule_for, windowed_pushes};

/// Statuses that the specification retries.
const RETRYABLE: [u16; 5] = [429, 500, 502, 503, 504];
/// Some of the others.
const PERMANENT: [u16; 6] = [400, 401, 404, 422, 501, 505];

fn script() -> Vec<Rule> {
    let mut script = vec![
        answer_to("hopeless", 503, None),
        Rule {
            hang: true,
            times: Some(1),
            ..rule_for("hanging")
        },
        Rule {
            drop: true,
            times: Some(1),
            ..rule_for("dropped")
        },
    ];
    script.extend(RETRYABLE.map(|status| answer_to(&status.to_string(), status, Some(1))));
    script.extend(PERMANENT.map(|status| answer_to(&status.to_string(), status, None)));
    script
}

fn all_kinds() -> Vec<Push> {
    let of_prototype = |group, prototype| {
        let pushes = pushes(group, 2).into_iter();
        pushes.map(move |push| Push { prototype, ..push })
    };
    let mut all = pushes("plain", 3);
    all.extend(windowed_pushes("windowed", 2, "* * * * * ?"));
    all.extend(windowed_pushes("broken", 1, "0 0 0 1 1 ? 2099"));
    all.extend(
        ["hopeless", "hanging", "dropped"]
            .into_iter()
            .flat_map(|group| pushes(group, 1)),
    );
    all.extend(
        RETRYABLE
            .into_iter()
            .chain(PERMANENT)
            .flat_map(|status| pushes(&status.to_string(), 1)),
    );
    all.extend(of_prototype("keyless", None));
    all.extend(of_prototype("unheard", Some("Unheard of")));
    all
}

fn expected_status(user: &str) -> PushStatus {
    let group = user.split('-').next().unwrap_or_default();
    match group {
        "broken" | "keyless" | "unheard" => PushStatus::Failed,
        "hopeless" => PushStatus::GivenUp,
        _ if PERMANENT.iter().any(|status| status.to_string() == group) => PushStatus::Failed,
        _ => PushStatus::Sent,
    }
}

/// Waits until the process has counted everything, and compares each series of the metrics that `expected` names.
async fn counts(process: &Process, expected: &[(&str, f64)]) {
    let names: Vec<&str> = expected
        .iter()
        .map(|(series, _)| series.split('{').next().unwrap_or(series))
        .collect();
    let expected: BTreeMap<String, f64> = expected
        .iter()
        .filter(|(_, value)| *value != 0.0)
        .map(|(series, value)| ((*series).to_owned(), *value))
        .collect();
    let total: f64 = expected.values().sum();
    let counted = eventually(&format!("{names:?} to add up to {total}"), async || {
        let counted = process.metrics().await.of(&names);
        (counted.values().sum::<f64>() >= total).then_some(counted)
    })
    .await;
    assert_eq!(counted, expected);
}

#[testkit::test]
async fn every_outcome_is_counted_once_by_the_service_that_sees_it(it: Installation) {
    it.sim.script(script()).expect("a script");
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__PUSH__RETRY__MAX_ATTEMPTS", 3)
        .with("POSTRIDER__SWRVE__TIMEOUT_MILLIS", 10_000);
    let [ingest, dispatcher, worker] = fleet.start_all().await;
    let all = all_kinds();
    let accepted = all.len() as f64;
    let answers = fleet.hand_in(all).finish().await;
    // A fault of our own: what was checked when it came in cannot be read any more.
    sqlx::query(
        "UPDATE push_notifications SET cron_expression = 'broken', next_attempt_at = now()
         WHERE push_key = 'broken-0'",
    )
    .execute(&it.pool)
    .await
    .expect("the row can be changed");
    Ended::of(&it, &answers, expected_status).await;

    let retried = RETRYABLE.len() as f64 + 2.0;
    let refused = PERMANENT.len() as f64;
    let keyless = 4.0;
    let sent = 3.0 + 2.0 + retried;
    counts(
        &dispatcher,
        &[
            ("postrider_push_sent_total", sent),
            ("postrider_push_failed_total", refused + keyless + 1.0),
            ("postrider_push_attempts_retryable_total", retried + 3.0),
            ("postrider_push_given_up_total", 1.0),
            (
                "postrider_push_errors_total{type=\"swrve\"}",
                retried + 3.0 + refused,
            ),
            (
                "postrider_push_errors_total{type=\"message_prototype_key\"}",
                keyless,
            ),
            ("postrider_push_errors_total{type=\"other\"}", 1.0),
            (
                "postrider_dead_letters_total{reason=\"failed\"}",
                refused + keyless + 1.0,
            ),
            ("postrider_dead_letters_total{reason=\"given_up\"}", 1.0),
            (
                "postrider_swrve_response_seconds_count",
                sent + retried + 3.0 + refused,
            ),
            ("postrider_push_deferred_total", 0.0),
            ("postrider_store_errors_total", 0.0),
        ],
    )
    .await;
    // A leader that gets no processor time may lose its term, but no claim.
    let lost_claims = "postrider_lease_losses_total{kind=\"claim\"}";
    assert_eq!(dispatcher.metrics().await.value(lost_claims), 0.0);
    let arrived = it.sim.report().received as f64;
    assert_eq!(arrived, sent + retried + 3.0 + refused);
    counts(
        &ingest,
        &[
            (
                "postrider_push_received_total{kind=\"immediate\"}",
                accepted - 3.0,
            ),
            ("postrider_push_received_total{kind=\"scheduled\"}", 3.0),
            ("postrider_push_receiving_seconds_count", accepted),
            (
                "postrider_http_requests_total{route=\"/push\",status=\"202\"}",
                accepted,
            ),
            ("postrider_push_went_pending_total", 0.0),
            ("postrider_store_errors_total", 0.0),
        ],
    )
    .await;
    counts(
        &worker,
        &[
            // The scheduled ones, each that was retried once, and the hopeless one twice.
            (
                "postrider_push_promoted_total{job=\"send_scheduled\"}",
                3.0 + retried + 2.0,
            ),
            ("postrider_push_rescued_total", 0.0),
            ("postrider_dead_letters_total", 0.0),
            ("postrider_store_errors_total", 0.0),
        ],
    )
    .await;
}
