//! The faults of Web Push. They have a stream of chance of their own, so that those of the lanes are what they were before there was any.

use super::draw::{Kind, cluster, kind, of_service};
use super::{Fault, Terms};
use crate::cluster::{ClusterFault, End, Replica, Service};
use crate::rng::Rng;

/// Tells the stream from that of the lanes, and from those of rounds.
pub(super) const STREAM: u64 = 0x7765_6270_7573_6821;

/// What the database does to them is among the faults of the lanes.
pub(super) const KINDS: [Kind; 8] = [
    kind("kill", 20, |rng, terms| {
        cluster(ClusterFault::Kill {
            replica: node(rng, terms),
        })
    }),
    kind("stop-gracefully", 6, |rng, terms| {
        cluster(ClusterFault::StopGracefully {
            replica: node(rng, terms),
        })
    }),
    kind("freeze", 16, |rng, terms| {
        let replica = node(rng, terms);
        cluster(ClusterFault::Freeze {
            replica,
            lasts: rng.millis(200, 7_000),
        })
    }),
    kind("cut", 10, |rng, terms| {
        let (from, to) = link(rng, terms);
        cluster(ClusterFault::Cut {
            from,
            to,
            lasts: rng.millis(200, 5_000),
        })
    }),
    kind("blackhole", 12, |rng, terms| {
        let (from, to) = link(rng, terms);
        cluster(ClusterFault::Blackhole {
            from,
            to,
            lasts: rng.millis(500, 7_000),
        })
    }),
    kind("latency", 8, |rng, terms| {
        let (from, to) = link(rng, terms);
        let delay = rng.millis(5, 300);
        cluster(ClusterFault::Latency {
            from,
            to,
            delay,
            jitter: rng.millis(0, 100),
            lasts: rng.millis(1_000, 6_000),
        })
    }),
    kind("reset-connections", 10, |rng, terms| {
        let (from, to) = link(rng, terms);
        cluster(ClusterFault::ResetConnections { from, to })
    }),
    kind("reconnect-storm", 12, |_, _| Fault::ReconnectStorm),
];

/// Connections hold what is on its way, so their nodes are hit more often.
fn node(rng: &mut Rng, terms: &Terms) -> Replica {
    let service = rng.pick(&[
        Service::WebpushConnection,
        Service::WebpushConnection,
        Service::WebpushEndpoint,
    ]);
    of_service(service, rng, terms)
}

fn link(rng: &mut Rng, terms: &Terms) -> (End, End) {
    match rng.between(0, 9) {
        0..=2 => (End::Replica(node(rng, terms)), End::Postgres),
        3..=6 => {
            let connection = of_service(Service::WebpushConnection, rng, terms);
            (End::EndpointNodes, End::Replica(connection))
        }
        _ => (End::Clients, End::Replica(node(rng, terms))),
    }
}
