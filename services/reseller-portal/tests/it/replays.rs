//! Asking for replays, looking at them, cancelling them.

use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::subscription_factory::SubscriptionRow;

use crate::portal::{Portal, fields};

#[testkit::test]
async fn one_replay_of_a_subscription_runs_at_a_time(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/replays");
    let body = json!({"since": portal.now() - TimeDelta::days(2)});
    let asking = (0..6).map(|_| portal.call("POST", &path).json(&body).send());
    let mut statuses = Vec::new();
    for answer in futures::future::join_all(asking).await {
        statuses.push(answer.unwrap().status().as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 409, 409, 409, 409, 409]);
    portal
        .refused("POST", &path, Some(&body), (409, "replay-running"))
        .await;
    let list = portal.see(&path).await;
    let [replay] = list["items"].as_array().unwrap().as_slice() else {
        panic!("{list}");
    };
    let one = format!("{path}/{}", replay["id"].as_str().unwrap());
    assert_eq!(portal.see(&one).await, *replay);
    assert_eq!(
        (&replay["status"], &replay["perSecond"]),
        (&json!("RUNNING"), &json!(100))
    );
    assert_eq!(
        (&replay["progress"], &replay["replayed"]),
        (&json!(0.0), &json!(0))
    );
}

#[testkit::test]
async fn a_cancelled_replay_makes_room_and_a_completed_one_cannot_be_cancelled(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/replays");
    let body = json!({"since": portal.now() - TimeDelta::days(2)});
    let first = portal.sent("POST", &path, &body, 202).await;
    let one = format!("{path}/{}", first["id"].as_str().unwrap());
    portal.done("DELETE", &one, 204).await;
    portal.done("DELETE", &one, 204).await;
    let cancelled = portal.see(&one).await;
    assert_eq!(cancelled["status"], "CANCELLED");
    assert_eq!(cancelled["finishedAt"], json!(portal.now()));
    let by = cancelled["cancelledBy"].as_str().unwrap();
    assert!(by.starts_with("test ("), "{by}");
    assert_eq!(first["cancelledBy"], Value::Null);
    let second = portal.sent("POST", &path, &body, 202).await;
    sqlx::query("UPDATE replays SET status = 'COMPLETED', finished_at = now() WHERE status = 'RUNNING'")
        .execute(&portal.pool)
        .await
        .unwrap();
    let two = format!("{path}/{}", second["id"].as_str().unwrap());
    portal
        .refused("DELETE", &two, None, (409, "replay-completed"))
        .await;
    assert_eq!(portal.see(&two).await["progress"], 1.0);
    assert_eq!(portal.all(&path, 1).await.len(), 2);
    for (status, ids) in [
        ("RUNNING", vec![]),
        ("COMPLETED", vec![&second["id"]]),
        ("CANCELLED", vec![&first["id"]]),
    ] {
        let of_status = portal.see(&format!("{path}?status={status}")).await;
        let listed = of_status["items"].as_array().unwrap().iter();
        assert_eq!(
            listed.map(|replay| &replay["id"]).collect::<Vec<_>>(),
            ids,
            "{status}"
        );
    }
    let unknown = format!("{path}?status=GONE");
    let problem = portal
        .refused("GET", &unknown, None, (400, "invalid-query"))
        .await;
    assert_eq!(fields(&problem), ["status"]);
    for method in ["GET", "DELETE"] {
        let unknown = format!("{path}/{}", uuid::Uuid::nil());
        portal.refused(method, &unknown, None, (404, "not-found")).await;
    }
}

#[testkit::test]
async fn the_time_has_to_lie_behind_and_not_too_far(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/replays");
    let at = |days: i64| json!(portal.now() - TimeDelta::days(days));
    for (body, wrong) in [
        (json!({}), &["since"][..]),
        (json!({"since": at(31)}), &["since"]),
        (json!({"since": at(-1)}), &["since"]),
        (json!({"since": at(1), "until": at(2)}), &["since"]),
        (json!({"since": at(1), "until": at(-1)}), &["until"]),
    ] {
        let problem = portal
            .refused("POST", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), wrong, "{body}");
    }
    let problem = portal
        .refused(
            "POST",
            &path,
            Some(&json!({"since": "yesterday"})),
            (422, "validation"),
        )
        .await;
    assert_eq!(problem["errors"][0]["field"], Value::from("since"));
}
