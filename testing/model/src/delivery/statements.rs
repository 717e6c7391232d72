//! The statements of `libs/store/src`, each as a guard and a change. The next state is written here as the SQL has it, and
//! compared with what `transition` says.

use domain::lifecycle::Event;
use domain::push::PushState;

use super::state::{Claim, PublishStep, Publishing, Release, Row, State, Subscription, Term};
use super::{Broken, Delivery, Outcome};

/// What a claiming statement finds out about something that it may claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// It may be sent now.
    Go,
    /// Its quota or its requests per second are used up.
    Later,
    /// It waits for its next attempt, whose time has not come.
    NotDue,
}

/// What becomes of what waits in vain: what had been delivered and was to be sent again stays delivered.
fn abandoned(row: &Row) -> (Event, PushState) {
    if row.delivered {
        (Event::EndResend, PushState::Sent)
    } else {
        (Event::Abandon, PushState::GivenUp)
    }
}

impl Delivery {
    /// Changes the state of a row, and notes what is wrong about that.
    fn change(&self, state: &mut State, row: usize, event: Event, next: PushState) {
        let changed = &mut state.rows[row];
        let decided = self
            .lane
            .decide(changed.state, event, changed.attempts, changed.before);
        if decided != Some(next) {
            state.wrongs.unlawful = true;
        }
        if changed.has_ended() && event != Event::Resend {
            state.wrongs.resurrected = true;
        }
        changed.state = next;
        changed.lapsed = false;
    }

    /// What waits in the database does so as pending, or as a retry once it was tried; only notifications differ.
    fn waiting(&self, row: &Row) -> PushState {
        if !self.lane.is_push() && row.attempts > 0 {
            PushState::Retry
        } else {
            PushState::Pending
        }
    }

    /// `push/claim.rs` and `webhook/claim.rs`: the claim, if it took anything.
    pub(super) fn claim(
        &self,
        state: &mut State,
        term: Term,
        row: usize,
        judgement: Judgement,
    ) -> Option<Claim> {
        let leads = term == Term::Current || self.is(Broken::ClaimWithoutEpoch);
        let found = state.rows[row].state;
        let guarded = match found {
            PushState::Queued => true,
            PushState::Pending => !self.is(Broken::PendingIsNotClaimed),
            PushState::Retry => !self.lane.is_push() && judgement != Judgement::NotDue,
            _ => false,
        };
        if !leads || !guarded {
            return None;
        }
        if !self.lane.is_push() && !self.judged(state, row, judgement) {
            return None;
        }
        state.wrongs.usurped |= term != Term::Current;
        let token = state.fresh_token(row);
        let claimed = &mut state.rows[row];
        claimed.attempts += 1;
        let bit = 1 << claimed.attempts;
        // The primary key of the attempt rows.
        state.wrongs.clash |= claimed.attempt_rows & bit != 0;
        claimed.attempt_rows |= bit;
        claimed.in_process |= bit;
        claimed.token = Some(token);
        let claim = Claim {
            token,
            attempts: claimed.attempts,
            before: claimed.before,
        };
        self.change(state, row, Event::Claim, PushState::Sending);
        Some(claim)
    }

    /// The part of `webhook/claim.rs` that decides whether something may be sent now; if not, it is put where it waits.
    fn judged(&self, state: &mut State, row: usize, judgement: Judgement) -> bool {
        let tried = state.rows[row].attempts > 0;
        let (event, next) = match (state.subscription, judgement) {
            (Subscription::Ended, _) => abandoned(&state.rows[row]),
            (Subscription::Held, _) => (Event::Hold, self.waiting(&state.rows[row])),
            (Subscription::Open, Judgement::Later) if tried => (Event::Defer, PushState::Retry),
            (Subscription::Open, Judgement::Later) => (Event::Defer, PushState::Scheduled),
            (Subscription::Open, _) => return true,
        };
        state.rows[row].silent |= next == PushState::GivenUp;
        self.change(state, row, event, next);
        false
    }

    /// `push/complete.rs` and `webhook/complete.rs`; the sender has decided the next state by what its claim told it
    /// (`libs/engine/src/push/ending.rs`, `libs/engine/src/webhook/attempt.rs`).
    pub(super) fn complete(&self, state: &mut State, row: usize, claim: Claim, outcome: Outcome) {
        let completed = &state.rows[row];
        let ours = completed.token == Some(claim.token);
        let fenced = ours || self.is(Broken::CompletionWithoutFence);
        if completed.state != PushState::Sending || !fenced {
            return;
        }
        state.wrongs.stale_completion |= !ours;
        let event = self.lane.classification(outcome);
        let next = self
            .lane
            .decide(PushState::Sending, event, claim.attempts, claim.before)
            .expect("invariant: every verdict is an event that something being sent accepts");
        self.end_attempt(state, row);
        self.change(state, row, event, next);
        self.write_dead_letter(state, row);
    }

    /// `release.rs`.
    pub(super) fn release(&self, state: &mut State, row: usize, claim: Claim, release: Release) {
        let released = &mut state.rows[row];
        if released.state != PushState::Sending || released.token != Some(claim.token) {
            return;
        }
        let bit = 1 << released.attempts;
        if !self.is(Broken::HandBackKeepsAttempt) {
            released.attempt_rows &= !(bit & released.in_process);
        }
        released.in_process &= !bit;
        released.token = None;
        let (event, next) = match release {
            Release::HandBack => (Event::HandBack, PushState::Queued),
            Release::Defer => (Event::Postpone, PushState::Scheduled),
        };
        self.change(state, row, event, next);
        state.rows[row].attempts -= 1;
    }

    /// `push/rescue.rs` and `webhook/rescue.rs`.
    pub(super) fn rescue(&self, state: &mut State, row: usize) {
        let lost = &state.rows[row];
        let claimed = lost.state == PushState::Sending;
        let counted = u32::from(lost.attempts - lost.before);
        let spent = claimed && counted >= self.lane.max_attempts() && !self.is(Broken::RescueNeverGivesUp);
        let next = if spent {
            PushState::GivenUp
        } else {
            self.waiting(lost)
        };
        if claimed {
            self.end_attempt(state, row);
        }
        self.change(state, row, Event::Rescue, next);
        if spent {
            self.write_dead_letter(state, row);
        }
    }

    /// The attempt row of the present claim ends, and the claim with it.
    fn end_attempt(&self, state: &mut State, row: usize) {
        let ended = &mut state.rows[row];
        ended.in_process &= !(1 << ended.attempts);
        ended.token = None;
    }

    fn write_dead_letter(&self, state: &mut State, row: usize) {
        let ended = &mut state.rows[row];
        if ended.has_failed() && !self.is(Broken::DeadLetterApart) {
            ended.dead_letters += 1;
        }
    }

    /// `push/promote.rs` and `webhook/promote.rs`; the job publishes what they return.
    pub(super) fn promote(&self, state: &mut State, row: usize) {
        self.change(state, row, Event::Enqueue, PushState::Queued);
        state.publishing.push(Publishing {
            message: row,
            step: PublishStep::ToPublish,
        });
    }

    /// The same for all rows at once; they share a message.
    pub(super) fn promote_together(&self, state: &mut State) {
        let rows = state.rows.len();
        for row in 0..rows {
            self.change(state, row, Event::Enqueue, PushState::Queued);
        }
        state.publishing.push(Publishing {
            message: rows,
            step: PublishStep::ToPublish,
        });
    }

    /// Whether those statements would take it now.
    pub(super) fn is_promotable(&self, state: &State, row: usize) -> bool {
        let open = self.lane.is_push() || state.subscription == Subscription::Open;
        match state.rows[row].state {
            PushState::Pending | PushState::Retry => open,
            PushState::Scheduled => true,
            _ => false,
        }
    }

    /// `mark_not_enqueued` in `push/promote.rs`, `webhook/spill.rs`, `restore.rs` and
    /// `dead_letters/archive.rs`: what is queued and not claimed waits in the database again.
    pub(super) fn take_out_of_queue(&self, state: &mut State, row: usize) {
        if state.rows[row].state == PushState::Queued {
            let next = self.waiting(&state.rows[row]);
            self.change(state, row, Event::Spill, next);
        }
    }

    /// `cancel.rs`; its dead letter is resolved from the beginning. What had been delivered and was to be sent again stays delivered.
    pub(super) fn cancel(&self, state: &mut State, row: usize) {
        let (event, next) = if state.rows[row].delivered {
            (Event::EndResend, PushState::Sent)
        } else {
            (Event::Cancel, PushState::Cancelled)
        };
        self.change(state, row, event, next);
    }

    /// `end_inactive` in `webhook/inactive.rs`: what waits for a subscription that gets nothing ends.
    pub(super) fn end_inactive(&self, state: &mut State, row: usize) {
        let (event, next) = abandoned(&state.rows[row]);
        self.change(state, row, event, next);
        state.rows[row].silent = next == PushState::GivenUp;
    }

    /// `end_expired` in `webhook/inactive.rs`: what has waited for too long ends.
    pub(super) fn end_expired(&self, state: &mut State, row: usize) {
        let (event, next) = abandoned(&state.rows[row]);
        self.change(state, row, event, next);
        self.write_dead_letter(state, row);
    }

    /// `resolution/apply.rs`: replayed by a dead letter, all that are about it are resolved.
    pub(super) fn replay(&self, state: &mut State, row: usize) {
        self.again(state, row);
        state.rows[row].dead_letters = 0;
    }

    /// `webhook/sending_again.rs`: sent again by its reseller, unless it was cancelled.
    pub(super) fn resend(&self, state: &mut State, row: usize) {
        let cancelled = state.rows[row].state == PushState::Cancelled;
        if cancelled && !self.is(Broken::ResendForgetsCancellation) {
            return;
        }
        self.again(state, row);
        if !self.is(Broken::ResendKeepsDeadLetter) {
            state.rows[row].dead_letters = 0;
        }
    }

    fn again(&self, state: &mut State, row: usize) {
        state.rows[row].delivered |= state.rows[row].state == PushState::Sent;
        let next = if self.lane.is_push() {
            PushState::Pending
        } else {
            PushState::Retry
        };
        self.change(state, row, Event::Resend, next);
        let again = &mut state.rows[row];
        again.before = again.attempts;
        again.silent = false;
        again.spare += 1;
    }
}
