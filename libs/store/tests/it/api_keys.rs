//! API keys.

use chrono::{DateTime, SubsecRound, Utc};
use domain::clock::{Clock, SystemClock};
use domain::key::{KeyDigest, Role};
use sqlx::PgPool;
use store::{ApiKey, Error, KeyRevoked, Store};
use uuid::Uuid;

use crate::scene::act;

fn now() -> DateTime<Utc> {
    SystemClock.now().trunc_subsecs(6)
}

fn key(name: &str, roles: &[Role]) -> ApiKey {
    ApiKey {
        id: Uuid::now_v7(),
        name: name.to_owned(),
        roles: roles.to_vec(),
        reseller_id: None,
        created_at: now(),
        revoked_at: None,
    }
}

fn of_reseller(name: &str, roles: &[Role]) -> ApiKey {
    ApiKey {
        reseller_id: Some("acme".to_owned()),
        ..key(name, roles)
    }
}

#[testkit::database_test]
async fn a_key_is_found_by_its_digest_as_it_was_stored(pool: PgPool) {
    let store = Store::from_pool(pool);
    let (one, all) = (key("loans", &[Role::Ingest]), key("on-call", &Role::OF_THE_HOUSE));
    store.insert_api_key(&one, &KeyDigest::of("one")).await.unwrap();
    store.insert_api_key(&all, &KeyDigest::of("all")).await.unwrap();
    assert_eq!(
        store.find_api_key(&KeyDigest::of("one")).await.unwrap(),
        Some(one.clone())
    );
    assert_eq!(
        store.find_api_key(&KeyDigest::of("all")).await.unwrap(),
        Some(all.clone())
    );
    assert_eq!(store.find_api_key(&KeyDigest::of("none")).await.unwrap(), None);
    assert_eq!(
        store.list_api_keys().await.unwrap(),
        [one, all],
        "the oldest first"
    );
}

#[testkit::database_test]
async fn the_key_of_a_reseller_names_it(pool: PgPool) {
    let store = Store::from_pool(pool);
    let key = of_reseller("acme", &[Role::Reseller]);
    store.insert_api_key(&key, &KeyDigest::of("acme")).await.unwrap();
    assert_eq!(
        store.find_api_key(&KeyDigest::of("acme")).await.unwrap(),
        Some(key.clone())
    );
    assert_eq!(store.list_api_keys().await.unwrap(), [key]);
}

#[testkit::database_test]
async fn a_revoked_key_is_listed_but_not_found(pool: PgPool) {
    let store = Store::from_pool(pool);
    let key = key("loans", &[Role::Ingest]);
    let digest = KeyDigest::of("secret");
    store.insert_api_key(&key, &digest).await.unwrap();
    let at = now();
    assert!(store.revoke_api_key(key.id, act(at)).await.unwrap());
    assert_eq!(store.find_api_key(&digest).await.unwrap(), None);
    assert_eq!(store.list_api_keys().await.unwrap()[0].revoked_at, Some(at));
    assert!(
        !store.revoke_api_key(key.id, act(now())).await.unwrap(),
        "it is revoked already"
    );
    assert!(
        !store.revoke_api_key(Uuid::now_v7(), act(at)).await.unwrap(),
        "there is no such key"
    );
    assert_eq!(
        store.list_api_keys().await.unwrap()[0].revoked_at,
        Some(at),
        "the first time stays"
    );
}

#[testkit::database_test]
async fn keys_that_could_not_be_told_apart_or_used_are_refused(pool: PgPool) {
    let store = Store::from_pool(pool);
    let digest = KeyDigest::of("secret");
    store
        .insert_api_key(&key("first", &[Role::Ingest]), &digest)
        .await
        .unwrap();
    for (refused, digest) in [
        (key("second", &[Role::Ingest]), digest),
        (key("no roles", &[]), KeyDigest::of("other")),
        (key("  ", &[Role::Ingest]), KeyDigest::of("other")),
        (key("whose?", &[Role::Reseller]), KeyDigest::of("other")),
        (
            key("whose?", &[Role::Ingest, Role::Reseller]),
            KeyDigest::of("other"),
        ),
        (
            of_reseller("more", &[Role::Reseller, Role::Ingest]),
            KeyDigest::of("other"),
        ),
        (of_reseller("less", &[Role::Ingest]), KeyDigest::of("other")),
    ] {
        let error = store.insert_api_key(&refused, &digest).await.unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error:?}");
    }
    assert_eq!(store.list_api_keys().await.unwrap().len(), 1);
}

#[testkit::database_test]
async fn the_last_administrator_cannot_be_revoked_and_two_do_not_revoke_each_other(pool: PgPool) {
    let store = Store::from_pool(pool);
    let (ann, ben) = (
        key("ann", &[Role::Admin]),
        key("ben", &[Role::Viewer, Role::Admin]),
    );
    let other = key("loans", &[Role::Ingest]);
    for (key, secret) in [(&ann, "ann"), (&ben, "ben"), (&other, "loans")] {
        store.insert_api_key(key, &KeyDigest::of(secret)).await.unwrap();
    }
    let revoke = async |id| store.revoke_key_of_several(id, act(now())).await.unwrap();
    let (first, second) = tokio::join!(revoke(ann.id), revoke(ben.id));
    let mut outcomes = [first, second];
    outcomes.sort_by_key(|outcome| *outcome == KeyRevoked::LastAdministrator);
    assert_eq!(outcomes, [KeyRevoked::Done, KeyRevoked::LastAdministrator]);
    assert_eq!(revoke(other.id).await, KeyRevoked::Done);
    assert_eq!(revoke(other.id).await, KeyRevoked::Unknown);
}

#[testkit::database_test]
async fn keys_are_listed_by_role_reseller_and_whether_they_are_revoked(pool: PgPool) {
    let store = Store::from_pool(pool);
    let keys = [
        key("loans", &[Role::Ingest]),
        of_reseller("acme", &[Role::Reseller]),
        key("ann", &[Role::Viewer, Role::Admin]),
    ];
    for key in &keys {
        store
            .insert_api_key(key, &KeyDigest::of(&key.name))
            .await
            .unwrap();
    }
    assert!(store.revoke_api_key(keys[0].id, act(now())).await.unwrap());
    let names = async |which, before, limit| {
        let listed = store.list_keys(which, before, limit).await.unwrap();
        listed
            .into_iter()
            .map(|key| key.name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names((None, None, true), None, 9).await, "ann acme loans");
    assert_eq!(names((None, None, false), None, 9).await, "ann acme");
    assert_eq!(names((Some(Role::Admin), None, false), None, 9).await, "ann");
    assert_eq!(names((None, Some("acme"), false), None, 9).await, "acme");
    assert_eq!(names((None, None, true), Some(keys[2].id), 1).await, "acme");
}
