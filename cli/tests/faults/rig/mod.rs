//! What the tests stand on: services as processes, callers that do not give up, and the audit at the end.

#![allow(
    dead_code,
    unused_imports,
    reason = "several test binaries share it, and each leaves out something else"
)]

mod audit;
mod callers;
mod delivered;
mod events;
mod fleet;
mod logs;
mod mails;
mod metrics;
mod notifications;
mod portal;
mod process;
mod pushes;
mod subscribers;

pub(crate) use audit::{Ended, Halt, claimed_pushes, count_with_status};
pub(crate) use callers::{Answers, Callers, Door, Submission};
pub(crate) use delivered::{Delivered, Ends, SENT};
pub(crate) use events::{Event, RESELLERS, events, events_of};
pub(crate) use fleet::{Fleet, PUSH_QUEUE_CAPACITY, Service};
pub(crate) use mails::{one_mail_tells_of_given_up, the_only_mail};
pub(crate) use notifications::{
    claims_run_out, first_attempts_are_over, notifications_with_status, queue_leases_run_out, service_is_gone,
};
pub(crate) use process::Process;
pub(crate) use pushes::{Push, pushes, windowed_pushes};
pub(crate) use subscribers::{Subscriber, Subscribers};

use simulators::swrve::{Match, Pattern, Rule};
use testkit::{Installation, eventually};

/// So long that a slow machine has many sends in flight at once, and that they still are when something is done to who
/// sent them.
pub(crate) const LONG_MILLIS: u64 = 4_000;

/// Every push takes Swrve this long.
pub(crate) fn answers_after(millis: u64) -> Vec<Rule> {
    vec![Rule {
        delay_millis: Some(millis),
        ..Rule::default()
    }]
}

/// What Swrve answers to the users of a group; to all of them for ever unless `times` says otherwise.
pub(crate) fn answer_to(group: &str, status: u16, times: Option<u64>) -> Rule {
    Rule {
        status: Some(status),
        times,
        ..rule_for(group)
    }
}

/// A rule for the users of a group that says nothing yet.
pub(crate) fn rule_for(group: &str) -> Rule {
    Rule {
        matching: Match {
            user: Some(Pattern::Prefix {
                prefix: format!("{group}-"),
            }),
            ..Match::default()
        },
        ..Rule::default()
    }
}

/// Waits until Swrve has this many requests that it has not answered yet.
pub(crate) async fn in_mid_flight(it: &Installation, sends: u64) {
    eventually("enough sends to be in flight", async || {
        (it.sim.report().in_flight >= sends).then_some(())
    })
    .await;
}
