//! What the reseller can make of a subscription's state. The other changes of state follow from deliveries.

use chrono::{DateTime, TimeDelta, Utc};

use super::SubscriptionState;
use crate::reason::StateReason;

/// How long an answered challenge speaks for an endpoint that was switched off meanwhile.
const VERIFIED_FOR: TimeDelta = TimeDelta::days(30);

/// What the reseller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Deliver again after a deactivation, whatever its reason was.
    Activate,
    /// Deliver nothing any more.
    Deactivate,
    /// Challenge the endpoint once more, from the first attempt on.
    Verify,
    /// Deliver to another URL.
    MoveEndpoint,
}

impl Command {
    /// Every command there is.
    pub const ALL: [Self; 4] = [Self::Activate, Self::Deactivate, Self::Verify, Self::MoveEndpoint];

    /// The reason that is stored when it leads from one state to another. One that waits for its challenge and goes on doing so keeps why: what moved
    /// from an endpoint that was verified gathers what comes.
    pub fn reason(self, from: SubscriptionState, to: SubscriptionState) -> Option<StateReason> {
        match (self, from, to) {
            (_, SubscriptionState::PendingVerification, SubscriptionState::PendingVerification) => None,
            (Self::MoveEndpoint, ..) => Some(StateReason::EndpointChanged),
            (Self::Activate, _, SubscriptionState::PendingVerification) => {
                Some(StateReason::VerificationRequested)
            }
            (Self::Activate | Self::Deactivate | Self::Verify, ..) => Some(StateReason::ByReseller),
        }
    }
}

/// Whether an endpoint that answered its challenge at `verified_at` may be delivered to again, now that its subscription is in
/// its state for `reason`. One that said that it is gone, led elsewhere or failed for days has to be asked again, and so has
/// one that was asked long ago: the host may have another owner by now.
pub fn is_still_verified(
    verified_at: Option<DateTime<Utc>>,
    reason: StateReason,
    now: DateTime<Utc>,
) -> bool {
    let turned_away = matches!(
        reason,
        StateReason::Gone | StateReason::Redirected | StateReason::Failing
    );
    verified_at.is_some_and(|at| now - at < VERIFIED_FOR) && !turned_away
}

/// A command that makes no sense in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefused {
    /// Only what is deactivated can be activated.
    #[error("only a DEACTIVATED subscription can be activated; this one is {0}")]
    NotDeactivated(SubscriptionState),
    /// It is deactivated already.
    #[error("the subscription is DEACTIVATED already")]
    Deactivated,
    /// Its endpoint waits for no challenge.
    #[error("only the endpoint of a PENDING_VERIFICATION subscription is verified; this one is {0}")]
    NothingToVerify(SubscriptionState),
}

impl SubscriptionState {
    /// Decides what a command of the reseller makes of this state. `verified` tells whether the present endpoint has
    /// answered a challenge that still speaks for it, see [`is_still_verified`].
    pub fn command(self, command: Command, verified: bool) -> Result<Self, CommandRefused> {
        match (self, command) {
            (Self::Deactivated, Command::Activate) if verified => Ok(Self::Active),
            (Self::Deactivated, Command::Activate) => Ok(Self::PendingVerification),
            (_, Command::Activate) => Err(CommandRefused::NotDeactivated(self)),
            (Self::Deactivated, Command::Deactivate) => Err(CommandRefused::Deactivated),
            (_, Command::Deactivate) => Ok(Self::Deactivated),
            (Self::PendingVerification, Command::Verify) => Ok(self),
            (_, Command::Verify) => Err(CommandRefused::NothingToVerify(self)),
            // What was switched off stays so; the new endpoint is challenged when it is activated.
            (Self::Deactivated, Command::MoveEndpoint) => Ok(self),
            (_, Command::MoveEndpoint) => Ok(Self::PendingVerification),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use SubscriptionState as S;

    #[test]
    fn an_endpoint_that_was_never_verified_is_never_activated() {
        for state in S::ALL {
            for command in Command::ALL {
                let next = state.command(command, false);
                let stays = next == Ok(state);
                assert!(stays || !next.is_ok_and(S::receives), "{state} {command:?}");
            }
        }
    }

    #[test]
    fn a_verified_endpoint_is_activated_at_once_and_a_moved_one_is_not() {
        assert_eq!(S::Deactivated.command(Command::Activate, true), Ok(S::Active));
        for verified in [true, false] {
            for state in [S::PendingVerification, S::Active, S::Degraded] {
                let moved = state.command(Command::MoveEndpoint, verified);
                assert_eq!(moved, Ok(S::PendingVerification));
            }
            let moved = S::Deactivated.command(Command::MoveEndpoint, verified);
            assert_eq!(moved, Ok(S::Deactivated));
        }
    }

    #[test]
    fn an_endpoint_that_turned_away_or_was_asked_long_ago_is_asked_again() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(100);
        let (lately, long_ago) = (now - TimeDelta::days(29), now - TimeDelta::days(30));
        assert!(is_still_verified(Some(lately), StateReason::ByReseller, now));
        assert!(!is_still_verified(Some(long_ago), StateReason::ByReseller, now));
        assert!(!is_still_verified(None, StateReason::ByReseller, now));
        for reason in [StateReason::Gone, StateReason::Redirected, StateReason::Failing] {
            assert!(!is_still_verified(Some(lately), reason, now), "{reason}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_state() {
        for state in [S::PendingVerification, S::Active, S::Degraded] {
            let refused = state.command(Command::Activate, true);
            assert_eq!(refused, Err(CommandRefused::NotDeactivated(state)));
        }
        let refused = S::Deactivated.command(Command::Deactivate, true);
        assert_eq!(refused, Err(CommandRefused::Deactivated));
        for state in [S::Active, S::Degraded, S::Deactivated] {
            let refused = state.command(Command::Verify, true);
            assert_eq!(refused, Err(CommandRefused::NothingToVerify(state)));
        }
    }
}
