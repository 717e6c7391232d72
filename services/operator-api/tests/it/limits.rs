//! Limits of a subscription, which administrators set.

use domain::key::Role;
use serde_json::{Value, json};
use testkit::subscription_factory::SubscriptionRow;

use crate::rig::{Rig, answer, fields, problem};

#[testkit::test]
async fn limits_are_set_together_and_the_record_holds_those_of_before(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    let path = format!("/subscriptions/{id}/limits");
    let put = async |body: Value| {
        let request = rig.request("PUT", &path).bearer_auth(&admin);
        request.json(&body).send().await.unwrap()
    };
    let first = json!({"dailyQuota": 50, "requestsPerSecond": 3, "note": "a merger"});
    let set = answer(put(first).await, 200).await;
    assert_eq!(
        (&set["id"], &set["dailyQuota"], &set["requestsPerSecond"]),
        (&json!(id), &json!(50), &json!(3))
    );
    let second = json!({"dailyQuota": 60, "requestsPerSecond": null});
    for _ in 0..2 {
        let set = answer(put(second.clone()).await, 200).await;
        assert_eq!(
            (&set["dailyQuota"], &set["requestsPerSecond"]),
            (&json!(60), &Value::Null)
        );
    }
    let log = rig.all("/audit?action=subscription.limits", 10).await;
    let told: Vec<_> = log
        .iter()
        .map(|entry| (&entry["details"], &entry["note"]))
        .collect();
    let change = |from: Value, to: Value| json!({"from": from, "to": to});
    let later = json!({"dailyQuota": change(json!(50), json!(60)), "requestsPerSecond": change(json!(3), Value::Null)});
    let earlier = json!({"dailyQuota": change(Value::Null, json!(50)), "requestsPerSecond": change(Value::Null, json!(3))});
    // Asking for what is there already changes nothing.
    assert_eq!(told, [(&later, &Value::Null), (&earlier, &json!("a merger"))]);
    assert!(
        log.iter()
            .all(|entry| entry["subject"] == format!("subscription/{id}"))
    );
    // A person who asks for quotas means these, too.
    assert_eq!(rig.all("/audit?action=lane,quota", 10).await, log);
    let without = rig.all("/audit?action=subscription&without=lane,quota", 10).await;
    assert_eq!(without, [] as [Value; 0]);
}

#[testkit::test]
async fn a_limit_that_is_left_out_stays_as_it_is(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    let path = format!("/subscriptions/{id}/limits");
    for (body, daily, a_second) in [
        (json!({"dailyQuota": 50}), json!(50), Value::Null),
        (json!({"requestsPerSecond": 3}), json!(50), json!(3)),
        (json!({"dailyQuota": null}), Value::Null, json!(3)),
    ] {
        let request = rig.request("PUT", &path).bearer_auth(&admin).json(&body);
        let set = answer(request.send().await.unwrap(), 200).await;
        assert_eq!(
            (&set["dailyQuota"], &set["requestsPerSecond"]),
            (&daily, &a_second),
            "{body}"
        );
    }
}

#[testkit::test]
async fn limits_that_cannot_be_are_refused_and_nothing_changes(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    let path = format!("/subscriptions/{id}/limits");
    for (body, wrong) in [
        (json!({}), &["dailyQuota"][..]),
        (json!({"note": "a merger"}), &["dailyQuota"]),
        (json!({"requestsPerSecond": 0}), &["requestsPerSecond"]),
        (
            json!({"dailyQuota": 0, "requestsPerSecond": null}),
            &["dailyQuota"],
        ),
        (
            json!({"dailyQuota": 1_000_000_001, "requestsPerSecond": 100_001}),
            &["dailyQuota", "requestsPerSecond"],
        ),
        (
            json!({"dailyQuota": 5, "requestsPerSecond": 5, "note": "x".repeat(2_001)}),
            &["note"],
        ),
    ] {
        let request = rig.request("PUT", &path).bearer_auth(&admin).json(&body);
        let refused = problem(request.send().await.unwrap(), 422, "validation").await;
        assert_eq!(fields(&refused), wrong, "{body}");
    }
    let both = json!({"dailyQuota": 5, "requestsPerSecond": 5});
    rig.refused("PUT", &path, Some(&both), (403, "forbidden")).await;
    let shown = rig.see(&format!("/subscriptions/{id}")).await;
    assert_eq!(
        (&shown["dailyQuota"], &shown["requestsPerSecond"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(rig.all("/audit", 10).await.len(), 0);
}
