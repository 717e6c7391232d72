//! Two dispatchers: one leads, the other waits for its turn.

use std::time::Duration;

use broker::Queue;
use lifecycle::{Lifecycle, Readiness, Shutdown};
use sqlx::PgPool;
use store::PromotionQueue;
use testkit::{PATIENCE, eventually, with_installation};
use tokio::runtime::Runtime;

use crate::rig::{
    all_sent, arrivals, assert_each_sent_once, claimed, enqueue, epoch_of_leader, leader, promote, start,
};

const PUSHES: usize = 100;

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_standby_sends_nothing_and_goes_on_at_once_when_the_leader_stops(pool: PgPool) {
    with_installation(pool, async |mut it| {
        it.config.swrve.delay = Duration::from_millis(20);
        it.config.push.leader.poll = Duration::from_millis(50);
        // Nobody waits so long: the standby can only go on in time because the leader resigns.
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
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_standby_takes_over_from_a_leader_that_vanished_and_nothing_is_lost(pool: PgPool) {
    with_installation(pool, async |mut it| {
        it.config.swrve.delay = Duration::from_millis(20);
        it.config.push.leader.ttl = Duration::from_millis(1_000);
        it.config.push.leader.poll = Duration::from_millis(50);
        let broker = it.broker();
        let ids = enqueue(&it, &broker, PUSHES).await;
        // A runtime of its own, whose tasks can be made to vanish without a farewell.
        let doomed = Runtime::new().unwrap();
        let lifecycle = Lifecycle {
            shutdown: Shutdown::new(),
            readiness: Readiness::default(),
        };
        doomed.spawn(dispatcher::run(it.shared_config(), lifecycle));
        arrivals(&it, 10).await;
        let second = start(&it.config);
        doomed.shutdown_background();
        eventually("the standby to lead", async || {
            (epoch_of_leader(&it.pool).await == Some(2)).then_some(())
        })
        .await;
        // What the first had claimed comes back when its claims have run out, which they do now.
        sqlx::query("UPDATE push_notifications SET leased_until = now() - interval '1 s' WHERE attempts > 0 AND status = 'IN_MEMORY'")
            .execute(&it.pool)
            .await
            .unwrap();
        it.store.rescue_pushes(1_000, 5).await.unwrap();
        promote(&it, &broker, PromotionQueue::Pending).await;
        all_sent(&it, &ids).await;
        let report = it.sim.report();
        assert_eq!(report.distinct_pushes, PUSHES as u64);
        assert_eq!(claimed(&it.pool).await, 0);
        second.stop().await;
    })
    .await;
}
