//! Replays: what a subscription missed becomes due, while workers come and go.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::PushId;
use metrics_exporter_prometheus::PrometheusBuilder;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPoolOptions;
use store::Store;
use store::webhook::{NewReplay, ReplayRequested};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::rig::{shows, start};

/// How many events a reseller had while its subscription got nothing.
const MISSED: i64 = 60;

/// Events of the last hour that became nothing.
async fn missed_events(it: &Installation) {
    let now = SystemClock.now();
    for n in 0..MISSED {
        let at = now - TimeDelta::minutes(30) + TimeDelta::seconds(n);
        sqlx::query(
            "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
             VALUES ($1, $1::text, 'acme', 'domain.created', '{}', $2, $2)",
        )
        .bind(PushId::at(at).uuid())
        .bind(at)
        .execute(&it.pool)
        .await
        .unwrap();
    }
}

async fn replay(it: &Installation, subscription: Uuid, per_second: u32) -> Uuid {
    let now = SystemClock.now();
    let new = NewReplay {
        id: PushId::at(now).uuid(),
        subscription,
        since: now - TimeDelta::hours(1),
        until: now - TimeDelta::minutes(1),
        per_second,
        missed: store::webhook::Missed::default(),
        created_at: now,
    };
    let requested = it
        .store
        .insert_replay("acme", &new, testkit::act_of_a_reseller(now))
        .await
        .unwrap();
    assert_eq!(requested, ReplayRequested::Done);
    new.id
}

async fn completed(it: &Installation, replay: Uuid) -> (i64, i64) {
    eventually("the replay to be through", async || {
        sqlx::query_as(
            "SELECT examined, replayed FROM replays WHERE id = $1 AND status = 'COMPLETED' AND finished_at IS NOT NULL",
        )
        .bind(replay)
        .fetch_optional(&it.pool)
        .await
        .ok()?
    })
    .await
}

/// The first worker is stopped in the middle, and two go on.
#[testkit::test]
async fn a_replay_goes_on_where_it_stood_and_does_everything_once(it: Installation) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    missed_events(&it).await;
    let failed = NotificationRow::in_state(NotificationState::Failed, subscription)
        .created_at(SystemClock.now() - TimeDelta::minutes(10))
        .make(&it.pool)
        .await;
    let replay = replay(&it, subscription, 30).await;
    let first = start(&it.config);
    eventually("the replay to begin", async || {
        let begun: i64 = sqlx::query_scalar("SELECT replayed FROM replays")
            .fetch_one(&it.pool)
            .await
            .ok()?;
        (begun > 0).then_some(())
    })
    .await;
    first.stop().await;
    let others = [start(&it.config), start(&it.config)];
    assert_eq!(completed(&it, replay).await, (MISSED + 1, MISSED + 1));
    let counted = format!("postrider_notifications_replayed_total {}", MISSED + 1);
    shows(&metrics, &counted).await;
    for worker in others {
        worker.stop().await;
    }
    let made: Vec<(Uuid, i64)> = sqlx::query_as("SELECT event, count(*) FROM notifications GROUP BY 1")
        .fetch_all(&it.pool)
        .await
        .unwrap();
    assert_eq!(made.len() as i64, MISSED + 1);
    assert!(made.iter().all(|(_, count)| *count == 1));
    let again: i32 = sqlx::query_scalar("SELECT resent_after FROM notifications WHERE id = $1")
        .bind(failed.id.uuid())
        .fetch_one(&it.pool)
        .await
        .unwrap();
    assert_eq!(again, 1);
}

#[testkit::test]
async fn a_slow_replay_does_not_hold_up_another(it: Installation) {
    let (slow, fast) = (
        SubscriptionRow::active().make(&it.pool).await,
        SubscriptionRow::active().make(&it.pool).await,
    );
    missed_events(&it).await;
    let slow = replay(&it, slow, 1).await;
    let fast = replay(&it, fast, 1_000).await;
    let _worker = start(&it.config);
    assert_eq!(completed(&it, fast).await, (MISSED, MISSED));
    let running: BTreeMap<Uuid, String> = sqlx::query_as("SELECT id, status FROM replays")
        .fetch_all(&it.pool)
        .await
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(running[&slow], "RUNNING");
}

/// As where each service has a role of its own: what the sessions of others do is hidden without a privilege.
#[testkit::test]
async fn a_replay_does_not_pass_by_what_a_hidden_session_writes(it: Installation) {
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    missed_events(&it).await;
    let replay = replay(&it, subscription, 1_000).await;
    let role = format!("role_{}", Uuid::now_v7().simple());
    let administer = async |statements: String| {
        sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(&it.pool)
            .await
            .unwrap();
    };
    administer(format!(
        "CREATE ROLE {role}; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role};
         GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}"
    ))
    .await;
    let become_it = format!("SET ROLE {role}");
    let pool = PgPoolOptions::new()
        .after_connect(move |connection, _| {
            let become_it = become_it.clone();
            Box::pin(async move {
                sqlx::raw_sql(AssertSqlSafe(become_it))
                    .execute(connection)
                    .await?;
                Ok(())
            })
        })
        .connect(it.config.database.url.expose())
        .await
        .unwrap();
    let worker = Store::from_pool(pool.clone());
    let step = async || worker.advance_replay(replay, SystemClock.now()).await;
    let mut writer = it.pool.begin().await.unwrap();
    sqlx::query("UPDATE events SET body = body WHERE false")
        .execute(&mut *writer)
        .await
        .unwrap();
    let hidden = step().await.unwrap_err();
    assert!(matches!(hidden, store::Error::HiddenSessions), "{hidden:?}");
    administer(format!("GRANT pg_read_all_stats TO {role}")).await;
    assert!(step().await.is_ok());
    writer.rollback().await.unwrap();
    pool.close().await;
    administer(format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}
