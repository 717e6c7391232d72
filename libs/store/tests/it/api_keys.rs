//! API keys.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::key::{KeyDigest, Role};
use domain::lane::Lane;
use domain::scope::Scope;
use sqlx::PgPool;
use store::{ApiKey, Error, KeyRevoked, KeyRotated, Store, SuccessorEnd};
use uuid::Uuid;

use crate::scene::act;

fn now() -> DateTime<Utc> {
    SystemClock.now().trunc_subsecs(6)
}

fn key(name: &str, roles: &[Role]) -> ApiKey {
    ApiKey::new(name.to_owned(), roles.to_vec(), None, now())
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
    let listed = &store.list_api_keys().await.unwrap()[0];
    assert_eq!(listed.revoked_at, Some(at));
    let by = (listed.created_by.as_deref(), listed.revoked_by.as_deref());
    assert_eq!(by, (None, Some(act(at).by)), "it was not made by hand");
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
        (key("whose?", &[Role::ResellerViewer]), KeyDigest::of("other")),
        (
            of_reseller("more", &[Role::Reseller, Role::ResellerViewer]),
            KeyDigest::of("other"),
        ),
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
        of_reseller("acme", &[Role::ResellerViewer]),
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
    let ended = ApiKey {
        expires_at: Some(now() - TimeDelta::seconds(1)),
        ..key("ended", &[Role::Embedder])
    };
    store
        .insert_api_key(&ended, &KeyDigest::of("ended"))
        .await
        .unwrap();
    assert_eq!(names((Some(Role::Embedder), None, true), None, 9).await, "ended");
    assert_eq!(names((Some(Role::Embedder), None, false), None, 9).await, "");
    assert_eq!(names((Some(Role::Admin), None, false), None, 9).await, "ann");
    assert_eq!(names((None, Some("acme"), false), None, 9).await, "acme");
    assert_eq!(names((None, None, true), Some(keys[2].id), 1).await, "acme");
}

#[testkit::database_test]
async fn a_key_that_has_expired_is_listed_but_not_found_and_leaves_no_administrator(pool: PgPool) {
    let store = Store::from_pool(pool);
    let expires = |name, after| ApiKey {
        expires_at: Some(now() + after),
        ..key(name, &[Role::Admin])
    };
    let (over, lasting) = (
        expires("over", TimeDelta::seconds(-1)),
        expires("lasting", TimeDelta::hours(1)),
    );
    for key in [&over, &lasting] {
        store
            .insert_api_key(key, &KeyDigest::of(&key.name))
            .await
            .unwrap();
    }
    assert_eq!(store.find_api_key(&KeyDigest::of("over")).await.unwrap(), None);
    assert_eq!(
        store.find_api_key(&KeyDigest::of("lasting")).await.unwrap(),
        Some(lasting.clone())
    );
    assert_eq!(store.list_api_keys().await.unwrap().len(), 2);
    assert_eq!(
        store.revoke_key_of_several(lasting.id, act(now())).await.unwrap(),
        KeyRevoked::LastAdministrator
    );
}

#[testkit::database_test]
async fn the_use_of_a_key_is_noted_once_a_minute_and_waits_for_no_other_transaction(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let key = key("loans", &[Role::Ingest]);
    store.insert_api_key(&key, &KeyDigest::of("loans")).await.unwrap();
    let used = async || store.list_api_keys().await.unwrap()[0].used_at;

    let mut other = pool.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM api_keys FOR UPDATE")
        .execute(&mut *other)
        .await
        .unwrap();
    store.note_key_use(key.id).await.unwrap();
    assert_eq!(used().await, None);
    other.rollback().await.unwrap();

    store.note_key_use(key.id).await.unwrap();
    let first = used().await.expect("a time");
    store.note_key_use(key.id).await.unwrap();
    assert_eq!(used().await, Some(first), "not again within the minute");
    sqlx::query("UPDATE api_keys SET used_at = used_at - interval '2 minutes'")
        .execute(&pool)
        .await
        .unwrap();
    store.note_key_use(key.id).await.unwrap();
    assert!(used().await >= Some(first));
}

#[testkit::database_test]
async fn a_rotated_key_has_the_limits_of_the_old_one_which_ends_when_the_overlap_does(pool: PgPool) {
    let store = Store::from_pool(pool);
    let first = ApiKey {
        scope: Scope {
            lane: Some(Lane::Push),
            prototypes: vec!["Hello".to_owned()],
            ..Scope::default()
        },
        per_second: Some(50),
        ..key("shop", &[Role::Ingest])
    };
    store.insert_api_key(&first, &KeyDigest::of("1")).await.unwrap();
    let until = now() + TimeDelta::hours(24);
    let rotate = async |id, digest, until| {
        let digest = KeyDigest::of(digest);
        let rotating = store.rotate_api_key(id, &digest, (until, SuccessorEnd::SameLife), act(now()));
        rotating.await.unwrap()
    };
    let into = |rotated| match rotated {
        KeyRotated::Done { into, until } => (*into, until),
        other => panic!("{other:?}"),
    };
    let (second, _) = into(rotate(first.id, "2", until).await);
    assert_eq!(
        (
            &second.name,
            &second.scope,
            second.per_second,
            second.successor_of
        ),
        (&first.name, &first.scope, first.per_second, Some(first.id))
    );
    for (digest, ends) in [("1", Some(until)), ("2", None)] {
        let found = store.find_api_key(&KeyDigest::of(digest)).await.unwrap();
        assert_eq!(found.expect("both are valid").expires_at, ends);
    }
    let (third, _) = into(rotate(second.id, "3", now()).await);
    assert_eq!(third.successor_of, Some(first.id), "the first of the line");
    assert_eq!(store.find_api_key(&KeyDigest::of("2")).await.unwrap(), None);
    assert_eq!(
        rotate(second.id, "4", until).await,
        KeyRotated::Unknown,
        "it has ended"
    );
    assert_eq!(
        rotate(first.id, "5", until).await,
        KeyRotated::Before(third.id),
        "whose answer was lost"
    );
    assert!(store.revoke_api_key(third.id, act(now())).await.unwrap());
    let (_, ends) = into(rotate(first.id, "6", until + TimeDelta::hours(1)).await);
    let found = store.find_api_key(&KeyDigest::of("1")).await.unwrap();
    assert_eq!(
        (found.unwrap().expires_at, ends),
        (Some(until), until),
        "never longer than before"
    );
}

#[testkit::database_test]
async fn a_rotated_key_lasts_as_long_as_the_old_one_was_made_to(pool: PgPool) {
    let store = Store::from_pool(pool);
    let old = ApiKey {
        created_at: now() - TimeDelta::days(80),
        expires_at: Some(now() + TimeDelta::days(10)),
        ..key("shop", &[Role::Ingest])
    };
    store.insert_api_key(&old, &KeyDigest::of("1")).await.unwrap();
    let (until, at) = (now() + TimeDelta::hours(24), now());
    let rotate = async |digest, end| {
        let digest = KeyDigest::of(digest);
        let rotating = store.rotate_api_key(old.id, &digest, (until, end), act(at));
        match rotating.await.unwrap() {
            KeyRotated::Done { into, .. } => *into,
            other => panic!("{other:?}"),
        }
    };
    let lost = rotate("2", SuccessorEnd::SameLife).await;
    let life = lost.expires_at.expect("an end") - at;
    assert_eq!(life.num_hours(), 90 * 24);
    assert!(store.revoke_api_key(lost.id, act(at)).await.unwrap());
    let again = rotate("3", SuccessorEnd::SameLife).await;
    assert_eq!(
        again.expires_at, lost.expires_at,
        "not as long as the overlap left it"
    );
    assert!(store.revoke_api_key(again.id, act(at)).await.unwrap());
    let endless = rotate("4", SuccessorEnd::Never).await;
    assert_eq!(endless.expires_at, None);
    assert!(store.revoke_api_key(endless.id, act(at)).await.unwrap());
    let next = rotate("5", SuccessorEnd::SameLife).await;
    assert_eq!(next.expires_at, None, "as the last one that it was rotated into");
}

#[testkit::database_test]
async fn two_rotations_of_a_key_at_once_make_one(pool: PgPool) {
    let store = Store::from_pool(pool);
    let key = key("shop", &[Role::Ingest]);
    store.insert_api_key(&key, &KeyDigest::of("1")).await.unwrap();
    let until = now() + TimeDelta::hours(1);
    let rotate = async |digest| {
        let digest = KeyDigest::of(digest);
        let rotating = store.rotate_api_key(key.id, &digest, (until, SuccessorEnd::SameLife), act(now()));
        matches!(rotating.await.unwrap(), KeyRotated::Done { .. })
    };
    let (one, other) = tokio::join!(rotate("2"), rotate("3"));
    assert!(one != other);
    assert_eq!(store.list_api_keys().await.unwrap().len(), 2);
}

#[testkit::database_test]
async fn an_administrator_that_ends_before_does_not_take_the_place_of_the_last(pool: PgPool) {
    let store = Store::from_pool(pool);
    let old = key("ann", &[Role::Admin]);
    store.insert_api_key(&old, &KeyDigest::of("1")).await.unwrap();
    let until = now() + TimeDelta::hours(1);
    let rotated = store
        .rotate_api_key(
            old.id,
            &KeyDigest::of("2"),
            (until, SuccessorEnd::SameLife),
            act(now()),
        )
        .await
        .unwrap();
    let KeyRotated::Done { into, .. } = rotated else {
        panic!("{rotated:?}")
    };
    let revoke = async |id| store.revoke_key_of_several(id, act(now())).await.unwrap();
    assert_eq!(revoke(into.id).await, KeyRevoked::LastAdministrator);
    assert_eq!(revoke(old.id).await, KeyRevoked::Done);
}

#[testkit::database_test]
async fn the_last_administrator_is_not_rotated_into_a_key_that_ends_earlier(pool: PgPool) {
    let store = Store::from_pool(pool);
    let (old, shop) = (key("ann", &[Role::Admin]), key("shop", &[Role::Ingest]));
    for (key, digest) in [(&old, "1"), (&shop, "2")] {
        store.insert_api_key(key, &KeyDigest::of(digest)).await.unwrap();
    }
    let (until, ends) = (now() + TimeDelta::hours(1), now() + TimeDelta::days(30));
    let rotate = async |id, digest, ends: Option<DateTime<Utc>>| {
        let digest = KeyDigest::of(digest);
        let ends = ends.map_or(SuccessorEnd::SameLife, SuccessorEnd::At);
        let rotating = store.rotate_api_key(id, &digest, (until, ends), act(now()));
        rotating.await.unwrap()
    };
    assert_eq!(
        rotate(old.id, "3", Some(ends)).await,
        KeyRotated::LastAdministrator
    );
    let found = store.find_api_key(&KeyDigest::of("1")).await.unwrap().unwrap();
    assert_eq!(found.expires_at, None, "it was left as it is");
    let done = |rotated| matches!(rotated, KeyRotated::Done { .. });
    assert!(done(rotate(shop.id, "4", Some(ends)).await), "no administrator's");
    let ben = key("ben", &[Role::Admin]);
    store.insert_api_key(&ben, &KeyDigest::of("5")).await.unwrap();
    assert!(done(rotate(old.id, "6", Some(ends)).await), "another one lasts");
    assert_eq!(
        rotate(ben.id, "7", Some(ends)).await,
        KeyRotated::LastAdministrator
    );
    assert!(done(rotate(ben.id, "8", None).await));
}

#[testkit::database_test]
async fn limits_are_of_ingest_keys_alone(pool: PgPool) {
    let store = Store::from_pool(pool);
    for refused in [
        ApiKey {
            per_second: Some(1),
            ..key("viewer", &[Role::Ingest, Role::Viewer])
        },
        ApiKey {
            scope: Scope {
                lane: Some(Lane::Push),
                ..Scope::default()
            },
            ..key("admin", &[Role::Admin])
        },
        ApiKey {
            per_second: Some(0),
            ..key("none", &[Role::Ingest])
        },
    ] {
        let error = store
            .insert_api_key(&refused, &KeyDigest::of("key"))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error:?}");
    }
}

#[testkit::database_test]
async fn a_scope_of_a_later_version_opens_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    store
        .insert_api_key(&key("loans", &[Role::Ingest]), &KeyDigest::of("loans"))
        .await
        .unwrap();
    sqlx::query(r#"UPDATE api_keys SET scope = '{"countries": ["LV"]}'"#)
        .execute(&pool)
        .await
        .unwrap();
    let error = store.find_api_key(&KeyDigest::of("loans")).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
}

#[testkit::database_test]
async fn keys_in_use_are_told_in_the_week_before_their_end(pool: PgPool) {
    let store = Store::from_pool(pool);
    let ends = async |name: &str, made_days_ago: i64, ends_in_days: i64, used: bool| {
        let key = ApiKey {
            created_at: now() - TimeDelta::days(made_days_ago),
            expires_at: Some(now() + TimeDelta::days(ends_in_days)),
            ..key(name, &[Role::Ingest])
        };
        store.insert_api_key(&key, &KeyDigest::of(name)).await.unwrap();
        if used {
            store.note_key_use(key.id).await.unwrap();
        }
        key.id
    };
    ends("unused", 30, 3, false).await;
    ends("later", 30, 8, true).await;
    ends("ended", 30, -1, true).await;
    ends("meant to end", 1, 2, true).await;
    let rotated = ends("rotated", 30, 4, true).await;
    ends("second", 30, 6, true).await;
    let first = ends("first", 30, 2, true).await;
    let told = async || {
        let keys = store.keys_about_to_end(now(), 10).await.unwrap();
        keys.into_iter().map(|key| key.name).collect::<Vec<_>>()
    };
    assert_eq!(told().await, ["first", "rotated", "second"]);

    let until = now() + TimeDelta::hours(24);
    let next = KeyDigest::of("next");
    let rotation = store.rotate_api_key(rotated, &next, (until, SuccessorEnd::SameLife), act(now()));
    rotation.await.unwrap();
    store.revoke_key_of_several(first, act(now())).await.unwrap();
    assert_eq!(told().await, ["second"]);
}
