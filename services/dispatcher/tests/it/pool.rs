//! How many sends may be in flight.

use std::time::Duration;

use sqlx::PgPool;
use testkit::with_installation;

use crate::rig::{all_sent, assert_each_sent_once, enqueue, slow, start};

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn only_the_pool_and_the_reader_itself_send(pool: PgPool) {
    with_installation(pool, async |mut it| {
        it.config.swrve.delay = Duration::from_millis(4);
        it.config.swrve.average_processing = Duration::from_millis(8);
        it.sim.script(vec![slow(1_500)]).unwrap();
        let broker = it.broker();
        let ids = enqueue(&it, &broker, 12).await;
        let dispatcher = start(&it.config);
        all_sent(&it, &ids).await;
        assert_eq!(it.sim.report().max_concurrent, 3, "a pool of two, and the reader");
        assert_each_sent_once(&it, 12);
        dispatcher.stop().await;
    })
    .await;
}
