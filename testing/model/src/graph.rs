//! Whether what should happen does: over the whole graph of reachable states, which stateright's own `eventually` cannot judge.
//!
//! That one looks at paths that end, takes neither cycles for endings nor two ways into a state apart, and so misses whatever
//! goes round in circles. Here every state and step is kept, and two questions are put to the graph:
//!
//! * Is there a way from every state to the goal, without any further mishap or wish? ([`Graph::strays`])
//! * Does every *fair* run reach the goal? A run is fair when nothing that stays possible for ever is put off for ever.
//!   One that does not reach the goal would stay, from some moment on, within a strongly connected part of the graph without goals;
//!   each class of steps is then taken in that part, or impossible in one of its states. ([`Graph::circles`])
//!
//! A fair run within a part may visit all of it, so looking at maximal parts is enough, and exact.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use stateright::Model;

/// Steps that are fair together: while one of them stays possible, one of them is taken some day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u32);

/// A model that is to get somewhere.
pub trait Progress: Model {
    /// Which steps an action is fair with; `None` for what may as well never happen, such as mishaps.
    fn class(&self, state: &Self::State, action: &Self::Action) -> Option<Class>;

    /// Where it is to get.
    fn is_goal(&self, state: &Self::State) -> bool;
}

struct Edge {
    to: u32,
    class: Option<Class>,
}

/// Every reachable state, and every step.
pub struct Graph<S> {
    states: Vec<S>,
    edges: Vec<Vec<Edge>>,
    goals: Vec<bool>,
}

impl<S: Clone + Eq + Hash> Graph<S> {
    /// Goes through all of a model.
    ///
    /// # Panics
    ///
    /// With more than four thousand million states.
    pub fn of<M: Progress<State = S>>(model: &M) -> Self {
        let mut graph = Self {
            states: Vec::new(),
            edges: Vec::new(),
            goals: Vec::new(),
        };
        let mut places: HashMap<S, u32> = HashMap::new();
        for state in model.init_states() {
            graph.place(model, &mut places, state);
        }
        let (mut at, mut actions) = (0, Vec::new());
        while at < graph.states.len() {
            let state = graph.states[at].clone();
            model.actions(&state, &mut actions);
            let mut edges = Vec::with_capacity(actions.len());
            for action in actions.drain(..) {
                let class = model.class(&state, &action);
                if let Some(next) = model.next_state(&state, action) {
                    let to = graph.place(model, &mut places, next);
                    edges.push(Edge { to, class });
                }
            }
            graph.edges.push(edges);
            at += 1;
        }
        graph
    }

    fn place<M: Progress<State = S>>(&mut self, model: &M, places: &mut HashMap<S, u32>, state: S) -> u32 {
        match places.entry(state) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(vacant) => {
                let place = u32::try_from(self.states.len()).expect("the graph fits into memory");
                self.goals.push(model.is_goal(vacant.key()));
                self.states.push(vacant.key().clone());
                *vacant.insert(place)
            }
        }
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// A state from which no way leads to the goal, if only what is bound to happen does.
    pub fn strays(&self) -> Option<&S> {
        let mut from: Vec<Vec<u32>> = vec![Vec::new(); self.states.len()];
        for (at, edges) in self.edges.iter().enumerate() {
            for edge in edges.iter().filter(|edge| edge.class.is_some()) {
                from[edge.to as usize].push(u32::try_from(at).expect("invariant: places are counted in u32"));
            }
        }
        let mut arrives = self.goals.clone();
        let mut open: Vec<usize> = (0..arrives.len()).filter(|at| arrives[*at]).collect();
        while let Some(at) = open.pop() {
            for before in &from[at] {
                if !std::mem::replace(&mut arrives[*before as usize], true) {
                    open.push(*before as usize);
                }
            }
        }
        let stray = arrives.iter().position(|arrives| !arrives)?;
        Some(&self.states[stray])
    }

    /// A state in which a fair run may end or go round in circles without ever reaching the goal.
    pub fn circles(&self) -> Option<&S> {
        self.parts()
            .into_iter()
            .find(|part| self.is_fair(part))
            .map(|part| &self.states[part[0]])
    }

    /// Whether a fair run can stay within a part.
    fn is_fair(&self, part: &[usize]) -> bool {
        let within: HashSet<usize> = part.iter().copied().collect();
        let possible =
            |at: &usize| -> HashSet<Class> { self.edges[*at].iter().filter_map(|e| e.class).collect() };
        let mut always_possible = part.first().map(possible).unwrap_or_default();
        let (mut taken, mut turns) = (HashSet::new(), false);
        for at in part {
            always_possible = &always_possible & &possible(at);
            for edge in &self.edges[*at] {
                if within.contains(&(edge.to as usize)) {
                    turns = true;
                    taken.extend(edge.class);
                }
            }
        }
        // A single state without a way round it is stayed in only when nothing is bound to happen.
        let stays = turns || always_possible.is_empty();
        stays && always_possible.iter().all(|class| taken.contains(class))
    }

    /// The strongly connected parts of what is not the goal: in the order in which a first walk leaves the states, the last
    /// first, a second walk against the steps finds one part after another.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut against: Vec<Vec<usize>> = vec![Vec::new(); self.states.len()];
        for at in self.pending() {
            for to in self.onward(at) {
                against[to].push(at);
            }
        }
        let mut seen = vec![false; self.states.len()];
        let mut parts = Vec::new();
        for root in self.left_last_first() {
            let (mut part, mut open) = (Vec::new(), vec![root]);
            while let Some(at) = open.pop() {
                if !std::mem::replace(&mut seen[at], true) {
                    part.push(at);
                    open.extend(&against[at]);
                }
            }
            if !part.is_empty() {
                parts.push(part);
            }
        }
        parts
    }

    fn left_last_first(&self) -> Vec<usize> {
        let mut seen = vec![false; self.states.len()];
        let mut left = Vec::new();
        for root in self.pending() {
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            let mut path = vec![(root, 0)];
            while let Some((at, edge)) = path.pop() {
                let Some(next) = self.edges[at].get(edge) else {
                    left.push(at);
                    continue;
                };
                path.push((at, edge + 1));
                let to = next.to as usize;
                if !self.goals[to] && !std::mem::replace(&mut seen[to], true) {
                    path.push((to, 0));
                }
            }
        }
        left.reverse();
        left
    }

    /// The states that are not the goal.
    fn pending(&self) -> impl Iterator<Item = usize> {
        (0..self.states.len()).filter(|at| !self.goals[*at])
    }

    /// Where the steps from a state lead, as far as that is not the goal.
    fn onward(&self, at: usize) -> impl Iterator<Item = usize> {
        let to = self.edges[at].iter().map(|edge| edge.to as usize);
        to.filter(|to| !self.goals[*to])
    }
}
