//! What a claim makes of notifications, apart from quota and requests per second.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::lifecycle::Attempts;
use domain::notification::{NotificationId, NotificationState, NotificationStatus};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::webhook::{Claims, Resent};
use store::{Act, Store};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{claim, claimed_ids, ids, notifications, row, set, terms};
use crate::scene::count;

#[testkit::database_test]
async fn a_claim_brings_what_is_sent_and_records_the_attempt(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .url("https://acme.example/a")
        .make(&pool)
        .await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    sqlx::query("UPDATE events SET event_id = 'order-1', traceparent = '00-1-2-01'")
        .execute(&pool)
        .await
        .unwrap();
    let at = SystemClock.now();
    let claims = claim(&store, &[made.id], &terms(at)).await;
    let claimed = &claims.claimed[0];
    assert_eq!((claimed.id, claimed.subscription_id), (made.id, subscription));
    assert_eq!(
        claimed.attempts,
        Attempts {
            total: 1,
            before_resend: 0
        }
    );
    assert_eq!(
        (claimed.event_id.as_str(), claimed.event_type.as_str()),
        ("order-1", "domain.created")
    );
    assert_eq!(claimed.traceparent.as_deref(), Some("00-1-2-01"));
    assert_eq!((claimed.send_at, claimed.backlog), (None, false));
    let body: String = sqlx::query_scalar("SELECT body FROM events")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(claimed.body, body);
    let (number, status, url, token): (i32, String, String, Uuid) = sqlx::query_as(
        "SELECT a.number, a.status, a.url, n.lease_token
         FROM delivery_attempts a JOIN notifications n ON n.id = a.notification_id
         WHERE n.leased_until > now() + interval '59 minutes'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(
        (number, &*status, &*url),
        (1, "IN_PROCESS", "https://acme.example/a")
    );
    assert_eq!(token, claimed.lease_token);
}

#[testkit::database_test]
async fn a_claim_holds_as_long_as_it_says_and_hardly_longer_whatever_lease_it_finds(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 3).await);
    let sql = "UPDATE notifications SET leased_until = now() + interval '1 second' WHERE id = $1";
    set(&pool, sql, made[0].uuid()).await;
    let sql = "UPDATE notifications SET leased_until = now() + interval '1 hour 5 seconds' WHERE id = $1";
    set(&pool, sql, made[1].uuid()).await;
    let sql = "UPDATE notifications SET leased_until = now() + interval '1 day' WHERE id = $1";
    set(&pool, sql, made[2].uuid()).await;
    let clock = "SELECT clock_timestamp()";
    let before: DateTime<Utc> = sqlx::query_scalar(clock).fetch_one(&pool).await.unwrap();
    let terms = terms(SystemClock.now());
    assert_eq!(claimed_ids(&claim(&store, &made, &terms).await).len(), 3);
    let after: DateTime<Utc> = sqlx::query_scalar(clock).fetch_one(&pool).await.unwrap();
    let leases: Vec<DateTime<Utc>> = sqlx::query_scalar("SELECT leased_until FROM notifications")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(leases.len(), 3);
    for lease in leases {
        assert!(lease >= before + terms.lease, "{lease} is too early");
        assert!(
            lease <= after + terms.lease + TimeDelta::seconds(15),
            "{lease} is too late"
        );
    }
}

#[testkit::database_test]
async fn attempts_before_a_resend_are_told_apart(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .attempts(4)
        .make(&pool)
        .await;
    set(
        &pool,
        "UPDATE notifications SET resent_after = 4 WHERE id = $1",
        made.id.uuid(),
    )
    .await;
    let claims = claim(&store, &[made.id], &terms(SystemClock.now())).await;
    assert_eq!(
        claims.claimed[0].attempts,
        Attempts {
            total: 5,
            before_resend: 4
        }
    );
}

/// However many ask for it, and while others claim it, one attempt is made, the next of those that it has left.
#[testkit::database_test]
async fn a_retry_that_is_sent_again_at_once_is_attempted_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    // What is tried again was attempted before, so that its subscription has begun to count.
    let first = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    claim(&store, &[first.id], &terms(SystemClock.now())).await;
    for _ in 0..8 {
        let made = NotificationRow::in_state(NotificationState::Retry, subscription)
            .attempts(2)
            .due_in(TimeDelta::hours(1))
            .make(&pool)
            .await;
        let at = SystemClock.now();
        let early = claim(&store, &[made.id], &terms(at)).await;
        assert_eq!(early, Claims::default(), "it is not due");
        let act = Act {
            by: "acme",
            note: None,
            at,
        };
        let (ids, terms) = ([made.id], terms(at));
        let resend = || store.resend_notification("acme", made.id, act);
        let claim = || claim(&store, &ids, &terms);
        let (one, before, two, among, three, after) =
            tokio::join!(resend(), claim(), resend(), claim(), resend(), claim());
        let resent = [one, two, three];
        let claims = [before, among, after, claim().await];
        let done = resent
            .into_iter()
            .filter(|resent| matches!(resent, Ok(Resent::Done)));
        assert_eq!(done.count(), 1);
        let claimed: Vec<_> = claims.iter().flat_map(|claims| &claims.claimed).collect();
        let [claimed] = claimed[..] else {
            panic!("claimed once: {claimed:?}")
        };
        let attempts = Attempts {
            total: 3,
            before_resend: 0,
        };
        assert_eq!(claimed.attempts, attempts, "it keeps what it has used up");
        let late = store.resend_notification("acme", made.id, act).await.unwrap();
        assert_eq!(late, Resent::Unfinished(NotificationStatus::InMemory));
    }
}

#[testkit::database_test]
async fn of_two_claimers_with_the_same_notifications_each_gets_what_the_other_does_not(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = notifications(&pool, NotificationState::Queued, subscription, 50).await;
    let (forth, mut back) = (ids(&made), ids(&made));
    back.reverse();
    let terms = terms(SystemClock.now());
    let (a, b, c) = tokio::join!(
        claim(&store, &forth, &terms),
        claim(&store, &back, &terms),
        claim(&store, &forth, &terms)
    );
    let mut all: Vec<NotificationId> = [a, b, c].iter().flat_map(claimed_ids).collect();
    all.sort_unstable();
    assert_eq!(all, forth);
    assert_eq!(count(&pool, "delivery_attempts").await, 50);
    let used: i64 = sqlx::query_scalar("SELECT used FROM subscription_budgets")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(used, 50, "what is claimed twice is charged once");
}

#[testkit::database_test]
async fn identifiers_that_mean_nothing_any_more_are_passed_over(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut stale = vec![NotificationId::from(Uuid::now_v7())];
    for state in NotificationState::ALL {
        if !matches!(state, NotificationState::Queued | NotificationState::Pending) {
            stale.push(
                NotificationRow::in_state(state, subscription)
                    .due_in(TimeDelta::hours(1))
                    .make(&pool)
                    .await
                    .id,
            );
        }
    }
    let good = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let terms = terms(SystemClock.now());
    assert_eq!(claim(&store, &stale, &terms).await, Claims::default());
    assert_eq!(count(&pool, "subscription_budgets").await, 0);
    stale.push(good.id);
    assert_eq!(claimed_ids(&claim(&store, &stale, &terms).await), [good.id]);
    assert_eq!(claim(&store, &[], &terms).await, Claims::default());
}

#[testkit::database_test]
async fn what_its_subscription_does_not_get_now_waits_and_what_it_never_gets_ends(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let unverified = || SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    let cases = [
        (SubscriptionRow::active().paused(), "PAUSED"),
        (unverified(), "UNVERIFIED"),
        (unverified().paused(), "UNVERIFIED"),
        (
            SubscriptionRow::in_state(SubscriptionState::Deactivated),
            "SUBSCRIPTION_DEACTIVATED",
        ),
        (SubscriptionRow::active().deleted(), "SUBSCRIPTION_DELETED"),
        (
            SubscriptionRow::active().paused().deleted(),
            "SUBSCRIPTION_DELETED",
        ),
    ];
    for (subscription, reason) in cases {
        let subscription = subscription.make(&pool).await;
        let untried = NotificationRow::in_state(NotificationState::Queued, subscription)
            .make(&pool)
            .await;
        let tried = NotificationRow::in_state(NotificationState::Queued, subscription).attempts(2);
        let tried = tried.make(&pool).await;
        let claims = claim(&store, &[untried.id, tried.id], &terms(now)).await;
        let (untried, tried) = (row(&pool, untried.id).await, row(&pool, tried.id).await);
        let reasons = [&untried.reason, &tried.reason].map(|reason| reason.as_deref());
        assert_eq!(reasons, [Some(reason); 2]);
        assert_eq!((untried.attempts, tried.attempts), (0, 2));
        if reason.starts_with("SUBSCRIPTION") {
            assert_eq!((claims.abandoned, claims.held), (2, 0), "{reason}");
            assert_eq!([&*untried.status, &*tried.status], ["GIVEN_UP"; 2]);
            assert!(untried.finished_at.is_some());
        } else {
            assert_eq!((claims.abandoned, claims.held), (0, 2), "{reason}");
            assert_eq!([&*untried.status, &*tried.status], ["PENDING", "RETRY"]);
            let later = tried.next_attempt_at.unwrap() - now;
            assert!(
                later > TimeDelta::seconds(30) && later < TimeDelta::minutes(5),
                "{later}"
            );
        }
        assert!(claims.claimed.is_empty());
    }
    assert_eq!(
        count(&pool, "subscription_budgets").await,
        0,
        "nothing was charged"
    );
    let open: i64 = sqlx::query_scalar("SELECT count(*) FROM dead_letters WHERE state = 'OPEN'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(open, 0);
}

#[testkit::database_test]
async fn a_degraded_subscription_gets_everything(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::in_state(SubscriptionState::Degraded)
        .make(&pool)
        .await;
    let made = notifications(&pool, NotificationState::Pending, subscription, 2).await;
    let claims = claim(&store, &ids(&made), &terms(SystemClock.now())).await;
    assert_eq!(claimed_ids(&claims), ids(&made));
}

#[testkit::database_test]
async fn the_claim_of_a_promoted_part_says_that_there_is_more(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let (much, little) = (
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().make(&pool).await,
    );
    notifications(&pool, NotificationState::Pending, much, 5).await;
    notifications(&pool, NotificationState::Pending, little, 2).await;
    let promoted = store
        .promote_first_attempts(now, None, &[], 3, 100, crate::scene::LONG)
        .await
        .unwrap();
    let promoted: Vec<_> = promoted.notifications.iter().map(|one| one.id.into()).collect();
    let claims = claim(&store, &promoted, &terms(now)).await;
    assert_eq!(claims.claimed.len(), 5);
    for claimed in claims.claimed {
        assert_eq!(claimed.backlog, claimed.subscription_id == much);
    }
}

#[testkit::database_test]
async fn a_change_of_endpoint_or_secrets_shows_in_the_version_and_health_does_not(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().sealed_secret(vec![1]).make(&pool).await;
    let mut versions = Vec::new();
    for change in [
        "UPDATE subscriptions SET updated_at = now() WHERE id = $1",
        "UPDATE subscriptions SET failing_since = now(), last_failure_at = now() WHERE id = $1",
        "UPDATE subscriptions SET url = 'https://b.example/' WHERE id = $1",
        "UPDATE subscriptions SET timeout_millis = 5 WHERE id = $1",
        "UPDATE signing_secrets SET revoked_at = now() WHERE subscription_id = $1",
    ] {
        set(&pool, change, subscription).await;
        let made = notifications(&pool, NotificationState::Queued, subscription, 1).await;
        let claims = claim(&store, &ids(&made), &terms(SystemClock.now())).await;
        versions.push(claims.claimed[0].version);
        let endpoint = &store.find_endpoints(&[subscription]).await.unwrap()[&subscription];
        assert_eq!(endpoint.version, claims.claimed[0].version);
    }
    assert_eq!(versions[0], versions[1]);
    assert!(versions[1..].is_sorted_by(|a, b| a < b), "{versions:?}");
}

#[testkit::database_test]
async fn one_notification_without_its_event_does_not_hold_up_the_others(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = notifications(&pool, NotificationState::Queued, subscription, 3).await;
    set(&pool, "DELETE FROM events WHERE id = $1", made[1].event).await;
    let claims = claim(&store, &ids(&made), &terms(SystemClock.now())).await;
    assert_eq!(claimed_ids(&claims), [made[0].id, made[2].id]);
}

/// The ordinary ones are claimed by a statement of their own; what is left, by another one.
#[testkit::database_test]
async fn what_the_database_refuses_for_good_is_passed_over_beside_what_is_ordinary(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let ordinary = SubscriptionRow::active().make(&pool).await;
    let paced = SubscriptionRow::active()
        .requests_per_second(100)
        .make(&pool)
        .await;
    let mut made = ids(&notifications(&pool, NotificationState::Queued, ordinary, 2).await);
    made.extend(ids(
        &notifications(&pool, NotificationState::Queued, paced, 3).await
    ));
    let refused = made[3];
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'never'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON notifications FOR EACH ROW
             WHEN (OLD.id = '{refused}' AND NEW.lease_token IS NOT NULL) EXECUTE FUNCTION refuse()"
    )))
    .execute(&pool)
    .await
    .unwrap();
    let at = SystemClock.now();
    // Until something was charged to it, a subscription has nothing ordinary.
    let first = claim(&store, &made[..1], &terms(at)).await;
    assert_eq!(claimed_ids(&first), made[..1]);
    let mut claimed = claimed_ids(&claim(&store, &made[1..], &terms(at)).await);
    claimed.sort_unstable();
    let mut expected = vec![made[1], made[2], made[4]];
    expected.sort_unstable();
    assert_eq!(claimed, expected);
    assert_eq!(row(&pool, refused).await.state(), NotificationState::Queued);
}
