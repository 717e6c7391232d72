//! Drawing one fault: which kinds there are, how often each comes, and how bad it is.

use super::{Lane, Mood, Stroke, Terms};
use crate::dice::Dice;
use crate::ground::{End, Fault, Replica, Service};

/// A kind of fault.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// How often it comes, against the others.
    weight: u64,
    draw: fn(&mut Dice, &Terms) -> Stroke,
    /// Of how many broker nodes it makes sense.
    broker_nodes: usize,
}

const fn kind(name: &'static str, weight: u64, draw: fn(&mut Dice, &Terms) -> Stroke) -> Kind {
    Kind {
        name,
        weight,
        draw,
        broker_nodes: 1,
    }
}

const fn of_a_cluster(name: &'static str, weight: u64, draw: fn(&mut Dice, &Terms) -> Stroke) -> Kind {
    Kind {
        name,
        weight,
        draw,
        broker_nodes: 3,
    }
}

pub(super) const KINDS: [Kind; 19] = [
    kind("kill", 20, |dice, terms| {
        ground(Fault::Kill {
            replica: replica(dice, terms),
        })
    }),
    kind("stop-gracefully", 5, |dice, terms| {
        ground(Fault::StopGracefully {
            replica: replica(dice, terms),
        })
    }),
    kind("freeze", 14, |dice, terms| {
        let replica = replica(dice, terms);
        ground(Fault::Freeze {
            replica,
            lasts: dice.millis(200, 7_000),
        })
    }),
    kind("clock-step", 8, |dice, terms| {
        let replica = replica(dice, terms);
        ground(Fault::ClockStep {
            replica,
            by_millis: step(dice),
        })
    }),
    kind("kill-broker-leader", 4, |dice, _| {
        ground(Fault::KillBrokerLeader {
            lasts: dice.millis(500, 5_000),
        })
    }),
    of_a_cluster("kill-broker-node", 3, |dice, terms| {
        let node = dice.index(terms.broker_nodes);
        ground(Fault::KillBrokerNode {
            node,
            lasts: dice.millis(500, 5_000),
        })
    }),
    of_a_cluster("partition-broker-node", 4, |dice, terms| {
        let node = dice.index(terms.broker_nodes);
        ground(Fault::PartitionBrokerNode {
            node,
            lasts: dice.millis(2_000, 12_000),
        })
    }),
    kind("memory-alarm", 3, |dice, _| {
        ground(Fault::MemoryAlarm {
            lasts: dice.millis(500, 4_000),
        })
    }),
    kind("disk-alarm", 2, |dice, _| {
        ground(Fault::DiskAlarm {
            lasts: dice.millis(500, 4_000),
        })
    }),
    kind("kill-postgres", 4, |dice, _| {
        ground(Fault::KillPostgres {
            lasts: dice.millis(200, 3_000),
        })
    }),
    kind("cut", 8, |dice, terms| {
        let (from, to) = link(dice, terms);
        ground(Fault::Cut {
            from,
            to,
            lasts: dice.millis(200, 5_000),
        })
    }),
    kind("blackhole", 8, |dice, terms| {
        let (from, to) = link(dice, terms);
        ground(Fault::Blackhole {
            from,
            to,
            lasts: dice.millis(500, 7_000),
        })
    }),
    kind("latency", 7, |dice, terms| {
        let (from, to) = link(dice, terms);
        let delay = dice.millis(5, 300);
        ground(Fault::Latency {
            from,
            to,
            delay,
            jitter: dice.millis(0, 100),
            lasts: dice.millis(1_000, 6_000),
        })
    }),
    kind("reset-connections", 8, |dice, terms| {
        let (from, to) = link(dice, terms);
        ground(Fault::ResetConnections { from, to })
    }),
    kind("swrve", 7, |dice, _| Stroke::Swrve {
        mood: mood(dice),
        lasts: dice.millis(500, 5_000),
    }),
    kind("receivers", 7, |dice, _| Stroke::Receivers {
        mood: mood(dice),
        lasts: dice.millis(500, 5_000),
    }),
    kind("pause", 2, |dice, _| Stroke::Pause {
        lane: lane(dice),
        lasts: dice.millis(200, 3_000),
    }),
    kind("replay-dead-letters", 2, |dice, _| Stroke::ReplayDeadLetters {
        lane: lane(dice),
    }),
    kind("send-again", 4, |dice, _| Stroke::SendAgain {
        choice: dice.next(),
    }),
];

/// One fault of the kinds that are wanted; `None` when there is none.
pub(super) fn stroke(dice: &mut Dice, terms: &Terms) -> Option<Stroke> {
    let wanted = |kind: &&Kind| {
        kind.broker_nodes <= terms.broker_nodes
            && (terms.kinds.is_empty() || terms.kinds.iter().any(|name| name == kind.name))
    };
    let kinds: Vec<&Kind> = KINDS.iter().filter(wanted).collect();
    let total: u64 = kinds.iter().map(|kind| kind.weight).sum();
    let mut left = dice.next().checked_rem(total)?;
    let drawn = kinds.iter().find(|kind| {
        let is_it = left < kind.weight;
        left = left.saturating_sub(kind.weight);
        is_it
    })?;
    Some((drawn.draw)(dice, terms))
}

fn ground(fault: Fault) -> Stroke {
    Stroke::Ground(fault)
}

/// Services that move work are struck more often than those that are only asked.
const STRUCK: [Service; 10] = [
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

fn replica(dice: &mut Dice, terms: &Terms) -> Replica {
    of_service(dice.pick(&STRUCK), dice, terms)
}

fn of_service(service: Service, dice: &mut Dice, terms: &Terms) -> Replica {
    service.replica(dice.index(terms.replicas.of(service).max(1)))
}

fn link(dice: &mut Dice, terms: &Terms) -> (End, End) {
    let mover = |dice: &mut Dice| End::Replica(of_service(dice.pick(&MOVERS), dice, terms));
    match dice.between(0, 11) {
        0..=3 => (End::Replica(replica(dice, terms)), End::Postgres),
        4..=5 => (mover(dice), End::Broker),
        6 => (mover(dice), End::BrokerNode(dice.index(terms.broker_nodes))),
        7..=8 => (
            End::Replica(of_service(Service::Dispatcher, dice, terms)),
            End::Swrve,
        ),
        9 => (
            End::Replica(of_service(Service::Dispatcher, dice, terms)),
            End::Receivers,
        ),
        _ => (
            End::Clients,
            End::Replica(of_service(Service::IngestApi, dice, terms)),
        ),
    }
}

/// From a second to six hours, both ways; each order of magnitude is as likely as the others.
fn step(dice: &mut Dice) -> i64 {
    let size = dice.pick(&[1_000, 10_000, 60_000, 600_000, 3_600_000]);
    let millis =
        i64::try_from(dice.between(size, 6 * size)).expect("invariant: some hours are a small number");
    if dice.percent(50) { millis } else { -millis }
}

fn mood(dice: &mut Dice) -> Mood {
    match dice.between(0, 9) {
        0..=4 => Mood::Answers(dice.pick(&[500, 502, 503, 504, 429])),
        5..=6 => Mood::Hangs,
        7 => Mood::HangsUp,
        _ => Mood::IsSlow(dice.between(100, 1_500)),
    }
}

fn lane(dice: &mut Dice) -> Lane {
    dice.pick(&[Lane::Push, Lane::Reseller])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_kind_draws_what_it_is_called() {
        let terms = Terms {
            seed: 0,
            lasts: Duration::ZERO,
            broker_nodes: 3,
            replicas: crate::ground::Replicas::default(),
            kinds: Vec::new(),
        };
        let mut dice = Dice::from_seed(1);
        for kind in &KINDS {
            assert_eq!((kind.draw)(&mut dice, &terms).kind(), kind.name);
        }
        assert!(Fault::KINDS.iter().all(|name| super::super::is_kind(name)));
    }
}
