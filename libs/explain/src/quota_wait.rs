//! That a notification waited for its subscription's daily quota before its first attempt, which is kept of one that this attempt delivered, and
//! what ended the wait. Pure.

use chrono::{DateTime, NaiveDate, Utc};
use domain::notification::NotificationStatus;
use domain::quota::day_of;
use domain::reason::NotificationReason;
use store::AuditView;
use store::timeline::NotificationTimeline;

use crate::explanation::Rules;
use crate::reseller::Sentence;
use crate::words::number;

/// A wait for the quota that is over.
pub(crate) struct QuotaWait<'a> {
    /// When the first attempt began.
    pub(crate) until: DateTime<Utc>,
    ended: Ended<'a>,
}

/// What ended it, as far as it is known.
enum Ended<'a> {
    /// The quota was raised, from so many to so many.
    Raised(&'a AuditView, u64, u64),
    /// A day began that had room.
    Day(NaiveDate),
    Unknown,
}

impl<'a> QuotaWait<'a> {
    /// The wait of a notification, if it is known to have had one.
    pub(crate) fn of(it: &'a NotificationTimeline, rules: &Rules) -> Option<Self> {
        let is_tried = matches!(it.status, NotificationStatus::InMemory | NotificationStatus::Sent);
        let is_kept = is_tried && it.attempts == 1 && it.reason == Some(NotificationReason::Quota);
        let first = it
            .history
            .first()
            .filter(|attempt| is_kept && attempt.number == 1)?;
        let until = first.started_at;
        let day = |at| day_of(at, rules.quota_zone);
        let mut changes = it.limit_changes.iter().filter(|act| act.at <= until);
        let raised = changes.find_map(|act| {
            let quota = act.details.get("dailyQuota")?;
            // Where there was, or is, none of its own, the default holds.
            let limit = |side: &str| {
                let own = quota.get(side)?;
                own.as_u64().or(own.is_null().then_some(rules.daily_quota.into()))
            };
            let (from, to) = (limit("from")?, limit("to")?);
            (to > from).then_some(Ended::Raised(act, from, to))
        });
        let ended = match raised {
            Some(Ended::Raised(act, from, to)) if day(act.at) == day(until) => Ended::Raised(act, from, to),
            _ if day(it.created_at) < day(until) => Ended::Day(day(until)),
            _ => Ended::Unknown,
        };
        Some(Self { until, ended })
    }

    /// That it is over, and what ended it; to operators also who did.
    pub(crate) fn said(&self, to_operators: bool) -> Sentence {
        let said = |text: String| Sentence::new("quota-has-room", text);
        match self.ended {
            Ended::Raised(act, from, to) => {
                let by = if to_operators {
                    format!(" by {}", act.actor)
                } else {
                    String::new()
                };
                let text = format!(
                    "Its turn came: the daily quota had been raised from {} to {}{by}.",
                    number(from),
                    number(to)
                );
                said(text).with("from", from).with("to", to)
            }
            Ended::Day(day) => said(format!("Its turn came with the daily quota of {day}.")).with("day", day),
            Ended::Unknown => said("Its turn came in the line for the daily quota.".to_owned()),
        }
    }
}
