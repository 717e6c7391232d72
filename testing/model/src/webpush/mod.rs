//! Web Push between a sender's 201 and the client's acknowledgement: endpoint nodes that hand over and store, connection nodes that
//! deliver, read and move, a client that goes and comes back (`services/webpush-endpoint/src/delivery.rs`,
//! `services/webpush-connection/src/session.rs` and `connection.rs`, `libs/store/src/webpush`, ADR 0058, 0060 and 0064).
//!
//! One client with one channel; messages that are all of one topic, or of none. Messages are received in their order, by endpoint
//! nodes whose clocks agree; each then goes its own way. No TTL runs out.

pub mod state;
mod steps;

use stateright::{Model, Property};

use crate::graph::{Class, Progress};
use state::{Doing, Message, Row, State, Step};

/// The model.
#[derive(Debug, Clone, Copy)]
pub struct Webpush {
    /// How many messages are sent.
    pub messages: usize,
    /// Whether they are of one topic.
    pub of_topic: bool,
    /// Nodes that are killed or frozen, connections that are cut, endpoint nodes that die: in all.
    pub mishaps: u8,
    /// Whether the month turns, at a moment of its own for each node.
    pub turns: bool,
    /// Whether pings have storage looked into. Without them nothing may be late for want of one.
    pub pings: bool,
    /// Which safeguard is missing.
    pub broken: Option<Broken>,
}

/// A variant with one of its safeguards missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A connection node answers 200 when the message is in the queue.
    AnswersWhenQueued,
    /// A node is forgotten though the client has connected to it since.
    ForgetsWhatItDidNotRead,
    /// A connection notes its node again only where it was itself forgotten.
    NotesItsOwnOnly,
    /// A message is stored into the month of the endpoint node's clock.
    StoresByItsOwnClock,
    /// A message that replaces another one has its identifier.
    ReplacesUnderOneIdentifier,
    /// A connection is entered in its node when storage has been read.
    EntersAfterReading,
    /// A client is moved whatever waits for it.
    MovesWhatIsNotDrained,
    /// A late acknowledgement leaves the message in storage.
    KeepsWhatWasAcknowledgedLate,
    /// An acknowledgement before the commit is not remembered.
    ForgetsWhatWasAcknowledgedEarly,
    /// What is older than a direct message of its topic is left.
    KeepsOlder,
    /// The same, where the acknowledgement is late.
    KeepsOlderWhenLate,
    /// What is older is deleted before the client has acknowledged the newer one.
    DeletesOlderWhenSending,
}

/// One step. Messages, connections and nodes by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A message is received, and the row of its client read.
    Receive(usize),
    /// `PUT /push`.
    Push(usize),
    /// The wait for the acknowledgement has run out: 503.
    RunOut(usize),
    /// A frozen node does not answer in time.
    Silence(usize),
    /// The connection has ended, or the node has died: 404, or none.
    Miss(usize),
    /// 200 arrives.
    Answer(usize),
    /// `webpush_forget_node`.
    Forget(usize),
    /// `webpush_store`.
    Store(usize),
    /// `PUT /notif`.
    Tell(usize),
    /// `PUT /notif` to a frozen node, that goes with its time-out.
    TellNothing(usize),
    /// The endpoint node of a message dies.
    EndpointDies(usize),
    /// The client connects to a node whose clock shows this month.
    Connect(usize, u8),
    /// The next statement or answer of a connection.
    Work(usize),
    /// A connection takes a notification out of its mailbox.
    Deliver(usize),
    /// A connection was told that something is stored.
    Look(usize),
    /// The client acknowledges a message.
    Ack(usize, usize),
    /// A ping is answered.
    Ping(usize),
    /// The client loses its connection.
    Cut,
    /// The node notices.
    End(usize),
    /// A connection node is killed and starts again.
    Kill(usize),
    /// A connection node is frozen.
    Freeze(usize),
    /// It goes on.
    Thaw(usize),
    /// The month turns.
    Turn,
}

impl Webpush {
    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    fn of_message(&self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let runs = |connection: usize| !state.frozen[state.connections[connection].node];
        let is_open = |connection: usize| state.connections[connection].is_open;
        let step = state.messages[at].step;
        match step {
            Step::Unsent if at == 0 || state.messages[at - 1].step != Step::Unsent => {
                actions.push(Action::Receive(at));
            }
            Step::Routed(_) => actions.push(Action::Push(at)),
            Step::Pushed(_, on) | Step::Acked(_, on) if !is_open(on) => actions.push(Action::Miss(at)),
            Step::Pushed(_, on) | Step::Acked(_, on) if !runs(on) => actions.push(Action::Silence(at)),
            Step::Pushed(..) => actions.push(Action::RunOut(at)),
            Step::Acked(..) => actions.push(Action::Answer(at)),
            Step::Forgetting(..) => actions.push(Action::Forget(at)),
            Step::Storing(_) => actions.push(Action::Store(at)),
            Step::Telling(place, _) => {
                actions.push(Action::Tell(at));
                if state.frozen[place.node] {
                    actions.push(Action::TellNothing(at));
                }
            }
            Step::Unsent | Step::Done | Step::Dead => {}
        }
        if state.mishaps > 0 && !matches!(step, Step::Unsent | Step::Done | Step::Dead) {
            actions.push(Action::EndpointDies(at));
        }
    }

    fn of_connection(&self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let connection = &state.connections[at];
        if !connection.is_open || state.frozen[connection.node] {
            return;
        }
        if connection.doing != Doing::Nothing {
            return actions.push(Action::Work(at));
        }
        if connection.told {
            return actions.push(Action::Look(at));
        }
        if !connection.mailbox.is_empty() {
            actions.push(Action::Deliver(at));
        }
        if state.client == Some(at) {
            let sent = connection.outstanding.iter();
            actions.extend(sent.map(|(message, _)| Action::Ack(at, *message)));
            // Any other changes nothing.
            let is_of_use = state.row.node.is_none() || !(connection.must_read || state.stored.is_empty());
            if self.pings && is_of_use {
                actions.push(Action::Ping(at));
            }
        } else {
            actions.push(Action::End(at));
        }
    }

    /// Each mishap costs the client one connection at most. The first one is to the node that the row names.
    fn has_a_place_left(&self, state: &State, node: usize) -> bool {
        let so_far = state.connections.len();
        so_far <= usize::from(self.mishaps) && (so_far > 0 || node == 0)
    }
}

impl Model for Webpush {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let message = Message {
            step: Step::Unsent,
            after: 0,
            answered: false,
            acked: false,
            settled: false,
            forgotten: false,
        };
        // The client has been here, and its node was not told that it went.
        let row = Row {
            month: 0,
            node: Some(0),
            since: 0,
        };
        vec![State {
            row,
            stored: Vec::new(),
            messages: vec![message; self.messages],
            connections: Vec::new(),
            client: None,
            frozen: [false; 2],
            month: 0,
            mishaps: self.mishaps,
            again: false,
            stale: false,
            moved: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for at in 0..state.messages.len() {
            self.of_message(state, at, actions);
        }
        for at in 0..state.connections.len() {
            self.of_connection(state, at, actions);
        }
        for node in 0..2 {
            let is_frozen = state.frozen[node];
            if is_frozen {
                actions.push(Action::Thaw(node));
            } else if state.client.is_none() && self.has_a_place_left(state, node) {
                // A node whose clock is behind has not seen the month turn.
                actions.extend((0..=state.month).map(|clock| Action::Connect(node, clock)));
            }
            let has_a_client = state
                .connections
                .iter()
                .any(|other| other.is_open && other.node == node);
            if state.mishaps > 0 && has_a_client {
                actions.push(Action::Kill(node));
                if !is_frozen {
                    actions.push(Action::Freeze(node));
                }
            }
        }
        if let Some(at) = state.client {
            let is_frozen = state.frozen[state.connections[at].node];
            // Each freezing costs one connection, which its mishap stands for.
            if is_frozen || state.mishaps > 0 {
                actions.push(Action::Cut);
            }
        }
        if self.turns && state.month == 0 {
            actions.push(Action::Turn);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Receive(at) => Self::receive(&mut next, at),
            Action::Push(at) => self.push(&mut next, at),
            Action::RunOut(at) => Self::give_up(&mut next, at, Step::Storing(None)),
            Action::Silence(at) | Action::Miss(at) => {
                let is_silent = matches!(action, Action::Silence(_));
                if let Step::Pushed(place, _) | Step::Acked(place, _) = next.messages[at].step {
                    next.messages[at].forgotten |= matches!(next.messages[at].step, Step::Acked(..));
                    Self::give_up(&mut next, at, Step::Forgetting(place, is_silent));
                }
            }
            Action::Answer(at) => {
                next.messages[at].answered = true;
                next.messages[at].step = Step::Done;
            }
            Action::Forget(at) => self.forget_node(&mut next, at),
            Action::Store(at) => self.store(&mut next, at),
            Action::Tell(at) => self.tell(&mut next, at, true),
            Action::TellNothing(at) => self.tell(&mut next, at, false),
            Action::EndpointDies(at) => {
                next.mishaps -= 1;
                Self::give_up(&mut next, at, Step::Dead);
            }
            Action::Connect(node, clock) => self.connect(&mut next, node, clock),
            Action::Work(at) => self.work(&mut next, at),
            Action::Deliver(at) => self.deliver(&mut next, at),
            Action::Look(at) | Action::Ping(at) => Self::look(&mut next.connections[at]),
            Action::Ack(at, message) => self.acknowledge(&mut next, at, message),
            Action::Cut => {
                let is_frozen = next
                    .client
                    .is_some_and(|at| next.frozen[next.connections[at].node]);
                next.mishaps -= u8::from(!is_frozen);
                Self::leave(&mut next);
            }
            Action::End(at) => Self::end(&mut next, at),
            Action::Kill(node) => {
                next.mishaps -= 1;
                Self::kill(&mut next, node);
            }
            Action::Freeze(node) => {
                next.mishaps -= 1;
                next.frozen[node] = true;
            }
            Action::Thaw(node) => next.frozen[node] = false,
            Action::Turn => next.month = 1,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "what was answered 201 is not lost",
                |model: &Self, state: &State| (0..state.messages.len()).all(|at| is_kept(model, state, at)),
            ),
            Property::always("nothing comes after its acknowledgement", |_, state: &State| {
                !state.again
            }),
            Property::always("a topic shows its newest message", |_, state: &State| {
                !state.stale
            }),
            Property::sometimes("a message is delivered directly", |_, state: &State| {
                let direct =
                    |message: &Message| message.answered && message.step == Step::Done && message.acked;
                state.stored.is_empty() && state.messages.iter().all(direct)
            }),
            Property::sometimes(
                "an acknowledgement comes before the commit",
                |_, state: &State| {
                    state
                        .connections
                        .iter()
                        .any(|connection| !connection.early.is_empty())
                },
            ),
            Property::sometimes(
                "all messages wait, or the last has replaced the others",
                |model: &Self, state: &State| {
                    let stored = |message: &Message| message.answered && !message.acked;
                    state.messages.iter().filter(|message| stored(message)).count() == model.messages
                        && state.stored.len() == if model.of_topic { 1 } else { model.messages }
                },
            ),
            Property::sometimes(
                "the client is moved, if the month turns",
                |model: &Self, state: &State| state.moved || !model.turns,
            ),
        ]
    }
}

/// Whether a message that was answered is with the client, waits where the client looks, or was replaced by one of its topic that was
/// not older.
fn is_kept(model: &Webpush, state: &State, at: usize) -> bool {
    let has = |at: usize| state.messages[at].acked || state.waits(at);
    let replaced = |other: usize| model.of_topic && state.messages[at].after & 1 << other == 0 && has(other);
    !state.messages[at].answered || has(at) || (0..state.messages.len()).any(replaced)
}

impl Progress for Webpush {
    fn class(&self, _: &State, action: &Action) -> Option<Class> {
        let class = |kind: usize, at: usize| Some(Class(u32::try_from(kind * 16 + at).unwrap_or(u32::MAX)));
        match *action {
            Action::EndpointDies(_)
            | Action::Kill(_)
            | Action::Freeze(_)
            | Action::Turn
            | Action::RunOut(_) => None,
            Action::Receive(at) => class(0, at),
            Action::Push(at) => class(1, at),
            Action::Silence(at) | Action::Miss(at) | Action::Answer(at) => class(2, at),
            Action::Forget(at) | Action::Store(at) => class(3, at),
            Action::Tell(at) | Action::TellNothing(at) => class(4, at),
            Action::Connect(..) => class(5, 0),
            Action::Work(at) => class(6, at),
            Action::Deliver(at) | Action::Look(at) => class(7, at),
            Action::Ack(at, message) => class(8 + message, at),
            Action::Ping(at) => class(12, at),
            Action::Cut => class(13, 0),
            Action::End(at) => class(14, at),
            Action::Thaw(at) => class(15, at),
        }
    }

    /// Every sender has its answer or lost its endpoint node, and the client has everything.
    fn is_goal(&self, state: &State) -> bool {
        let ended = |message: &Message| matches!(message.step, Step::Done | Step::Dead);
        state.stored.is_empty() && state.messages.iter().all(ended)
    }
}
