//! Whatever is written is forgotten when it is past its retention, and nothing before.

use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use sqlx::{AssertSqlSafe, PgPool};
use store::{Cutoff, Kept, Store};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

const WEEK: Duration = Duration::from_secs(7 * 86_400);

async fn a_week_ago(store: &Store) -> Cutoff {
    store.cutoff(SystemClock.now(), WEEK).await.unwrap()
}

async fn count(pool: &PgPool, what: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {what}")))
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Makes two rows of each kind: one of ten days ago and one of two.
const ROWS: &str = "
    CREATE TEMPORARY TABLE t ON COMMIT DROP AS
        SELECT now() - make_interval(days => days) AS at,
               (lpad(to_hex((extract(epoch FROM now() - make_interval(days => days)) * 1000)::bigint), 12, '0')
                || '7' || repeat('0', 19))::uuid AS id
        FROM unnest(ARRAY [10, 2]) AS days;
    INSERT INTO idempotency_keys SELECT gen_random_uuid(), 'k', gen_random_uuid(), '', at FROM t;
    INSERT INTO event_keys SELECT 'reseller/acme', at::text, gen_random_uuid(), '', at FROM t;
    INSERT INTO emails (id, kind, subscription_id, recipient, data, status, created_at, finished_at)
        SELECT gen_random_uuid(), 'STATE_CHANGED', s.id, 'a@b.example', '{}', 'SENT', at, at FROM t, subscriptions s;
    INSERT INTO dead_letters (lane, reason, fingerprint, detail, state, created_at, resolved_at, resolved_by, note)
        SELECT 'push', 'REJECTED', 'f', 'd', 'DISCARDED', at, at, 'ann', 'over' FROM t;
    INSERT INTO dead_letters (lane, reason, fingerprint, detail, created_at)
        SELECT lane, reason, 'f', 'd', at
        FROM t, (VALUES ('push', 'REJECTED'), ('reseller', 'MALFORMED')) AS k(lane, reason);
    INSERT INTO dead_letter_jobs (id, action, status, filter, per_second, until, matching, created_by, created_at, paced_to,
                                  updated_at, finished_at)
        SELECT id, 'REPLAY', 'COMPLETED', '{}', 1, at, 1, 'ann', at, at, at, at FROM t;
    INSERT INTO delivery_statistics SELECT sub, at, 1, 1, 0, 0, 1, '{}', '{}'
        FROM t, (SELECT gen_random_uuid() AS sub FROM generate_series(1, 3)) AS subs;
    INSERT INTO delivery_type_statistics SELECT subscription_id, hour, 'domain.created', 1, 1, 0, 0, '{}' FROM delivery_statistics;
    INSERT INTO replays (id, subscription_id, reseller_id, status, since, until, per_second, created_at, updated_at, finished_at)
        SELECT t.id, s.id, 'acme', 'COMPLETED', at - interval '1 h', at, 1, at, at, at FROM t, subscriptions s;
    INSERT INTO quota_requests (id, subscription_id, reseller_id, requested, reason, status, created_at, decided_at, decided_by)
        SELECT t.id, s.id, 'acme', 5, 'more', 'DENIED', at, at, 'ann' FROM t, subscriptions s;
    INSERT INTO signing_secrets (id, subscription_id, sealed, created_at, expires_at, revoked_at)
        SELECT gen_random_uuid(), s.id, '', at - interval '1 day', CASE WHEN k = 1 THEN at END, CASE WHEN k = 2 THEN at END
        FROM t, subscriptions s, generate_series(1, 2) AS k;
    INSERT INTO email_addresses (reseller_id, address, confirmed_at, created_at) SELECT 'acme', at::text, at, at FROM t;
    INSERT INTO email_addresses (reseller_id, address, confirmed_at, created_at)
        SELECT reseller_id, lower(email), now() - interval '10 days', now() - interval '10 days' FROM subscriptions
        ON CONFLICT DO NOTHING;
    INSERT INTO past_holds (class, since, ended_at, probes, last_answer) SELECT 'SWRVE', at, at, 1, '503' FROM t;
    INSERT INTO audit_log (id, at, actor, action, subject) SELECT id, at, 'ann', 'a', 's' FROM t;
    INSERT INTO visits (id, digest, issuer, subject, name, roles, began_at, last_seen_at, ends_at)
        SELECT id, sha256(at::text::bytea), 'i', 'ann', 'Ann', '{viewer}', at, at, at FROM t;
    INSERT INTO portal_links (id, digest, reseller_id, person_id, person_name, capabilities, made_by_operator, created_at, expires_at,
                              visit_minutes, landing)
        SELECT id, sha256(at::text::bytea), 'acme', 'anna', 'Anna', '{}', 'ann', at, at, 60, '/app' FROM t;
    INSERT INTO portal_visits (id, digest, reseller_id, person_id, person_name, capabilities, made_by_operator, began_at, last_seen_at,
                               ends_at, landing)
        SELECT id, sha256(at::text::bytea), 'acme', 'anna', 'Anna', '{}', 'ann', at, at, at, '/app' FROM t;";

#[testkit::database_test]
async fn what_is_past_its_retention_is_forgotten_and_what_is_younger_stays(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let living = SubscriptionRow::active().make(&pool).await;
    let mut transaction = pool.begin().await.unwrap();
    sqlx::raw_sql(ROWS).execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
    let cutoff = a_week_ago(&store).await;
    let lasting = count(
        &pool,
        "signing_secrets WHERE expires_at IS NULL AND revoked_at IS NULL",
    )
    .await;
    for (kept, table, rows) in [
        (Kept::PushKeys, "idempotency_keys", 1),
        (Kept::Addresses, "email_addresses WHERE address ~ '^2'", 1),
        (Kept::EventKeys, "event_keys", 1),
        (Kept::Mails, "emails", 1),
        (Kept::ResolvedDeadLetters, "dead_letters WHERE state <> 'OPEN'", 1),
        (Kept::OpenDeadLetters, "dead_letters WHERE state = 'OPEN'", 2),
        (Kept::DeadLetterJobs, "dead_letter_jobs", 1),
        (Kept::Statistics, "delivery_statistics", 3),
        (Kept::Replays, "replays", 1),
        (Kept::QuotaRequests, "quota_requests", 1),
        (
            Kept::Secrets,
            "signing_secrets WHERE expires_at IS NOT NULL OR revoked_at IS NOT NULL",
            2,
        ),
        (Kept::Holds, "past_holds", 1),
        (Kept::Audit, "audit_log", 1),
        (Kept::Visits, "visits", 1),
        (Kept::PortalLinks, "portal_links", 1),
        (Kept::PortalVisits, "portal_visits", 1),
    ] {
        assert_eq!(count(&pool, table).await, 2 * rows, "{kept:?}");
        assert_eq!(
            store.forget(kept, cutoff, 100).await.unwrap(),
            rows.unsigned_abs(),
            "{kept:?}"
        );
        assert_eq!(count(&pool, table).await, rows, "{kept:?}");
        assert_eq!(store.forget(kept, cutoff, 100).await.unwrap(), 0, "{kept:?}");
    }
    assert_eq!(
        count(&pool, "delivery_type_statistics").await,
        3,
        "with their hours"
    );
    assert_eq!(count(&pool, "email_addresses WHERE address !~ '^2'").await, 1);
    assert_eq!(store.forget(Kept::Subscriptions, cutoff, 100).await.unwrap(), 0);
    assert!(store.find_subscription("acme", living).await.unwrap().is_some());
    let left = count(
        &pool,
        "signing_secrets WHERE expires_at IS NULL AND revoked_at IS NULL",
    )
    .await;
    assert_eq!(left, lasting);
    let open: i64 =
        sqlx::query_scalar("SELECT sum(letters)::bigint FROM dead_letter_tallies WHERE state = 'OPEN'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(open, 2, "the tallies went with their dead letters");
}

#[testkit::database_test]
async fn a_deleted_subscription_is_forgotten_with_all_that_belongs_to_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let gone = SubscriptionRow::active().make(&pool).await;
    let mut transaction = pool.begin().await.unwrap();
    sqlx::raw_sql(ROWS).execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
    let noted = SubscriptionRow::active().make(&pool).await;
    sqlx::raw_sql(
        "INSERT INTO signing_secrets SELECT gen_random_uuid(), id, '', now() FROM subscriptions;
         INSERT INTO subscription_budgets SELECT id, current_date, 1, 1 FROM subscriptions;
         INSERT INTO subscription_paces SELECT id, now(), now(), interval '1 s' FROM subscriptions;
         INSERT INTO subscription_sidelines SELECT id, 'first', now() FROM subscriptions;
         INSERT INTO pauses SELECT 'subscription', id::text, 'n', 'ann', now() FROM subscriptions;
         UPDATE subscriptions SET deleted_at = now() - interval '8 days';",
    )
    .execute(&pool)
    .await
    .unwrap();
    NotificationRow::in_state(NotificationState::Sent, noted)
        .make(&pool)
        .await;
    let cutoff = a_week_ago(&store).await;
    assert_eq!(store.forget(Kept::Subscriptions, cutoff, 100).await.unwrap(), 1);
    let left: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM subscriptions")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(
        left,
        [noted],
        "its notifications are still stored, and show where they went"
    );
    for table in [
        "signing_secrets",
        "subscription_budgets",
        "subscription_paces",
        "subscription_sidelines",
        "quota_requests",
        "replays",
        "emails",
    ] {
        let rows = count(&pool, &format!("{table} WHERE subscription_id = '{gone}'")).await;
        assert_eq!(rows, 0, "{table}");
    }
    assert_eq!(count(&pool, "pauses").await, 1);
    assert!(store.forget(Kept::Secrets, cutoff, 100).await.unwrap() > 0);
    assert_eq!(
        count(&pool, "signing_secrets").await,
        0,
        "nothing is signed for what is deleted"
    );
}

/// The clock that is behind decides.
#[testkit::database_test]
async fn a_cutoff_is_bounded_by_the_clock_of_the_database(pool: PgPool) {
    let store = Store::from_pool(pool);
    let now = SystemClock.now();
    let right = store.cutoff(now, WEEK).await.unwrap();
    let months = chrono::TimeDelta::days(214);
    let ahead = store.cutoff(now + months, WEEK).await.unwrap();
    let behind = store.cutoff(now - months, WEEK).await.unwrap();
    assert!((ahead.before() - right.before()).abs() < chrono::TimeDelta::minutes(5));
    assert!((ahead.clock_ahead() - months).abs() < chrono::TimeDelta::minutes(5));
    assert!((right.before() - behind.before() - months).abs() < chrono::TimeDelta::minutes(5));
}
