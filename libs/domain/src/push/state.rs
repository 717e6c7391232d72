//! The life cycle of a push: one pure function decides every change of state, `store` mirrors it with guarded SQL.

use serde::{Deserialize, Serialize};

use super::RetryPolicy;
use crate::named;

/// The status of a push as it is stored and shown: exactly the states of the original push service.
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
pub enum PushStatus {
    /// Waits for its sending window.
    Scheduled,
    /// Waits for room in the queue.
    Pending,
    /// Handed to the broker or being sent. Leased, so that a lost one is found.
    InMemory,
    /// Failed in a way that may pass; waits for its next attempt.
    Retry,
    /// Accepted by Swrve.
    Sent,
    /// Failed in a way that will not pass.
    Failed,
    /// Failed as often as it may.
    GivenUp,
}

named!(PushStatus, "status");

impl PushStatus {
    /// Whether nothing further happens to a push by itself.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Sent | Self::Failed | Self::GivenUp)
    }
}

/// The state of a push. It is finer than [`PushStatus`] in two places: `IN_MEMORY` is either waiting in the broker's
/// queue or claimed for sending, and `GIVEN_UP` is either by itself or by an operator. Different things may happen to
/// the two of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PushState {
    /// See [`PushStatus::Scheduled`].
    Scheduled,
    /// See [`PushStatus::Pending`].
    Pending,
    /// `IN_MEMORY` without a lease token: its message is on the way to, in, or from the queue.
    Queued,
    /// `IN_MEMORY` with a lease token: a dispatcher has claimed it and its attempt is `IN_PROCESS`.
    Sending,
    /// See [`PushStatus::Retry`].
    Retry,
    /// See [`PushStatus::Sent`].
    Sent,
    /// See [`PushStatus::Failed`].
    Failed,
    /// See [`PushStatus::GivenUp`].
    GivenUp,
    /// `GIVEN_UP` because it was cancelled: an operator does not want it sent, and nothing sends it again.
    Cancelled,
}

impl PushState {
    /// Every state there is.
    pub const ALL: [Self; 9] = [
        Self::Scheduled,
        Self::Pending,
        Self::Queued,
        Self::Sending,
        Self::Retry,
        Self::Sent,
        Self::Failed,
        Self::GivenUp,
        Self::Cancelled,
    ];

    /// The status that is stored for the state.
    #[must_use]
    pub fn status(self) -> PushStatus {
        match self {
            Self::Scheduled => PushStatus::Scheduled,
            Self::Pending => PushStatus::Pending,
            Self::Queued | Self::Sending => PushStatus::InMemory,
            Self::Retry => PushStatus::Retry,
            Self::Sent => PushStatus::Sent,
            Self::Failed => PushStatus::Failed,
            Self::GivenUp | Self::Cancelled => PushStatus::GivenUp,
        }
    }

    /// The state that a stored row is in, by its status, by whether it has a lease token, and by whether an operator cancelled it.
    #[must_use]
    pub fn of(status: PushStatus, claimed: bool, cancelled: bool) -> Self {
        match status {
            PushStatus::Scheduled => Self::Scheduled,
            PushStatus::Pending => Self::Pending,
            PushStatus::InMemory if claimed => Self::Sending,
            PushStatus::InMemory => Self::Queued,
            PushStatus::Retry => Self::Retry,
            PushStatus::Sent => Self::Sent,
            PushStatus::Failed => Self::Failed,
            PushStatus::GivenUp if cancelled => Self::Cancelled,
            PushStatus::GivenUp => Self::GivenUp,
        }
    }
}

/// What can happen to a push after it has been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A promoting job hands it to the broker.
    Enqueue,
    /// The broker did not take it: the queue is full, no confirm came in time, or the broker is away.
    NotEnqueued,
    /// A dispatcher claims it for sending; this starts an attempt. A pending push can be claimed too: its message may
    /// be in the queue although the confirm was lost or the wait was longer than the lease.
    Claim,
    /// The dispatcher gives it back untouched, because it stops or has lost the lead; the attempt never was.
    HandBack,
    /// It missed its sending window while it waited; the attempt never was.
    Defer,
    /// Swrve accepted it.
    Succeed,
    /// The attempt failed in a way that may pass.
    FailRetryable,
    /// The attempt failed in a way that will not pass.
    FailPermanently,
    /// Its lease ran out: the message or the sender is lost. For a claimed push the attempt counts, since its
    /// outcome is unknown; one that kills its sender every time must end somewhere.
    Rescue,
    /// Somebody wants it sent although it has ended badly by itself; all of its attempts are ahead again.
    Replay,
    /// An operator does not want it sent any more. That is final.
    Cancel,
}

impl Event {
    /// Every event there is.
    pub const ALL: [Self; 11] = [
        Self::Enqueue,
        Self::NotEnqueued,
        Self::Claim,
        Self::HandBack,
        Self::Defer,
        Self::Succeed,
        Self::FailRetryable,
        Self::FailPermanently,
        Self::Rescue,
        Self::Replay,
        Self::Cancel,
    ];
}

/// An event that may not happen in a state: a late message, a stale lease, a double completion. Nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} may not happen to a push that is {state:?}")]
pub struct Refused {
    /// The state that the push is in.
    pub state: PushState,
    /// What was to happen.
    pub event: Event,
}

/// Decides what `event` makes of a push in `state` that has had `attempts` attempts since it was accepted or replayed
/// last, the current one included.
///
/// # Errors
///
/// [`Refused`] when the event may not happen in that state.
pub fn transition(
    state: PushState,
    event: Event,
    attempts: u32,
    policy: &RetryPolicy,
) -> Result<PushState, Refused> {
    let another = policy.allows_another(attempts);
    match (state, event) {
        (PushState::Scheduled | PushState::Pending | PushState::Retry, Event::Enqueue) => {
            Ok(PushState::Queued)
        }
        (PushState::Queued, Event::NotEnqueued | Event::Rescue) => Ok(PushState::Pending),
        (PushState::Queued | PushState::Pending, Event::Claim) => Ok(PushState::Sending),
        (PushState::Sending, Event::HandBack) => Ok(PushState::Queued),
        (PushState::Sending, Event::Defer) => Ok(PushState::Scheduled),
        (PushState::Sending, Event::Succeed) => Ok(PushState::Sent),
        (PushState::Sending, Event::FailPermanently) => Ok(PushState::Failed),
        (PushState::Sending, Event::FailRetryable) if another => Ok(PushState::Retry),
        (PushState::Sending, Event::Rescue) if another => Ok(PushState::Pending),
        (PushState::Sending, Event::FailRetryable | Event::Rescue) => Ok(PushState::GivenUp),
        (PushState::Failed | PushState::GivenUp, Event::Replay) => Ok(PushState::Pending),
        (PushState::Scheduled | PushState::Pending | PushState::Queued | PushState::Retry, Event::Cancel) => {
            Ok(PushState::Cancelled)
        }
        (state, event) => Err(Refused { state, event }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        delay: Duration::from_secs(60),
        max_attempts: 3,
    };

    #[test]
    fn terminal_states_accept_only_a_replay_of_what_ended_badly() {
        for state in PushState::ALL.into_iter().filter(|s| s.status().is_terminal()) {
            for event in Event::ALL {
                let by_itself = matches!(state, PushState::Failed | PushState::GivenUp);
                let expected = if event == Event::Replay && by_itself {
                    Ok(PushState::Pending)
                } else {
                    Err(Refused { state, event })
                };
                assert_eq!(transition(state, event, 1, &POLICY), expected);
            }
        }
    }

    #[test]
    fn what_was_cancelled_stays_so_whatever_happens() {
        for event in Event::ALL {
            let state = PushState::Cancelled;
            let refused = Err(Refused { state, event });
            assert_eq!(transition(state, event, 1, &POLICY), refused);
        }
        let cancelled = transition(PushState::Pending, Event::Cancel, 0, &POLICY);
        assert_eq!(cancelled, Ok(PushState::Cancelled));
    }

    #[test]
    fn a_state_is_read_back_from_what_is_stored_of_it() {
        for state in PushState::ALL {
            let cancelled = state == PushState::Cancelled;
            let claimed = state == PushState::Sending;
            assert_eq!(PushState::of(state.status(), claimed, cancelled), state);
        }
    }

    #[test]
    fn the_last_allowed_attempt_gives_up() {
        let after = |attempts, event| transition(PushState::Sending, event, attempts, &POLICY);
        assert_eq!(after(2, Event::FailRetryable), Ok(PushState::Retry));
        assert_eq!(after(3, Event::FailRetryable), Ok(PushState::GivenUp));
        assert_eq!(after(2, Event::Rescue), Ok(PushState::Pending));
        assert_eq!(after(3, Event::Rescue), Ok(PushState::GivenUp));
    }

    proptest! {
        /// However events arrive, a push ends after at most `max_attempts` claims that were not given back, and after as
        /// many again for each replay.
        #[test]
        fn attempts_are_bounded(events in proptest::collection::vec(proptest::sample::select(&Event::ALL[..]), 0..200)) {
            let (mut state, mut attempts) = (PushState::Pending, 0_u32);
            for event in events {
                let counted = attempts + u32::from(event == Event::Claim);
                let Ok(next) = transition(state, event, counted, &POLICY) else { continue };
                attempts = match event {
                    Event::HandBack | Event::Defer => attempts - 1,
                    Event::Replay => 0,
                    _ => counted,
                };
                state = next;
                prop_assert!(attempts <= POLICY.max_attempts);
            }
        }
    }
}
