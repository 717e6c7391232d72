//! What each action does to the processes and to the queue; what it does to rows is in `statements`.

use super::actions::{Action, Published};
use super::lane::Outcome;
use super::state::{Accepted, Fate, Item, PublishStep, Receipt, State, Step, Term};
use super::statements::Judgement;
use super::{Broken, Delivery};

impl Delivery {
    pub(super) fn step(&self, state: &mut State, action: Action) {
        let takes_lead = matches!(action, Action::TakeLead { .. })
            && state.workers.iter().any(|worker| worker.term == Term::Current);
        let early = self.is_early(state, &action);
        state.mishaps -= u8::from(action.is_mishap() || takes_lead || early);
        state.wishes -= u8::from(action.is_wish());
        match action {
            Action::Lapse { row } => {
                let lapsed = &mut state.rows[row];
                lapsed.lapsed = true;
                // A claim that has run out may be made again while its sender is still at it.
                lapsed.spare += u8::from(lapsed.token.is_some());
            }
            Action::Rescue { row } => self.rescue(state, row),
            Action::Promote { row } => self.promote(state, row),
            Action::PromoteTogether => self.promote_together(state),
            Action::Publish { message, published } => self.publish(state, message, published),
            Action::MarkBack { message } => {
                forget(state, message, PublishStep::ToMark);
                self.take_all_out_of_queue(state, message, Broken::MarksFirstRowOnly);
            }
            Action::ForgetToMark { message } => forget(state, message, PublishStep::ToMark),
            Action::Archive { message, acked } => {
                self.take_all_out_of_queue(state, message, Broken::ArchivesFirstRowOnly);
                state.dead[message] -= u8::from(acked);
            }
            Action::Cancel { row } => self.cancel(state, row),
            Action::Replay { row } => self.replay(state, row),
            Action::Resend { row } => self.resend(state, row),
            Action::Requeue { row } => self.take_out_of_queue(state, row),
            Action::Subscription { to } => state.subscription = to,
            Action::EndInactive { row } => self.end_inactive(state, row),
            Action::EndExpired { row } => self.end_expired(state, row),
            _ => self.step_of_process(state, action),
        }
    }

    fn publish(&self, state: &mut State, message: usize, published: Published) {
        forget(state, message, PublishStep::ToPublish);
        let taken = matches!(published, Published::Confirmed | Published::Unconfirmed);
        // `x-overflow=reject-publish`: a full queue refuses.
        let has_room = state.ready.iter().sum::<u8>() < self.bounds.capacity;
        if taken && has_room {
            state.ready[message] += 1;
        }
        let confirmed = published == Published::Confirmed && has_room;
        if !confirmed && published != Published::Died {
            state.publishing.push(super::Publishing {
                message,
                step: PublishStep::ToMark,
            });
        }
    }

    /// What becomes of a message becomes of each of its rows; `broken` names the variant in which it does of the first alone.
    fn take_all_out_of_queue(&self, state: &mut State, message: usize, broken: Broken) {
        let rows = state.rows_of(message);
        let count = if self.is(broken) { 1 } else { rows.len() };
        for row in rows.take(count) {
            self.take_out_of_queue(state, row);
        }
    }

    fn step_of_process(&self, state: &mut State, action: Action) {
        match action {
            Action::TakeLead { worker } => {
                for other in &mut state.workers {
                    if other.term == Term::Current {
                        other.term = Term::Stale;
                    }
                }
                state.workers[worker].term = Term::Current;
            }
            Action::StepDown { worker } => step_down(state, worker),
            Action::Deliver { worker, message } => {
                let rows = state.rows_of(message);
                self.deliver(state, worker, message, rows);
            }
            Action::DeliverToEarlier { worker, message } => {
                let rows = state.rows_of(message);
                self.deliver(state, worker, message, rows.start..rows.start + 1);
            }
            Action::Crash { worker } => {
                disconnect(state, worker);
                state.workers[worker].items.clear();
                if self.lane.is_push() {
                    state.workers[worker].term = Term::None;
                }
            }
            Action::Disconnect { worker } | Action::ChannelEnds { worker } => disconnect(state, worker),
            Action::Wipe => {
                state.ready.fill(0);
                state.dead.fill(0);
                for worker in &mut state.workers {
                    void_receipts(worker);
                }
            }
            Action::Duplicate { message } => state.ready[message] += 1,
            Action::GiveUpMessage { message } => {
                state.ready[message] -= 1;
                state.dead[message] += 1;
            }
            Action::Fetch { worker, row } => {
                if let Some(claim) = self.claim(state, Term::Current, row, Judgement::Go) {
                    state.workers[worker].items.push(Item {
                        row,
                        receipt: Receipt::Void,
                        step: Step::Claimed(claim),
                    });
                }
            }
            Action::Claim {
                worker,
                item,
                judgement,
            } => self.claim_item(state, worker, item, judgement),
            _ => self.step_of_item(state, action),
        }
    }

    /// `libs/engine/src/push/claimer.rs` and `libs/engine/src/webhook/claimer.rs`: what is not claimed has been dealt with, and its
    /// message with it; unless the claim was refused altogether, which a row shows that still waits.
    fn claim_item(&self, state: &mut State, worker: usize, item: usize, judgement: Judgement) {
        let Item { row, .. } = state.workers[worker].items[item];
        let term = state.workers[worker].term;
        let claimed = self.claim(state, term, row, judgement);
        let waits = matches!(
            state.rows[row].state,
            domain::push::PushState::Queued | domain::push::PushState::Pending
        );
        let refused = term != Term::Current && waits && claimed.is_none();
        state.workers[worker].items[item].step = match claimed {
            Some(claim) => Step::Claimed(claim),
            None if refused => Step::Settling(Fate::Requeue),
            None => Step::Settling(Fate::Ack),
        };
        if refused && self.lane.is_push() {
            step_down(state, worker);
        }
    }

    fn step_of_item(&self, state: &mut State, action: Action) {
        let (Action::ClaimUnanswered { worker, item }
        | Action::Spill { worker, item }
        | Action::Send { worker, item, .. }
        | Action::GiveBack { worker, item, .. }
        | Action::TooLate { worker, item }
        | Action::Record { worker, item }
        | Action::RecordUnanswered { worker, item }
        | Action::RecordRefused { worker, item }
        | Action::PutBack { worker, item }
        | Action::Reject { worker, item }
        | Action::Drop { worker, item }
        | Action::Settle { worker, item }) = action
        else {
            return;
        };
        let Item { row, step, .. } = state.workers[worker].items[item];
        let next = match (action, step) {
            (Action::ClaimUnanswered { .. }, _) => {
                let term = state.workers[worker].term;
                // No process knows the token: the row waits for its lease.
                self.claim(state, term, row, Judgement::Go);
                step
            }
            (Action::Spill { .. }, _) => {
                self.take_out_of_queue(state, row);
                Step::Settling(Fate::Ack)
            }
            (Action::Send { outcome, .. }, Step::Claimed(claim)) => {
                send(state, row, outcome);
                Step::Answered(claim, outcome)
            }
            (Action::GiveBack { release, .. }, Step::Claimed(claim)) => Step::Released(claim, release),
            (Action::Record { .. } | Action::RecordUnanswered { .. }, _) => {
                let fate = self.record(state, row, step);
                if matches!(action, Action::Record { .. }) {
                    Step::Settling(fate)
                } else {
                    step
                }
            }
            (Action::PutBack { .. }, _) => Step::Settling(Fate::Requeue),
            (Action::Reject { .. }, _) => Step::Settling(Fate::Reject),
            (Action::Drop { .. }, _) => {
                self.settle(state, worker, item, Fate::Keep);
                return;
            }
            (Action::Settle { .. }, Step::Settling(fate)) => {
                self.settle(state, worker, item, fate);
                return;
            }
            // `TooLate` and `RecordRefused`: the message is done with, the row is left to its lease.
            _ => Step::Settling(Fate::Ack),
        };
        state.workers[worker].items[item].step = next;
    }

    fn record(&self, state: &mut State, row: usize, step: Step) -> Fate {
        match step {
            Step::Answered(claim, outcome) => self.complete(state, row, claim, outcome),
            Step::Released(claim, release) => {
                self.release(state, row, claim, release);
                if release == super::Release::HandBack {
                    return Fate::Requeue;
                }
            }
            _ => {}
        }
        Fate::Ack
    }
}

/// The receiver counts.
fn send(state: &mut State, row: usize, outcome: Outcome) {
    if !matches!(outcome, Outcome::Accepted | Outcome::AcceptedUnheard) {
        return;
    }
    let sent = &mut state.rows[row];
    sent.accepted = match sent.accepted {
        Accepted::Never => Accepted::Once,
        Accepted::Once | Accepted::Again => Accepted::Again,
    };
    match sent.spare.checked_sub(1) {
        Some(spare) => sent.spare = spare,
        None => state.wrongs.needless = true,
    }
    // A process that does not hear of it will ask again.
    state.rows[row].spare += u8::from(outcome == Outcome::AcceptedUnheard);
}

fn forget(state: &mut State, message: usize, step: PublishStep) {
    let under_way = |publishing: &super::Publishing| publishing.message == message && publishing.step == step;
    if let Some(place) = state.publishing.iter().position(under_way) {
        state.publishing.remove(place);
    }
}

/// What it has begun goes on; what it has only received goes back when its consumer is closed.
fn step_down(state: &mut State, worker: usize) {
    let stepping = &mut state.workers[worker];
    stepping.term = Term::None;
    for item in &mut stepping.items {
        if item.step == Step::Delivered {
            item.step = Step::Settling(Fate::Requeue);
        }
    }
}

fn disconnect(state: &mut State, worker: usize) {
    let (items, shared) = (&state.workers[worker].items, state.rows.len());
    for item in items {
        state.ready[item.row] += u8::from(item.receipt == Receipt::Whole);
    }
    if items.iter().any(Item::shares) {
        state.ready[shared] += 1;
    }
    void_receipts(&mut state.workers[worker]);
}

fn void_receipts(worker: &mut super::Worker) {
    worker.items.retain(|item| item.step != Step::Kept);
    for item in &mut worker.items {
        item.receipt = Receipt::Void;
    }
}
