//! What endpoints answered, over all resellers.

use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta};
use serde_json::json;
use store::webhook::{AttemptEnd, StatisticsDelta};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::{Rig, fields};

async fn answered(rig: &Rig, (subscription, age): (Uuid, TimeDelta), code: Option<u16>) {
    let mut hour = StatisticsDelta::new(subscription, rig.now() - age);
    hour.record(AttemptEnd::Retried, Duration::from_millis(20), code, 100);
    rig.it.store.add_delivery_statistics(&[hour]).await.unwrap();
}

#[testkit::test]
async fn answers_of_the_last_hour_are_counted_by_code_and_the_count_says_when_it_begins(rig: &Rig) {
    let acme = SubscriptionRow::active().make(&rig.it.pool).await;
    let other = SubscriptionRow::active()
        .reseller("other")
        .make(&rig.it.pool)
        .await;
    let hour = TimeDelta::hours(1);
    answered(rig, (acme, TimeDelta::zero()), Some(503)).await;
    answered(rig, (acme, hour), Some(503)).await;
    answered(rig, (acme, hour), None).await;
    answered(rig, (other, TimeDelta::zero()), Some(503)).await;
    answered(rig, (other, hour * 2), Some(500)).await;

    let all = rig.see("/notifications/answers").await;
    let began = all["since"].as_str().unwrap();
    assert!(began.ends_with(":00:00Z"), "{all}");
    let counts = |of: &serde_json::Value| -> Vec<_> {
        let items = of["items"].as_array().unwrap().iter();
        items
            .map(|item| (item["code"].as_u64(), item["count"].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(counts(&all), [(Some(503), 3), (None, 1)]);
    assert_eq!(
        all["items"][0]["most"],
        json!([
            {"resellerId": "acme", "subscriptionId": acme, "url": "https://acme.example/hook", "count": 2},
            {"resellerId": "other", "subscriptionId": other, "url": "https://acme.example/hook", "count": 1},
        ])
    );
    let since = (rig.now() - hour * 2).to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let of_one = rig
        .see(&format!("/notifications/answers?since={since}&reseller=other"))
        .await;
    assert_eq!(counts(&of_one), [(Some(500), 1), (Some(503), 1)]);
    let of_one = rig
        .see(&format!("/notifications/answers?subscription={other}"))
        .await;
    assert_eq!(counts(&of_one), [(Some(503), 1)]);
    let unknown = format!("/notifications/answers?subscription={}", Uuid::now_v7());
    assert_eq!(rig.see(&unknown).await["items"], json!([]));
    let together = format!("reseller=acme&subscription={acme}");
    for (query, field) in [
        ("since=2001-01-01T00:00:00Z", "since"),
        ("since=9000-01-01T00:00:00Z", "since"),
        (&*together, "reseller"),
        ("reseller=", "reseller"),
    ] {
        let path = format!("/notifications/answers?{query}");
        let problem = rig.refused("GET", &path, None, (400, "invalid-query")).await;
        assert_eq!(fields(&problem), [field], "{query}");
    }
}
