//! Whose dead letters there are, and how many, by the API and on the page.

use domain::key::Role;
use serde_json::{Value, json};

use crate::console::{Browser, HOSTILE, holds, shows_hostile};
use crate::rig::{Rig, fields};

/// So many open dead letters of a reseller, of this kind.
async fn make(rig: &Rig, reseller: &str, fingerprint: &str, count: i32) {
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, target, detail, reseller_id)
         SELECT 'reseller', 'REJECTED', $2, 'https://hooks.example', 'detail ' || n, $1 FROM generate_series(1, $3) AS n",
    )
    .bind(reseller)
    .bind(fingerprint)
    .bind(count)
    .execute(&rig.it.pool)
    .await
    .unwrap();
}

async fn make_push(rig: &Rig) {
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, detail) VALUES ('push', 'REJECTED', 'broker/delivery_limit', 'given up')",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
}

fn counts(document: &Value) -> Vec<(&str, u64)> {
    let items = document["items"].as_array().unwrap().iter();
    let count = |item: &Value| item["count"].as_u64().unwrap();
    items
        .map(|item| (item["resellerId"].as_str().unwrap(), count(item)))
        .collect()
}

#[testkit::test]
async fn dead_letters_are_counted_by_whose_they_are_with_each_filter(rig: &Rig) {
    make(rig, "acme", "delivery/timeout", 1).await;
    make(rig, "acme", "delivery/http/503/html", 3).await;
    make(rig, "beta", "delivery/timeout", 2).await;
    make_push(rig).await;
    let all = rig.see("/dead-letters/resellers").await;
    assert_eq!(counts(&all), [("acme", 4), ("beta", 2)]);
    assert_eq!(all["total"], 2);
    let acme = &all["items"][0];
    assert_eq!(
        (&acme["fingerprint"], &acme["kind"], &acme["atLeast"]),
        (
            &json!("delivery/http/503/html"),
            &json!("http-5xx"),
            &json!(false)
        )
    );
    let newest = rig.see("/dead-letters?reseller=acme&limit=1").await;
    assert_eq!(acme["sample"]["id"], newest["items"][0]["id"]);
    assert_eq!(acme["sample"]["detail"], newest["items"][0]["detail"]);
    assert_eq!(acme["lastSeen"], newest["items"][0]["createdAt"]);
    let oldest = rig.see("/dead-letters?reseller=acme&limit=4").await;
    assert_eq!(acme["firstSeen"], oldest["items"][3]["createdAt"]);
    let hours = acme["hours"].as_array().unwrap().iter();
    assert_eq!(hours.filter_map(Value::as_u64).sum::<u64>(), 4, "{acme}");
    for (query, expected) in [
        ("fingerprint=delivery/timeout", vec![("beta", 2), ("acme", 1)]),
        ("fingerprint=delivery/http/5*", vec![("acme", 3)]),
        ("reseller=beta", vec![("beta", 2)]),
        ("lane=reseller&limit=1", vec![("acme", 4)]),
        ("lane=push", vec![]),
        ("state=DISCARDED", vec![]),
        ("state=ALL", vec![("acme", 4), ("beta", 2)]),
        ("until=2020-01-01T00:00:00Z", vec![]),
    ] {
        let found = rig.see(&format!("/dead-letters/resellers?{query}")).await;
        assert_eq!(counts(&found), expected, "{query}");
    }
    assert_eq!(rig.see("/dead-letters/resellers?limit=1").await["total"], 2);
    for (query, field) in [("limit=0", "limit"), ("lane=fast", "lane")] {
        let path = format!("/dead-letters/resellers?{query}");
        let problem = rig.refused("GET", &path, None, (400, "invalid-query")).await;
        assert_eq!(fields(&problem), [field], "{query}");
    }
}

#[testkit::test]
async fn what_is_counted_of_each_of_many_resellers_is_bounded_and_says_so(rig: &Rig) {
    // As many resellers as leave ten for each.
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, detail, reseller_id)
         SELECT 'reseller', 'REJECTED', 'delivery/timeout', 'late', 'r' || n FROM generate_series(1, 5000) AS n",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    make(rig, "acme", "delivery/timeout", 12).await;
    let found = rig.see("/dead-letters/resellers?limit=2").await;
    let first = &found["items"][0];
    assert_eq!(
        (&first["resellerId"], &first["count"], &first["atLeast"]),
        (&json!("acme"), &json!(10), &json!(true))
    );
    assert_eq!(found["items"][1]["atLeast"], false);
    assert_eq!(found["total"], 5_001);
    // Fewer than ten in each state, although more than that together.
    sqlx::query(
        "WITH few AS (SELECT id FROM dead_letters WHERE reseller_id = 'acme' LIMIT 6)
         UPDATE dead_letters SET state = 'DISCARDED', resolved_at = now(), resolved_by = 'Anna', note = 'no'
         WHERE id IN (SELECT id FROM few)",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let found = rig.see("/dead-letters/resellers?state=ALL&limit=1").await;
    let first = &found["items"][0];
    assert_eq!(
        (&first["resellerId"], &first["count"], &first["atLeast"]),
        (&json!("acme"), &json!(12), &json!(false))
    );
}

/// A page waits for what is counted one by one.
#[testkit::test]
async fn what_is_counted_of_one_reseller_is_bounded_and_says_so(rig: &Rig) {
    make(rig, "acme", "delivery/timeout", 10_001).await;
    let found = rig.see("/dead-letters/resellers").await;
    let acme = &found["items"][0];
    assert_eq!((&acme["count"], &acme["atLeast"]), (&json!(10_000), &json!(true)));
    let timeline = rig.see("/dead-letters/timeline?reseller=acme&state=OPEN").await;
    assert_eq!(timeline["atLeast"], true);
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator
        .see("/console/dead-letters/list?reseller=acme&fingerprint=delivery/timeout")
        .await;
    holds(&page, &["At least 2,000 open, the newest first."]);
}

#[testkit::test]
async fn a_reseller_is_replayed_or_discarded_from_the_page_that_counts_by_reseller(rig: &Rig) {
    let place = "/console/dead-letters/resellers";
    let operator = Browser::with_key(rig, &rig.key).await;
    holds(
        &operator.see(place).await,
        &["No dead letters of resellers are open."],
    );
    make(rig, "acme", "delivery/http/503/html", 2).await;
    make(rig, HOSTILE, "delivery/timeout", 1).await;
    let page = operator.see(place).await;
    shows_hostile(&page);
    holds(
        &page,
        &[
            "2 resellers have dead letters that are open",
            "the endpoint fails: 503, html",
            "href=\"/console/dead-letters?reseller=acme\"",
            "growing",
            "2 in 24 hours, 2 of them in this hour and the one before",
            "href=\"/console/jobs/new?action=replay&#38;reseller=acme\"",
            "href=\"/console/jobs/new?action=discard&#38;reseller=acme\"",
            "href=\"/console/resellers/acme\"",
        ],
    );
    sqlx::query(
        "UPDATE dead_letters SET created_at = created_at - interval '3 hours' WHERE reseller_id = 'acme'",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let acme_is_first = async |order: &str| {
        let page = operator.see(&format!("{place}{order}")).await;
        let (_, rows) = page.split_once("<tbody").unwrap();
        rows.find("?reseller=acme") < rows.find("delivery/timeout")
    };
    assert!(acme_is_first("").await);
    assert!(!acme_is_first("?order=latest").await && !acme_is_first("?order=growing").await);
    assert_eq!(operator.get(&format!("{place}?order=best")).await.status, 400);
    let page = operator.see("/console/dead-letters").await;
    holds(&page, &["href=\"/console/dead-letters/resellers\""]);
    let page = operator
        .see(&format!("{place}?fingerprint=delivery/http/503/html"))
        .await;
    holds(
        &page,
        &["1 reseller has", "fingerprint=delivery%2Fhttp%2F503%2Fhtml"],
    );
    let page = operator.see(&format!("{place}?state=ALL")).await;
    assert!(!page.contains("/console/jobs/new"), "jobs are about open ones");
    let viewer = Browser::of(rig, Role::Viewer).await;
    let page = viewer.see(place).await;
    holds(&page, &["needs the role operator"]);
    assert!(!page.contains("/console/jobs/new"), "a viewer begins no job");
    assert_eq!(viewer.get(&format!("{place}?by=colour")).await.status, 400);
}
