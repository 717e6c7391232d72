//! `keys create`, `keys list`, `keys revoke`.

use domain::key::{KeyDigest, Role};
use sqlx::PgPool;
use store::{ApiKey, Store};
use testkit::{Installation, key_of_the_house};

use crate::postrider::postrider;

#[testkit::database_test]
async fn a_key_is_shown_once_listed_without_it_and_revoked(pool: PgPool) {
    let created = postrider("keys create --name shop --role ingest --role viewer")
        .on(&pool)
        .run();
    assert_eq!(created.code, Some(0), "{created:?}");
    let key = created.stdout.strip_suffix('\n').expect("one line");
    assert!(
        key.starts_with("pr_") && !key.contains(char::is_whitespace),
        "{key}"
    );
    assert!(
        !created.stderr.contains(key) && created.stderr.contains("not shown again"),
        "{created:?}"
    );
    let store = Store::from_pool(pool.clone());
    let stored = store
        .find_api_key(&KeyDigest::of(key))
        .await
        .unwrap()
        .expect("the key");
    assert_eq!(
        (stored.name.as_str(), &stored.roles[..]),
        ("shop", &[Role::Ingest, Role::Viewer][..])
    );

    let table = postrider("keys list").on(&pool).run().stdout;
    assert!(
        table.contains(&stored.id.to_string()) && table.contains("ingest viewer"),
        "{table}"
    );
    assert!(!table.contains(key));
    let listed: serde_json::Value =
        serde_json::from_str(&postrider("keys list --json").on(&pool).run().stdout).expect("JSON");
    assert_eq!(listed["items"][0]["id"], stored.id.to_string());
    assert_eq!(listed["items"][0]["revokedAt"], serde_json::Value::Null);
    let named = |name: &str| {
        let command = format!("keys list --name {name} --json");
        serde_json::from_str::<serde_json::Value>(&postrider(&command).on(&pool).run().stdout).expect("JSON")
    };
    assert_eq!(named("shop")["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(named("sho")["items"].as_array().map(Vec::len), Some(0));

    let revoke = format!("keys revoke {}", stored.id);
    let refused = postrider(&revoke).on(&pool).run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for said in ["revoke the key", "add --yes", "postrider keys rotate"] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    assert!(store.find_api_key(&KeyDigest::of(key)).await.unwrap().is_some());
    let revoke = format!("{revoke} --yes");
    let revoked = postrider(&revoke).on(&pool).run();
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert!(
        revoked.stderr.contains("services refuse it within 5 s"),
        "{revoked:?}"
    );
    assert_eq!(store.find_api_key(&KeyDigest::of(key)).await.unwrap(), None);
    let again = postrider(&revoke).on(&pool).run();
    assert_eq!(again.code, Some(1));
    let said = format!("the key {} was revoked at ", stored.id);
    assert!(again.stderr.contains(&said), "{}", again.stderr);
    assert!(again.stderr.contains(" UTC by "), "{}", again.stderr);
    let unknown = format!("keys revoke {} --yes", uuid::Uuid::now_v7());
    let refused = postrider(&unknown).on(&pool).run();
    assert!(
        refused.stderr.contains("no key that could be revoked"),
        "{refused:?}"
    );
}

#[sqlx::test(migrations = false)]
async fn without_the_schema_the_way_to_it_is_named(pool: PgPool) {
    let finished = postrider("keys list").on(&pool).run();
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.stderr.contains("postrider migrate"),
        "{}",
        finished.stderr
    );
}

#[test]
fn unknown_roles_and_blank_names_are_refused_before_anything_is_done() {
    for arguments in [
        "keys create --name shop --role root",
        "keys create --name shop",
        "keys create --role ingest",
    ] {
        assert_eq!(postrider(arguments).run().code, Some(2), "{arguments}");
    }
}

#[testkit::database_test]
async fn the_key_of_a_reseller_is_stored_and_listed_with_it(pool: PgPool) {
    let created = postrider("keys create --name acme --role reseller --reseller acme:eu-1")
        .on(&pool)
        .run();
    assert_eq!(created.code, Some(0), "{created:?}");
    assert!(created.stderr.contains("reseller acme:eu-1"), "{created:?}");
    let stored = Store::from_pool(pool.clone())
        .find_api_key(&KeyDigest::of(created.stdout.trim_end()))
        .await
        .unwrap()
        .expect("the key");
    assert_eq!(stored.roles, [Role::Reseller]);
    assert_eq!(stored.reseller_id.as_deref(), Some("acme:eu-1"));

    let listed = postrider("keys list").on(&pool).run();
    assert!(listed.stdout.contains("acme:eu-1"), "{listed:?}");
    assert!(listed.stderr.contains("used: noted once a minute"), "{listed:?}");
    let for_scripts = postrider("keys list -o tsv").on(&pool).run();
    assert_eq!(for_scripts.stderr, "", "{for_scripts:?}");
    let listed: serde_json::Value =
        serde_json::from_str(&postrider("keys list --json").on(&pool).run().stdout).expect("JSON");
    assert_eq!(listed["items"][0]["resellerId"], "acme:eu-1");
    assert_eq!(listed["items"][0]["roles"], serde_json::json!(["reseller"]));

    let looks = postrider("keys create --name chart --role reseller-viewer --reseller acme:eu-1")
        .on(&pool)
        .run();
    assert_eq!(looks.code, Some(0), "{looks:?}");
    assert!(looks.stderr.contains("reseller-viewer acme:eu-1"), "{looks:?}");
}

#[test]
fn a_reseller_and_its_role_come_together_and_alone() {
    let long = format!(
        "keys create --name acme --role reseller --reseller {}",
        "x".repeat(65)
    );
    for (arguments, told) in [
        ("keys create --name acme --role reseller", "need --reseller ID"),
        (
            "keys create --name acme --role reseller-viewer",
            "need --reseller ID",
        ),
        (
            "keys create --name acme --role ingest --reseller acme",
            "--reseller goes with --role reseller or reseller-viewer only",
        ),
        (
            "keys create --name acme --role reseller --role ingest --reseller acme",
            "cannot be combined with another role",
        ),
        (
            "keys create --name acme --role reseller --reseller a/b",
            "1 to 64 letters",
        ),
        (&long, "1 to 64 letters"),
    ] {
        let finished = postrider(arguments).run();
        assert_eq!(finished.code, Some(2), "{arguments}: {finished:?}");
        assert!(finished.stderr.contains(told), "{arguments}: {}", finished.stderr);
    }
}

#[testkit::database_test]
async fn a_key_is_limited_rotated_and_says_so(pool: PgPool) {
    let made = postrider(
        "keys create --name shop --role ingest --expires-in 90d --only-lane push --only-prototype Hello \
         --only-prototype Bye --per-second 50",
    )
    .on(&pool)
    .run();
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(
        made.stderr
            .contains("lane push, prototypes Hello Bye, 50 a second, ends 2"),
        "{}",
        made.stderr
    );
    let store = Store::from_pool(pool.clone());
    let found = async |key: &str| {
        let digest = KeyDigest::of(key.trim_end());
        store.find_api_key(&digest).await.unwrap().expect("a key")
    };
    let old = found(&made.stdout).await;
    assert_eq!((old.scope.prototypes.len(), old.per_second), (2, Some(50)));
    let rotated = postrider(&format!("keys rotate {} --overlap 2h", old.id))
        .on(&pool)
        .run();
    assert_eq!(rotated.code, Some(0), "{rotated:?}");
    let new = found(&rotated.stdout).await;
    assert_eq!((&new.scope, new.successor_of), (&old.scope, Some(old.id)));
    let life = |key: &ApiKey| key.expires_at.map(|at| (at - key.created_at).num_days());
    assert_eq!(life(&new), Some(90));
    assert!(
        rotated.stderr.contains("lasts as long as the old one"),
        "{}",
        rotated.stderr
    );
    let endless = postrider(&format!("keys rotate {} --never-expires", new.id))
        .on(&pool)
        .run();
    assert_eq!(found(&endless.stdout).await.expires_at, None, "{endless:?}");
    let ends = found(&made.stdout).await.expires_at.expect("an end");
    assert!(Some(ends) < old.expires_at, "in two hours, and not in 90 days");
    let table = postrider("keys list").on(&pool).run().stdout;
    assert!(
        table.contains("50 a second") && table.contains(&ends.format("%Y-%m-%dT%H:%M:%SZ").to_string()),
        "{table}"
    );
    let gone = postrider(&format!("keys rotate {}", uuid::Uuid::nil()))
        .on(&pool)
        .run();
    assert_eq!(gone.code, Some(1));
    assert!(
        gone.stderr.contains("no key that could be rotated"),
        "{}",
        gone.stderr
    );
}

#[test]
fn limits_that_nothing_is_within_are_refused_before_anything_is_done() {
    for (arguments, told) in [
        ("--role viewer --per-second 5", "go with --role ingest alone"),
        (
            "--role ingest --role viewer --only-lane push",
            "go with --role ingest alone",
        ),
        (
            "--role ingest --only-lane push --only-reseller acme",
            "goes with the lane reseller only",
        ),
        ("--role ingest --only-event-type domain", "domain.*"),
        ("--role ingest --only-lane both", "push"),
        ("--role ingest --per-second 0", "1 to 1000000"),
    ] {
        let finished = postrider(&format!("keys create --name shop {arguments}")).run();
        assert_eq!(finished.code, Some(2), "{arguments}: {finished:?}");
        assert!(finished.stderr.contains(told), "{arguments}: {}", finished.stderr);
    }
}

#[testkit::test]
async fn without_a_database_keys_are_looked_after_with_the_key_of_an_administrator(it: Installation) {
    let service = postrider("serve operator-api").within(&it).start();
    let url = format!("http://{}", service.address_logged_with("listening"));
    let key = key_of_the_house(&it.store, &[Role::Admin]).await;
    let without = postrider("keys list").run();
    assert_eq!(without.code, Some(64), "{without:?}");
    assert!(
        without.stderr.contains("the first key of an installation"),
        "{without:?}"
    );
    let asked = |command: &str| {
        postrider(command)
            .env("OPERATOR_URL", &url)
            .env("OPERATOR_KEY", &key)
            .run()
    };
    let found = async |key: &str| {
        let digest = KeyDigest::of(key.trim_end());
        it.store.find_api_key(&digest).await.unwrap()
    };
    let made = asked("keys create --name shop --role ingest --only-lane push --expires-in 90d --note asked");
    assert_eq!(made.code, Some(0), "{made:?}");
    let old = found(&made.stdout).await.expect("the key");
    assert_eq!((&*old.name, old.scope.lane.is_some()), ("shop", true));
    assert!(
        made.stderr.contains(&old.id.to_string()) && made.stderr.contains("lane push"),
        "{made:?}"
    );

    let half = asked(&format!("keys rotate {} --overlap 90m", old.id));
    assert_eq!(half.code, Some(1), "{half:?}");
    assert!(half.stderr.contains("whole hours"), "{half:?}");
    let rotated = asked(&format!("keys rotate {} --overlap 2h --never-expires", old.id));
    assert_eq!(rotated.code, Some(0), "{rotated:?}");
    let new = found(&rotated.stdout).await.expect("the new key");
    assert_eq!((new.successor_of, new.expires_at), (Some(old.id), None));
    let until = format!("the key {} works until", old.id);
    assert!(rotated.stderr.contains(&until), "{rotated:?}");

    let revoked = asked(&format!("keys revoke {} --note gone --yes", new.id));
    assert_eq!(
        (revoked.code, revoked.stdout),
        (Some(0), format!("revoked {}\n", new.id))
    );
    assert_eq!(found(&rotated.stdout).await, None);
    let over_the_api = asked("keys list -o name").stdout;
    let on_the_database = postrider("keys list -o name").within(&it).run().stdout;
    assert_eq!(over_the_api, on_the_database);
    assert_eq!(over_the_api.lines().count(), 3, "the revoked one is listed, too");
    let listed: serde_json::Value = serde_json::from_str(&asked("keys list --json").stdout).expect("JSON");
    let keys = listed["items"].as_array().expect("keys");
    let revoked = keys.iter().find(|key| key["id"] == new.id.to_string());
    for by in ["createdBy", "revokedBy"] {
        let by = &revoked.expect("the revoked one")[by];
        assert!(by.as_str().is_some_and(|by| by.contains(" (")), "{by}");
    }
    let by_hand: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audit_log WHERE action LIKE 'api-key.%' AND actor LIKE 'postrider-cli%'",
    )
    .fetch_one(&it.pool)
    .await
    .expect("the audit log");
    assert_eq!(by_hand, 0, "the log names the key");
}
