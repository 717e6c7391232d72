//! What must hold in every state, and what must happen in some, so that the first is not true for lack of trouble.

use domain::push::PushState;
use stateright::Property;

use super::state::{Accepted, Fate, Receipt, Row, State, Step, Term};
use super::{Delivery, Mishaps};

pub(super) fn of(model: &Delivery) -> Vec<Property<Delivery>> {
    let mut properties = always();
    match model.mishaps {
        Mishaps::Any => properties.extend(sometimes(model)),
        Mishaps::Messages => properties.extend(sometimes_shared()),
        Mishaps::Crashes => properties.push(Property::always(
            "a crash costs no message",
            |_, state: &State| have_their_messages(state),
        )),
        Mishaps::Kept => properties.push(Property::always(
            "no row is without its message",
            |_, state: &State| have_their_messages(state),
        )),
    }
    properties
}

fn always() -> Vec<Property<Delivery>> {
    vec![
        Property::always("no completion by a stale lease", |_, state: &State| {
            !state.wrongs.stale_completion
        }),
        Property::always("rows change only by transition", |_, state: &State| {
            !state.wrongs.unlawful
        }),
        Property::always("what has ended stays ended", |_, state: &State| {
            !state.wrongs.resurrected
        }),
        Property::always("only the leader claims", |_, state: &State| !state.wrongs.usurped),
        Property::always("sent twice only for a reason", |_, state: &State| {
            !state.wrongs.needless
        }),
        Property::always("attempts are bounded", |model: &Delivery, state: &State| {
            let most = model.lane.max_attempts();
            state
                .rows
                .iter()
                .all(|row| u32::from(row.attempts - row.before) <= most)
        }),
        Property::always("each attempt has its row", |_, state: &State| {
            !state.wrongs.clash && state.rows.iter().all(has_its_attempts)
        }),
        Property::always("each failure has its dead letter", |_, state: &State| {
            state
                .rows
                .iter()
                .all(|row| !row.has_failed() || row.dead_letters > 0)
        }),
        Property::always("a failure has one open dead letter", |_, state: &State| {
            state.rows.iter().all(|row| row.dead_letters <= 1)
        }),
        Property::always("at most one leads", |model: &Delivery, state: &State| {
            let leaders = state.workers.iter().filter(|w| w.term == Term::Current);
            !model.lane.is_push() || leaders.count() <= 1
        }),
    ]
}

fn sometimes_anywhere() -> Vec<Property<Delivery>> {
    vec![
        Property::sometimes("a claim runs out", |_, state: &State| {
            state.rows.iter().any(|row| row.lapsed && row.token.is_some())
        }),
        Property::sometimes("a stale completion is tried", |_, state: &State| {
            (0..state.rows.len()).any(|row| {
                state.items(row).any(|item| {
                    matches!(item.step, Step::Answered(claim, _) if state.rows[row].token != Some(claim.token))
                })
            })
        }),
        Property::sometimes("it ends well", |_, state: &State| ends(state, PushState::Sent)),
        Property::sometimes("it is given up", |_, state: &State| {
            ends(state, PushState::GivenUp)
        }),
        Property::sometimes("it is delivered and given up", |_, state: &State| {
            let row = |row: &Row| row.accepted != Accepted::Never && row.state == PushState::GivenUp;
            state.rows.iter().any(row)
        }),
        Property::sometimes("a message is about nothing any more", |_, state: &State| {
            (0..state.rows.len()).any(|row| state.ready[row] > 0 && state.rows[row].has_ended())
        }),
    ]
}

fn sometimes(model: &Delivery) -> Vec<Property<Delivery>> {
    let mut properties = sometimes_anywhere();
    let alone: [Property<Delivery>; 3] = [
        Property::sometimes("it is sent twice", |_, state: &State| {
            state.rows.iter().any(|row| row.accepted == Accepted::Again)
        }),
        Property::sometimes("one is claimed while another is at it", |_, state: &State| {
            (0..state.rows.len()).any(|row| {
                let claims = state.items(row).filter(|item| item.step.claim().is_some());
                claims.count() > 1
            })
        }),
        Property::sometimes("it fails", |_, state: &State| ends(state, PushState::Failed)),
    ];
    properties.extend(alone);
    if model.lane.is_push() {
        properties.push(Property::sometimes(
            "a leader that is none any more asks for a claim",
            |_, state: &State| {
                let delivered = |step: Step| step == Step::Delivered;
                let stale = state.workers.iter().filter(|worker| worker.term == Term::Stale);
                stale
                    .flat_map(|worker| &worker.items)
                    .any(|item| delivered(item.step))
            },
        ));
    }
    properties
}

fn sometimes_shared() -> Vec<Property<Delivery>> {
    let mut properties = sometimes_anywhere();
    let shared: [Property<Delivery>; 5] = [
        Property::sometimes(
            "a row that is done comes again with another",
            |_, state: &State| {
                let done = state.rows.iter().filter(|row| row.has_ended()).count();
                state.ready[state.rows.len()] > 0 && done > 0 && done < state.rows.len()
            },
        ),
        Property::sometimes("a row comes again while it is attempted", |_, state: &State| {
            (0..state.rows.len()).any(|row| {
                let delivered = state.items(row).any(|item| item.step == Step::Delivered);
                delivered && state.items(row).any(|item| item.step.claim().is_some())
            })
        }),
        Property::sometimes(
            "a message is to be put back when it is settled",
            |_, state: &State| {
                let mut items = state.workers.iter().flat_map(|worker| &worker.items);
                items.any(|item| item.receipt == Receipt::Part(Fate::Requeue))
            },
        ),
        Property::sometimes("a message stays until its channel ends", |_, state: &State| {
            let mut items = state.workers.iter().flat_map(|worker| &worker.items);
            items.any(|item| item.step == Step::Kept)
        }),
        Property::sometimes(
            "the first row is done, another is left to its lease",
            |_, state: &State| state.rows[0].has_ended() && !have_their_messages(state),
        ),
    ];
    properties.extend(shared);
    properties
}

fn ends(state: &State, how: PushState) -> bool {
    state.rows.iter().any(|row| row.state == how)
}

/// The attempt rows are those of the attempts, and the last is `IN_PROCESS` exactly while it is being sent.
fn has_its_attempts(row: &Row) -> bool {
    let expected = (2_u16 << row.attempts) - 2;
    let running = if row.state == PushState::Sending {
        1 << row.attempts
    } else {
        0
    };
    row.attempt_rows == expected && row.in_process == running
}

/// What is queued has a message, until its lease has run out.
fn have_their_messages(state: &State) -> bool {
    let queued = |row: usize| state.rows[row].state == PushState::Queued && !state.rows[row].lapsed;
    (0..state.rows.len()).all(|row| !queued(row) || state.has_its_message(row))
}
