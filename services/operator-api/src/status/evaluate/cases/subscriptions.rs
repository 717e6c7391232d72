//! What the states of subscriptions amount to.

use chrono::TimeDelta;
use domain::subscription::SubscriptionState;
use uuid::Uuid;

use super::Case;
use crate::status::evaluate::Severity;
use crate::status::evaluate::scene::{deactivated, now, tables, trouble};

pub(super) const CASES: &[Case] = &[
    (
        "subscriptions-deactivated",
        Severity::Notice,
        |f| tables(f).deactivated = Some(deactivated(1)),
        "1 subscription was deactivated more than a day ago and gets no events; it is 00000000-0000-0000-0000-000000000005 of acme: \
         https://acme.example/hook was deactivated at 2026-11-18 12:00:00 UTC (3 days ago), FAILING.",
    ),
    (
        "subscriptions-deactivated",
        Severity::Notice,
        |f| tables(f).deactivated = Some(deactivated(1_200)),
        "1,200 subscriptions were deactivated more than a day ago and get no events; the first is 00000000-0000-0000-0000-000000000005 of acme",
    ),
    (
        "subscriptions-in-trouble",
        Severity::Notice,
        |f| tables(f).in_trouble = vec![trouble(SubscriptionState::Degraded)],
        "https://acme.example/hook is degraded since 2026-11-21 11:00:00 UTC (1 h ago) and fails since 2026-11-18 12:00:00 UTC (3 days ago).",
    ),
    (
        "subscriptions-in-trouble",
        Severity::Notice,
        |f| {
            let mut newest = trouble(SubscriptionState::Active);
            (newest.id, newest.failing_since) = (Uuid::from_u128(6), Some(now() - TimeDelta::hours(2)));
            tables(f).in_trouble = vec![trouble(SubscriptionState::Degraded), newest];
        },
        "; the newest is 00000000-0000-0000-0000-000000000006 of acme: https://acme.example/hook fails since 2026-11-21 10:00:00 UTC (2 h ago).",
    ),
    (
        "subscriptions-in-trouble",
        Severity::Notice,
        |f| tables(f).in_trouble = vec![trouble(SubscriptionState::Deactivated)],
        "was deactivated at 2026-11-21 11:00:00 UTC (1 h ago), FAILING.",
    ),
    (
        "subscriptions-in-trouble",
        Severity::Warning,
        |f| tables(f).in_trouble = (0..4).map(|_| trouble(SubscriptionState::Active)).collect(),
        "4 failing",
    ),
    // More than are listed, of many.
    (
        "subscriptions-in-trouble",
        Severity::Warning,
        |f| {
            tables(f).in_trouble = (0..100).map(|_| trouble(SubscriptionState::Active)).collect();
            tables(f).subscriptions[0].count = 1_000;
            tables(f).failing = 400;
        },
        "Subscriptions: 400 failing",
    ),
];
