//! Drawing one fault: which kinds there are, how often each comes, and how bad it is. Those of Web Push are in `webpush`.

use super::{Behaviour, Fault, Lane, Terms};
use crate::cluster::{ClusterFault, End, Replica, Service};
use crate::rng::Rng;

/// A kind of fault.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// How often it comes, against the others.
    weight: u64,
    draw: fn(&mut Rng, &Terms) -> Fault,
    /// Of how many broker nodes it makes sense.
    broker_nodes: usize,
}

pub(super) const fn kind(name: &'static str, weight: u64, draw: fn(&mut Rng, &Terms) -> Fault) -> Kind {
    Kind {
        name,
        weight,
        draw,
        broker_nodes: 1,
    }
}

const fn of_a_cluster(name: &'static str, weight: u64, draw: fn(&mut Rng, &Terms) -> Fault) -> Kind {
    Kind {
        name,
        weight,
        draw,
        broker_nodes: 3,
    }
}

pub(super) const KINDS: [Kind; 19] = [
    kind("kill", 20, |rng, terms| {
        cluster(ClusterFault::Kill {
            replica: replica(rng, terms),
        })
    }),
    kind("stop-gracefully", 5, |rng, terms| {
        cluster(ClusterFault::StopGracefully {
            replica: replica(rng, terms),
        })
    }),
    kind("freeze", 14, |rng, terms| {
        let replica = replica(rng, terms);
        cluster(ClusterFault::Freeze {
            replica,
            lasts: rng.millis(200, 7_000),
        })
    }),
    kind("clock-step", 8, |rng, terms| {
        let replica = replica(rng, terms);
        cluster(ClusterFault::ClockStep {
            replica,
            by_millis: step(rng),
        })
    }),
    kind("kill-broker-leader", 4, |rng, _| {
        cluster(ClusterFault::KillBrokerLeader {
            lasts: rng.millis(500, 5_000),
        })
    }),
    of_a_cluster("kill-broker-node", 3, |rng, terms| {
        let node = rng.index(terms.broker_nodes);
        cluster(ClusterFault::KillBrokerNode {
            node,
            lasts: rng.millis(500, 5_000),
        })
    }),
    of_a_cluster("partition-broker-node", 4, |rng, terms| {
        let node = rng.index(terms.broker_nodes);
        cluster(ClusterFault::PartitionBrokerNode {
            node,
            lasts: rng.millis(2_000, 12_000),
        })
    }),
    kind("memory-alarm", 3, |rng, _| {
        cluster(ClusterFault::MemoryAlarm {
            lasts: rng.millis(500, 4_000),
        })
    }),
    kind("disk-alarm", 2, |rng, _| {
        cluster(ClusterFault::DiskAlarm {
            lasts: rng.millis(500, 4_000),
        })
    }),
    kind("kill-postgres", 4, |rng, _| {
        cluster(ClusterFault::KillPostgres {
            lasts: rng.millis(200, 3_000),
        })
    }),
    kind("cut", 8, |rng, terms| {
        let (from, to) = link(rng, terms);
        cluster(ClusterFault::Cut {
            from,
            to,
            lasts: rng.millis(200, 5_000),
        })
    }),
    kind("blackhole", 8, |rng, terms| {
        let (from, to) = link(rng, terms);
        cluster(ClusterFault::Blackhole {
            from,
            to,
            lasts: rng.millis(500, 7_000),
        })
    }),
    kind("latency", 7, |rng, terms| {
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
    kind("reset-connections", 8, |rng, terms| {
        let (from, to) = link(rng, terms);
        cluster(ClusterFault::ResetConnections { from, to })
    }),
    kind("swrve", 7, |rng, _| Fault::Swrve {
        behaviour: behaviour(rng),
        lasts: rng.millis(500, 5_000),
    }),
    kind("receivers", 7, |rng, _| Fault::Receivers {
        behaviour: behaviour(rng),
        lasts: rng.millis(500, 5_000),
    }),
    kind("pause", 2, |rng, _| Fault::Pause {
        lane: lane(rng),
        lasts: rng.millis(200, 3_000),
    }),
    kind("replay-dead-letters", 2, |rng, _| Fault::ReplayDeadLetters {
        lane: lane(rng),
    }),
    kind("send-again", 4, |rng, _| Fault::SendAgain { choice: rng.next() }),
];

/// One fault of the kinds that are wanted; `None` when there is none.
pub(super) fn fault(rng: &mut Rng, kinds: &[Kind], terms: &Terms) -> Option<Fault> {
    let wanted = |kind: &&Kind| {
        kind.broker_nodes <= terms.broker_nodes
            && (terms.kinds.is_empty() || terms.kinds.iter().any(|name| name == kind.name))
    };
    let kinds: Vec<&Kind> = kinds.iter().filter(wanted).collect();
    let total: u64 = kinds.iter().map(|kind| kind.weight).sum();
    let mut left = rng.next().checked_rem(total)?;
    let drawn = kinds.iter().find(|kind| {
        let is_it = left < kind.weight;
        left = left.saturating_sub(kind.weight);
        is_it
    })?;
    Some((drawn.draw)(rng, terms))
}

pub(super) fn cluster(fault: ClusterFault) -> Fault {
    Fault::Cluster(fault)
}

/// Services that move work are hit more often than those that are only asked.
const TARGETS: [Service; 10] = [
    Service::Dispatcher,
    Service::Dispatcher,
    Service::Dispatcher,
    Service::Dispatcher,
    Service::RetryWorker,
    Service::RetryWorker,
    Service::IngestApi,
    Service::IngestApi,
    Service::ResellerPortal,
    Service::OperatorApi,
];
/// Those with links to the broker.
const MOVERS: [Service; 5] = [
    Service::Dispatcher,
    Service::Dispatcher,
    Service::RetryWorker,
    Service::IngestApi,
    Service::IngestApi,
];

fn replica(rng: &mut Rng, terms: &Terms) -> Replica {
    of_service(rng.pick(&TARGETS), rng, terms)
}

pub(super) fn of_service(service: Service, rng: &mut Rng, terms: &Terms) -> Replica {
    service.replica(rng.index(terms.replicas.of(service).max(1)))
}

fn link(rng: &mut Rng, terms: &Terms) -> (End, End) {
    let mover = |rng: &mut Rng| End::Replica(of_service(rng.pick(&MOVERS), rng, terms));
    match rng.between(0, 11) {
        0..=3 => (End::Replica(replica(rng, terms)), End::Postgres),
        4..=5 => (mover(rng), End::Broker),
        6 => (mover(rng), End::BrokerNode(rng.index(terms.broker_nodes))),
        7..=8 => (
            End::Replica(of_service(Service::Dispatcher, rng, terms)),
            End::Swrve,
        ),
        9 => (
            End::Replica(of_service(Service::Dispatcher, rng, terms)),
            End::Receivers,
        ),
        _ => (
            End::Clients,
            End::Replica(of_service(Service::IngestApi, rng, terms)),
        ),
    }
}

/// From a second to six hours, both ways; each order of magnitude is as likely as the others.
fn step(rng: &mut Rng) -> i64 {
    let size = rng.pick(&[1_000, 10_000, 60_000, 600_000, 3_600_000]);
    let millis =
        i64::try_from(rng.between(size, 6 * size)).expect("invariant: some hours are a small number");
    if rng.percent(50) { millis } else { -millis }
}

fn behaviour(rng: &mut Rng) -> Behaviour {
    match rng.between(0, 9) {
        0..=4 => Behaviour::Answers(rng.pick(&[500, 502, 503, 504, 429])),
        5..=6 => Behaviour::Hangs,
        7 => Behaviour::HangsUp,
        _ => Behaviour::IsSlow(rng.between(100, 1_500)),
    }
}

fn lane(rng: &mut Rng) -> Lane {
    rng.pick(&[Lane::Push, Lane::Reseller])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::webpush;
    use super::*;

    #[test]
    fn every_kind_draws_what_it_is_called() {
        let terms = Terms {
            seed: 0,
            lasts: Duration::ZERO,
            broker_nodes: 3,
            replicas: crate::cluster::Replicas::default(),
            kinds: Vec::new(),
        };
        let mut rng = Rng::from_seed(1);
        for kind in KINDS.iter().chain(&webpush::KINDS) {
            assert_eq!((kind.draw)(&mut rng, &terms).kind(), kind.name);
        }
        assert!(ClusterFault::KINDS.iter().all(|name| super::super::is_kind(name)));
    }
}
