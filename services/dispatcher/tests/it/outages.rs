//! Servers that are away for a while.

use std::time::Duration;

use broker::Queue;
use config::{Config, Secret};
use domain::push::{AttemptStatus, PushStatus};
use testkit::{FaultProxy, Installation, eventually};

use crate::rig::{all_sent, arrivals, assert_each_sent_once, enqueue_for, queue_holds, slow, start, view};

/// The installation's configuration with the database behind a proxy.
async fn with_database_cable(it: &Installation) -> (FaultProxy, Config) {
    let mut config = it.config.clone();
    let (proxy, url) = FaultProxy::for_url(config.database.url.expose()).await;
    config.database.url = Secret::new(url);
    (proxy, config)
}

/// The installation's configuration with the broker behind a proxy.
async fn with_broker_cable(it: &Installation) -> (FaultProxy, Config) {
    let mut config = it.config.clone();
    let (proxy, url) = FaultProxy::for_url(config.amqp.url.expose()).await;
    config.amqp.url = Secret::new(url);
    (proxy, config)
}

async fn answered(it: &Installation) {
    eventually("the answer of Swrve", async || {
        (it.sim.report().accepted == 1).then_some(())
    })
    .await;
}

#[testkit::test]
async fn an_outcome_is_recorded_when_the_database_is_back(it: Installation) {
    let (proxy, config) = with_database_cable(&it).await;
    it.sim.script(vec![slow(6_000)]).unwrap();
    let (dispatcher, broker) = (start(&config), it.broker());
    let id = enqueue_for(&it, &broker, "device-1").await;
    arrivals(&it, 1).await;
    proxy.cut();
    answered(&it).await;
    let push = view(&it, id).await;
    assert!(push.claimed && push.status == PushStatus::InMemory);
    assert_eq!(push.history[0].status, AttemptStatus::InProcess);
    proxy.heal();
    let push = it.settled(id, PushStatus::Sent).await;
    assert_eq!((push.attempts, push.history[0].status), (1, AttemptStatus::Ok));
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
    assert_each_sent_once(&it, 1);
}

#[testkit::test]
async fn a_message_that_comes_again_after_a_lost_connection_is_not_sent_again(it: Installation) {
    let (proxy, config) = with_broker_cable(&it).await;
    it.sim.script(vec![slow(6_000)]).unwrap();
    let (dispatcher, broker) = (start(&config), it.broker());
    let id = enqueue_for(&it, &broker, "device-1").await;
    arrivals(&it, 1).await;
    proxy.cut();
    let push = view(&it, id).await;
    assert!(push.claimed, "the connection should break in mid-flight");
    // The outcome does not wait for the broker.
    it.settled(id, PushStatus::Sent).await;
    queue_holds(&broker, 1).await;
    proxy.heal();
    queue_holds(&broker, 0).await;
    let last = enqueue_for(&it, &broker, "device-2").await;
    all_sent(&it, &[last]).await;
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
    assert_each_sent_once(&it, 2);
}

#[testkit::test]
async fn a_message_that_comes_again_in_mid_flight_is_not_sent_again(it: Installation) {
    let (proxy, config) = with_broker_cable(&it).await;
    it.sim.script(vec![slow(5_000)]).unwrap();
    let (dispatcher, broker) = (start(&config), it.broker());
    let id = enqueue_for(&it, &broker, "device-1").await;
    arrivals(&it, 1).await;
    proxy.cut();
    queue_holds(&broker, 1).await;
    proxy.heal();
    // The dispatcher is back and has taken the message, while the push is still being sent.
    eventually("the message to be taken", async || {
        let depth = broker.depth(Queue::PushReady).await.ok()?;
        (depth.messages == 0 && depth.consumers == 1).then_some(())
    })
    .await;
    let push = it.settled(id, PushStatus::Sent).await;
    assert_eq!((push.attempts, push.history.len()), (1, 1));
    dispatcher.stop().await;
    queue_holds(&broker, 0).await;
    assert_each_sent_once(&it, 1);
}

#[testkit::test]
async fn a_dispatcher_may_start_before_its_servers(mut it: Installation) {
    it.config.push.leader.poll = Duration::from_millis(50);
    let (database, with_database) = with_database_cable(&it).await;
    it.config.database.url = with_database.database.url;
    let (amqp, config) = with_broker_cable(&it).await;
    database.cut();
    amqp.cut();
    let broker = it.broker();
    let id = enqueue_for(&it, &broker, "device-1").await;
    let dispatcher = start(&config);
    eventually("both servers to be missed", async || {
        let missed = |name| {
            dispatcher
                .why_not(name)
                .is_some_and(|reason| reason != "starting")
        };
        (missed("database") && missed("broker")).then_some(())
    })
    .await;
    assert!(!dispatcher.is_ready());
    database.heal();
    eventually("the database to be found", async || {
        dispatcher.why_not("database").is_none().then_some(())
    })
    .await;
    amqp.heal();
    all_sent(&it, &[id]).await;
    eventually("it to be ready", async || dispatcher.is_ready().then_some(())).await;
    dispatcher.stop().await;
    assert_each_sent_once(&it, 1);
}
