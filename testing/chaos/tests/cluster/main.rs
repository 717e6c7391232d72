//! The cluster by itself: everything starts, every fault does what it says, and everything is well again afterwards.
//!
//! It needs the programs of PostgreSQL and RabbitMQ, libfaketime and the binary of the services, but no server that runs.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod faults;
mod rig;

use chaos::cluster::ClusterFault;

use rig::with_cluster;

/// One cluster for all: to start one costs more than all faults together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_takes_effect_and_is_healed() {
    with_cluster(3, async |cluster| {
        faults::a_killed_service_starts_again(cluster).await;
        faults::a_service_that_stops_gracefully_starts_again(cluster).await;
        faults::a_frozen_service_stands_still(cluster).await;
        faults::a_clock_jumps_both_ways(cluster).await;
        faults::links_are_cut_silenced_and_slowed(cluster).await;
        faults::a_lost_node_of_the_broker_is_followed_by_another(cluster).await;
        faults::a_partitioned_node_pauses(cluster).await;
        faults::alarms_block_publishers(cluster).await;
        faults::a_killed_database_recovers(cluster).await;
        faults::nothing_is_injected_into_what_is_not_there(cluster).await;
        assert!(cluster.deaths().is_empty(), "{:?}", cluster.deaths());
    })
    .await;
    assert_eq!(ClusterFault::KINDS.len(), 14, "a new kind needs a test here");
}
