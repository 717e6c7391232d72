//! What each step does, in the order of the services: `webpush-endpoint/src/delivery.rs`, `webpush-connection/src/session.rs` and
//! `connection.rs`. A statement of `libs/store/src/webpush` is one step, which commits or is not made.

use super::state::{Connection, Doing, Place, State, Step, Stored};
use super::{Broken, Webpush};

/// How often a move is tried; the product tries once more.
const MOVES: u8 = 2;

impl Webpush {
    /// The row of the client is read.
    pub(super) fn receive(state: &mut State, at: usize) {
        let answered = state
            .messages
            .iter()
            .enumerate()
            .filter(|(_, other)| other.answered);
        let after = answered.fold(0, |after, (place, _)| after | 1 << place);
        let route = state.route();
        let message = &mut state.messages[at];
        (message.after, message.step) = (after, Step::Routed(route));
    }

    /// `Nodes::push`, and `deliver` in `router_port.rs`.
    pub(super) fn push(&self, state: &mut State, at: usize) {
        let Step::Routed(route) = state.messages[at].step else {
            return;
        };
        state.messages[at].step = match route.map(|place| (place, state.entered(place.node))) {
            None => Step::Storing(None),
            Some((place, None)) => Step::Forgetting(place, false),
            Some((place, Some(connection))) => {
                state.connections[connection].mailbox.push(at);
                if self.is(Broken::AnswersWhenQueued) {
                    state.messages[at].answered = true;
                    Step::Done
                } else {
                    Step::Pushed(place, connection)
                }
            }
        };
    }

    /// The sender waits no more: what waits in the mailbox is passed over.
    pub(super) fn give_up(state: &mut State, at: usize, step: Step) {
        if let Step::Pushed(_, connection) = state.messages[at].step {
            state.connections[connection]
                .mailbox
                .retain(|waiting| *waiting != at);
        }
        state.messages[at].step = step;
    }

    /// `webpush_forget_node`.
    fn forget(&self, state: &mut State, place: Place) {
        let is_the_one = state.route() == Some(place) || self.is(Broken::ForgetsWhatItDidNotRead);
        if is_the_one && state.row.node == Some(place.node) {
            state.row.node = None;
        }
    }

    pub(super) fn forget_node(&self, state: &mut State, at: usize) {
        if let Step::Forgetting(place, is_silent) = state.messages[at].step {
            self.forget(state, place);
            state.messages[at].step = Step::Storing(is_silent.then_some(place));
        }
    }

    /// `webpush_store`.
    pub(super) fn store(&self, state: &mut State, at: usize) {
        let Step::Storing(silent) = state.messages[at].step else {
            return;
        };
        let month = if self.is(Broken::StoresByItsOwnClock) {
            state.month
        } else {
            state.row.month
        };
        let replaced = state
            .stored
            .iter()
            .position(|row| self.of_topic && row.month == month);
        let replaced = replaced.map(|place| state.stored.remove(place));
        let id = match replaced {
            Some(row) if self.is(Broken::ReplacesUnderOneIdentifier) => row.id,
            _ => at,
        };
        let message = at;
        state.stored.push(Stored { id, message, month });
        state.stored.sort_unstable();
        let route = state.route();
        let message = &mut state.messages[at];
        message.answered = true;
        message.step = match (route, silent) {
            (Some(place), _) => Step::Telling(place, true),
            (None, Some(place)) => Step::Telling(place, false),
            (None, None) => Step::Done,
        };
    }

    /// `PUT /notif`; `arrives` unless the node is frozen and the request goes with its time-out.
    pub(super) fn tell(&self, state: &mut State, at: usize, arrives: bool) {
        let Step::Telling(place, is_named) = state.messages[at].step else {
            return;
        };
        match state.entered(place.node).filter(|_| arrives) {
            Some(connection) => state.connections[connection].told = true,
            None if is_named => self.forget(state, place),
            None => {}
        }
        state.messages[at].step = Step::Done;
    }

    /// `identify` in `session.rs`: the connection is entered, then the row is written, then storage is read.
    pub(super) fn connect(&self, state: &mut State, node: usize, clock: u8) {
        let place = state.connections.len();
        for connection in state.connections.iter_mut().filter(|other| other.node == node) {
            connection.is_entered = false;
        }
        state.connections.push(Connection {
            node,
            is_open: true,
            is_entered: !self.is(Broken::EntersAfterReading),
            since: u8::try_from(place).unwrap_or(u8::MAX) + 1,
            doing: Doing::Connecting,
            clock,
            ..Connection::default()
        });
        state.client = Some(place);
    }

    fn note(state: &mut State, at: usize) {
        let connection = &mut state.connections[at];
        if connection.since < state.row.since {
            connection.since = state.row.since + 1;
        }
        (state.row.node, state.row.since) = (Some(connection.node), connection.since);
    }

    /// What the client is sent.
    fn send(&self, state: &mut State, at: usize, message: usize, id: Option<usize>) {
        if state.client == Some(at) {
            let sent = &state.messages[message];
            state.again |= sent.settled && !sent.forgotten;
            let newer = |other: &super::state::Message| other.settled && other.after & 1 << message != 0;
            state.stale |= self.of_topic && state.messages.iter().any(newer);
        }
        state.connections[at].outstanding.push((message, id));
        if id.is_none() && self.is(Broken::DeletesOlderWhenSending) {
            self.delete_older(state, message);
        }
    }

    fn delete_older(&self, state: &mut State, message: usize) {
        if self.of_topic && !self.is(Broken::KeepsOlder) {
            state.stored.retain(|row| row.message >= message);
        }
    }

    /// A letter of the mailbox: a notification.
    pub(super) fn deliver(&self, state: &mut State, at: usize) {
        let message = state.connections[at].mailbox.remove(0);
        self.send(state, at, message, None);
    }

    /// `look` of the state machine.
    pub(super) fn look(connection: &mut Connection) {
        connection.told = false;
        (connection.must_note, connection.must_read) = (true, true);
        Self::go_on(connection);
    }

    /// `go_on` of the state machine.
    fn go_on(connection: &mut Connection) {
        connection.doing = if std::mem::take(&mut connection.must_note) {
            Doing::Noting
        } else if !connection.outstanding.is_empty() {
            Doing::Nothing
        } else if !connection.acked.is_empty() {
            connection.must_read = true;
            Doing::Deleting(std::mem::take(&mut connection.acked))
        } else if std::mem::take(&mut connection.must_read) {
            Doing::Reading
        } else {
            Doing::Nothing
        };
    }

    /// `acknowledge` of the state machine, and where `settle` in `session.rs` begins.
    pub(super) fn acknowledge(&self, state: &mut State, at: usize, message: usize) {
        let connection = &mut state.connections[at];
        let Some(place) = connection.outstanding.iter().position(|sent| sent.0 == message) else {
            return;
        };
        state.messages[message].acked = true;
        if let (_, Some(id)) = connection.outstanding.remove(place) {
            connection.acked.push(id);
            connection.acked.sort_unstable();
            return Self::go_on(connection);
        }
        let is_awaited = matches!(state.messages[message].step, Step::Pushed(_, waits) if waits == at);
        connection.doing = if self.of_topic && is_awaited {
            Doing::DeletingOlder(message)
        } else {
            Doing::Settling(message)
        };
    }

    /// The next statement of a connection, or its answer to a sender.
    pub(super) fn work(&self, state: &mut State, at: usize) {
        let doing = std::mem::take(&mut state.connections[at].doing);
        match doing {
            Doing::Nothing => return,
            Doing::Connecting => {
                Self::note(state, at);
                let (month, connection) = (state.row.month, &mut state.connections[at]);
                connection.month = month;
                connection.move_to = (month < connection.clock).then_some(connection.clock);
                connection.must_read = true;
            }
            Doing::Noting => {
                let is_mine = state.row.since == state.connections[at].since;
                if state.row.node.is_none() && (is_mine || !self.is(Broken::NotesItsOwnOnly)) {
                    Self::note(state, at);
                }
                let (month, connection) = (state.row.month, &mut state.connections[at]);
                connection.must_read |= connection.month != month;
                connection.month = month;
                connection.move_to = connection.move_to.filter(|to| month < *to);
            }
            Doing::Reading => {
                self.read(state, at);
                state.connections[at].is_entered |= self.is(Broken::EntersAfterReading);
                if state.connections[at].doing != Doing::Nothing {
                    return;
                }
            }
            Doing::Deleting(ids) => {
                let month = state.connections[at].month;
                state
                    .stored
                    .retain(|row| row.month != month || !ids.contains(&row.id));
                for id in ids {
                    state.messages[id].settled = true;
                }
            }
            Doing::Moving(to) => self.change_month(state, at, to),
            Doing::DeletingOlder(message) => {
                self.delete_older(state, message);
                state.connections[at].doing = Doing::Settling(message);
                return;
            }
            Doing::Settling(message) => match state.messages[message].step {
                Step::Pushed(place, waits) if waits == at => {
                    state.messages[message].step = Step::Acked(place, at);
                    state.messages[message].settled = true;
                }
                _ => {
                    state.connections[at].doing = Doing::DeletingLate(message);
                    return;
                }
            },
            Doing::DeletingLate(message) => {
                let is_stored = state.stored.iter().any(|row| row.message == message);
                if !is_stored {
                    state.connections[at].doing = Doing::DeletingOlderLate(message);
                    return;
                }
                if !self.is(Broken::KeepsWhatWasAcknowledgedLate) {
                    state.stored.retain(|row| row.message != message);
                }
                state.messages[message].settled = true;
            }
            Doing::DeletingOlderLate(message) => {
                if !self.is(Broken::KeepsOlderWhenLate) {
                    self.delete_older(state, message);
                }
                let is_here = state.client == Some(at);
                let (late, early) = (&mut state.messages[message], &mut state.connections[at].early);
                (late.settled, late.forgotten) = (true, !is_here);
                if !self.is(Broken::ForgetsWhatWasAcknowledgedEarly) {
                    early.push(message);
                }
            }
        }
        Self::go_on(&mut state.connections[at]);
    }

    /// `send_batch` of the state machine.
    fn read(&self, state: &mut State, at: usize) {
        let connection = &mut state.connections[at];
        let month = connection.month;
        let waiting: Vec<_> = state
            .stored
            .iter()
            .copied()
            .filter(|row| row.month == month)
            .collect();
        if waiting.is_empty() {
            if let Some(to) = connection.move_to {
                connection.doing = Doing::Moving(to);
            }
            return;
        }
        for row in waiting {
            let early = &mut state.connections[at].early;
            if let Some(place) = early.iter().position(|early| *early == row.message) {
                early.remove(place);
                state.connections[at].acked.push(row.id);
            } else {
                self.send(state, at, row.message, Some(row.id));
            }
        }
    }

    /// `webpush_move`.
    fn change_month(&self, state: &mut State, at: usize, to: u8) {
        let from = state.connections[at].month;
        let is_drained = state.stored.iter().all(|row| row.month != from);
        let has_moved = state.row.month == from && (is_drained || self.is(Broken::MovesWhatIsNotDrained));
        let connection = &mut state.connections[at];
        connection.moves += 1;
        if has_moved {
            (state.row.month, connection.month, connection.move_to) = (to, to, None);
            state.moved = true;
        } else {
            connection.must_note = true;
            connection.move_to = connection.move_to.filter(|_| connection.moves < MOVES);
        }
        connection.must_read = true;
    }

    /// The client has lost its connection: what that one remembered, and has not deleted, may come again.
    pub(super) fn leave(state: &mut State) {
        let Some(at) = state.client.take() else { return };
        let connection = &state.connections[at];
        let under_way = match &connection.doing {
            Doing::Deleting(ids) => ids.as_slice(),
            _ => &[],
        };
        for message in connection.early.iter().chain(&connection.acked).chain(under_way) {
            state.messages[*message].forgotten = true;
        }
    }

    /// A connection ends, and with it what waits in it.
    pub(super) fn end(state: &mut State, at: usize) {
        let connection = &mut state.connections[at];
        *connection = Connection {
            node: connection.node,
            ..Connection::default()
        };
    }

    /// `kill -9`, and a start.
    pub(super) fn kill(state: &mut State, node: usize) {
        if state.client.is_some_and(|at| state.connections[at].node == node) {
            Self::leave(state);
        }
        for at in 0..state.connections.len() {
            if state.connections[at].node == node && state.connections[at].is_open {
                Self::end(state, at);
            }
        }
        state.frozen[node] = false;
    }
}
