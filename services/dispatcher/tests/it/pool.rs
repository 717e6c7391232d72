//! How many sends may be in flight.

use std::time::Duration;

use testkit::Installation;

use crate::rig::{all_sent, assert_each_sent_once, enqueue, slow, start};

#[testkit::test]
async fn only_the_pool_and_the_reader_itself_send(mut it: Installation) {
    it.config.swrve.delay = Duration::from_millis(4);
    it.config.swrve.average_processing = Duration::from_millis(8);
    it.sim.script(vec![slow(1_500)]).unwrap();
    let broker = it.broker();
    let ids = enqueue(&it, &broker, 12).await;
    let _dispatcher = start(&it.config);
    all_sent(&it, &ids).await;
    assert_eq!(it.sim.report().max_concurrent, 3, "a pool of two, and the reader");
    assert_each_sent_once(&it, 12);
}
