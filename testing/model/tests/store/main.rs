//! The model's statements against those of `store`: random walks through the model of the push lane, whose every step that
//! changes a row is taken in PostgreSQL as well. After each, the row must be what the model says.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod real;

use std::collections::BTreeSet;

use model::delivery::{Action, Bounds, Delivery, Lane, State};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use sqlx::PgPool;
use stateright::Model;

use real::Real;

/// Walks, and steps of each.
const WALKS: usize = 80;
const STEPS: usize = 120;
const BOUNDS: Bounds = Bounds {
    rows: 1,
    workers: 2,
    capacity: 2,
    prefetch: 2,
    publishers: 2,
    mishaps: 12,
    wishes: 4,
};
const ATTEMPTS: u8 = 2;

/// Everything that the walks must have tried, or they show less than they seem to.
const TRIED: [&str; 14] = [
    "archived",
    "cancelled",
    "claim refused by epoch",
    "claimed",
    "completed",
    "completed with a stale token",
    "deferred",
    "given up by a rescue",
    "handed back",
    "marked back",
    "promoted",
    "replayed",
    "requeued",
    "rescued",
];

/// The same walks in every run: each a list of choices among what may happen next.
fn walks() -> Vec<Vec<usize>> {
    let mut runner = TestRunner::deterministic();
    let choices = proptest::collection::vec(proptest::num::usize::ANY, STEPS);
    (0..WALKS)
        .map(|_| {
            choices
                .new_tree(&mut runner)
                .expect("a list of numbers")
                .current()
        })
        .collect()
}

/// One of the actions that may happen next, if there are any. What ends a walk soon is chosen seldom.
fn chosen(model: &Delivery, state: &State, choice: usize) -> Option<Action> {
    let mut actions = Vec::new();
    model.actions(state, &mut actions);
    let weight = |action: &Action| match action {
        Action::GiveBack { .. } | Action::Replay { .. } | Action::Archive { .. } => 6,
        Action::Lapse { .. } | Action::Rescue { .. } => 3,
        action if action.is_mishap() || action.is_wish() => 1,
        _ => 8,
    };
    let weighted: Vec<Action> = actions
        .into_iter()
        .flat_map(|action| std::iter::repeat_n(action, weight(&action)))
        .collect();
    let place = choice.checked_rem(weighted.len())?;
    weighted.get(place).copied()
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn rows_change_as_the_model_says(pool: PgPool) {
    let model = Delivery::new(Lane::push(ATTEMPTS), BOUNDS);
    let mut tried = BTreeSet::new();
    for (number, choices) in walks().into_iter().enumerate() {
        let beginnings = model.init_states();
        let mut state = beginnings[number % beginnings.len()].clone();
        let mut real = Real::begin(&pool, state.rows[0].state, ATTEMPTS).await;
        let mut taken = Vec::new();
        for choice in choices {
            let Some(action) = chosen(&model, &state, choice) else {
                break;
            };
            let next = model
                .next_state(&state, action)
                .expect("every action leads somewhere");
            taken.push(action);
            tried.extend(real.follow(&state, &next, action).await);
            let difference = real.difference(&next.rows[0]).await;
            assert_eq!(difference, None, "after {taken:#?}");
            state = next;
        }
        real.end().await;
    }
    assert_eq!(tried, BTreeSet::from(TRIED));
}
