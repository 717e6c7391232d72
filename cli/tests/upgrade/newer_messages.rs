//! Messages that another version has written: of a newer wire format, which no service here can read, and of the present one with
//! more in it.

use broker::Queue;
use domain::push::{PushId, PushStatus};
use serde_json::json;
use sqlx::PgPool;
use testkit::{Installation, eventually, push_request, run};

use crate::rig::Service;
use crate::versions::Version::{Previous, This};
use crate::versions::{Version, Versions, stop};

#[sqlx::test(migrations = false)]
async fn a_message_of_a_newer_format_costs_a_dead_letter_and_no_push(pool: PgPool) {
    run(pool, async |it: Installation| {
        let versions = Versions::of(&it).await;
        versions.migrate().await;
        for (letters, version) in [(1, Previous), (2, This)] {
            is_survived_by(version, &it, &versions, letters).await;
        }
    })
    .await;
}

async fn is_survived_by(version: Version, it: &Installation, versions: &Versions, letters: i64) {
    let dispatcher = versions.start(version, Service::Dispatcher).await;
    let worker = versions.start(version, Service::RetryWorker).await;
    let push = queued(it, "newer").await;
    let newer = json!({"version": 2, "kind": "push", "id": push.uuid(), "whatever": {"it": "means"}});
    it.publish_raw(Queue::PushReady, newer.to_string().as_bytes())
        .await;
    eventually("the message to be among the dead letters", async || {
        let archived: i64 =
            sqlx::query_scalar("SELECT count(*) FROM dead_letters WHERE reason = 'MALFORMED'")
                .fetch_one(&it.pool)
                .await
                .expect("the dead letters can be counted");
        (archived == letters).then_some(())
    })
    .await;
    // As if its time in the queue were over: it is published again, in a format that this version writes.
    sqlx::query("UPDATE push_notifications SET leased_until = now() - interval '1 second' WHERE id = $1")
        .bind(push.uuid())
        .execute(&it.pool)
        .await
        .expect("the row can be changed");
    it.settled(push, PushStatus::Sent).await;

    let push = queued(it, "richer").await;
    let richer = json!({
        "version": 1, "kind": "push", "id": push.uuid(), "enqueued_at": "2026-01-31T23:59:59Z",
        "added_later": {"priority": 7},
    });
    it.publish_raw(Queue::PushReady, richer.to_string().as_bytes())
        .await;
    it.settled(push, PushStatus::Sent).await;
    stop(dispatcher).await;
    stop(worker).await;
}

/// A push that is taken for queued for an hour.
async fn queued(it: &Installation, user: &str) -> PushId {
    it.accept(PushStatus::InMemory, push_request(user, "Hello!"))
        .await
}
