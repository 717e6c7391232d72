//! The ranges of an index ("streams") that hold the dead letters of a filter, and possibly others. The statements that read
//! them are put together here, since which index leads is decided by the filter and not by the planner.

use sqlx::{Postgres, QueryBuilder};

use super::filter::DeadLetterFilter;
use super::kinds::{Kind, lanes_of, reasons_of, states_of};
use crate::text::storable;

/// Which index leads.
pub(super) enum Lead {
    /// By lane and reason.
    Reason,
    /// By lane, fingerprint and target.
    Kinds(Vec<Kind>),
    /// By subscription.
    Subscription,
    /// By the prototype of a push.
    Prototype,
    /// By the type of an event.
    EventType,
    /// By reseller.
    Reseller,
    /// By the job that resolved them: all of them are sorted, since that index knows no time.
    Job,
}

impl Lead {
    /// The index that knows a filter's most selective part. Kinds and jobs are left to the caller, who has to look how many there are.
    pub(super) fn of(filter: &DeadLetterFilter) -> Self {
        if filter.subscription.is_some() {
            Self::Subscription
        } else if filter.prototype.is_some() {
            Self::Prototype
        } else if filter.event_type.is_some() {
            Self::EventType
        } else if filter.reseller.is_some() {
            Self::Reseller
        } else {
            Self::Reason
        }
    }

    /// How many streams there are.
    pub(super) fn streams(&self, filter: &DeadLetterFilter) -> usize {
        let each = match self {
            Self::Reason => lanes_of(filter).len() * reasons_of(filter).len(),
            Self::Kinds(kinds) => kinds.len(),
            _ => 1,
        };
        each * states_of(filter).len()
    }

    /// Whether every dead letter of the streams matches the filter, so that nothing is read in vain.
    pub(super) fn covers(&self, filter: &DeadLetterFilter) -> bool {
        let rest = DeadLetterFilter {
            state: None,
            since: None,
            until: None,
            ..filter.clone()
        };
        let none = DeadLetterFilter::default();
        match self {
            Self::Reason => {
                DeadLetterFilter {
                    lane: None,
                    reason: None,
                    ..rest
                } == none
            }
            Self::Kinds(_) => {
                DeadLetterFilter {
                    lane: None,
                    fingerprint: None,
                    target: None,
                    ..rest
                } == none
            }
            Self::Subscription => {
                DeadLetterFilter {
                    subscription: None,
                    ..rest
                } == none
            }
            Self::Prototype => {
                DeadLetterFilter {
                    prototype: None,
                    ..rest
                } == none
            }
            Self::EventType => {
                DeadLetterFilter {
                    event_type: None,
                    ..rest
                } == none
            }
            Self::Reseller => {
                DeadLetterFilter {
                    reseller: None,
                    ..rest
                } == none
            }
            Self::Job => DeadLetterFilter { job: None, ..rest } == none,
        }
    }

    /// Appends the FROM clause of the streams' keys.
    pub(super) fn keys(&self, query: &mut QueryBuilder<Postgres>, filter: &DeadLetterFilter) {
        query
            .push(" FROM UNNEST(")
            .push_bind(texts(&states_of(filter)))
            .push("::text[]) AS s(in_state)");
        match self {
            Self::Reason => {
                query
                    .push(" CROSS JOIN UNNEST(")
                    .push_bind(texts(&lanes_of(filter)))
                    .push("::text[]) AS k(in_lane) CROSS JOIN UNNEST(")
                    .push_bind(texts(&reasons_of(filter)))
                    .push("::text[]) AS r(in_reason)");
            }
            Self::Kinds(kinds) => {
                let column = |f: fn(&Kind) -> &String| kinds.iter().map(f).cloned().collect::<Vec<_>>();
                query
                    .push(" CROSS JOIN UNNEST(")
                    .push_bind(column(|kind| &kind.lane))
                    .push("::text[], ")
                    .push_bind(column(|kind| &kind.fingerprint))
                    .push("::text[], ")
                    .push_bind(column(|kind| &kind.target))
                    .push("::text[]) AS k(in_lane, of_fingerprint, of_target)");
            }
            Self::Subscription | Self::Prototype | Self::EventType | Self::Reseller | Self::Job => {}
        }
    }

    /// Appends the FROM and WHERE clauses of the dead letters `d` of the stream with the present keys.
    pub(super) fn source(&self, query: &mut QueryBuilder<Postgres>, filter: &DeadLetterFilter) {
        let text = |text: &Option<String>| text.as_deref().map(|text| storable(text).into_owned());
        if matches!(self, Self::Job) {
            // `OFFSET 0` has them read by their index and then sorted: the planner could go through all of the table by time instead, down to
            // the old ones of the job.
            query
                .push(" FROM (SELECT * FROM dead_letters WHERE job_id = ")
                .push_bind(filter.job)
                .push(" OFFSET 0) AS d");
        } else {
            query.push(" FROM dead_letters d");
        }
        query.push(" WHERE d.state = s.in_state");
        match self {
            Self::Reason => query.push(" AND d.lane = k.in_lane AND d.reason = r.in_reason"),
            Self::Kinds(_) => query.push(
                " AND d.lane = k.in_lane AND d.fingerprint = k.of_fingerprint AND d.target = k.of_target",
            ),
            Self::Subscription => query
                .push(" AND d.subscription_id = ")
                .push_bind(filter.subscription),
            Self::Prototype => query
                .push(" AND d.prototype = ")
                .push_bind(text(&filter.prototype)),
            Self::EventType => query
                .push(" AND d.event_type = ")
                .push_bind(text(&filter.event_type)),
            Self::Reseller => query
                .push(" AND d.reseller_id = ")
                .push_bind(text(&filter.reseller)),
            Self::Job => &mut *query,
        };
        if let Some(since) = filter.since {
            query.push(" AND d.created_at >= ").push_bind(since);
        }
        if let Some(until) = filter.until {
            query.push(" AND d.created_at < ").push_bind(until);
        }
    }
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
