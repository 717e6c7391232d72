//! Messages that rows share: published, confirmed and given up for all of them, delivered row by row, and settled once, when the
//! last of them is done (`libs/broker/src/part.rs`).

use std::ops::Range;

use domain::push::PushState;

use super::actions::Action;
use super::lane::Outcome;
use super::state::{Fate, Item, Receipt, State, Step};
use super::{Broken, Delivery};

impl State {
    /// Whether a row has a message, in the broker or with a process, or one is about to be published, or to be found not to be.
    pub(super) fn has_its_message(&self, row: usize) -> bool {
        let about = |message: usize| self.rows_of(message).contains(&row);
        let mut messages = (0..self.ready.len()).filter(|message| about(*message));
        let mut items = self.workers.iter().flat_map(|worker| &worker.items);
        messages.any(|message| self.ready[message] > 0 || self.dead[message] > 0)
            || self.publishing.iter().any(|publishing| about(publishing.message))
            || items.any(|item| match item.receipt {
                Receipt::Void => false,
                Receipt::Whole => item.row == row,
                // The message comes again, or to the dead letters, with all of its rows.
                Receipt::Part(wished) => item.row == row || wished > Fate::Ack,
            })
    }
}

impl Delivery {
    /// What comes of a request. Where messages are shared each is accepted: an attempt is what its lease runs out during.
    pub(super) fn outcomes(&self) -> &'static [Outcome] {
        if self.sharing {
            &[Outcome::Accepted]
        } else {
            &Outcome::ALL
        }
    }

    /// Whether the lease of a queued row runs out although its message is still there. Where messages are shared that is a mishap, as the
    /// row then gets another message each time.
    pub(super) fn is_early(&self, state: &State, action: &Action) -> bool {
        let Action::Lapse { row } = *action else {
            return false;
        };
        self.sharing && state.rows[row].state == PushState::Queued && state.has_its_message(row)
    }

    /// What may happen to all rows at once, or to the message that they share.
    pub(super) fn of_all_rows(&self, state: &State, all: &mut Vec<Action>) {
        if !self.sharing {
            return;
        }
        let shared = state.rows.len();
        let promotable = (0..shared).all(|row| self.is_promotable(state, row));
        if promotable && state.publishing.len() < self.bounds.publishers {
            all.push(Action::PromoteTogether);
        }
        self.of_message(state, shared, all);
    }

    /// A process is at one shared message at a time, and has room for all of its rows.
    pub(super) fn of_shared_message(&self, state: &State, worker: usize, all: &mut Vec<Action>) {
        let (items, message) = (&state.workers[worker].items, state.rows.len());
        if !self.sharing || state.ready[message] == 0 || items.iter().any(Item::shares) {
            return;
        }
        let room = self.bounds.prefetch.saturating_sub(items.len());
        if room >= message {
            all.push(Action::Deliver { worker, message });
        }
        if room > 0 {
            all.push(Action::DeliverToEarlier { worker, message });
        }
    }

    /// What may become of a message by one of its rows, besides its being done.
    pub(super) fn of_share(worker: usize, item: usize, found: Item, all: &mut Vec<Action>) {
        if !found.shares() {
            return;
        }
        if found.step == Step::Delivered {
            all.push(Action::PutBack { worker, item });
            all.push(Action::Reject { worker, item });
        }
        if matches!(found.step, Step::Delivered | Step::Claimed(_)) {
            all.push(Action::Drop { worker, item });
        }
    }

    /// `rows` are those that the process reads: one of an earlier version reads the first alone.
    pub(super) fn deliver(&self, state: &mut State, worker: usize, message: usize, rows: Range<usize>) {
        state.ready[message] -= 1;
        let receipt = if self.is(Broken::AckBeforeCommit) {
            Receipt::Void
        } else if message < state.rows.len() {
            Receipt::Whole
        } else {
            Receipt::Part(Fate::Ack)
        };
        state.workers[worker].items.extend(rows.map(|row| Item {
            row,
            receipt,
            step: Step::Delivered,
        }));
    }

    /// A row is done, and `fate` is what it wants of its message. When all rows of a message are done, the strongest wish is granted.
    pub(super) fn settle(&self, state: &mut State, worker: usize, item: usize, fate: Fate) {
        let items = &mut state.workers[worker].items;
        let settled = items.remove(item);
        let (message, fate) = match settled.receipt {
            Receipt::Void => return,
            Receipt::Whole => (settled.row, fate),
            Receipt::Part(wished) => {
                let last_decides = self.is(Broken::LastShareDecides);
                let fate = if last_decides { fate } else { fate.max(wished) };
                let others = items.iter().any(Item::shares);
                let left = if self.is(Broken::FirstShareSettles) {
                    Receipt::Void
                } else {
                    Receipt::Part(fate)
                };
                for other in items.iter_mut().filter(|other| other.shares()) {
                    other.receipt = left;
                }
                if others && left != Receipt::Void {
                    return;
                }
                (state.rows.len(), fate)
            }
        };
        match fate {
            Fate::Ack => {}
            Fate::Reject => state.dead[message] += 1,
            Fate::Requeue => state.ready[message] += 1,
            Fate::Keep => items.push(Item {
                row: 0,
                receipt: Receipt::Part(Fate::Keep),
                step: Step::Kept,
            }),
        }
    }
}
