//! The life cycle of a notification: one pure function decides every change of state, `store` mirrors it with guarded
//! SQL.

use super::{NotificationStatus, RetryPolicy};

/// The state of a notification. Finer than its status in two places, as that of a push: `IN_MEMORY` is either queued or
/// being sent, and `GIVEN_UP` is either by itself or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationState {
    /// Waits in line for quota or for the requests per second.
    Scheduled,
    /// Waits for room in the queue, or for its subscription's share. It has never been tried.
    Pending,
    /// `IN_MEMORY` without a lease token: its message is on the way to, in, or from the queue.
    Queued,
    /// `IN_MEMORY` with a lease token: somebody has claimed it and its attempt is `IN_PROCESS`.
    Sending,
    /// Tried before; waits for its next attempt.
    Retry,
    /// Accepted by the receiver.
    Sent,
    /// Failed in a way that will not pass.
    Failed,
    /// Failed as often as it may, or its subscription is not active any more.
    GivenUp,
    /// `GIVEN_UP` because it was cancelled: an operator does not want it sent, and nothing sends it again.
    Cancelled,
}

impl NotificationState {
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
    pub fn status(self) -> NotificationStatus {
        match self {
            Self::Scheduled => NotificationStatus::Scheduled,
            Self::Pending => NotificationStatus::Pending,
            Self::Queued | Self::Sending => NotificationStatus::InMemory,
            Self::Retry => NotificationStatus::Retry,
            Self::Sent => NotificationStatus::Sent,
            Self::Failed => NotificationStatus::Failed,
            Self::GivenUp | Self::Cancelled => NotificationStatus::GivenUp,
        }
    }

    /// The state that a stored row is in, by its status, by whether it has a lease token, and by whether an operator cancelled it.
    #[must_use]
    pub fn of(status: NotificationStatus, claimed: bool, cancelled: bool) -> Self {
        match status {
            NotificationStatus::Scheduled => Self::Scheduled,
            NotificationStatus::Pending => Self::Pending,
            NotificationStatus::InMemory if claimed => Self::Sending,
            NotificationStatus::InMemory => Self::Queued,
            NotificationStatus::Retry => Self::Retry,
            NotificationStatus::Sent => Self::Sent,
            NotificationStatus::Failed => Self::Failed,
            NotificationStatus::GivenUp if cancelled => Self::Cancelled,
            NotificationStatus::GivenUp => Self::GivenUp,
        }
    }
}

/// What can happen to a notification after its event has been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A promoting job hands it to the broker.
    Enqueue,
    /// The broker did not take it, or whoever got its message has no room for more of its subscription.
    Sideline,
    /// It is claimed for sending; this starts an attempt. One that waits in the database and is due can be claimed as
    /// well.
    Claim,
    /// It was to be claimed, and the quota or the requests per second of its subscription are used up.
    Defer,
    /// It was to be claimed, and its subscription is paused or not verified.
    Hold,
    /// It was claimed and is given back unsent: its attempt is taken back as if it had never begun.
    HandBack,
    /// The same, and it is not to be claimed again before a while has passed.
    Postpone,
    /// The receiver accepted it.
    Succeed,
    /// The attempt failed in a way that may pass.
    FailRetryable,
    /// The attempt failed in a way that will not pass.
    FailPermanently,
    /// Its lease ran out. For a claimed one the attempt counts, since its outcome is unknown.
    Rescue,
    /// Its subscription was deactivated or deleted, or it has waited for too long.
    Abandon,
    /// Its reseller or an operator asked to send it again.
    Resend,
    /// An operator does not want it sent any more. That is final.
    Cancel,
}

impl Event {
    /// Every event there is.
    pub const ALL: [Self; 14] = [
        Self::Enqueue,
        Self::Sideline,
        Self::Claim,
        Self::Defer,
        Self::Hold,
        Self::HandBack,
        Self::Postpone,
        Self::Succeed,
        Self::FailRetryable,
        Self::FailPermanently,
        Self::Rescue,
        Self::Abandon,
        Self::Resend,
        Self::Cancel,
    ];
}

/// How often a notification has been tried, an attempt under way included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// In all.
    pub total: u32,
    /// Of them, before it was last resent by hand: those do not count against the retries.
    pub before_resend: u32,
}

impl Attempts {
    /// Those that count against the retries.
    #[must_use]
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

    /// Where something that has to wait does so: what was tried before belongs to the retry lane.
    fn waiting(self, if_new: NotificationState) -> NotificationState {
        if self.total == 0 {
            if_new
        } else {
            NotificationState::Retry
        }
    }
}

/// An event that may not happen in a state. Nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} may not happen to a notification that is {state:?}")]
pub struct Refused {
    /// The state that the notification is in.
    pub state: NotificationState,
    /// What was to happen.
    pub event: Event,
}

/// Decides what `event` makes of a notification in `state`.
///
/// # Errors
///
/// [`Refused`] when the event may not happen in that state.
pub fn transition(
    state: NotificationState,
    event: Event,
    attempts: Attempts,
    policy: &RetryPolicy,
) -> Result<NotificationState, Refused> {
    use NotificationState as S;
    let another = policy.allows_another(attempts.counted());
    match (state, event) {
        (S::Scheduled | S::Pending | S::Retry, Event::Enqueue) => Ok(S::Queued),
        (S::Queued, Event::Sideline | Event::Rescue) => Ok(attempts.waiting(S::Pending)),
        (S::Queued | S::Pending | S::Retry, Event::Claim) => Ok(S::Sending),
        (S::Queued | S::Pending | S::Retry, Event::Defer) => Ok(attempts.waiting(S::Scheduled)),
        (S::Queued | S::Pending | S::Retry, Event::Hold) => Ok(attempts.waiting(S::Pending)),
        (S::Sending, Event::HandBack) => Ok(attempts.without_the_last().waiting(S::Pending)),
        (S::Sending, Event::Postpone) => Ok(attempts.without_the_last().waiting(S::Scheduled)),
        (S::Sending, Event::Succeed) => Ok(S::Sent),
        (S::Sending, Event::FailPermanently) => Ok(S::Failed),
        (S::Sending, Event::FailRetryable | Event::Rescue) if another => Ok(S::Retry),
        (S::Sending, Event::FailRetryable | Event::Rescue) => Ok(S::GivenUp),
        (S::Scheduled | S::Pending | S::Queued | S::Retry, Event::Abandon) => Ok(S::GivenUp),
        (S::Scheduled | S::Pending | S::Queued | S::Retry, Event::Cancel) => Ok(S::Cancelled),
        (S::Sent | S::Failed | S::GivenUp, Event::Resend) => Ok(S::Retry),
        (state, event) => Err(Refused { state, event }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 3,
        initial_delay: Duration::from_secs(30),
        max_delay: Duration::from_secs(300),
        max_retry_after: Duration::from_secs(300),
    };

    #[test]
    fn the_last_retry_gives_up_and_a_resend_begins_anew() {
        let after = |total, before_resend| {
            let attempts = Attempts { total, before_resend };
            transition(
                NotificationState::Sending,
                Event::FailRetryable,
                attempts,
                &POLICY,
            )
        };
        assert_eq!(after(3, 0), Ok(NotificationState::Retry));
        assert_eq!(after(4, 0), Ok(NotificationState::GivenUp));
        assert_eq!(after(7, 4), Ok(NotificationState::Retry));
        assert_eq!(after(8, 4), Ok(NotificationState::GivenUp));
    }

    #[test]
    fn terminal_states_accept_only_a_resend_and_what_was_cancelled_not_even_that() {
        for state in NotificationState::ALL
            .into_iter()
            .filter(|s| s.status().is_terminal())
        {
            for event in Event::ALL {
                let next = transition(state, event, Attempts::default(), &POLICY);
                let resent = event == Event::Resend && state != NotificationState::Cancelled;
                assert_eq!(next.is_ok(), resent, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn a_state_is_read_back_from_what_is_stored_of_it() {
        for state in NotificationState::ALL {
            let cancelled = state == NotificationState::Cancelled;
            let claimed = state == NotificationState::Sending;
            assert_eq!(NotificationState::of(state.status(), claimed, cancelled), state);
        }
    }

    #[test]
    fn what_was_tried_before_never_waits_among_first_attempts() {
        // One of them may be under way.
        let tried = Attempts {
            total: 2,
            before_resend: 0,
        };
        for state in NotificationState::ALL {
            for event in Event::ALL {
                let next = transition(state, event, tried, &POLICY);
                assert!(!matches!(
                    next,
                    Ok(NotificationState::Pending | NotificationState::Scheduled)
                ));
            }
        }
    }

    proptest! {
        /// However events arrive, there are at most `max_retries + 1` attempts between two resends.
        #[test]
        fn attempts_are_bounded(events in proptest::collection::vec(proptest::sample::select(&Event::ALL[..]), 0..300)) {
            let (mut state, mut attempts) = (NotificationState::Pending, Attempts::default());
            for event in events {
                let mut counted = attempts;
                counted.total += u32::from(event == Event::Claim);
                let Ok(next) = transition(state, event, counted, &POLICY) else { continue };
                attempts = counted;
                if matches!(event, Event::HandBack | Event::Postpone) {
                    attempts.total -= 1;
                }
                if event == Event::Resend {
                    attempts.before_resend = attempts.total;
                }
                state = next;
                prop_assert!(attempts.counted() <= POLICY.max_retries + 1);
            }
        }
    }
}
