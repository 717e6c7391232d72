//! What waits in all, by what it waits for.

use chrono::{DateTime, TimeDelta, Utc};
use domain::key::Role;
use domain::notification::NotificationState;
use domain::push::PushState;
use serde_json::{Value, json};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::{Browser, holds};
use crate::rig::Rig;

/// What of a lane waits for this reason.
fn of<'v>(waiting: &'v Value, lane: &str, reason: &str) -> &'v Value {
    let items = waiting["items"].as_array().unwrap();
    let mut found = items
        .iter()
        .filter(|item| item["lane"] == lane && item["reason"] == reason);
    found
        .next()
        .unwrap_or_else(|| panic!("nothing of {lane} waits for {reason}: {waiting:#}"))
}

fn at(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[testkit::test]
async fn what_waits_is_added_up_by_what_it_waits_for(rig: &Rig) {
    assert_eq!(rig.see("/waiting").await["items"], json!([]));
    let accepted = rig.now() - TimeDelta::hours(2);
    for state in [
        PushState::Scheduled,
        PushState::Retry,
        PushState::Pending,
        PushState::Queued,
        PushState::Sending,
        PushState::Sent,
    ] {
        PushRow::in_state(state)
            .created_at(accepted)
            .make(&rig.it.pool)
            .await;
    }
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    for (state, hours) in [
        (NotificationState::Scheduled, 3),
        (NotificationState::Pending, 2),
        (NotificationState::Retry, 5),
        (NotificationState::Failed, 9),
    ] {
        NotificationRow::in_state(state, subscription)
            .created_at(rig.now() - TimeDelta::hours(hours))
            .due_in(TimeDelta::minutes(30))
            .make(&rig.it.pool)
            .await;
    }
    let sooner = NotificationRow::in_state(NotificationState::Retry, subscription);
    sooner.due_in(TimeDelta::minutes(10)).make(&rig.it.pool).await;

    let waiting = rig.see("/waiting").await;
    for reason in ["WINDOW", "RETRY", "ROOM", "QUEUED", "SENDING"] {
        let pushes = of(&waiting, "push", reason);
        assert_eq!(
            (&pushes["count"], &pushes["more"], &pushes["paused"]),
            (&json!(1), &json!(false), &json!(false)),
            "{reason}"
        );
    }
    let retries = of(&waiting, "reseller", "RETRY");
    assert_eq!(retries["count"], 2);
    assert!(at(&retries["oldest"]) <= rig.now() - TimeDelta::hours(5) + TimeDelta::seconds(1));
    let due = at(&retries["nextDueAt"]) - rig.now();
    assert!(
        due > TimeDelta::minutes(5) && due < TimeDelta::minutes(15),
        "the first of the two: {retries}"
    );
    assert_eq!(of(&waiting, "reseller", "QUOTA")["count"], 1);
    assert_eq!(of(&waiting, "reseller", "ROOM")["count"], 1);
    let items = waiting["items"].as_array().unwrap();
    let lane = |lane: &str| items.iter().filter(|item| item["lane"] == lane).count();
    assert_eq!((lane("push"), lane("reseller")), (5, 3), "{waiting:#}");

    let browser = Browser::of(rig, Role::Viewer).await;
    let page = browser.see("/console/waiting?lane=reseller").await;
    holds(
        &page,
        &["In the lane: 2 for another attempt, 1 in line for a daily quota"],
    );
    rig.act(
        "/lanes/push/pause",
        &json!({"note": "Swrve asked us to wait"}),
        200,
    )
    .await;
    let waiting = rig.see("/waiting").await;
    assert_eq!(of(&waiting, "push", "ROOM")["paused"], true);
    assert_eq!(of(&waiting, "reseller", "ROOM")["paused"], false);

    assert_eq!(of(&waiting, "push", "QUEUED")["held"], false);
    let sql = "INSERT INTO holds (class, last_answer) VALUES ('SWRVE', '503')";
    sqlx::query(sql).execute(&rig.it.pool).await.unwrap();
    let waiting = rig.see("/waiting").await;
    assert_eq!(of(&waiting, "push", "QUEUED")["held"], true);
    assert_eq!(of(&waiting, "reseller", "ROOM")["held"], false);
    let sql = "UPDATE holds SET answered_at = now()";
    sqlx::query(sql).execute(&rig.it.pool).await.unwrap();
    let waiting = rig.see("/waiting").await;
    assert_eq!(
        of(&waiting, "push", "QUEUED")["held"],
        false,
        "what waited is being sent"
    );
}

#[testkit::test]
async fn what_a_pause_of_its_subscription_or_reseller_holds_back_waits_for_the_end_of_that(rig: &Rig) {
    let [one, other] = [
        SubscriptionRow::active().make(&rig.it.pool).await,
        SubscriptionRow::active()
            .reseller("globex")
            .make(&rig.it.pool)
            .await,
    ];
    for state in [
        NotificationState::Scheduled,
        NotificationState::Pending,
        NotificationState::Retry,
    ] {
        for subscription in [one, other] {
            NotificationRow::in_state(state, subscription)
                .make(&rig.it.pool)
                .await;
        }
    }
    let sums = async || {
        let waiting = rig.see("/waiting").await;
        let items = waiting["items"].as_array().unwrap().clone();
        let mut sums: Vec<_> = items
            .iter()
            .map(|item| {
                (
                    item["reason"].as_str().unwrap().to_owned(),
                    item["count"].as_u64().unwrap(),
                )
            })
            .collect();
        sums.sort();
        sums
    };
    let told = |sums: &[(&str, u64)]| -> Vec<(String, u64)> {
        sums.iter()
            .map(|(reason, count)| ((*reason).to_owned(), *count))
            .collect()
    };
    let none = told(&[("QUOTA", 2), ("RETRY", 2), ("ROOM", 2)]);
    assert_eq!(sums().await, none);
    let note = json!({"note": "incident 17"});
    rig.act(&format!("/subscriptions/{one}/pause"), &note, 200).await;
    assert_eq!(
        sums().await,
        told(&[("PAUSED", 2), ("QUOTA", 1), ("RETRY", 2), ("ROOM", 1)])
    );
    rig.act("/resellers/globex/pause", &note, 200).await;
    assert_eq!(sums().await, told(&[("PAUSED", 4), ("RETRY", 2)]));
    let browser = Browser::of(rig, Role::Viewer).await;
    let page = browser.see("/console/waiting?lane=reseller").await;
    holds(
        &page,
        &["In the lane: 4 for the end of a pause, 2 for another attempt."],
    );
    for what in [format!("subscriptions/{one}"), "resellers/globex".to_owned()] {
        rig.act(&format!("/{what}/resume"), &json!({}), 200).await;
    }
    assert_eq!(sums().await, none);
}

#[testkit::test]
async fn what_waits_for_swrve_says_so_whenever_it_is_due(rig: &Rig) {
    for state in [
        PushState::Retry,
        PushState::Queued,
        PushState::Scheduled,
        PushState::Sending,
        PushState::Sent,
    ] {
        PushRow::in_state(state).make(&rig.it.pool).await;
    }
    let held = async || -> Vec<String> {
        let list = rig.see("/pushes").await;
        let items = list["items"].as_array().unwrap().iter();
        let held = items.filter(|item| item["held"] == true);
        let mut held: Vec<_> = held.map(|item| item["status"].to_string()).collect();
        held.sort();
        held
    };
    assert_eq!(held().await, [] as [&str; 0]);
    sqlx::query("INSERT INTO holds (class, last_answer) VALUES ('SWRVE', '503')")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(held().await, ["\"IN_MEMORY\"", "\"RETRY\""]);
    sqlx::query("UPDATE holds SET answered_at = now()")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(held().await, [] as [&str; 0]);
}
