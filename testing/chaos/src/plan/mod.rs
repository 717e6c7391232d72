//! What goes wrong in a run, and when: a list that follows from a seed. Pure; it does nothing itself.

mod draw;
mod fault;
mod webpush;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cluster::Replicas;
use crate::rng::Rng;
pub use fault::{Behaviour, Fault, Lane};

/// Until the first fault: everything has come to work by then.
const FIRST: Duration = Duration::from_secs(2);

/// What a plan is made of.
#[derive(Debug, Clone)]
pub struct Terms {
    /// From which everything follows.
    pub seed: u64,
    /// For how long faults come.
    pub lasts: Duration,
    /// How many nodes the broker has.
    pub broker_nodes: usize,
    /// How many of each service.
    pub replicas: Replicas,
    /// Which kinds of faults; all when empty.
    pub kinds: Vec<String>,
}

/// A fault at its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// From the beginning of the faults.
    pub at: Duration,
    /// What.
    pub fault: Fault,
}

/// All faults of a run, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed that it follows from.
    pub seed: u64,
    /// For how long faults come.
    pub lasts: Duration,
    /// In the order of their times.
    pub faults: Vec<Planned>,
}

impl Plan {
    /// The plan of a seed.
    pub fn draw(terms: &Terms) -> Self {
        let mut faults = stream(Rng::from_seed(terms.seed), &draw::KINDS, terms);
        let of_webpush = Rng::for_number(terms.seed, webpush::STREAM);
        faults.extend(stream(of_webpush, &webpush::KINDS, terms));
        faults.sort_by_key(|planned| planned.at);
        Self {
            seed: terms.seed,
            lasts: terms.lasts,
            faults,
        }
    }

    /// The same until its end alone: how often each kind is in it.
    pub fn kinds(&self) -> std::collections::BTreeMap<&'static str, usize> {
        let mut kinds = std::collections::BTreeMap::new();
        for planned in &self.faults {
            *kinds.entry(planned.fault.kind()).or_default() += 1;
        }
        kinds
    }
}

fn stream(mut rng: Rng, kinds: &[draw::Kind], terms: &Terms) -> Vec<Planned> {
    let mut faults = Vec::new();
    let mut at = FIRST;
    while at < terms.lasts {
        if let Some(fault) = draw::fault(&mut rng, kinds, terms) {
            faults.push(Planned { at, fault });
        }
        // Some come one upon the other, some leave time to recover.
        at += if rng.percent(30) {
            rng.millis(0, 400)
        } else {
            rng.millis(500, 4_500)
        };
    }
    faults
}

/// Whether the name is one of a kind of fault.
pub fn is_kind(name: &str) -> bool {
    kind_names().any(|kind| kind == name)
}

/// The names of all kinds of faults, each once.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    let all = draw::KINDS.iter().chain(&webpush::KINDS).map(|kind| kind.name);
    all.collect::<std::collections::BTreeSet<_>>().into_iter()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the plan of seed {}: {} faults in {} s",
            self.seed,
            self.faults.len(),
            self.lasts.as_secs()
        )?;
        for planned in &self.faults {
            writeln!(f, "  {:>8.3} s  {}", planned.at.as_secs_f64(), planned.fault)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterFault, End, Service};

    fn terms(seed: u64) -> Terms {
        Terms {
            seed,
            lasts: Duration::from_secs(600),
            broker_nodes: 3,
            replicas: Replicas::default(),
            kinds: Vec::new(),
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_one_another() {
        assert_eq!(Plan::draw(&terms(5)), Plan::draw(&terms(5)));
        assert_ne!(Plan::draw(&terms(5)).faults, Plan::draw(&terms(6)).faults);
    }

    /// What a seed meant for the lanes before there was Web Push.
    #[test]
    fn the_faults_of_the_lanes_are_what_they_were() {
        let plan = Plan::draw(&terms(3)).faults;
        let is_of_webpush = |planned: &&Planned| planned.fault.to_string().contains("webpush");
        assert!(plan.iter().any(|planned| is_of_webpush(&planned)));
        let lanes = stream(Rng::from_seed(3), &draw::KINDS, &terms(3));
        assert!(lanes.iter().all(|planned| plan.contains(planned)));
        assert!(!lanes.iter().any(|planned| is_of_webpush(&planned)));
        assert_eq!(lanes[0].at, FIRST);
        let first = ClusterFault::ResetConnections {
            from: End::Replica(Service::Dispatcher.replica(1)),
            to: End::Receivers,
        };
        assert_eq!(lanes[0].fault, Fault::Cluster(first));
    }

    #[test]
    fn faults_come_in_their_order_and_within_their_time() {
        let plan = Plan::draw(&terms(5));
        assert!(plan.faults.iter().all(|planned| planned.at < plan.lasts));
        assert!(plan.faults.is_sorted_by_key(|planned| planned.at));
        assert!(plan.faults.len() > 100, "{} faults", plan.faults.len());
    }

    #[test]
    fn a_longer_plan_begins_as_the_shorter_one() {
        let long = Plan::draw(&terms(5)).faults;
        let short = Terms {
            lasts: Duration::from_secs(45),
            ..terms(5)
        };
        let short = Plan::draw(&short).faults;
        assert_eq!(long[..short.len()], short[..]);
    }

    #[test]
    fn every_kind_comes_sooner_or_later() {
        let plan = Terms {
            lasts: Duration::from_secs(3_600),
            ..terms(1)
        };
        let kinds = Plan::draw(&plan).kinds();
        for name in kind_names() {
            assert!(kinds.contains_key(name), "{name} never came");
        }
    }

    #[test]
    fn only_the_kinds_that_were_asked_for_come() {
        let mut terms = terms(3);
        terms.kinds = vec!["freeze".to_owned(), "swrve".to_owned()];
        let kinds = Plan::draw(&terms).kinds();
        assert_eq!(kinds.into_keys().collect::<Vec<_>>(), ["freeze", "swrve"]);
    }

    #[test]
    fn a_single_broker_node_is_neither_parted_from_others_nor_named_by_a_number() {
        let mut terms = terms(3);
        terms.broker_nodes = 1;
        let kinds = Plan::draw(&terms).kinds();
        assert!(!kinds.contains_key("partition-broker-node") && !kinds.contains_key("kill-broker-node"));
    }

    #[test]
    fn a_plan_can_be_written_down_and_read_again() {
        let plan = Plan::draw(&terms(8));
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }
}
