//! Links to the dashboard of a reseller, and visits.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::capability::Capability;
use domain::clock::{Clock, SystemClock};
use domain::key::{KeyDigest, Role};
use sqlx::PgPool;
use store::{ApiKey, EndVisits, NewPortalLink, PORTAL_VISITS_OF_PERSON, Store};
use uuid::Uuid;

use crate::scene::act;

pub(crate) async fn rig(pool: &PgPool) -> (Store, Uuid, DateTime<Utc>) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now().trunc_subsecs(6));
    let acme = || "acme".to_owned();
    let key = ApiKey::new(acme(), vec![Role::Reseller], Some(acme()), now);
    store.insert_api_key(&key, &KeyDigest::of("key")).await.unwrap();
    (store, key.id, now)
}

pub(crate) fn link(key: Uuid, person: &str, now: DateTime<Utc>) -> NewPortalLink {
    NewPortalLink {
        id: Uuid::now_v7(),
        reseller_id: "acme".to_owned(),
        person_id: person.to_owned(),
        person_name: person.to_owned(),
        capabilities: vec![Capability::Bodies, Capability::SecretsReveal],
        key: Some(key),
        operator: None,
        expires_at: now + TimeDelta::minutes(5),
        visit_minutes: 60,
        landing: "/app".to_owned(),
        parent_origin: None,
        return_url: None,
        theme: None,
        locale: None,
        time_zone: None,
        authenticated_at: Some(now),
    }
}

pub(crate) async fn visited(
    store: &Store,
    link: &NewPortalLink,
    name: &str,
    now: DateTime<Utc>,
) -> KeyDigest {
    let (token, visit) = (KeyDigest::of(&format!("link {name}")), KeyDigest::of(name));
    store.create_portal_link(link, &token, act(now)).await.unwrap();
    store.use_portal_link(&token, &visit, now).await.unwrap().unwrap();
    visit
}

#[testkit::database_test]
async fn a_link_is_used_once_and_in_time(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    let (link, token) = (link(key, "anna", now), KeyDigest::of("link"));
    store.create_portal_link(&link, &token, act(now)).await.unwrap();
    let late = link.expires_at;
    let used = async |at, name: &str| {
        let digest = KeyDigest::of(name);
        store.use_portal_link(&token, &digest, at).await.unwrap()
    };
    assert_eq!(used(late, "late").await, None);
    let visit = used(now, "first").await.unwrap();
    assert_eq!(visit.capabilities, link.capabilities);
    assert_eq!(visit.ends_at, now + TimeDelta::minutes(60));
    assert_eq!(used(now, "second").await, None);
    let found = store
        .find_portal_visit(&KeyDigest::of("first"), now, true)
        .await
        .unwrap();
    assert_eq!(found, Some(visit.clone()));
    let over = store
        .find_portal_visit(&KeyDigest::of("first"), visit.ends_at, true)
        .await
        .unwrap();
    assert_eq!(over, None);
    let actions: Vec<String> = sqlx::query_scalar("SELECT action FROM audit_log ORDER BY id")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(actions, ["portal-link.create", "portal-visit.begin"]);
}

#[testkit::database_test]
async fn a_revoked_link_opens_nothing_and_a_used_one_is_not_revoked(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    let (unused, token) = (link(key, "anna", now), KeyDigest::of("link"));
    store.create_portal_link(&unused, &token, act(now)).await.unwrap();
    let mut used = link(key, "berta", now);
    used.expires_at = now + TimeDelta::minutes(6);
    visited(&store, &used, "visit", now).await;
    let usable = async |reseller| {
        let links = store.list_usable_portal_links(reseller, now).await.unwrap();
        links.iter().map(|link| link.id).collect::<Vec<_>>()
    };
    assert_eq!(usable("acme").await, [unused.id]);
    assert_eq!(usable("other").await, [] as [Uuid; 0]);
    let late = act(unused.expires_at);
    assert!(
        !store.revoke_portal_link(unused.id, late).await.unwrap(),
        "it is over"
    );
    let soon = act(now + TimeDelta::minutes(1));
    assert!(store.revoke_portal_link(unused.id, soon).await.unwrap());
    assert_eq!(usable("acme").await, [] as [Uuid; 0]);
    assert!(
        !store.revoke_portal_link(unused.id, act(now)).await.unwrap(),
        "once"
    );
    assert!(
        !store.revoke_portal_link(used.id, act(now)).await.unwrap(),
        "used"
    );
    // Also by a clock that is behind the one by which it was revoked.
    let behind = now + TimeDelta::seconds(30);
    let opened = store
        .use_portal_link(&token, &KeyDigest::of("late"), behind)
        .await;
    assert_eq!(opened.unwrap(), None);
    let revoked: Vec<String> =
        sqlx::query_scalar("SELECT subject FROM audit_log WHERE action = 'portal-link.revoke'")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(revoked, ["reseller/acme"]);
}

#[testkit::database_test]
async fn a_link_that_is_opened_twice_at_once_begins_one_visit(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    let token = KeyDigest::of("link");
    store
        .create_portal_link(&link(key, "anna", now), &token, act(now))
        .await
        .unwrap();
    let (one, two) = (KeyDigest::of("one"), KeyDigest::of("two"));
    let (one, two) = tokio::join!(
        store.use_portal_link(&token, &one, now),
        store.use_portal_link(&token, &two, now)
    );
    assert!(one.unwrap().is_some() != two.unwrap().is_some());
}

#[testkit::database_test]
async fn links_and_visits_are_worth_nothing_without_their_key(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    let visit = visited(&store, &link(key, "anna", now), "visit", now).await;
    let token = KeyDigest::of("unused");
    store
        .create_portal_link(&link(key, "anna", now), &token, act(now))
        .await
        .unwrap();
    store.revoke_api_key(key, act(now)).await.unwrap();
    assert_eq!(store.find_portal_visit(&visit, now, true).await.unwrap(), None);
    let used = store
        .use_portal_link(&token, &KeyDigest::of("another"), now)
        .await;
    assert_eq!(used.unwrap(), None);
    assert!(store.find_past_portal_visit(&visit).await.unwrap().is_some());
    let listed = store
        .list_portal_visits((None, None), None, 50, now)
        .await
        .unwrap();
    assert_eq!(listed, []);
}

#[testkit::database_test]
async fn visits_end_by_identifier_by_person_and_all_of_a_reseller(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    for (name, person) in [("a", "anna"), ("b", "anna"), ("c", "berta"), ("d", "berta")] {
        visited(&store, &link(key, person, now), name, now).await;
    }
    let all = store
        .list_portal_visits((Some("acme"), None), None, 50, now)
        .await
        .unwrap();
    assert_eq!(all.len(), 4);
    let end = async |reseller, which| {
        store
            .end_portal_visits(Some(reseller), which, act(now))
            .await
            .unwrap()
    };
    assert_eq!(end("other", EndVisits::One(all[0].id)).await, 0);
    assert_eq!(end("acme", EndVisits::One(all[0].id)).await, 1);
    assert_eq!(end("acme", EndVisits::Of("anna")).await, 2);
    assert_eq!(end("acme", EndVisits::All).await, 1);
    assert_eq!(end("acme", EndVisits::All).await, 0);
}

#[testkit::database_test]
async fn of_too_many_visits_of_a_person_the_oldest_ends(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    let mut first = None;
    for number in 0..=PORTAL_VISITS_OF_PERSON {
        let at = now + TimeDelta::seconds(number.into());
        let visit = visited(&store, &link(key, "anna", at), &format!("visit {number}"), at).await;
        first.get_or_insert(visit);
    }
    let later = now + TimeDelta::minutes(1);
    let listed = store
        .list_portal_visits((Some("acme"), Some("anna")), None, 50, later)
        .await
        .unwrap();
    assert_eq!(listed.len(), PORTAL_VISITS_OF_PERSON as usize);
    assert_eq!(
        store
            .find_portal_visit(&first.unwrap(), later, true)
            .await
            .unwrap(),
        None
    );
}

#[testkit::database_test]
async fn an_operator_without_a_key_looks_and_is_no_person_of_the_reseller(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    let ada = "ada <7f3a@https://id.example>";
    let mut of_operator = link(key, "operator", now);
    (of_operator.key, of_operator.operator) = (None, Some(ada.to_owned()));
    let digest = visited(&store, &of_operator, "ada", now).await;
    visited(&store, &link(key, "anna", now), "anna", now).await;
    let visit = store
        .find_portal_visit(&digest, now, true)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((visit.signature().as_str(), visit.key), (ada, None));
    let mut names = store.names_of_acts("acme").await.unwrap();
    names.sort();
    assert_eq!(names, [format!("acme ({key})"), "anna <anna@acme>".to_owned()]);
    let of_reseller: Vec<String> =
        sqlx::query_scalar("SELECT action FROM audit_log WHERE subject = 'reseller/acme'")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(of_reseller, ["portal-link.create"]);
    // What ends with a key goes on without it.
    store.revoke_api_key(key, act(now)).await.unwrap();
    let goes_on = store
        .list_portal_visits((None, None), None, 50, now)
        .await
        .unwrap();
    assert_eq!(goes_on, std::slice::from_ref(&visit));
    store
        .end_portal_visits(None, EndVisits::One(visit.id), act(now))
        .await
        .unwrap();
    assert_eq!(store.find_portal_visit(&digest, now, true).await.unwrap(), None);
}

#[testkit::database_test]
async fn links_are_listed_with_who_made_them_and_whether_they_were_used(pool: PgPool) {
    let (store, key, now) = rig(&pool).await;
    let (used, mut unused) = (link(key, "anna", now), link(key, "operator", now));
    unused.operator = Some("ada".to_owned());
    visited(&store, &used, "anna", now).await;
    store
        .create_portal_link(&unused, &KeyDigest::of("unused"), act(now))
        .await
        .unwrap();
    let list = async |reseller: Option<&str>, before: Option<Uuid>| {
        store.list_portal_links(reseller, before, 50).await.unwrap()
    };
    let listed = list(Some("acme"), None).await;
    let told: Vec<_> = listed
        .iter()
        .map(|link| (link.id, link.operator.as_deref(), link.key, link.used_at))
        .collect();
    assert_eq!(
        told,
        [
            (unused.id, Some("ada"), Some(key), None),
            (used.id, None, Some(key), Some(now))
        ]
    );
    assert_eq!(list(None, Some(unused.id)).await, listed[1..]);
    assert_eq!(list(Some("other"), None).await, []);
}
