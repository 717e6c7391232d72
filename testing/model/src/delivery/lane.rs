//! The two lanes: their rules, and what their verdicts say of an outcome.
//!
//! Both have one life cycle, so that a row is the same in either.

use domain::lifecycle::{Attempts, Event, LaneRules, State, transition};
use domain::notification::{self, ClientErrors, DeliveryOutcome};
use domain::push::SendOutcome;

/// A lane and its rules.
#[derive(Debug, Clone, Copy)]
pub struct Lane {
    is_push: bool,
    pub(super) rules: LaneRules,
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

impl Lane {
    /// Pushes that may have so many attempts.
    pub fn push(max_attempts: u8) -> Self {
        Self {
            is_push: true,
            rules: LaneRules::pushes(max_attempts.into()),
        }
    }

    /// Notifications that may have so many attempts.
    pub fn reseller(max_attempts: u8) -> Self {
        Self {
            is_push: false,
            rules: LaneRules::notifications(u32::from(max_attempts.saturating_sub(1))),
        }
    }

    /// Whether it is the push lane, which has one leader.
    pub fn is_push(&self) -> bool {
        self.is_push
    }

    /// How often a row may be tried between two replays.
    pub fn max_attempts(&self) -> u32 {
        self.rules.max_attempts
    }

    /// The event that an outcome is, as the lane's own verdict says.
    pub(super) fn classification(&self, outcome: Outcome) -> Event {
        if self.is_push {
            swrve_said(outcome).classification().event
        } else {
            endpoint_said(outcome).classification(ClientErrors::Usual).event
        }
    }

    /// What `domain` makes of it; `None` when it refuses.
    pub(super) fn decide(&self, state: State, event: Event, attempts: u8, before: u8) -> Option<State> {
        let attempts = Attempts {
            total: attempts.into(),
            before_resend: before.into(),
        };
        transition(state, event, attempts, &self.rules).ok()
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
