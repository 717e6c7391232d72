//! The two lanes: which transition function decides, and where their statements differ.
//!
//! Both lanes have the same states, so rows hold those of a push; a notification's are translated by status and claim.

use std::time::Duration;

use domain::notification::{self, Attempts, DeliveryOutcome, NotificationState};
use domain::push::{self, PushState, SendOutcome};

/// A lane and its rules.
#[derive(Debug, Clone, Copy)]
pub enum Lane {
    /// Pushes, with `push.retry`.
    Push(push::RetryPolicy),
    /// Notifications, with `reseller.retry`.
    Reseller(notification::RetryPolicy),
}

/// What happens to a row, in the words of the lane that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happening {
    Push(push::Event),
    Reseller(notification::Event),
}

/// What comes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The receiver accepts it.
    Accepted,
    /// The receiver accepts it, and the answer is lost.
    AcceptedUnheard,
    /// The receiver fails in a way that may pass.
    Unavailable,
    /// The receiver refuses it.
    Refused,
}

impl Outcome {
    pub(super) const ALL: [Self; 4] = [
        Self::Accepted,
        Self::AcceptedUnheard,
        Self::Unavailable,
        Self::Refused,
    ];
}

/// The events that only one of the lanes knows by the same name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Common {
    Enqueue,
    NotEnqueued,
    Claim,
    Rescue,
    Again,
    Cancel,
}

impl Lane {
    /// Pushes that may have so many attempts.
    #[must_use]
    pub fn push(max_attempts: u8) -> Self {
        Self::Push(push::RetryPolicy {
            delay: Duration::from_secs(60),
            max_attempts: max_attempts.into(),
        })
    }

    /// Notifications that may have so many attempts.
    #[must_use]
    pub fn reseller(max_attempts: u8) -> Self {
        Self::Reseller(notification::RetryPolicy {
            max_retries: u32::from(max_attempts.saturating_sub(1)),
            initial_delay: Duration::from_secs(30),
            max_delay: Duration::from_secs(300),
            max_retry_after: Duration::from_secs(300),
        })
    }

    /// Whether it is the push lane, which has one leader.
    #[must_use]
    pub fn is_push(&self) -> bool {
        matches!(self, Self::Push(_))
    }

    /// How often a row may be tried between two replays.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        match self {
            Self::Push(policy) => policy.max_attempts,
            Self::Reseller(policy) => policy.max_retries + 1,
        }
    }

    pub(super) fn event(&self, common: Common) -> Happening {
        use notification::Event as N;
        use push::Event as P;
        let (push, reseller) = match common {
            Common::Enqueue => (P::Enqueue, N::Enqueue),
            Common::NotEnqueued => (P::NotEnqueued, N::Sideline),
            Common::Claim => (P::Claim, N::Claim),
            Common::Rescue => (P::Rescue, N::Rescue),
            Common::Again => (P::Replay, N::Resend),
            Common::Cancel => (P::Cancel, N::Cancel),
        };
        match self {
            Self::Push(_) => Happening::Push(push),
            Self::Reseller(_) => Happening::Reseller(reseller),
        }
    }

    /// The event that an outcome is, as the lane's own verdict says.
    pub(super) fn verdict(&self, outcome: Outcome) -> Happening {
        match self {
            Self::Push(_) => Happening::Push(swrve_said(outcome).verdict().event),
            Self::Reseller(_) => Happening::Reseller(endpoint_said(outcome).verdict(false).event),
        }
    }

    /// What `domain` makes of it; `None` when it refuses.
    pub(super) fn decide(
        &self,
        state: PushState,
        happening: Happening,
        attempts: u8,
        before: u8,
    ) -> Option<PushState> {
        match (self, happening) {
            (Self::Push(policy), Happening::Push(event)) => {
                push::transition(state, event, u32::from(attempts - before), policy).ok()
            }
            (Self::Reseller(policy), Happening::Reseller(event)) => {
                let attempts = Attempts {
                    total: attempts.into(),
                    before_resend: before.into(),
                };
                let claimed = state == PushState::Sending;
                let cancelled = state == PushState::Cancelled;
                let state = NotificationState::of(state.status(), claimed, cancelled);
                let next = notification::transition(state, event, attempts, policy).ok()?;
                let claimed = next == NotificationState::Sending;
                let cancelled = next == NotificationState::Cancelled;
                Some(PushState::of(next.status(), claimed, cancelled))
            }
            _ => None,
        }
    }
}

fn swrve_said(outcome: Outcome) -> SendOutcome {
    let refused = |status| SendOutcome::Refused {
        status,
        code: None,
        message: String::new(),
    };
    match outcome {
        Outcome::Accepted => SendOutcome::Delivered,
        Outcome::AcceptedUnheard => SendOutcome::Unreachable {
            message: String::new(),
        },
        Outcome::Unavailable => refused(503),
        Outcome::Refused => refused(400),
    }
}

fn endpoint_said(outcome: Outcome) -> DeliveryOutcome {
    let answered = |status| DeliveryOutcome::Answered {
        status,
        retry_after: None,
        body: String::new(),
    };
    match outcome {
        Outcome::Accepted => answered(200),
        Outcome::AcceptedUnheard => DeliveryOutcome::Failed {
            kind: notification::FailureKind::Timeout,
            message: String::new(),
        },
        Outcome::Unavailable => answered(503),
        Outcome::Refused => answered(400),
    }
}
