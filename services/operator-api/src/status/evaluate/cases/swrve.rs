//! What the states of Swrve amount to.

use std::time::Duration;

use broker::Queue;
use chrono::TimeDelta;
use runtime::connections::{AnswerSecond, Counters};

use super::Case;
use crate::status::evaluate::Severity;
use crate::status::evaluate::scene::{MINUTE, depth, has_done, hears, hold, now, one, sends, tables};

pub(super) const CASES: &[Case] = &[
    (
        "swrve-fails",
        Severity::Warning,
        |f| {
            hears(f, Some(Duration::from_secs(40)));
            tables(f).push.depths.retry = 300;
        },
        "Swrve has accepted nothing since 2026-11-21 11:59:20 UTC (40 s ago), its last answers to pushes that wait are: 503 Service Unavailable (41), no \
         answer within 6000 ms (3); 300 pushes wait or are being tried.",
    ),
    // All of them wait, so that nothing happens before the first is due.
    (
        "swrve-fails",
        Severity::Warning,
        |f| {
            hears(f, Some(Duration::from_secs(40)));
            tables(f).push.depths.retry = 300;
            tables(f).push.overdue.due_at = Some(now() + TimeDelta::seconds(20));
        },
        "; 300 pushes wait or are being tried, the next attempt is due at 2026-11-21 12:00:20 UTC (in 20 s).",
    ),
    (
        "swrve-fails",
        Severity::Warning,
        |f| {
            hears(f, Some(Duration::from_secs(30)));
            tables(f).push.depths.sending = 1;
        },
        "1 push waits or is being tried.",
    ),
    (
        "swrve-fails",
        Severity::Notice,
        |f| {
            hears(f, Some(Duration::from_secs(29)));
            tables(f).push.depths.retry = 1;
        },
        "1 push waits or is being tried.",
    ),
    // What was tried was given up, and nothing has been accepted since.
    (
        "swrve-fails",
        Severity::Warning,
        |f| hears(f, Some(60 * MINUTE)),
        "no push waits or is being tried.",
    ),
    // Few wait, and most attempts fail all the same: that pages.
    (
        "swrve-fails",
        Severity::Warning,
        |f| {
            let done = Counters {
                push_attempts: 100,
                swrve_errors: 80,
                ..Counters::default()
            };
            has_done(f, done);
            hears(f, Some(Duration::from_secs(20)));
            tables(f).push.depths.retry = 5;
        },
        "Swrve has failed 160 of 200 attempts",
    ),
    // A leader that has heard nothing yet: what is on record decides.
    (
        "swrve-fails",
        Severity::Notice,
        |f| {
            has_done(f, Counters::default());
            hears(f, None);
            one(f, "dispatcher").report.swrve = None;
            tables(f).push.depths.retry = 44;
        },
        "what waits has failed there since 2026-11-21 11:59:00 UTC (1 min ago)",
    ),
    (
        "swrve-fails",
        Severity::Warning,
        |f| {
            let done = Counters {
                push_attempts: 100,
                swrve_errors: 60,
                ..Counters::default()
            };
            has_done(f, done);
            hears(f, None);
            tables(f).push.depths.retry = 44;
        },
        "Swrve has failed 120 of 200 attempts within the last 5 min, its last answers to pushes that wait are: 503",
    ),
    // Most have failed lately, and the last one has not.
    (
        "swrve-fails",
        Severity::Warning,
        |f| {
            let done = Counters {
                push_attempts: 100,
                swrve_errors: 60,
                ..Counters::default()
            };
            has_done(f, done);
            hears(f, None);
            one(f, "dispatcher").report.answers = vec![AnswerSecond(now().timestamp() - 5, [1, 0, 0, 0])];
            tables(f).push.depths.retry = 44;
        },
        "; 44 pushes wait to be tried again. The last attempt succeeded at 2026-11-21 11:59:55 UTC (5 s ago).",
    ),
    // Of a version that does not tell what it hears.
    (
        "swrve-fails",
        Severity::Notice,
        |f| {
            hears(f, None);
            one(f, "dispatcher").report.swrve = None;
            tables(f).push.depths.retry = 44;
        },
        "Swrve fails some pushes, its last answers to pushes that wait are: 503",
    ),
    (
        "swrve-fails",
        Severity::Notice,
        |f| {
            hears(f, None);
            let seconds = [(12, [0, 0, 2, 0]), (3, [1, 0, 0, 0])];
            let answers = seconds.map(|(ago, answers)| AnswerSecond(now().timestamp() - ago, answers));
            one(f, "dispatcher").report.answers = answers.to_vec();
            tables(f).push.depths.retry = 44;
        },
        "The last attempt succeeded at 2026-11-21 11:59:57 UTC (3 s ago); before that Swrve failed some pushes, its last answers to pushes that wait are: 503",
    ),
    // Two minutes later it is no longer known when that was.
    (
        "swrve-fails",
        Severity::Notice,
        |f| {
            hears(f, None);
            tables(f).push.depths.retry = 44;
        },
        "The last attempt did not fail; before that Swrve failed some pushes, its last answers",
    ),
    (
        "swrve-held",
        Severity::Critical,
        |f| {
            tables(f).holds = vec![hold()];
            // What follows from it is not told twice.
            tables(f).push.overdue.pending_for = Some(20 * MINUTE);
            depth(f, Queue::PushReady, 10_000, 0);
        },
        "17 probes have failed, the last one at 2026-11-21 12:00:00 UTC (now) with: 503 Service Unavailable.",
    ),
    // Since when it fails is what its operators are told, and that began before the hold.
    (
        "swrve-held",
        Severity::Critical,
        |f| {
            tables(f).holds = vec![hold()];
            hears(f, Some(61 * MINUTE));
            tables(f).push.depths.queued = 29;
            tables(f).push.depths.sending = 1;
        },
        "Swrve is out of order, it has accepted nothing since 2026-11-21 10:59:00 UTC; 30 pushes wait. 17 probes",
    ),
    // The process that led last, before the new term has reported itself; and no probe has ended yet.
    (
        "swrve-held",
        Severity::Critical,
        |f| {
            tables(f).holds = vec![store::push::HoldView { probes: 0, ..hold() }];
            hears(f, Some(61 * MINUTE));
            one(f, "dispatcher").report.leading = Some(2);
        },
        "it has accepted nothing since 2026-11-21 10:59:00 UTC; 0 pushes wait. No probe has ended yet; what failed before ended with: \
         503 Service Unavailable.",
    ),
    // A process that took over in the outage knows what it has heard itself.
    (
        "swrve-held",
        Severity::Critical,
        |f| {
            tables(f).holds = vec![hold()];
            hears(f, Some(Duration::from_secs(2)));
        },
        "it has accepted nothing since 2026-11-21 11:59:58 UTC or longer;",
    ),
    (
        "swrve-catching-up",
        Severity::Notice,
        |f| {
            tables(f).holds = vec![store::push::HoldView {
                answered_at: Some(now()),
                ..hold()
            }];
        },
        "Swrve was out of order and the push lane held from 2026-11-21",
    ),
    (
        "swrve-catching-up",
        Severity::Notice,
        |f| {
            sends(f, 600, 0);
            tables(f).push.depths.pending = 12_161;
            tables(f).holds = vec![store::push::HoldView {
                answered_at: Some(now()),
                ..hold()
            }];
        },
        "Swrve was out of order and the push lane held from 2026-11-21",
    ),
];
