//! What the tests set up and look at: a leader, batches of rows, and the whole contents of the tables.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::clock::{Clock, SystemClock};
use domain::lifecycle::{Attempts, transition};
use domain::push::{Platform, PushId, PushRequest, PushState, PushStatus, RetryPolicy, SendOutcome};
use domain::reason::PushReason;
use serde_json::Value;
use sqlx::PgPool;
use store::push::{Claim, Completion, IdempotencyKey, NewPush};
use store::{Act, Lease, Store};
use testkit::push_factory::{MadePush, PushRow};
use uuid::Uuid;

/// Longer than any test runs.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) const POLICY: RetryPolicy = RetryPolicy {
    delay: Duration::from_secs(60),
    max_attempts: 3,
};

/// What a reseller does with its key.
pub(crate) fn act(at: DateTime<Utc>) -> Act<'static> {
    Act {
        by: "acme's key (1)",
        note: None,
        at,
    }
}

/// A lease named `push` that was just taken, by a new holder.
pub(crate) async fn lead(store: &Store) -> Lease {
    let seen = store.view_lease("push").await.unwrap();
    store
        .take_lease("push", seen, Uuid::now_v7())
        .await
        .unwrap()
        .expect("no other process is after the lease")
}

pub(crate) fn claim(leader: &Lease) -> Claim<'_> {
    Claim { leader, lease: LONG }
}

/// `count` pushes in `state`, the oldest first.
pub(crate) async fn pushes(pool: &PgPool, state: PushState, count: i64) -> Vec<MadePush> {
    let now = SystemClock.now();
    let mut made = Vec::new();
    for n in (0..count).rev() {
        let row = PushRow::in_state(state).created_at(now - chrono::TimeDelta::milliseconds(n));
        made.push(row.make(pool).await);
    }
    made
}

pub(crate) fn ids(made: &[MadePush]) -> Vec<PushId> {
    made.iter().map(|push| push.id).collect()
}

/// The completion of a claimed push that has had `attempts` attempts, as a dispatcher would decide it.
pub(crate) fn completion(push: MadePush, attempts: u32, outcome: SendOutcome) -> Completion {
    let response_status = match outcome {
        SendOutcome::Delivered => Some(200),
        SendOutcome::Refused { status, .. } => Some(status),
        _ => None,
    };
    let classification = outcome.classification();
    let attempts = Attempts {
        total: attempts,
        before_resend: 0,
    };
    let next = transition(
        PushState::Sending,
        classification.event,
        attempts,
        &POLICY.rules(),
    )
    .unwrap();
    Completion {
        id: push.id,
        lease_token: push.lease_token,
        status: next.status(),
        next_attempt_at: (next == PushState::Retry).then(|| POLICY.next_attempt_at(SystemClock.now())),
        millis: 250,
        response_status,
        classification,
    }
}

pub(crate) fn refused(status: u16) -> SendOutcome {
    SendOutcome::Refused {
        status,
        code: None,
        message: format!("{status} of the test"),
    }
}

/// A push to be stored, accepted now.
pub(crate) fn new_push(status: PushStatus, idempotency: Option<IdempotencyKey>) -> NewPush {
    let now = SystemClock.now();
    let scheduled = status == PushStatus::Scheduled;
    NewPush {
        id: PushId::at(now),
        request: PushRequest {
            platform: Platform::Android,
            message_prototype_key: Some("Hello".to_owned()),
            push_key: "device-1".to_owned(),
            message: "Hello client!".to_owned(),
            cron_expression: scheduled.then(|| "* * 9-17 ? * MON-FRI".to_owned()),
            first_window: scheduled.then_some(now),
        },
        status,
        created_at: now,
        traceparent: None,
        idempotency,
    }
}

/// Every push, attempt and dead letter, in full.
pub(crate) async fn everything(pool: &PgPool) -> Value {
    sqlx::query_scalar(
        "SELECT jsonb_build_object(
            'pushes', (SELECT jsonb_agg(to_jsonb(p) ORDER BY p.id) FROM push_notifications p),
            'attempts', (SELECT jsonb_agg(to_jsonb(a) ORDER BY a.push_notification_id, a.number)
                         FROM send_attempts a),
            'dead_letters', (SELECT jsonb_agg(to_jsonb(d) ORDER BY d.id) FROM dead_letters d))",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

pub(crate) async fn count(pool: &PgPool, table: &'static str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
        .fetch_one(pool)
        .await
        .unwrap()
}

/// How many dead letters wait for an operator.
pub(crate) async fn open_dead_letters(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM dead_letters WHERE state = 'OPEN'")
        .fetch_one(pool)
        .await
        .unwrap()
}

/// The state of a push, from its row.
pub(crate) async fn state_of(store: &Store, id: PushId) -> PushState {
    let push = store.find_push(id).await.unwrap().expect("the push is stored");
    PushState::of(
        push.status,
        push.claimed,
        push.reason == Some(PushReason::Cancelled),
    )
}

/// Returns when `sessions` sessions of this database wait for a lock of another.
pub(crate) async fn until_blocked(pool: &PgPool, sessions: i64) {
    let blocked = async {
        let mut pause = tokio::time::interval(Duration::from_millis(5));
        loop {
            pause.tick().await;
            let waiting: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0",
            )
            .fetch_one(pool)
            .await
            .unwrap();
            if waiting >= sessions {
                return;
            }
        }
    };
    tokio::time::timeout(testkit::PATIENCE, blocked)
        .await
        .unwrap_or_else(|_| panic!("{sessions} sessions should wait for a lock by now"));
}
