//! Sending again by itself what the outage of an endpoint has given up: when it goes on, when it waits, and when it ends.
//!
//! Which notifications that are, and sending them, is not decided here.

use std::time::Duration;

use crate::named;

/// A recovery takes one of so many equal parts of the requests per second; the others are for what is new.
pub const RECOVERY_PARTS: u32 = 4;
/// How often a notification is sent again by itself at most. What fails each time is left to people.
pub const RECOVERIES_MAX: u32 = 3;

/// Why a recovery ended before it was through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum RecoveryEnd {
    /// The endpoint fails again.
    Failing,
    /// The subscription gets nothing any more.
    Inactive,
    /// Its reseller does not want it.
    SwitchedOff,
}

named!(RecoveryEnd, "end of a recovery");

/// What has become of the first notification of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// None was sent again yet.
    Missing,
    /// It is being sent.
    UnderWay,
    /// It has ended.
    Ended,
}

/// What a recovery knows of its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryGround {
    /// Whether the endpoint has failed since its last success.
    pub failing: bool,
    /// Whether the subscription gets anything.
    pub active: bool,
    /// Whether it is paused, by its reseller or by an operator.
    pub paused: bool,
    /// Whether its reseller has switched recoveries off.
    pub switched_off: bool,
    /// The first notification.
    pub probe: Probe,
    /// How many attempts of it after the first are due.
    pub waiting: u32,
}

/// What a recovery does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryStep {
    /// It sends at most so many again.
    Take(u32),
    /// It waits.
    Wait,
    /// It ends.
    End(RecoveryEnd),
}

impl RecoveryGround {
    /// Decides what is next, where the rate alone would allow `per_second`.
    ///
    /// One goes first, and the others when it has ended: that the endpoint answers a challenge, or did so long ago, does not
    /// say that it takes notifications. What is due and not taken yet is never more than a second's worth, so that an
    /// endpoint that is slow to take them is not given them faster, and an end leaves all others as they are.
    pub fn next(&self, per_second: u32) -> RecoveryStep {
        if self.switched_off {
            return RecoveryStep::End(RecoveryEnd::SwitchedOff);
        }
        if !self.active {
            return RecoveryStep::End(RecoveryEnd::Inactive);
        }
        if self.failing {
            return RecoveryStep::End(RecoveryEnd::Failing);
        }
        let room = per_second.max(1).saturating_sub(self.waiting);
        match self.probe {
            _ if self.paused || room == 0 => RecoveryStep::Wait,
            Probe::UnderWay => RecoveryStep::Wait,
            Probe::Missing => RecoveryStep::Take(1),
            Probe::Ended => RecoveryStep::Take(room),
        }
    }
}

/// How long after a recovery the next one may begin, when failures have ended so many in a row.
pub fn recovery_delay(ended: u32) -> Duration {
    const FIRST: Duration = Duration::from_mins(1);
    FIRST * 2_u32.pow(ended.min(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: RecoveryGround = RecoveryGround {
        failing: false,
        active: true,
        paused: false,
        switched_off: false,
        probe: Probe::Ended,
        waiting: 0,
    };

    #[test]
    fn one_goes_first_and_the_others_when_it_has_ended() {
        let with = |probe| RecoveryGround { probe, ..HEALTHY }.next(25);
        assert_eq!(with(Probe::Missing), RecoveryStep::Take(1));
        assert_eq!(with(Probe::UnderWay), RecoveryStep::Wait);
        assert_eq!(with(Probe::Ended), RecoveryStep::Take(25));
    }

    #[test]
    fn no_more_is_made_due_than_is_taken() {
        let with = |waiting, per_second| RecoveryGround { waiting, ..HEALTHY }.next(per_second);
        assert_eq!(with(10, 25), RecoveryStep::Take(15));
        assert_eq!(with(25, 25), RecoveryStep::Wait);
        assert_eq!(with(0, 0), RecoveryStep::Take(1));
    }

    #[test]
    fn it_ends_when_the_endpoint_fails_and_waits_while_nothing_is_sent() {
        let (failing, paused) = (true, true);
        for (ground, next) in [
            (
                RecoveryGround { failing, ..HEALTHY },
                RecoveryStep::End(RecoveryEnd::Failing),
            ),
            (RecoveryGround { paused, ..HEALTHY }, RecoveryStep::Wait),
            (
                RecoveryGround {
                    active: false,
                    failing,
                    ..HEALTHY
                },
                RecoveryStep::End(RecoveryEnd::Inactive),
            ),
            (
                RecoveryGround {
                    switched_off: true,
                    paused,
                    ..HEALTHY
                },
                RecoveryStep::End(RecoveryEnd::SwitchedOff),
            ),
        ] {
            assert_eq!(ground.next(25), next, "{ground:?}");
        }
    }

    #[test]
    fn the_next_one_comes_twice_as_late_each_time_up_to_about_an_hour() {
        let minutes = |ended| recovery_delay(ended).as_secs() / 60;
        assert_eq!(
            [0, 1, 2, 5, 6, 7, u32::MAX].map(minutes),
            [1, 2, 4, 32, 64, 64, 64]
        );
    }
}
