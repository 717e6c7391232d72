//! The questions about graphs, put to graphs that are small enough to answer by looking.

use model::graph::{Class, Graph, Progress};
use stateright::Model;

/// A graph by its steps: from, to, and the class that the step is fair with.
#[derive(Clone)]
struct Drawn(&'static [(u8, u8, Option<u32>)]);

/// The goal of all of them.
const GOAL: u8 = 9;

impl Model for Drawn {
    type State = u8;
    type Action = (u8, Option<u32>);

    fn init_states(&self) -> Vec<u8> {
        vec![0]
    }

    fn actions(&self, state: &u8, actions: &mut Vec<Self::Action>) {
        let from = self.0.iter().filter(|step| step.0 == *state);
        actions.extend(from.map(|step| (step.1, step.2)));
    }

    fn next_state(&self, _: &u8, action: Self::Action) -> Option<u8> {
        Some(action.0)
    }
}

impl Progress for Drawn {
    fn class(&self, _: &u8, action: &Self::Action) -> Option<Class> {
        action.1.map(Class)
    }

    fn is_goal(&self, state: &u8) -> bool {
        *state == GOAL
    }
}

fn graph(steps: &'static [(u8, u8, Option<u32>)]) -> Graph<u8> {
    Graph::of(&Drawn(steps))
}

#[test]
fn a_dead_end_is_found() {
    let ends = graph(&[(0, 9, Some(1)), (0, 1, Some(2))]);
    assert_eq!((ends.strays(), ends.circles()), (Some(&1), Some(&1)));
}

#[test]
fn what_only_a_mishap_leads_out_of_is_a_dead_end() {
    let lucky = graph(&[(0, 1, Some(1)), (1, 9, None)]);
    assert_eq!((lucky.strays(), lucky.circles()), (Some(&0), Some(&1)));
}

#[test]
fn a_circle_is_left_by_what_stays_possible_in_all_of_it() {
    let left = graph(&[(0, 1, Some(1)), (1, 0, Some(1)), (0, 9, Some(2)), (1, 9, Some(2))]);
    assert_eq!((left.strays(), left.circles()), (None, None));
}

#[test]
fn a_circle_is_not_left_by_what_is_possible_now_and_then() {
    let stuck = graph(&[(0, 1, Some(1)), (1, 0, Some(1)), (0, 9, Some(2))]);
    assert_eq!(stuck.strays(), None);
    assert!(stuck.circles().is_some());
}

#[test]
fn a_circle_behind_a_way_to_the_goal_is_found() {
    // One way meets the goal first, the other does not: what a search that forgets its way misses.
    let hidden = graph(&[
        (0, 9, Some(1)),
        (9, 1, Some(1)),
        (0, 1, Some(2)),
        (1, 2, Some(3)),
        (2, 1, Some(3)),
    ]);
    assert!(hidden.strays().is_some() && hidden.circles().is_some());
}
