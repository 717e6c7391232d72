//! Looking at notifications: lists, what is scheduled, and one with its attempts.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::Portal;

/// As a query string has it.
fn encoded(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

async fn ids(portal: &Portal, path: &str, limit: usize) -> Vec<String> {
    let items = portal.all(path, limit).await;
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

fn names(made: &[MadeNotification]) -> Vec<String> {
    made.iter().map(|it| it.id.to_string()).collect()
}

/// Notifications accepted an hour apart, the newest first.
async fn hourly(portal: &Portal, subscription: Uuid, states: &[NotificationState]) -> Vec<MadeNotification> {
    let mut made = Vec::new();
    for (hours, state) in (1..).zip(states) {
        let row = NotificationRow::in_state(*state, subscription);
        let row = row.created_at(portal.now() - TimeDelta::hours(hours));
        made.push(row.make(&portal.pool).await);
    }
    made
}

#[testkit::test]
async fn the_newest_come_first_in_parts_of_any_size(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let made = names(&hourly(&portal, id, &NotificationState::ALL).await);
    let path = format!("/subscriptions/{id}/notifications");
    for limit in [1, 3, 8, 200] {
        assert_eq!(ids(&portal, &path, limit).await, made, "{limit}");
    }
    let first = &portal.see(&path).await["items"][5];
    assert_eq!(
        (&first["status"], &first["attempts"]),
        (&json!("SENT"), &json!(1))
    );
    assert_eq!(first["eventType"], "domain.created");
}

#[testkit::test]
async fn that_the_endpoint_is_not_verified_is_told_until_it_has_answered(portal: Portal) {
    let row = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    let id = row.make(&portal.pool).await;
    let retry = hourly(&portal, id, &[NotificationState::Retry]).await;
    let retry = format!("/notifications/{}", retry[0].id);
    let summary = format!("/subscriptions/{id}/scheduled/summary");
    // When it is tried again depends on that answer, and not on the time of its retry.
    let next = async || {
        let sums = portal.see(&summary).await;
        let sum = sums["waiting"]
            .as_array()
            .unwrap()
            .iter()
            .find(|sum| sum["reason"] == "RETRY");
        [
            portal.see(&retry).await["nextAttemptAt"].is_string(),
            sum.unwrap()["firstAt"].is_string(),
        ]
    };
    assert_eq!(next().await, [false, false]);
    let hour_ago = portal.now() - TimeDelta::hours(1);
    NotificationRow::in_state(NotificationState::Pending, id)
        .created_at(hour_ago)
        .make(&portal.pool)
        .await;
    let run = async |statement: &'static str| {
        sqlx::query(statement).execute(&portal.pool).await.unwrap();
    };
    run("UPDATE notifications SET reason = 'UNVERIFIED' WHERE status = 'PENDING'").await;
    let told = async || {
        let list = portal
            .see(&format!("/subscriptions/{id}/notifications?status=PENDING"))
            .await;
        list["items"][0]["reason"].clone()
    };
    assert_eq!(told().await, "UNVERIFIED");
    // The reason stays stored until its turn comes.
    run("UPDATE subscriptions SET state = 'ACTIVE'").await;
    assert_eq!(told().await, Value::Null);
    assert_eq!(next().await, [true, true]);
}

#[testkit::test]
async fn what_a_pause_holds_back_says_so_and_whose_pause_it_is(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let made = hourly(&portal, id, &NotificationState::ALL).await;
    let path = format!("/subscriptions/{id}");
    let told = async || {
        let listed = portal.all(&format!("{path}/notifications"), 50).await;
        for (it, state) in listed.iter().zip(NotificationState::ALL) {
            let one = portal
                .see(&format!("/notifications/{}", it["id"].as_str().unwrap()))
                .await;
            for field in ["reason", "pausedBy"] {
                assert_eq!(one[field], it[field], "{state:?}");
            }
            // What is in line is due now, whenever that is asked.
            let has_time = [&one, it].map(|told| !told["nextAttemptAt"].is_null());
            assert_eq!(has_time[0], has_time[1], "{state:?}");
        }
        listed
    };
    let before = told().await;
    assert_eq!(before.len(), made.len());
    assert!(before.iter().all(|it| it["pausedBy"].is_null()), "{before:?}");

    portal.done("POST", &format!("{path}/pause"), 200).await;
    for by in ["RESELLER", "OPERATOR"] {
        for ((it, was), state) in told().await.iter().zip(&before).zip(NotificationState::ALL) {
            let waits = !state.status().is_terminal() && state != NotificationState::Sending;
            let expected = if waits { json!(by) } else { Value::Null };
            assert_eq!(it["pausedBy"], expected, "{state:?}");
            assert!(
                it["nextAttemptAt"].is_null(),
                "when the pause ends is not known: {state:?}"
            );
            let replaced = waits && state != NotificationState::Retry;
            let reason = if replaced {
                &json!("PAUSED")
            } else {
                &was["reason"]
            };
            assert_eq!(it["reason"], *reason, "{state:?}");
        }
        let scheduled = portal.see(&format!("{path}/scheduled")).await;
        assert_eq!(scheduled["items"][0]["pausedBy"], by, "{scheduled}");
        assert!(scheduled["items"][0]["nextAttemptAt"].is_null(), "{scheduled}");
        let summary = portal.see(&format!("{path}/scheduled/summary")).await;
        let sums = summary["waiting"].as_array().unwrap();
        assert!(sums.iter().all(|sum| sum["firstAt"].is_null()), "{summary}");
        let act = store::Act {
            by: "ann (1)",
            note: Some("incident 17"),
            at: portal.now(),
        };
        let all = store::Pausable::Subscription(id);
        portal.store.pause(&all, act).await.unwrap();
    }
}

#[testkit::test]
async fn filters_thin_out_the_list_and_lose_nothing(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    use NotificationState::{Failed, GivenUp, Sent};
    let made = names(&hourly(&portal, id, &[Sent, Failed, Sent, GivenUp, Sent, Failed, Sent]).await);
    sqlx::query("UPDATE notifications SET event_type = 'contact.updated' WHERE id = $1")
        .bind(made[5].parse::<Uuid>().unwrap())
        .execute(&portal.pool)
        .await
        .unwrap();
    let path = format!("/subscriptions/{id}/notifications");
    let listed = async |query: &str| ids(&portal, &format!("{path}?{query}"), 2).await;
    let chosen = |indexes: &[usize]| indexes.iter().map(|i| made[*i].clone()).collect::<Vec<_>>();
    assert_eq!(listed("status=FAILED").await, chosen(&[1, 5]));
    assert_eq!(listed("status=FAILED,GIVEN_UP").await, chosen(&[1, 3, 5]));
    assert_eq!(listed("eventType=contact.updated").await, chosen(&[5]));
    assert_eq!(
        listed("status=FAILED&eventType=domain.created").await,
        chosen(&[1])
    );
    let (since, until) = (
        portal.now() - TimeDelta::hours(6),
        portal.now() - TimeDelta::hours(2),
    );
    let between = format!("since={}&until={}", encoded(since), encoded(until));
    assert_eq!(
        listed(&between).await,
        chosen(&[2, 3, 4, 5]),
        "from since on and before until"
    );
    for query in [
        "status=LOST",
        "status=FAILED,LOST",
        "eventType=Domain",
        "since=yesterday",
        "limit=1000",
        "cursor=1",
        "state=SENT",
    ] {
        portal
            .refused("GET", &format!("{path}?{query}"), None, (400, "invalid-query"))
            .await;
    }
}

#[testkit::test]
async fn the_list_ends_after_seven_days_whatever_is_asked_for(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let aged = async |age| {
        let row = NotificationRow::in_state(NotificationState::Sent, id);
        row.created_at(portal.now() - age)
            .make(&portal.pool)
            .await
            .id
            .to_string()
    };
    let week = TimeDelta::days(7);
    let shown = aged(week - TimeDelta::seconds(1)).await;
    let hidden = aged(week + TimeDelta::seconds(1)).await;
    let since = encoded(portal.now() - TimeDelta::days(20));
    for query in ["", &format!("?since={since}")] {
        let path = format!("/subscriptions/{id}/notifications{query}");
        assert_eq!(ids(&portal, &path, 50).await, std::slice::from_ref(&shown));
    }
    assert_eq!(
        portal.see(&format!("/notifications/{hidden}")).await["status"],
        "SENT",
        "it is still there"
    );
}

#[testkit::test]
async fn what_is_scheduled_is_listed_soonest_first(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let mut made = Vec::new();
    for minutes in [30, 10, 20, 10] {
        let row = NotificationRow::in_state(NotificationState::Scheduled, id);
        made.push((
            minutes,
            row.due_in(TimeDelta::minutes(minutes))
                .make(&portal.pool)
                .await
                .id
                .to_string(),
        ));
    }
    NotificationRow::in_state(NotificationState::Retry, id)
        .make(&portal.pool)
        .await;
    sqlx::query("UPDATE notifications SET next_attempt_at = date_trunc('minute', next_attempt_at)")
        .execute(&portal.pool)
        .await
        .unwrap();
    made.sort();
    let expected: Vec<String> = made.into_iter().map(|(_, id)| id).collect();
    let path = format!("/subscriptions/{id}/scheduled");
    for limit in [1, 2, 50] {
        assert_eq!(ids(&portal, &path, limit).await, expected, "{limit}");
    }
    assert_eq!(portal.see(&path).await["items"][0]["reason"], "QUOTA");
}

#[testkit::test]
async fn an_attempt_shows_what_was_sent_and_what_came_back_and_no_signature(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let made = NotificationRow::in_state(NotificationState::Sent, id)
        .attempts(2)
        .make(&portal.pool)
        .await;
    sqlx::query("UPDATE delivery_attempts SET response_body = 'try later' WHERE number = 1")
        .execute(&portal.pool)
        .await
        .unwrap();
    let seen = portal.see(&format!("/notifications/{}", made.id)).await;
    let (body, started_at): (String, DateTime<Utc>) = sqlx::query_as(
        "SELECT e.body, a.started_at FROM events e CROSS JOIN delivery_attempts a WHERE a.number = 1",
    )
    .fetch_one(&portal.pool)
    .await
    .unwrap();
    assert_eq!(
        (&seen["body"], &seen["subscriptionId"]),
        (&json!(body), &json!(id))
    );
    let [first, second] = seen["history"].as_array().unwrap().as_slice() else {
        panic!("{seen}");
    };
    let expected = json!({
        "method": "POST",
        "url": "https://acme.example/hook",
        "headers": {
            "content-type": "application/json",
            "event-id": made.event,
            "idempotency-key": signing::idempotency_key(body.as_bytes()),
            "webhook-id": made.event,
            "webhook-timestamp": started_at.timestamp().to_string(),
        },
    });
    assert_eq!(first["request"], expected);
    assert_eq!(first["response"], json!({"status": 503, "body": "try later"}));
    assert_eq!(
        (&first["status"], &first["errorType"], &first["millis"]),
        (&json!("ERROR"), &json!("HTTP"), &json!(250))
    );
    assert_eq!(
        (&second["status"], &second["error"]),
        (&json!("OK"), &Value::Null)
    );
    assert!(!seen.to_string().to_lowercase().contains("signature"));
    for path in [
        format!("/notifications/{}", Uuid::nil()),
        "/notifications/x".to_owned(),
    ] {
        portal.refused("GET", &path, None, (404, "not-found")).await;
    }
}

#[testkit::test]
async fn what_became_of_an_event_is_found_by_what_its_caller_called_it(portal: Portal) {
    let (id, other) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    let made = hourly(&portal, id, &[NotificationState::Sent, NotificationState::Failed]).await;
    sqlx::query("INSERT INTO event_keys VALUES ('reseller/acme', 'order-17', $1, '\\x01', now())")
        .bind(made[1].event)
        .execute(&portal.pool)
        .await
        .unwrap();
    let path = format!("/subscriptions/{id}/notifications?eventId=");
    for event in ["order-17".to_owned(), made[1].event.to_string()] {
        let found = portal.see(&format!("{path}{event}")).await;
        assert_eq!(found["items"][0]["id"], made[1].id.to_string(), "{event}");
        assert_eq!(found["items"].as_array().unwrap().len(), 1);
    }
    let none = format!("/subscriptions/{other}/notifications?eventId=order-17");
    for path in [none, format!("{path}order-18")] {
        assert_eq!(portal.see(&path).await["items"], json!([]), "{path}");
    }
    let since = encoded(portal.now());
    for (besides, is_found) in [
        ("status=FAILED&eventType=domain.created", true),
        ("status=SENT", false),
        ("eventType=contact.updated", false),
        (&*format!("since={since}"), false),
        (&*format!("until={since}"), true),
    ] {
        let found = portal.see(&format!("{path}order-17&{besides}")).await;
        assert_eq!(found["items"] != json!([]), is_found, "{besides}");
    }
}
