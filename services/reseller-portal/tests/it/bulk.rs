//! Sending many again at once, and what a replay would do before it does it.

use chrono::TimeDelta;
use domain::notification::NotificationState::{self, Cancelled, Failed, GivenUp, Pending, Sent};
use serde_json::{Value, json};
use testkit::eventually;
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::{Portal, answer, fields};

async fn made(portal: &Portal, id: Uuid, state: NotificationState, minutes: i64) -> MadeNotification {
    NotificationRow::in_state(state, id)
        .created_at(portal.now() - TimeDelta::minutes(minutes))
        .make(&portal.pool)
        .await
}

async fn status(portal: &Portal, it: &MadeNotification) -> (String, Option<String>) {
    let seen = portal.see(&format!("/notifications/{}", it.id)).await;
    (
        seen["status"].as_str().unwrap().to_owned(),
        seen["nextAttemptAt"].as_str().map(str::to_owned),
    )
}

#[testkit::test]
async fn many_are_counted_first_and_then_sent_again_at_a_rate(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let other = SubscriptionRow::active().make(&portal.pool).await;
    let failed = made(&portal, id, Failed, 5).await;
    let given_up = made(&portal, id, GivenUp, 4).await;
    let sent = made(&portal, id, Sent, 3).await;
    let pending = made(&portal, id, Pending, 2).await;
    let cancelled = made(&portal, id, Cancelled, 1).await;
    let of_other = made(&portal, other, Failed, 1).await;
    let path = format!("/subscriptions/{id}/resends");
    let matching = json!({"statuses": ["FAILED", "GIVEN_UP"], "dryRun": true, "perSecond": 1});
    let counted = portal.sent("POST", &path, &matching, 200).await;
    assert_eq!(
        counted,
        json!({"dryRun": true, "at": portal.now(), "count": 2, "byStatus": {"FAILED": 1, "GIVEN_UP": 1}, "byEventType": {"domain.created": 2},
               "skipped": {"cancelled": 1, "unfinished": 0, "unknown": 0}, "perSecond": 1, "seconds": 2})
    );
    assert_eq!(status(&portal, &failed).await.0, "FAILED", "only counted");

    let mut body = matching;
    body["dryRun"] = json!(false);
    let resent = portal.sent("POST", &path, &body, 202).await;
    assert_eq!(resent["count"], 2);
    let (first, second) = (status(&portal, &failed).await, status(&portal, &given_up).await);
    assert_eq!((&*first.0, &*second.0), ("RETRY", "RETRY"));
    let at = |text: Option<String>| -> chrono::DateTime<chrono::Utc> { text.unwrap().parse().unwrap() };
    assert_eq!(
        at(second.1) - at(first.1),
        TimeDelta::seconds(1),
        "the oldest event first"
    );
    let open: i64 =
        sqlx::query_scalar("SELECT count(*) FROM dead_letters WHERE state = 'OPEN' AND subscription_id = $1")
            .bind(id)
            .fetch_one(&portal.pool)
            .await
            .unwrap();
    assert_eq!(open, 0);

    let named = [&sent, &pending, &cancelled, &of_other, &failed].map(|it| it.id.uuid());
    let body = json!({"ids": named});
    let resent = portal.sent("POST", &path, &body, 202).await;
    assert_eq!(resent["count"], 1);
    assert_eq!(
        resent["skipped"],
        json!({"cancelled": 1, "unfinished": 2, "unknown": 1})
    );
    let (last, second) = (status(&portal, &sent).await, status(&portal, &given_up).await);
    assert_eq!(last.0, "RETRY");
    assert!(
        at(last.1) > at(second.1),
        "after those of the resend that goes on"
    );
    assert_eq!(status(&portal, &of_other).await.0, "FAILED");
    let story = portal.see(&format!("/notifications/{}/story", failed.id)).await;
    assert!(
        story["story"]
            .as_array()
            .unwrap()
            .iter()
            .any(|step| step["code"] == "replayed" && step["params"]["by"].is_string()),
        "{story:#}"
    );
}

/// As a resend of one alone does it, and the selection in the dashboard.
#[testkit::test]
async fn what_is_named_and_waits_for_a_retry_is_tried_at_once(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let retry = NotificationRow::in_state(NotificationState::Retry, id)
        .due_in(TimeDelta::hours(8))
        .make(&portal.pool)
        .await;
    let failed = made(&portal, id, Failed, 5).await;
    let path = format!("/subscriptions/{id}/resends");
    let mut body = json!({"ids": [retry.id.uuid(), failed.id.uuid()], "dryRun": true, "perSecond": 1});
    let before = status(&portal, &retry).await;
    let counted = portal.sent("POST", &path, &body, 200).await;
    assert_eq!(
        (&counted["count"], &counted["byStatus"], &counted["seconds"]),
        (&json!(2), &json!({"FAILED": 1, "RETRY": 1}), &json!(1)),
        "{counted}"
    );
    assert_eq!(status(&portal, &retry).await, before, "only counted");

    body["dryRun"] = json!(false);
    let resent = portal.sent("POST", &path, &body, 202).await;
    assert_eq!(
        (&resent["count"], &resent["skipped"]["unfinished"]),
        (&json!(2), &json!(0))
    );
    let (due, resent_after): (chrono::DateTime<chrono::Utc>, i32) =
        sqlx::query_as("SELECT next_attempt_at, resent_after FROM notifications WHERE id = $1")
            .bind(retry.id.uuid())
            .fetch_one(&portal.pool)
            .await
            .unwrap();
    assert!(due <= portal.now(), "{due}");
    assert_eq!(resent_after, 0, "no retry is added");
    assert_eq!(status(&portal, &failed).await.0, "RETRY");

    let again = portal.sent("POST", &path, &body, 202).await;
    assert_eq!(
        (&again["count"], &again["skipped"]["unfinished"]),
        (&json!(0), &json!(2))
    );
}

#[testkit::test]
async fn what_another_request_has_sent_again_meanwhile_is_not_counted_twice(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let (first, second) = (
        made(&portal, id, Failed, 2).await,
        made(&portal, id, Failed, 1).await,
    );
    let mut other = portal.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM subscriptions WHERE id = $1 FOR UPDATE")
        .bind(id)
        .execute(&mut *other)
        .await
        .unwrap();
    sqlx::query(
        "UPDATE notifications SET status = 'RETRY', next_attempt_at = now(), finished_at = NULL, reason = 'RESENT',
                resent_after = attempts, resent_at = now() WHERE id = $1",
    )
    .bind(first.id.uuid())
    .execute(&mut *other)
    .await
    .unwrap();
    let (path, body) = (
        format!("/subscriptions/{id}/resends"),
        json!({"statuses": ["FAILED"]}),
    );
    let (resent, ()) = tokio::join!(portal.sent("POST", &path, &body, 202), async {
        eventually("the request to wait for the other one", async || {
            let blocked: bool = sqlx::query_scalar(
                "SELECT EXISTS (SELECT FROM pg_stat_activity
                                WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)",
            )
            .fetch_one(&portal.pool)
            .await
            .ok()?;
            blocked.then_some(())
        })
        .await;
        other.commit().await.unwrap();
    });
    assert_eq!(
        (&resent["count"], &resent["byStatus"]),
        (&json!(1), &json!({"FAILED": 1}))
    );
    assert_eq!(resent["skipped"]["unfinished"], 1);
    assert_eq!(status(&portal, &second).await.0, "RETRY");
}

#[testkit::test]
async fn a_bulk_resend_says_what_is_wrong_with_it(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}/resends");
    for (body, field) in [
        (json!({}), "ids"),
        (json!({"ids": []}), "ids"),
        (json!({"ids": [id], "statuses": ["SENT"]}), "ids"),
        (json!({"statuses": ["PENDING"]}), "statuses"),
        (json!({"statuses": ["SENT"], "perSecond": 0}), "perSecond"),
        (json!({"eventTypes": ["no type"]}), "eventTypes"),
        (json!({"code": 99}), "code"),
        (json!({"code": "6xx"}), "code"),
        (json!({"code": true, "statuses": ["SENT"]}), "code"),
        (
            json!({"since": portal.now(), "until": portal.now() - TimeDelta::hours(1)}),
            "since",
        ),
        (
            json!({"endedSince": portal.now(), "endedUntil": portal.now() - TimeDelta::hours(1)}),
            "endedSince",
        ),
    ] {
        let problem = portal
            .refused("POST", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), [field], "{body}");
    }
    let body = json!({"statuses": ["RETRY"]});
    let problem = portal
        .refused("POST", &path, Some(&body), (422, "validation"))
        .await;
    assert!(
        problem.to_string().contains("at once where ids name it"),
        "{problem}"
    );
    portal
        .done("POST", &format!("/subscriptions/{id}/deactivate"), 200)
        .await;
    let body = json!({"statuses": ["SENT"]});
    portal
        .refused("POST", &path, Some(&body), (409, "subscription-state"))
        .await;
}

#[testkit::test]
async fn a_replay_is_previewed_and_can_be_of_some(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    for (state, minutes) in [(Failed, 4), (Failed, 5), (GivenUp, 6), (Cancelled, 7), (Sent, 8)] {
        made(&portal, id, state, minutes).await;
    }
    let path = format!("/subscriptions/{id}/replays");
    let since = portal.now() - TimeDelta::hours(1);
    let preview = async |body: Value| portal.sent("POST", &path, &body, 200).await;
    let all = preview(json!({"since": since, "dryRun": true})).await;
    assert_eq!(
        (
            &all["count"],
            &all["byStatus"],
            &all["cancelled"],
            &all["isWhole"]
        ),
        (
            &json!(3),
            &json!({"FAILED": 2, "GIVEN_UP": 1}),
            &json!(1),
            &json!(true)
        ),
        "{all}"
    );
    let some =
        json!({"since": since, "dryRun": true, "statuses": ["GIVEN_UP"], "eventTypes": ["domain.created"]});
    assert_eq!(preview(some).await["count"], 1);
    let none = json!({"since": since, "dryRun": true, "eventTypes": ["contact.updated"]});
    assert_eq!(preview(none).await["count"], 0);
    assert_eq!(portal.see(&path).await["items"], json!([]), "nothing was made");

    let body = json!({"since": since, "statuses": ["GIVEN_UP"], "eventTypes": ["domain.created"]});
    let replay = portal.sent("POST", &path, &body, 202).await;
    assert_eq!(replay["statuses"], json!(["GIVEN_UP"]));
    let replayed = portal
        .store
        .advance_replay(
            replay["id"].as_str().unwrap().parse().unwrap(),
            portal.now() + TimeDelta::seconds(60),
        )
        .await
        .unwrap();
    assert_eq!(replayed.replayed, 1);
    let wrong = json!({"since": since, "statuses": ["SENT"], "eventTypes": ["no type"]});
    let problem = portal
        .refused("POST", &path, Some(&wrong), (422, "validation"))
        .await;
    assert_eq!(fields(&problem), ["eventTypes", "statuses"]);
    let stranger = portal.key_of("stranger").await;
    let foreign = portal.request("POST", &path).bearer_auth(stranger);
    let foreign = foreign.json(&json!({"since": since, "dryRun": true}));
    answer(foreign.send().await.unwrap(), 404).await;
}
