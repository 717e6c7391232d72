//! The ground by itself: everything starts, every fault does what it says, and everything is well again afterwards.
//!
//! It needs the programs of PostgreSQL and RabbitMQ, libfaketime and the binary of the services, but no server that runs.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod faults;
mod rig;

use chaos::ground::Fault;

use rig::with_ground;

/// One ground for all: to start one costs more than all faults together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_strikes_and_is_healed() {
    with_ground(3, async |ground| {
        faults::a_killed_service_starts_again(ground).await;
        faults::a_service_that_stops_gracefully_starts_again(ground).await;
        faults::a_frozen_service_stands_still(ground).await;
        faults::a_clock_jumps_both_ways(ground).await;
        faults::links_are_cut_silenced_and_slowed(ground).await;
        faults::a_lost_node_of_the_broker_is_followed_by_another(ground).await;
        faults::a_partitioned_node_pauses(ground).await;
        faults::alarms_block_publishers(ground).await;
        faults::a_killed_database_recovers(ground).await;
        faults::what_is_not_there_is_not_struck(ground).await;
        assert!(ground.deaths().is_empty(), "{:?}", ground.deaths());
    })
    .await;
    assert_eq!(Fault::KINDS.len(), 14, "a new kind needs a test here");
}
