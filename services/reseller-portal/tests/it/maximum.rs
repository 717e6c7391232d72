//! The greatest number of subscriptions of a reseller.

use chrono::TimeDelta;
use sqlx::PgPool;

use crate::portal::{Portal, answer, id_of, problem, subscription};

/// Each of many that ask at once sees too few to refuse, unless they take turns.
#[testkit::test]
async fn there_are_never_more_than_allowed_however_many_ask_at_once(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.database.max_connections = 20).await;
    let other = portal.key_of("other").await;
    let asking = (0..30).map(|turn| {
        let key = if turn % 3 == 0 { &other } else { &portal.key };
        let request = portal.request("POST", "/subscriptions").bearer_auth(key);
        request.json(&subscription()).send()
    });
    let mut statuses: Vec<u16> = futures::future::join_all(asking)
        .await
        .into_iter()
        .map(|answer| answer.unwrap().status().as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [[201; 20].as_slice(), [409; 10].as_slice()].concat());
    let counts: Vec<(String, i64)> =
        sqlx::query_as("SELECT reseller_id, count(*) FROM subscriptions GROUP BY 1 ORDER BY 1")
            .fetch_all(&portal.pool)
            .await
            .unwrap();
    assert_eq!(counts, [("acme".to_owned(), 10), ("other".to_owned(), 10)]);
}

#[testkit::test]
async fn what_is_deleted_makes_room(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.reseller.subscription.maximum = 2).await;
    let first = id_of(&portal.created().await);
    portal.created().await;
    let problem = portal
        .refused(
            "POST",
            "/subscriptions",
            Some(&subscription()),
            (409, "too-many-subscriptions"),
        )
        .await;
    assert!(
        problem["detail"].as_str().unwrap().contains("2 subscriptions"),
        "{problem}"
    );
    portal
        .done("DELETE", &format!("/subscriptions/{first}"), 204)
        .await;
    portal.created().await;
    let request = portal.call("POST", "/subscriptions").json(&subscription());
    answer(request.send().await.unwrap(), 409).await;
}

/// What is deleted is kept for months.
#[testkit::test]
async fn only_so_many_are_made_in_a_day_whatever_is_deleted(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.reseller.subscription.maximum = 1).await;
    for _ in 0..51 {
        let id = id_of(&portal.created().await);
        portal.done("DELETE", &format!("/subscriptions/{id}"), 204).await;
    }
    let create = || portal.call("POST", "/subscriptions").json(&subscription());
    let refused = create().send().await.unwrap();
    assert!(refused.headers().contains_key("retry-after"));
    let told = problem(refused, 429, "too-many-requests").await;
    assert!(told["detail"].as_str().unwrap().contains("in a day"), "{told}");
    let other = portal.key_of("other").await;
    let of_another = portal.request("POST", "/subscriptions").bearer_auth(other);
    answer(of_another.json(&subscription()).send().await.unwrap(), 201).await;
    portal.clock.advance(TimeDelta::days(1) + TimeDelta::seconds(1));
    portal.created().await;
}
