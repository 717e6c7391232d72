//! Two dispatchers: one leads, the other waits for its turn.

use std::time::Duration;

use broker::Queue;
use config::Secret;
use lifecycle::{Lifecycle, Readiness, Shutdown};
use store::push::PromotionQueue;
use testkit::{FaultProxy, Installation, PATIENCE, eventually};
use tokio::runtime::Runtime;

use crate::rig::{
    all_sent, arrivals, assert_each_sent_once, claimed, enqueue, epoch_of_leader, have_been_claimed, leader,
    promote, queue_holds, start,
};

const PUSHES: usize = 100;

#[testkit::test]
async fn a_standby_sends_nothing_and_goes_on_at_once_when_the_leader_stops(mut it: Installation) {
    it.config.swrve.delay = Duration::from_millis(100);
    it.config.push.leader.poll = Duration::from_millis(50);
    // The test does not wait so long: the standby can only go on in time because the leader resigns.
    it.config.push.leader.ttl = 2 * PATIENCE;
    let broker = it.broker();
    let ids = enqueue(&it, &broker, PUSHES).await;
    let first = start(&it.config);
    assert_eq!(leader(&it.pool).await, 1);
    let second = start(&it.config);
    eventually("the standby to be ready", async || {
        second.is_ready().then_some(())
    })
    .await;
    arrivals(&it, 10).await;
    let depth = broker.depth(Queue::PushReady).await.unwrap();
    assert_eq!(depth.consumers, 1, "only the leader reads the queue");
    first.stop().await;
    assert!(
        it.sim.report().received < PUSHES as u64,
        "there is something left to go on with"
    );
    all_sent(&it, &ids).await;
    assert_each_sent_once(&it, PUSHES);
    assert_eq!(epoch_of_leader(&it.pool).await, Some(2));
    second.stop().await;
    assert_eq!(
        epoch_of_leader(&it.pool).await,
        None,
        "the last leader resigns too"
    );
}

#[testkit::test]
async fn a_standby_takes_over_from_a_leader_that_vanished_and_nothing_is_lost(mut it: Installation) {
    it.config.swrve.delay = Duration::from_millis(200);
    it.config.push.leader.ttl = Duration::from_secs(3);
    it.config.push.leader.poll = Duration::from_millis(50);
    let broker = it.broker();
    let mut ids = enqueue(&it, &broker, PUSHES / 2).await;
    // A runtime of its own, whose tasks can be made to vanish without a farewell.
    let doomed = Runtime::new().unwrap();
    let lifecycle = Lifecycle {
        shutdown: Shutdown::new(),
        readiness: Readiness::default(),
    };
    doomed.spawn(dispatcher::run(it.shared_config(), lifecycle));
    // A claim that is under way when it vanishes would come back only when the claim runs out.
    have_been_claimed(&it.pool, PUSHES / 2).await;
    arrivals(&it, 5).await;
    doomed.shutdown_background();
    let vanished = leader(&it.pool).await;
    let second = start(&it.config);
    eventually("the second to lead", async || {
        epoch_of_leader(&it.pool).await.filter(|epoch| *epoch > vanished)
    })
    .await;
    assert!(claimed(&it.pool).await > 0, "the first had more to do");
    // Its claims have run out now.
    sqlx::query("UPDATE push_notifications SET leased_until = now() - interval '1 s' WHERE attempts > 0 AND status = 'IN_MEMORY'")
        .execute(&it.pool)
        .await
        .unwrap();
    it.store.rescue_pushes(1_000, 5).await.unwrap();
    promote(&it, &broker, PromotionQueue::Pending).await;
    ids.extend(enqueue(&it, &broker, PUSHES / 2).await);
    all_sent(&it, &ids).await;
    assert_eq!(claimed(&it.pool).await, 0);
    second.stop().await;
    queue_holds(&broker, 0).await;
}

#[testkit::test]
async fn a_replica_that_loses_the_broker_leaves_the_lane_to_one_that_has_it(mut it: Installation) {
    it.config.push.leader.poll = Duration::from_millis(50);
    // The test does not wait so long: the other can only lead because this one steps down.
    it.config.push.leader.ttl = 2 * PATIENCE;
    let (proxy, url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    let mut config = it.config.clone();
    config.amqp.url = Secret::new(url);
    let first = start(&config);
    assert_eq!(leader(&it.pool).await, 1);
    let second = start(&it.config);
    eventually("the second to be ready", async || second.is_ready().then_some(())).await;
    proxy.cut();
    eventually("the second to lead", async || {
        (epoch_of_leader(&it.pool).await == Some(2)).then_some(())
    })
    .await;
    let broker = it.broker();
    let ids = enqueue(&it, &broker, 3).await;
    all_sent(&it, &ids).await;
    second.stop().await;
    // Still without the broker, the first is no candidate.
    assert_eq!(epoch_of_leader(&it.pool).await, None);
    proxy.heal();
    let more = enqueue(&it, &broker, 3).await;
    all_sent(&it, &more).await;
    assert_eq!(epoch_of_leader(&it.pool).await, Some(3));
    first.stop().await;
}
