//! The push lane while an operator has it paused.

use std::time::Duration;

use broker::Queue;
use domain::clock::{Clock, SystemClock};
use domain::push::PushStatus;
use sqlx::PgPool;
use store::push::PromotionQueue;
use store::{Act, Lane, Pausable, PauseChange, Store};
use testkit::{Installation, PATIENCE, eventually};

use crate::rig::{
    all_sent, arrivals, assert_each_sent_once, claimed, enqueue, epoch_of_leader, leader, promote,
    queue_holds, rows, slow, start,
};

const PUSHES: usize = 20;

fn act() -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: Some("because"),
        at: SystemClock.now(),
    }
}

async fn pause(store: &Store) {
    let paused = store.pause(&Pausable::Lane(Lane::Push), act()).await;
    assert_eq!(paused.unwrap(), PauseChange::Changed);
}

async fn resume(store: &Store) {
    let resumed = store.resume(&Pausable::Lane(Lane::Push), act()).await;
    assert_eq!(resumed.unwrap(), PauseChange::Changed);
}

/// Waits until no replica leads and none reads the queue.
async fn no_replica_works(pool: &PgPool, broker: &broker::Broker) {
    eventually("no replica to lead or to read", async || {
        let depth = broker.depth(Queue::PushReady).await.ok()?;
        (depth.consumers == 0 && epoch_of_leader(pool).await.is_none()).then_some(())
    })
    .await;
}

#[testkit::test]
async fn a_paused_lane_sends_nothing_whichever_replica_is_started_and_goes_on_by_itself(
    mut it: Installation,
) {
    it.config.push.leader.poll = Duration::from_millis(50);
    let broker = it.broker();
    let first = start(&it.config);
    let second = start(&it.config);
    let epoch = leader(&it.pool).await;
    pause(&it.store).await;
    no_replica_works(&it.pool, &broker).await;
    let ids = enqueue(&it, &broker, PUSHES).await;
    let before = rows(&it.pool, &ids).await;
    // One is started again meanwhile: a pause is in no process's memory.
    first.stop().await;
    let first = start(&it.config);
    for dispatcher in [&first, &second] {
        eventually("the dispatcher to be ready", async || {
            dispatcher.is_ready().then_some(())
        })
        .await;
    }
    queue_holds(&broker, PUSHES as u32).await;
    assert_eq!(rows(&it.pool, &ids).await, before);
    assert_eq!(it.sim.report().received, 0);
    let taken: i64 = sqlx::query_scalar("SELECT epoch FROM leases WHERE name = 'push'")
        .fetch_one(&it.pool)
        .await
        .unwrap();
    // The standby may have been granted the lease just as the pause began, and has then given it back.
    assert!((epoch..=epoch + 1).contains(&taken), "{taken}");
    resume(&it.store).await;
    all_sent(&it, &ids).await;
    assert_each_sent_once(&it, PUSHES);
}

#[testkit::test]
async fn a_pause_lets_what_is_being_sent_end_and_hands_back_the_rest(mut it: Installation) {
    it.config.swrve.delay = Duration::from_millis(4);
    it.config.swrve.average_processing = Duration::from_millis(8);
    it.sim.script(vec![slow(2_000)]).unwrap();
    let broker = it.broker();
    let ids = enqueue(&it, &broker, PUSHES).await;
    let _dispatcher = start(&it.config);
    arrivals(&it, 3).await;
    pause(&it.store).await;
    no_replica_works(&it.pool, &broker).await;
    eventually("everything claimed to be settled", async || {
        (claimed(&it.pool).await == 0).then_some(())
    })
    .await;
    let mut sent = 0;
    for id in &ids {
        let push = crate::rig::view(&it, *id).await;
        match push.status {
            PushStatus::Sent => sent += 1,
            _ => assert_eq!(
                (push.status, push.attempts),
                (PushStatus::InMemory, 0),
                "{push:?}"
            ),
        }
    }
    assert_each_sent_once(&it, sent);
    queue_holds(&broker, (PUSHES - sent) as u32).await;
    it.sim.script(Vec::new()).unwrap();
    resume(&it.store).await;
    all_sent(&it, &ids).await;
    assert_each_sent_once(&it, PUSHES);
}

#[testkit::test]
async fn a_push_that_is_cancelled_while_it_is_queued_is_not_sent(it: Installation) {
    let broker = it.broker();
    let ids = enqueue(&it, &broker, 2).await;
    it.store.cancel_push(ids[0], act()).await.unwrap();
    let dispatcher = start(&it.config);
    all_sent(&it, &ids[1..]).await;
    queue_holds(&broker, 0).await;
    dispatcher.stop().await;
    assert_eq!(it.sim.report().received, 1);
    let push = crate::rig::view(&it, ids[0]).await;
    assert_eq!((push.status, push.attempts), (PushStatus::GivenUp, 0));
    queue_holds(&broker, 0).await;
}

#[testkit::test]
async fn a_wiped_broker_is_filled_again_and_everything_arrives_once(it: Installation) {
    let broker = it.broker();
    let ids = enqueue(&it, &broker, PUSHES).await;
    it.wipe_queues().await;
    // A message that outlives its second, as when only some of the queues were lost.
    broker.declare().await.unwrap();
    it.publish(&broker, &ids[..3]).await;
    broker.declare().await.unwrap();
    let requeued = it.store.requeue_everything(act()).await.unwrap();
    assert_eq!((requeued.pushes, requeued.notifications), (PUSHES as u64, 0));
    promote(&it, &broker, PromotionQueue::Pending).await;
    let dispatcher = start(&it.config);
    all_sent(&it, &ids).await;
    queue_holds(&broker, 0).await;
    assert_each_sent_once(&it, PUSHES);
    // The same with a replica reading, which finds its queue gone.
    it.wipe_queues().await;
    // Declared again by the replica, once it has noticed. RabbitMQ 3.10 keeps a consumer of a quorum queue that another makes again within
    // milliseconds, and throws away what the new queue delivers to it.
    eventually("the replica to read again", async || {
        let depth = broker.depth(Queue::PushReady).await.ok()?;
        (depth.consumers == 1).then_some(())
    })
    .await;
    eventually("the topology to be declared again", async || {
        broker.declare().await.ok()
    })
    .await;
    let more = enqueue(&it, &broker, PUSHES).await;
    it.store.requeue_everything(act()).await.unwrap();
    let promoting = async {
        loop {
            promote(&it, &broker, PromotionQueue::Pending).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = all_sent(&it, &more) => {}
        () = promoting => unreachable!("it goes on until it is dropped"),
        () = tokio::time::sleep(2 * PATIENCE) => panic!("the dispatcher does not recover"),
    }
    dispatcher.stop().await;
    let report = it.sim.report();
    assert_eq!(
        (report.received, report.accepted),
        (2 * PUSHES as u64, 2 * PUSHES as u64)
    );
}
