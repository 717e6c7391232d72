//! The life cycle of what is delivered, of both lanes: one pure function decides every change of state, `store` mirrors it with guarded
//! SQL. What the lanes differ in is data, [`LaneRules`].

use serde::{Deserialize, Serialize};

use crate::{listed, named};

// Exactly the states of the original push service. The names are stored.
/// Where a push or a notification stands.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Status {
    /// Waits for a time: its sending window, or its turn in line for quota or for the requests per second.
    Scheduled,
    /// Waits for room in the queue, or for its subscription's share.
    Pending,
    /// Handed to the broker or being sent. Leased, so that a lost one is found.
    InMemory,
    /// Tried before; waits for its next attempt.
    Retry,
    /// Accepted by the receiver.
    Sent,
    /// Failed in a way that will not pass.
    Failed,
    /// Failed as often as it may, waited for too long, or is not wanted any more.
    GivenUp,
}

named!(Status, "status");

impl Status {
    /// What has not ended, in the order in which it is looked through for what is to be cancelled.
    pub const WAITING: [Self; 4] = [Self::Scheduled, Self::Retry, Self::Pending, Self::InMemory];

    /// Whether nothing further happens by itself.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Sent | Self::Failed | Self::GivenUp)
    }
}

/// The state of something. It is finer than [`Status`] in two places: `IN_MEMORY` is either waiting in the broker's queue or claimed
/// for sending, and `GIVEN_UP` is either by itself or by an operator. Different things may happen to the two of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::VariantArray)]
pub enum State {
    /// See [`Status::Scheduled`].
    Scheduled,
    /// See [`Status::Pending`].
    Pending,
    /// `IN_MEMORY` without a lease token: its message is on the way to, in, or from the queue.
    Queued,
    /// `IN_MEMORY` with a lease token: it is claimed, and its attempt is `IN_PROCESS`.
    Sending,
    /// See [`Status::Retry`].
    Retry,
    /// See [`Status::Sent`].
    Sent,
    /// See [`Status::Failed`].
    Failed,
    /// See [`Status::GivenUp`].
    GivenUp,
    /// `GIVEN_UP` because it was cancelled: an operator does not want it sent, and nothing sends it again.
    Cancelled,
}

listed!(State);

impl State {
    /// The status that is stored for the state.
    pub fn status(self) -> Status {
        match self {
            Self::Scheduled => Status::Scheduled,
            Self::Pending => Status::Pending,
            Self::Queued | Self::Sending => Status::InMemory,
            Self::Retry => Status::Retry,
            Self::Sent => Status::Sent,
            Self::Failed => Status::Failed,
            Self::GivenUp | Self::Cancelled => Status::GivenUp,
        }
    }

    /// The state that a stored row is in, by its status, by whether it has a lease token, and by whether an operator cancelled it.
    pub fn of(status: Status, claimed: bool, cancelled: bool) -> Self {
        match status {
            Status::Scheduled => Self::Scheduled,
            Status::Pending => Self::Pending,
            Status::InMemory if claimed => Self::Sending,
            Status::InMemory => Self::Queued,
            Status::Retry => Self::Retry,
            Status::Sent => Self::Sent,
            Status::Failed => Self::Failed,
            Status::GivenUp if cancelled => Self::Cancelled,
            Status::GivenUp => Self::GivenUp,
        }
    }
}

/// What can happen to something after it has been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Event {
    /// A promoting job hands it to the broker.
    Enqueue,
    /// It is queued and has to wait in the database: the broker did not take it, or who got its message has no room for it.
    Spill,
    /// It is claimed for sending; this starts an attempt. One that waits can be claimed too: its message may be in the queue although
    /// the confirm was lost, or an engine comes back for it.
    Claim,
    /// It was to be claimed, and the quota or the requests per second of its subscription are used up.
    Defer,
    /// It was to be claimed, and its subscription is paused or not verified.
    Hold,
    /// It was claimed and is given back untouched; the attempt never was.
    HandBack,
    /// The same, and it is not to be claimed again before a time: its sending window, or a while later.
    Postpone,
    /// The receiver accepted it.
    Succeed,
    /// The attempt failed in a way that may pass.
    FailRetryable,
    /// The attempt failed in a way that will not pass.
    FailPermanently,
    /// Its lease ran out: the message or the sender is lost. For a claimed one the attempt counts, since its outcome is unknown; one
    /// that kills its sender every time must end somewhere.
    Rescue,
    /// Its subscription was deactivated or deleted, or it has waited for too long.
    Abandon,
    /// It is wanted again although it has ended; all of its attempts are ahead again.
    Resend,
    /// An operator does not want it sent any more. That is final.
    Cancel,
    /// Abandoned or cancelled, what was accepted before it was to be sent again: it stays delivered.
    EndResend,
    /// The database was restored to a moment before which it had not ended, and it may have been sent since: it ends until an operator wants
    /// it again.
    Quarantine,
}

listed!(Event);

/// How often something has been tried, an attempt under way included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// In all.
    pub total: u32,
    /// Of them, before it was last sent again: those do not count against the retries.
    pub before_resend: u32,
}

impl Attempts {
    /// Those that count against the retries.
    pub fn counted(self) -> u32 {
        self.total.saturating_sub(self.before_resend)
    }

    /// Without the one that is under way.
    fn without_the_last(self) -> Self {
        Self {
            total: self.total.saturating_sub(1),
            ..self
        }
    }
}

/// What one lane does otherwise than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneRules {
    /// Attempts that something may have until it is sent again by hand.
    pub max_attempts: u32,
    /// Whether what was tried waits as `RETRY` and nowhere else, so that first attempts and retries never meet. It can be claimed there.
    pub retries_apart: bool,
    /// Whether what is handed back is in the queue again; else it waits.
    pub hands_back_into_the_queue: bool,
    /// Whether what was sent can be sent again.
    pub resends_sent: bool,
    /// What never happens in the lane.
    pub never: &'static [Event],
}

impl LaneRules {
    /// The push lane: one receiver, which has no quota, no pause of its own and no end.
    pub fn pushes(max_attempts: u32) -> Self {
        Self {
            max_attempts,
            retries_apart: false,
            hands_back_into_the_queue: true,
            resends_sent: false,
            never: &[Event::Defer, Event::Hold, Event::Abandon, Event::EndResend],
        }
    }

    /// The reseller lane.
    pub fn notifications(max_retries: u32) -> Self {
        Self {
            max_attempts: max_retries.saturating_add(1),
            retries_apart: true,
            hands_back_into_the_queue: false,
            resends_sent: true,
            never: &[],
        }
    }

    /// Whether the next attempt of what has had these is its last.
    pub fn next_is_last(&self, attempts: Attempts) -> bool {
        attempts.counted().saturating_add(1) >= self.max_attempts
    }

    /// Where what was tried waits, if not for a time.
    fn tried(&self) -> State {
        if self.retries_apart {
            State::Retry
        } else {
            State::Pending
        }
    }

    /// Where something that has to wait does so.
    fn waiting(&self, attempts: Attempts, if_new: State) -> State {
        if self.retries_apart && attempts.total > 0 {
            State::Retry
        } else {
            if_new
        }
    }
}

/// An event that may not happen in a state: a late message, a stale lease, a double completion. Nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} may not happen to what is {state:?}")]
pub struct Refused {
    /// The state that it is in.
    pub state: State,
    /// What was to happen.
    pub event: Event,
}

/// Decides what `event` makes of something in `state` that has had these attempts, in a lane with these rules.
pub fn transition(
    state: State,
    event: Event,
    attempts: Attempts,
    rules: &LaneRules,
) -> Result<State, Refused> {
    use {Event as E, State as S};
    let another = attempts.counted() < rules.max_attempts;
    match (state, event) {
        (_, event) if rules.never.contains(&event) => Err(Refused { state, event }),
        (S::Scheduled | S::Pending | S::Retry, E::Enqueue) => Ok(S::Queued),
        (S::Queued, E::Spill | E::Rescue) => Ok(rules.waiting(attempts, S::Pending)),
        (S::Queued | S::Pending, E::Claim) => Ok(S::Sending),
        (S::Retry, E::Claim) if rules.retries_apart => Ok(S::Sending),
        (S::Queued | S::Pending | S::Retry, E::Defer) => Ok(rules.waiting(attempts, S::Scheduled)),
        (S::Queued | S::Pending | S::Retry, E::Hold) => Ok(rules.waiting(attempts, S::Pending)),
        (S::Sending, E::HandBack) if rules.hands_back_into_the_queue => Ok(S::Queued),
        (S::Sending, E::HandBack) => Ok(rules.waiting(attempts.without_the_last(), S::Pending)),
        (S::Sending, E::Postpone) => Ok(rules.waiting(attempts.without_the_last(), S::Scheduled)),
        (S::Sending, E::Succeed) => Ok(S::Sent),
        (S::Sending, E::FailPermanently) => Ok(S::Failed),
        (S::Sending, E::FailRetryable) if another => Ok(S::Retry),
        (S::Sending, E::Rescue) if another => Ok(rules.tried()),
        (S::Sending, E::FailRetryable | E::Rescue) => Ok(S::GivenUp),
        (S::Scheduled | S::Pending | S::Queued | S::Retry, E::Abandon) => Ok(S::GivenUp),
        (S::Scheduled | S::Pending | S::Queued | S::Retry, E::Cancel) => Ok(S::Cancelled),
        (S::Queued | S::Retry, E::EndResend) if attempts.before_resend > 0 => Ok(S::Sent),
        (S::Scheduled | S::Pending | S::Queued | S::Sending | S::Retry, E::Quarantine) => Ok(S::GivenUp),
        (S::Failed | S::GivenUp, E::Resend) => Ok(rules.tried()),
        (S::Sent, E::Resend) if rules.resends_sent => Ok(rules.tried()),
        (state, event) => Err(Refused { state, event }),
    }
}

#[cfg(test)]
mod tests;
