//! Verification: an answer counts for the challenge that it answers, and for nothing else.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::subscription::{Command, SubscriptionState};
use serde_json::Value;
use sqlx::PgPool;
use store::Store;
use store::webhook::{AfterFailure, Budgets, Charged, CommandOutcome, DueVerification};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::scene::act;

const LEASE: Duration = Duration::from_secs(60);
const URL: &str = "https://acme.example/hook";
const HOST: &str = "acme.example";

async fn pending(pool: &PgPool) -> Uuid {
    let row = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    row.make(pool).await
}

/// Later than everything that the factory makes, however slow the machine is.
fn soon() -> DateTime<Utc> {
    (SystemClock.now() + TimeDelta::hours(1)).trunc_subsecs(6)
}

async fn claim(store: &Store, at: DateTime<Utc>) -> Option<DueVerification> {
    let mut due = store.claim_verifications(at, (10, 10), &[], LEASE).await.unwrap();
    assert!(due.len() <= 1, "{due:?}");
    due.pop()
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    state: String,
    state_reason: String,
    verification_due_at: Option<DateTime<Utc>>,
    verification_attempts: i32,
    verification_error: Option<String>,
    verified_at: Option<DateTime<Utc>>,
}

async fn row(pool: &PgPool, id: Uuid) -> Row {
    sqlx::query_as("SELECT * FROM subscriptions WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn mails(pool: &PgPool) -> Vec<(String, Value)> {
    sqlx::query_as("SELECT kind, data FROM emails ORDER BY created_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn a_due_endpoint_is_challenged_by_one_until_its_lease_ends(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    SubscriptionRow::active().make(&pool).await;
    SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .deleted()
        .make(&pool)
        .await;
    let due = claim(&store, now).await.unwrap();
    assert_eq!((due.subscription_id, due.attempts), (id, 0));
    assert_eq!(claim(&store, now).await, None);
    assert_eq!(claim(&store, now + TimeDelta::seconds(59)).await, None);
    let again = claim(&store, now + TimeDelta::seconds(60)).await.unwrap();
    assert_ne!(again.lease, due.lease);
    assert!(
        !store.pass_verification(&due, (URL, HOST), now).await.unwrap(),
        "replaced"
    );
    assert!(store.pass_verification(&again, (URL, HOST), now).await.unwrap());
}

#[testkit::database_test]
async fn the_right_answer_activates_and_is_told(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    let due = claim(&store, now).await.unwrap();
    assert!(store.pass_verification(&due, (URL, HOST), now).await.unwrap());
    assert!(
        !store.pass_verification(&due, (URL, HOST), now).await.unwrap(),
        "once"
    );
    let row = row(&pool, id).await;
    assert_eq!((&*row.state, &*row.state_reason), ("ACTIVE", "VERIFIED"));
    assert_eq!((row.verified_at, row.verification_due_at), (Some(now), None));
    assert_eq!(row.verification_attempts, 0, "none was in vain");
    let mails = mails(&pool).await;
    assert_eq!(mails.len(), 1);
    assert_eq!(
        (&*mails[0].0, &mails[0].1["reason"]),
        ("STATE_CHANGED", &"VERIFIED".into())
    );
    assert_eq!(claim(&store, now + TimeDelta::days(1)).await, None);
}

#[testkit::database_test]
async fn a_wrong_answer_leads_to_another_challenge_and_the_last_one_to_a_mail(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    let due = claim(&store, now).await.unwrap();
    let next = now + TimeDelta::minutes(1);
    let after = AfterFailure::TryAgain(next);
    assert!(
        store
            .fail_verification(&due, URL, "it answered\0 404", after, now)
            .await
            .unwrap()
    );
    let waiting = row(&pool, id).await;
    assert_eq!(
        (waiting.verification_due_at, waiting.verification_attempts),
        (Some(next), 1)
    );
    assert_eq!(
        waiting.verification_error.as_deref(),
        Some("it answered\u{fffd} 404")
    );
    assert_eq!(mails(&pool).await, []);

    let due = claim(&store, next).await.unwrap();
    assert_eq!(due.attempts, 1);
    let stop = AfterFailure::Stop;
    assert!(
        store
            .fail_verification(&due, URL, "timed out", stop, next)
            .await
            .unwrap()
    );
    assert!(
        !store
            .fail_verification(&due, URL, "timed out", stop, next)
            .await
            .unwrap(),
        "once"
    );
    let stopped = row(&pool, id).await;
    assert_eq!(
        (&*stopped.state, stopped.verification_due_at),
        ("PENDING_VERIFICATION", None)
    );
    let mails = mails(&pool).await;
    assert_eq!(mails.len(), 1);
    let (kind, data) = &mails[0];
    assert_eq!(
        (&**kind, &data["error"], &data["attempts"]),
        ("VERIFICATION_FAILED", &"timed out".into(), &2.into())
    );
    assert_eq!(claim(&store, next + TimeDelta::days(9)).await, None);
}

#[testkit::database_test]
async fn an_answer_of_before_a_change_counts_for_nothing(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let change = |sql: &'static str, id: Uuid| {
        let query = sqlx::query(sql).bind(id).bind(now);
        query.execute(&pool)
    };
    for sql in [
        "UPDATE subscriptions SET url = 'https://acme.example/other' WHERE id = $1 AND $2 IS NOT NULL",
        "UPDATE subscriptions SET verification_due_at = $2 WHERE id = $1",
        "UPDATE subscriptions SET deleted_at = $2 WHERE id = $1",
        "UPDATE subscriptions SET state = 'DEACTIVATED' WHERE id = $1 AND $2 IS NOT NULL",
    ] {
        let id = pending(&pool).await;
        let due = claim(&store, now).await.unwrap();
        change(sql, id).await.unwrap();
        assert!(
            !store.pass_verification(&due, (URL, HOST), now).await.unwrap(),
            "{sql}"
        );
        let failed = store
            .fail_verification(&due, URL, "late", AfterFailure::Stop, now)
            .await;
        assert!(!failed.unwrap(), "{sql}");
        let row = row(&pool, id).await;
        assert_eq!((row.verified_at, row.verification_error), (None, None), "{sql}");
        sqlx::query("UPDATE subscriptions SET verification_due_at = NULL")
            .execute(&pool)
            .await
            .unwrap();
    }
    assert_eq!(mails(&pool).await, []);
}

#[testkit::database_test]
async fn a_reseller_that_starts_over_is_challenged_with_all_attempts(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    let due = claim(&store, now).await.unwrap();
    let failed = store.fail_verification(&due, URL, "late", AfterFailure::Stop, now);
    assert!(failed.await.unwrap());
    let later = now + TimeDelta::seconds(20);
    store
        .command_subscription("acme", id, Command::Verify, act(later))
        .await
        .unwrap();
    let again = claim(&store, later).await.unwrap();
    assert_eq!((again.subscription_id, again.attempts), (id, 0));
}

#[testkit::database_test]
async fn no_command_passes_the_floor_between_two_challenges(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    let verify = async |at| {
        let commanded = store.command_subscription("acme", id, Command::Verify, act(at));
        commanded.await.unwrap()
    };
    let mut now = start;
    for floor in [20, 40, 80, 160, 320, 600, 600] {
        let due = claim(&store, now).await.unwrap();
        let failed = store.fail_verification(&due, URL, "late", AfterFailure::Stop, now);
        assert!(failed.await.unwrap());
        let open = now + TimeDelta::seconds(floor);
        let early = open - TimeDelta::microseconds(1);
        assert_eq!(verify(early).await, CommandOutcome::NotBefore(open));
        for command in [Command::Deactivate, Command::Activate] {
            let done = store.command_subscription("acme", id, command, act(now)).await;
            assert!(matches!(done, Ok(CommandOutcome::Done(_))), "{done:?}");
        }
        assert_eq!(row(&pool, id).await.verification_due_at, Some(open));
        assert_eq!(claim(&store, early).await, None);
        assert!(matches!(verify(open).await, CommandOutcome::Done(_)));
        now = open;
    }
    let due = claim(&store, now).await.unwrap();
    assert!(store.pass_verification(&due, (URL, HOST), now).await.unwrap());
    for command in [Command::MoveEndpoint, Command::Verify] {
        let open = now + TimeDelta::seconds(600);
        let done = store.command_subscription("acme", id, command, act(open)).await;
        assert!(matches!(done, Ok(CommandOutcome::Done(_))), "{done:?}");
        now = open;
    }
}

#[testkit::database_test]
async fn challenges_that_come_by_themselves_keep_no_command_waiting(pool: PgPool) {
    let (store, mut now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    for _ in 0..5 {
        let due = claim(&store, now).await.unwrap();
        now += TimeDelta::seconds(60);
        let failed = store.fail_verification(
            &due,
            URL,
            "late",
            AfterFailure::TryAgain(now),
            now - TimeDelta::seconds(60),
        );
        assert!(failed.await.unwrap());
    }
    let asked = now - TimeDelta::seconds(40);
    let commanded = store.command_subscription("acme", id, Command::Verify, act(asked));
    assert!(matches!(commanded.await.unwrap(), CommandOutcome::Done(_)));
}

#[testkit::database_test]
async fn one_reseller_leaves_room_for_the_challenges_of_others(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    for reseller in ["acme", "acme", "acme", "acme", "other"] {
        let row = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
        row.reseller(reseller).make(&pool).await;
    }
    let resellers = async |limits, busy: &[String]| {
        let due = store.claim_verifications(now, limits, busy, LEASE).await.unwrap();
        let mut resellers: Vec<_> = due.into_iter().map(|due| due.reseller).collect();
        resellers.sort();
        resellers
    };
    assert_eq!(resellers((10, 2), &[]).await, ["acme", "acme", "other"]);
    assert_eq!(resellers((10, 2), &["acme".to_owned()]).await, [] as [&str; 0]);
    assert_eq!(resellers((1, 2), &[]).await, ["acme"]);
    assert_eq!(resellers((10, 2), &[]).await, ["acme"]);
}

#[testkit::database_test]
async fn a_site_is_challenged_so_often_in_an_hour(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), SystemClock.now().trunc_subsecs(6));
    let budgets = Budgets {
        per_site_and_hour: 3,
        hosts_per_reseller_and_day: 100,
    };
    let charge = async |n: i64, at| {
        // Others have a few challenges of their own.
        let host = format!("h{n}.victim.example");
        let target = ("acme", &*host, "victim.example");
        store.charge_challenge(target, budgets, at).await.unwrap()
    };
    let pass = async |minutes: i64| {
        sqlx::query("UPDATE challenges SET at = at - $1 * interval '1 minute'")
            .bind(minutes)
            .execute(&pool)
            .await
            .unwrap();
    };
    for n in 0..3 {
        assert_eq!(charge(n, start).await, Charged::Done);
        pass(1).await;
    }
    let again = start - TimeDelta::minutes(3) + TimeDelta::hours(1);
    assert_eq!(charge(3, start).await, Charged::NotBefore(again));
    let other = ("acme", "hooks.example", "hooks.example");
    assert_eq!(
        store.charge_challenge(other, budgets, start).await.unwrap(),
        Charged::Done
    );
    pass(57).await;
    assert_eq!(charge(3, start).await, Charged::Done);
}

#[testkit::database_test]
async fn a_clock_that_is_ahead_has_no_budget_of_its_own_and_uses_up_none_of_others(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let budgets = Budgets {
        per_site_and_hour: 3,
        hosts_per_reseller_and_day: 100,
    };
    let charge = async |n: i64, at| {
        let host = format!("h{n}.victim.example");
        let target = ("acme", &*host, "victim.example");
        store.charge_challenge(target, budgets, at).await.unwrap()
    };
    let ahead = now + TimeDelta::days(31);
    for (n, at) in [now, ahead, now].into_iter().enumerate() {
        assert_eq!(charge(n.try_into().unwrap(), at).await, Charged::Done);
    }
    for at in [now, ahead] {
        let Charged::NotBefore(then) = charge(3, at).await else {
            panic!("the site has had its three");
        };
        assert!(then < now + TimeDelta::hours(2), "{then}");
    }
}

#[testkit::database_test]
async fn a_reseller_has_few_hosts_a_day_challenged_that_do_not_answer(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let budgets = Budgets {
        per_site_and_hour: 100,
        hosts_per_reseller_and_day: 2,
    };
    let present = SystemClock.now().trunc_subsecs(6);
    let charge = async |reseller: &str, host: &str| {
        let charged = store.charge_challenge((reseller, host, host), budgets, present);
        charged.await.unwrap()
    };
    let id = pending(&pool).await;
    let due = claim(&store, now).await.unwrap();
    assert_eq!(charge("acme", HOST).await, Charged::Done);
    assert_eq!(charge("acme", "b.example").await, Charged::Done);
    assert_eq!(charge("acme", "b.example").await, Charged::Done, "known already");
    let full = Charged::NotBefore(present + TimeDelta::days(1));
    assert_eq!(charge("acme", "c.example").await, full);
    assert_eq!(charge("other", "c.example").await, Charged::Done);
    assert!(store.pass_verification(&due, (URL, HOST), now).await.unwrap());
    assert_eq!(charge("acme", "c.example").await, Charged::Done);
    assert_eq!(charge("acme", "d.example").await, full);
    // What is put off is no challenge in vain.
    store
        .command_subscription("acme", id, Command::MoveEndpoint, act(now))
        .await
        .unwrap();
    let later = now + TimeDelta::seconds(10);
    let due = claim(&store, later).await.unwrap();
    let until = later + TimeDelta::hours(1);
    store.put_challenge_off(&due, until, "full", later).await.unwrap();
    let put_off = row(&pool, id).await;
    assert_eq!(
        (put_off.verification_due_at, put_off.verification_attempts),
        (Some(until), 0)
    );
    assert_eq!(put_off.verification_error.as_deref(), Some("full"));
}

#[testkit::database_test]
async fn an_endpoint_that_turned_away_is_asked_again_before_it_gets_anything(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    for (reason, days, state) in [
        ("BY_RESELLER", 0, "ACTIVE"),
        ("BY_RESELLER", 30, "PENDING_VERIFICATION"),
        ("GONE", 0, "PENDING_VERIFICATION"),
        ("REDIRECTED", 0, "PENDING_VERIFICATION"),
        ("FAILING", 0, "PENDING_VERIFICATION"),
    ] {
        let id = SubscriptionRow::in_state(SubscriptionState::Deactivated)
            .make(&pool)
            .await;
        sqlx::query("UPDATE subscriptions SET state_reason = $2, verified_at = $3 WHERE id = $1")
            .bind(id)
            .bind(reason)
            .bind(now - TimeDelta::days(days))
            .execute(&pool)
            .await
            .unwrap();
        let done = store
            .command_subscription("acme", id, Command::Activate, act(now))
            .await;
        assert!(matches!(done, Ok(CommandOutcome::Done(_))), "{done:?}");
        assert_eq!(row(&pool, id).await.state, state, "{reason} {days}");
    }
}
