//! Servers that are away for a while.

use broker::Queue;
use config::Secret;
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use testkit::{FaultProxy, Installation, eventually};

use crate::rig::Rig;

fn slow() -> Rule {
    Rule {
        delay_millis: Some(6_000),
        ..Rule::default()
    }
}

async fn attempts(rig: &Rig) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM delivery_attempts")
        .fetch_one(&rig.it.pool)
        .await
        .expect("attempts can be counted")
}

#[testkit::test]
async fn outcomes_wait_for_the_database_and_are_recorded_when_it_is_back(it: Installation) {
    let mut rig = Rig::new(it).await;
    let (proxy, url) = FaultProxy::for_url(rig.it.config.database.url.expose()).await;
    rig.it.config.database.url = Secret::new(url);
    rig.subscription().make(&rig.it.pool).await;
    rig.script(vec![slow()]);
    let engine = rig.start(Lane::First).await;
    rig.send(5).await;
    rig.in_flight_becomes(5).await;
    proxy.cut();
    eventually("all of them to be answered", async || {
        (rig.receiver.report().accepted == 5).then_some(())
    })
    .await;
    assert_eq!(rig.count(NotificationStatus::Sent).await, 0);
    proxy.heal();
    rig.count_becomes(NotificationStatus::Sent, 5).await;
    engine.stop().await;
    assert_eq!((attempts(&rig).await, rig.receiver.report().received), (5, 5));
}

#[testkit::test]
async fn what_comes_while_the_database_is_away_is_delivered_when_it_is_back(it: Installation) {
    let mut rig = Rig::new(it).await;
    let (proxy, url) = FaultProxy::for_url(rig.it.config.database.url.expose()).await;
    rig.it.config.database.url = Secret::new(url);
    rig.subscription().make(&rig.it.pool).await;
    let engine = rig.start(Lane::First).await;
    rig.send(1).await;
    rig.count_becomes(NotificationStatus::Sent, 1).await;
    proxy.cut();
    rig.send(20).await;
    eventually("the messages to be taken", async || {
        let depth = rig.broker.depth(Queue::ResellerReady).await.ok()?;
        (depth.messages == 0).then_some(())
    })
    .await;
    assert_eq!(rig.receiver.report().received, 1);
    proxy.heal();
    rig.count_becomes(NotificationStatus::Sent, 21).await;
    // Connections that fall silent are found out as well.
    proxy.freeze();
    rig.send(20).await;
    rig.count_becomes(NotificationStatus::Sent, 41).await;
    engine.stop().await;
    // The server does not know that the silent ones are given up, and may have a transaction open in one.
    proxy.reset();
    assert_eq!(rig.receiver.report().distinct_ids, 41);
}

#[testkit::test]
async fn what_is_under_way_while_the_broker_is_away_is_recorded_and_not_sent_again(it: Installation) {
    let mut rig = Rig::new(it).await;
    let (proxy, url) = FaultProxy::for_url(rig.it.config.amqp.url.expose()).await;
    rig.it.config.amqp.url = Secret::new(url);
    rig.subscription().make(&rig.it.pool).await;
    rig.script(vec![slow()]);
    let engine = rig.start(Lane::First).await;
    rig.send(5).await;
    rig.in_flight_becomes(5).await;
    proxy.cut();
    rig.count_becomes(NotificationStatus::Sent, 5).await;
    proxy.heal();
    rig.script(Vec::new());
    rig.send(5).await;
    rig.count_becomes(NotificationStatus::Sent, 10).await;
    eventually("the messages that came again to be settled", async || {
        let depth = rig.broker.depth(Queue::ResellerReady).await.ok()?;
        (depth.messages == 0).then_some(())
    })
    .await;
    engine.stop().await;
    assert_eq!((attempts(&rig).await, rig.receiver.report().received), (10, 10));
}
