//! Bulk work on dead letters: what it does to each of them, where it stands, and what can be made of that.
//!
//! How much of it may follow at a time is [`crate::subscription::RateBudget`]'s business, as for other replays.

use crate::named;

/// What is done to a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum JobAction {
    /// What it is about is made due again.
    Replay,
    /// It is put aside: nothing is to be done about it.
    Discard,
}

named!(JobAction, "action of a job");

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum JobStatus {
    /// It gets on.
    Running,
    /// An operator has stopped it for a while, or it has itself: see [`JobPause`].
    Paused,
    /// It has been through every dead letter.
    Completed,
    /// An operator has ended it before that, or it was a recovery that could not go on.
    Cancelled,
}

named!(JobStatus, "status of a job");

/// Why a job has paused itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum JobPause {
    /// Until it is known what became of the first that it has sent again. It goes on by itself when none of them failed again and one at least
    /// was delivered.
    Canary,
    /// One of the first failed again, none of them was delivered, or what became of one was not known after a day.
    CanaryFailed,
    /// A greater share of what it has sent again failed again than it may be.
    FailedAgain,
}

named!(JobPause, "reason of a job to pause");

/// Replays of which a share says something. Of fewer, one that fails would be much.
const JUDGED_MIN: u64 = 20;

/// Whether more than `percent` of what was replayed failed again.
pub fn fails_too_often(percent: u32, failed: u64, replayed: u64) -> bool {
    failed.saturating_mul(100) > replayed.max(JUDGED_MIN).saturating_mul(percent.into())
}

/// What an operator wants of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobCommand {
    /// Stop for a while.
    Pause,
    /// Go on.
    Resume,
    /// End; what is done stays done.
    Cancel,
}

/// A command that comes too late: the job has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the job is {0} already")]
pub struct JobEnded(pub JobStatus);

impl JobStatus {
    /// Whether the job has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }

    /// Decides what a command makes of a job. One that finds what it wants changes nothing, so that a call can be
    /// repeated; what has ended takes none.
    pub fn command(self, command: JobCommand) -> Result<Self, JobEnded> {
        match (self, command) {
            (Self::Running | Self::Paused, JobCommand::Pause) => Ok(Self::Paused),
            (Self::Running | Self::Paused, JobCommand::Resume) => Ok(Self::Running),
            (Self::Running | Self::Paused, JobCommand::Cancel) => Ok(Self::Cancelled),
            (Self::Completed | Self::Cancelled, _) => Err(JobEnded(self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_above_the_bound_only_by_more_than_it_and_one_of_a_few_is_no_share() {
        assert!(!fails_too_often(5, 50, 1_000));
        assert!(fails_too_often(5, 51, 1_000));
        assert!(!fails_too_often(5, 1, 1));
        assert!(fails_too_often(5, 2, 2));
        assert!(fails_too_often(0, 1, 1_000_000));
        assert!(!fails_too_often(0, 0, 0));
    }

    #[test]
    fn what_has_ended_stays_ended_and_a_repeated_command_is_no_error() {
        for status in JobStatus::ALL {
            for command in [JobCommand::Pause, JobCommand::Resume, JobCommand::Cancel] {
                let next = status.command(command);
                if status.is_terminal() {
                    assert_eq!(next, Err(JobEnded(status)), "{status} {command:?}");
                } else {
                    let again = next.unwrap().command(command);
                    let repeated = match command {
                        JobCommand::Cancel => Err(JobEnded(JobStatus::Cancelled)),
                        JobCommand::Pause | JobCommand::Resume => next,
                    };
                    assert_eq!(again, repeated, "{status} {command:?}");
                }
            }
        }
    }
}
