//! A lane in the status: how much of it waits for what, what it does in a second, and its dead letters.

use chrono::{DateTime, Utc};
use serde::Serialize;
use store::status::{Deaths, Depths, Overdue};
use utoipa::ToSchema;

use super::tenths;
use crate::status::facts::{Rates, Tables, time_to_send};

/// A lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneStatus)]
pub(crate) struct LaneDocument {
    #[schema(value_type = String, example = "push")]
    pub(crate) lane: &'static str,
    pub(crate) paused: bool,
    /// SCHEDULED: waiting for a time.
    pub(crate) scheduled: u64,
    /// PENDING: waiting for room in the queue.
    pub(crate) pending: u64,
    /// IN_MEMORY, and not claimed yet.
    pub(crate) queued: u64,
    /// Claimed.
    pub(crate) in_flight: u64,
    /// RETRY: waiting to be tried again.
    pub(crate) retry: u64,
    /// IN_MEMORY with a lease that ran out; rescued within seconds.
    pub(crate) lost: u64,
    /// For how long the first PENDING one has waited.
    pub(crate) oldest_pending_seconds: Option<u64>,
    /// How long ago the first of what waits for a time came due; 0 when that lies ahead.
    pub(crate) oldest_due_seconds: Option<u64>,
    /// How long ago the first lease ran out.
    pub(crate) oldest_lost_seconds: Option<u64>,
    pub(crate) rate_per_second: RateDocument,
    /// How long what is pending and queued takes at the present rate, or at least, where more is pending than is counted; null while
    /// nothing waits or hardly anything is delivered.
    pub(crate) backlog_seconds: Option<u64>,
    pub(crate) dead_letters: DeathsDocument,
}

/// What a lane does in a second, over the last few seconds.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneRate)]
pub(crate) struct RateDocument {
    pub(crate) accepted: f64,
    pub(crate) delivered: f64,
    pub(crate) failed: f64,
    pub(crate) retried: f64,
}

/// Dead letters of a lane.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LaneDeadLetters)]
pub(crate) struct DeathsDocument {
    pub(crate) open: u64,
    pub(crate) newest: Option<DateTime<Utc>>,
    /// Open ones of the last ten minutes.
    pub(crate) recent: u64,
}

pub(super) fn lanes(tables: &Tables, now: DateTime<Utc>) -> Vec<LaneDocument> {
    let rates = tables.rates();
    let push = &tables.push;
    let reseller = &tables.reseller;
    vec![
        lane(
            ("push", tables),
            (&push.depths, &push.overdue, &push.deaths),
            push_rate(&rates),
            now,
        ),
        lane(
            ("reseller", tables),
            (&reseller.depths, &reseller.waiting.overdue, &reseller.deaths),
            reseller_rate(&rates),
            now,
        ),
    ]
}

fn lane(
    (lane, tables): (&'static str, &Tables),
    (depths, overdue, deaths): (&Depths, &Overdue, &Deaths),
    rate_per_second: RateDocument,
    now: DateTime<Utc>,
) -> LaneDocument {
    LaneDocument {
        lane,
        paused: tables.lane_is_paused(lane),
        scheduled: depths.scheduled,
        pending: depths.pending,
        queued: depths.queued,
        in_flight: depths.sending,
        retry: depths.retry,
        lost: depths.lost,
        oldest_pending_seconds: overdue.pending_for.map(|age| age.as_secs()),
        oldest_due_seconds: overdue
            .due_at
            .map(|due| (now - due).to_std().unwrap_or_default().as_secs()),
        oldest_lost_seconds: depths.lost_for.map(|age| age.as_secs()),
        backlog_seconds: time_to_send(depths.backlog(), rate_per_second.delivered)
            .map(|takes| takes.as_secs()),
        rate_per_second,
        dead_letters: DeathsDocument {
            open: deaths.open,
            newest: deaths.newest,
            recent: deaths.recent,
        },
    }
}

fn push_rate(rates: &Rates) -> RateDocument {
    RateDocument {
        accepted: tenths(rates.pushes_accepted),
        delivered: tenths(rates.pushes_sent),
        failed: tenths(rates.pushes_failed),
        retried: tenths(rates.pushes_retried),
    }
}

fn reseller_rate(rates: &Rates) -> RateDocument {
    RateDocument {
        accepted: tenths(rates.events_accepted),
        delivered: tenths(rates.notifications_delivered),
        failed: tenths(rates.notifications_failed),
        retried: tenths(rates.notifications_retried),
    }
}
