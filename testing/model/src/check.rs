//! Going through a model: every reachable state, every property, and what became of it.

use std::fmt;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::graph::{Graph, Progress};

/// How much there was to see. Each is the same in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// States that differ.
    pub states: usize,
    /// Steps between them, those to states that were seen before included.
    pub steps: usize,
    /// The longest of the shortest ways to a state.
    pub depth: usize,
}

/// Why a model does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A state that must not be.
    #[error("{property:?} does not hold:{steps}")]
    Counterexample {
        /// Of which property.
        property: &'static str,
        /// How it comes to that.
        steps: Steps,
    },
    /// Something that should be possible is not: the model shows less than it is made for.
    #[error("{property:?} never happens")]
    NeverHappens {
        /// Of which property.
        property: &'static str,
    },
    /// A state from which nothing leads to the goal.
    #[error("there is no way on from {state}")]
    NoWayOn {
        /// The state.
        state: String,
    },
    /// A state from which a fair run never reaches the goal.
    #[error("a fair run can go round in circles from {state}")]
    Circles {
        /// The state.
        state: String,
    },
    /// Two ways of counting have counted differently: two states have the same fingerprint.
    #[error("{fingerprints} fingerprints stand for {states} states")]
    Collision {
        /// By stateright.
        fingerprints: usize,
        /// By comparing states.
        states: usize,
    },
}

/// The actions that lead to a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps(pub Vec<String>);

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "\n  {step}"))
    }
}

/// Whether finding a state with it is bad news; with the others it is what they are for.
fn must_hold<M: Model>(property: &Property<M>) -> bool {
    property.expectation.discovery_is_failure()
}

/// Goes through a model until all of it is seen, or a property is found not to hold.
///
/// # Errors
///
/// The first [`Failure`], with a shortest way to it.
pub fn safety<M>(model: &M) -> Result<Counts, Failure>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + fmt::Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + fmt::Debug + PartialEq,
{
    // One thread, so that the ways are shortest and the counts always the same.
    let checker = model
        .clone()
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let discoveries = checker.discoveries();
    let properties = model.properties();
    let broken = properties
        .iter()
        .filter(|property| must_hold(property))
        .find_map(|property| Some((property.name, discoveries.get(property.name)?)));
    if let Some((property, path)) = broken {
        let actions = path.clone().into_actions();
        let steps = Steps(actions.iter().map(|action| format!("{action:?}")).collect());
        return Err(Failure::Counterexample { property, steps });
    }
    let missing = properties
        .iter()
        .find(|property| !must_hold(property) && !discoveries.contains_key(property.name));
    if let Some(property) = missing {
        return Err(Failure::NeverHappens {
            property: property.name,
        });
    }
    Ok(Counts {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
    })
}

/// Asks of a model's whole graph whether it always gets where it is to get.
pub fn liveness<M>(model: &M) -> Result<usize, Failure>
where
    M: Progress,
    M::State: Clone + fmt::Debug + Eq + Hash,
{
    let graph = Graph::of(model);
    if let Some(stray) = graph.strays() {
        return Err(Failure::NoWayOn {
            state: format!("{stray:?}"),
        });
    }
    if let Some(circle) = graph.circles() {
        return Err(Failure::Circles {
            state: format!("{circle:?}"),
        });
    }
    Ok(graph.len())
}
