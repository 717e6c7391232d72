//! The periodic jobs, one file each.

mod closed_windows;
mod count_dead_letters;
mod count_subscriptions;
mod count_webpush;
mod end_expired;
mod end_inactive;
mod health;
mod left_to_engines;
mod mailer;
mod maintain_partitions;
mod make_indexes;
mod monitor;
mod promotion;
mod prune;
mod recover;
mod replay;
mod rescue;
mod reseal_secrets;
mod run_dead_letter_jobs;
mod send_notifications;
mod send_pending;
mod send_scheduled;
mod verify_endpoints;

pub(crate) use count_dead_letters::CountDeadLetters;
pub(crate) use count_subscriptions::CountSubscriptions;
pub(crate) use count_webpush::CountWebpush;
pub(crate) use end_expired::Expire;
pub(crate) use end_inactive::EndInactive;
pub(crate) use health::EvaluateHealth;
pub(crate) use mailer::Mailer;
pub(crate) use maintain_partitions::MaintainPartitions;
pub(crate) use make_indexes::MakeIndexes;
pub(crate) use monitor::Monitor;
pub(crate) use prune::{Prune, PruneKeys};
pub(crate) use recover::Recover;
pub(crate) use replay::Replay;
pub(crate) use rescue::{RescueNotifications, RescuePushes};
pub(crate) use reseal_secrets::ResealSecrets;
pub(crate) use run_dead_letter_jobs::RunDeadLetterJobs;
pub(crate) use send_notifications::{
    FindLines, SendRetries, SendScheduledNotifications, SendWaitingNotifications,
};
pub(crate) use send_pending::SendPending;
pub(crate) use send_scheduled::SendScheduled;
pub(crate) use verify_endpoints::VerifyEndpoints;
