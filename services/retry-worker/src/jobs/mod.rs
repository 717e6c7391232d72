//! The periodic jobs, one file each.

mod closed_windows;
mod count_dead_letters;
mod count_subscriptions;
mod end_expired;
mod end_inactive;
mod forget;
mod health;
mod keep_partitions;
mod mailer;
mod monitor;
mod promotion;
mod recover;
mod replay;
mod rescue;
mod send_notifications;
mod send_pending;
mod send_scheduled;
mod verify_endpoints;
mod work_dead_letters;

pub(crate) use count_dead_letters::CountDeadLetters;
pub(crate) use count_subscriptions::CountSubscriptions;
pub(crate) use end_expired::EndExpired;
pub(crate) use end_inactive::EndInactive;
pub(crate) use forget::{Forget, ForgetKeys};
pub(crate) use health::JudgeHealth;
pub(crate) use keep_partitions::KeepPartitions;
pub(crate) use mailer::Mailer;
pub(crate) use monitor::Monitor;
pub(crate) use recover::Recover;
pub(crate) use replay::Replay;
pub(crate) use rescue::{RescueNotifications, RescuePushes};
pub(crate) use send_notifications::{
    FindLines, SendRetries, SendScheduledNotifications, SendWaitingNotifications,
};
pub(crate) use send_pending::SendPending;
pub(crate) use send_scheduled::SendScheduled;
pub(crate) use verify_endpoints::VerifyEndpoints;
pub(crate) use work_dead_letters::WorkDeadLetters;
