//! Visits to the console.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::key::{KeyDigest, Role};
use sqlx::PgPool;
use store::{ApiKey, BREAK_GLASS_MINUTES, IDLE_MINUTES, Person, Store, VISIT_HOURS, VisitBy, Visitor};
use uuid::Uuid;

use crate::scene::act;

async fn begun(pool: &PgPool) -> (Store, ApiKey, KeyDigest, DateTime<Utc>) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now().trunc_subsecs(6));
    let key = ApiKey::new("ada".to_owned(), vec![Role::Operator], None, now);
    store.insert_api_key(&key, &KeyDigest::of("key")).await.unwrap();
    let digest = KeyDigest::of("visit");
    store
        .begin_visit(&digest, VisitBy::Key(key.id), act(now))
        .await
        .unwrap();
    (store, key, digest, now)
}

#[testkit::database_test]
async fn a_visit_may_what_its_key_may_until_that_is_revoked(pool: PgPool) {
    let (store, key, digest, now) = begun(&pool).await;
    assert_eq!(
        store.find_visit(&digest, now, true).await.unwrap(),
        Some(Visitor::Key(key.clone()))
    );
    assert_eq!(
        store
            .find_visit(&KeyDigest::of("other"), now, true)
            .await
            .unwrap(),
        None
    );
    store.revoke_api_key(key.id, act(now)).await.unwrap();
    assert_eq!(store.find_visit(&digest, now, true).await.unwrap(), None);
}

#[testkit::database_test]
async fn a_visit_ends_when_it_is_ended_and_only_once(pool: PgPool) {
    let (store, _, digest, now) = begun(&pool).await;
    assert!(store.end_visit(&digest, act(now)).await.unwrap());
    assert!(!store.end_visit(&digest, act(now)).await.unwrap());
    assert_eq!(store.find_visit(&digest, now, true).await.unwrap(), None);
    let actions: Vec<String> = sqlx::query_scalar("SELECT action FROM audit_log ORDER BY id")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(actions, ["visit.begin", "visit.end"]);
}

#[testkit::database_test]
async fn a_visit_ends_after_a_time_without_a_page_and_after_its_longest_time(pool: PgPool) {
    let (store, _, digest, begun_at) = begun(&pool).await;
    let idle = TimeDelta::minutes(IDLE_MINUTES);
    let mut now = begun_at;
    while now + idle - TimeDelta::minutes(1) < begun_at + TimeDelta::hours(VISIT_HOURS) {
        now += idle - TimeDelta::minutes(1);
        assert!(
            store.find_visit(&digest, now, true).await.unwrap().is_some(),
            "{now}"
        );
    }
    let end = begun_at + TimeDelta::hours(VISIT_HOURS);
    assert_eq!(
        store.find_visit(&digest, end, true).await.unwrap(),
        None,
        "it has lasted its longest time"
    );

    let other = KeyDigest::of("another visit");
    let (_, key) = (digest, store.list_api_keys().await.unwrap()[0].id);
    store
        .begin_visit(&other, VisitBy::Key(key), act(begun_at))
        .await
        .unwrap();
    assert_eq!(
        store.find_visit(&other, begun_at + idle, true).await.unwrap(),
        None,
        "no page was asked for"
    );
}

#[testkit::database_test]
async fn a_visit_of_a_person_may_what_the_provider_said(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now().trunc_subsecs(6));
    for (place, authenticated_at) in [Some(now), None].into_iter().enumerate() {
        let person = Person {
            issuer: "https://id.example".to_owned(),
            subject: format!("7f3{place}"),
            name: "Ada".to_owned(),
            role: Role::Operator,
            authenticated_at,
            granted_by: vec!["on-call".to_owned(), "{NULL}".to_owned(), "NULL".to_owned()],
        };
        let digest = KeyDigest::of(&person.subject);
        store
            .begin_visit(&digest, VisitBy::Person(&person), act(now))
            .await
            .unwrap();
        let found = store.find_visit(&digest, now, true).await.unwrap();
        assert_eq!(found, Some(Visitor::Person(person)));
        assert!(store.end_visit(&digest, act(now)).await.unwrap());
        assert_eq!(store.find_visit(&digest, now, true).await.unwrap(), None);
    }
    assert_eq!(
        store.broken_glass(now - TimeDelta::hours(1)).await.unwrap().count,
        0
    );
}

#[testkit::database_test]
async fn breaking_the_glass_lasts_an_hour_and_is_counted(pool: PgPool) {
    let (store, key, _, now) = begun(&pool).await;
    let digest = KeyDigest::of("in an emergency");
    store
        .begin_visit(&digest, VisitBy::BreakGlass(key.id), act(now))
        .await
        .unwrap();
    let broken = store.broken_glass(now - TimeDelta::hours(24)).await.unwrap();
    assert_eq!((broken.count, broken.last), (1, Some(now)));
    assert_eq!(store.broken_glass(now).await.unwrap().count, 0);
    let seen = now + TimeDelta::minutes(IDLE_MINUTES - 1);
    assert!(store.find_visit(&digest, seen, true).await.unwrap().is_some());
    let last = now + TimeDelta::minutes(BREAK_GLASS_MINUTES) - TimeDelta::seconds(61);
    assert!(store.find_visit(&digest, last, true).await.unwrap().is_some());
    let over = now + TimeDelta::minutes(BREAK_GLASS_MINUTES);
    assert_eq!(store.find_visit(&digest, over, true).await.unwrap(), None);
    let actions: Vec<String> = sqlx::query_scalar("SELECT action FROM audit_log ORDER BY id")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(actions, ["visit.begin", "visit.break-glass"]);
}

#[testkit::database_test]
async fn a_visit_is_of_a_key_or_of_a_person(pool: PgPool) {
    let (_, key, _, now) = begun(&pool).await;
    let insert = async |columns: &str, values: &str| {
        let digest = KeyDigest::of(values);
        let statement = format!(
            "INSERT INTO visits (id, digest, began_at, last_seen_at, ends_at{columns}) VALUES ($1, $2, $3, $3, $3{values})"
        );
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(Uuid::now_v7())
            .bind(digest.as_bytes())
            .bind(now)
            .execute(&pool)
            .await
    };
    let key = format!(", '{}'", key.id);
    for (columns, values) in [
        ("", String::new()),
        (", api_key_id, issuer", format!("{key}, 'a'")),
        (", issuer, subject, name", ", 'a', 'b', 'c'".to_owned()),
        (
            ", issuer, subject, name, roles",
            ", 'a', 'b', 'c', '{}'".to_owned(),
        ),
        (", issuer, subject, roles", ", 'a', 'b', '{viewer}'".to_owned()),
        (
            ", issuer, subject, name, roles, break_glass",
            ", 'a', 'b', 'c', '{viewer}', true".to_owned(),
        ),
    ] {
        assert!(insert(columns, &values).await.is_err(), "{columns}");
    }
    insert(", issuer, subject, name, roles", ", 'a', 'b', 'c', '{viewer}'")
        .await
        .unwrap();
}

#[testkit::database_test]
async fn all_visits_of_a_person_end_at_once_and_no_others(pool: PgPool) {
    let (store, _, of_key, now) = begun(&pool).await;
    let person = |subject: &str, issuer: &str| Person {
        issuer: issuer.to_owned(),
        subject: subject.to_owned(),
        name: "Ada".to_owned(),
        role: Role::Operator,
        authenticated_at: None,
        granted_by: vec!["on-call".to_owned()],
    };
    let (ours, other) = ("https://id.example", "https://other.example");
    let all = [
        ("1", "7f3", ours),
        ("2", "7f3", ours),
        ("3", "7f3", other),
        ("4", "7f4", ours),
    ];
    for (cookie, subject, issuer) in all {
        let (digest, person) = (KeyDigest::of(cookie), person(subject, issuer));
        let begun = store.begin_visit(&digest, VisitBy::Person(&person), act(now));
        begun.await.unwrap();
    }
    let goes_on = async |cookie: &str| {
        let found = store.find_visit(&KeyDigest::of(cookie), now, true).await;
        found.unwrap().is_some()
    };
    let end = async |person: &str| store.end_visits_of(person, act(now)).await.unwrap();
    assert_eq!(end("7f").await, 0);
    assert_eq!(end("\u{0}{NULL}").await, 0);
    assert_eq!(end("7f3@https://id.example").await, 2);
    assert!(!goes_on("1").await && !goes_on("2").await && goes_on("3").await && goes_on("4").await);
    assert_eq!(end("7f3").await, 1);
    assert_eq!(end("Ada <7f4@https://id.example>").await, 1);
    assert!(store.find_visit(&of_key, now, true).await.unwrap().is_some());
    let entries: Vec<String> =
        sqlx::query_scalar("SELECT subject FROM audit_log WHERE action = 'visit.revoke' ORDER BY id")
            .fetch_all(&pool)
            .await
            .unwrap();
    let subjects = [
        "person/7f3@https://id.example",
        "person/7f3",
        "person/Ada <7f4@https://id.example>",
    ];
    assert_eq!(entries, subjects);
}
