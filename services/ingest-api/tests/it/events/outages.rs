//! The broker is away, or its queue is full; the database is away.

use config::Secret;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{FaultProxy, Installation, eventually};

use crate::events::{count, event, event_with, nothing_is_stored};
use crate::outages::closed_port;
use crate::running::{Running, problem, push};

async fn with_status(pool: &PgPool, status: &str) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM notifications WHERE status = $1")
        .bind(status)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn without_a_broker_events_are_accepted_and_their_notifications_wait(it: Installation) {
    let mut config = it.config.clone();
    config.amqp.url = Secret::new(format!("amqp://127.0.0.1:{}", closed_port()));
    let service = Running::start(&it, config).await;
    SubscriptionRow::active().make(&it.pool).await;
    let view = service
        .look_up_event(service.accepted_event(&event()).await)
        .await;
    assert_eq!(view["notifications"][0]["status"], "PENDING");
    assert_eq!(
        view["notifications"][0]["explanation"],
        "Waits for room in the queue."
    );
    let batch = service.post_batch(&[event(), event()]).send().await.unwrap();
    assert_eq!(batch.status().as_u16(), 202);
    assert_eq!(with_status(&it.pool, "PENDING").await, 3);
}

#[testkit::test]
async fn a_broker_that_is_back_is_used_again(it: Installation) {
    let (proxy, through) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    let mut config = it.config.clone();
    config.amqp.url = Secret::new(through);
    let service = Running::start(&it, config).await;
    service.until_ready().await;
    SubscriptionRow::active().make(&it.pool).await;
    let becomes = async |status: &str| {
        eventually(&format!("a notification to become {status}"), async || {
            let view = service
                .look_up_event(service.accepted_event(&event()).await)
                .await;
            (view["notifications"][0]["status"] == status).then_some(())
        })
        .await;
    };
    becomes("IN_MEMORY").await;
    proxy.cut();
    becomes("PENDING").await;
    proxy.heal();
    // What waits is the promoter's, and keeps no other notification waiting.
    becomes("IN_MEMORY").await;
    service.stop().await;
}

#[testkit::test]
async fn what_a_full_queue_refuses_waits_and_pushes_do_not_notice(mut it: Installation) {
    it.config.reseller.queue.capacity = 10;
    let service = Running::ready(&it).await;
    SubscriptionRow::active().make(&it.pool).await;
    for _ in 0..60 {
        service.accepted_event(&event()).await;
    }
    eventually("notifications to wait for room", async || {
        let waiting = with_status(&it.pool, "PENDING").await;
        let queued = with_status(&it.pool, "IN_MEMORY").await;
        (waiting > 0 && queued >= 10 && waiting + queued == 60).then_some(())
    })
    .await;
    let id = service.accepted(&push()).await;
    assert_eq!(service.look_up(id).await["status"], "IN_MEMORY");
}

#[testkit::test]
async fn without_a_database_nothing_is_accepted_and_nothing_is_half_stored(it: Installation) {
    let (proxy, through) = FaultProxy::for_url(it.config.database.url.expose()).await;
    let mut config = it.config.clone();
    config.database.url = Secret::new(through);
    let service = Running::start(&it, config).await;
    service.until_ready().await;
    SubscriptionRow::active().make(&it.pool).await;
    // A refused one makes the key and the type known, so that what fails from now on is the storing.
    let refused = event_with(json!({"eventId": "a.b"}));
    let answer = service.post_event(&refused).send().await.unwrap();
    problem(answer, 422, "validation").await;
    proxy.cut();
    let keyed = event_with(json!({"eventId": "e-1"}));
    let batch: Vec<Value> = (0..5).map(|_| event()).collect();
    for request in [
        service.post_event(&event()),
        service.post_event(&keyed),
        service.post_batch(&batch),
        service.post_event(&event_with(json!({"type": "contact.updated"}))),
        service.get("/events/0194f6a0-0000-7000-8000-000000000000"),
        service.get("/event-types"),
    ] {
        let answer = request.send().await.unwrap();
        let seconds: u32 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(seconds > 0);
        problem(answer, 503, "unavailable").await;
    }
    nothing_is_stored(&it.pool).await;
    proxy.heal();
    eventually("an event to be accepted again", async || {
        let answer = service.post_event(&keyed).send().await.unwrap();
        (answer.status().as_u16() == 202).then_some(())
    })
    .await;
    assert_eq!(count(&it.pool, "events").await, 1);
    service.stop().await;
}
