//! What a list of notifications is restricted to: the fields of its form, and the same as the list over the API takes it.

use chrono::{DateTime, TimeDelta, Utc};
use http_api::Problem;
use pages::Filter;
use serde::Deserialize;
use uuid::Uuid;

use super::deliveries::{ROWS, WEEK};
use super::frame::Frame;
use super::words;
use crate::notifications::all::AllParams;

pub(super) const FILTERS: [Filter; 9] = [
    Filter::new("Status", &["status"]),
    Filter::new("Event type", &["eventType"]),
    Filter::new("Domain or other value", &["value"]),
    Filter::new("Last answer", &["code"]),
    Filter::new("Last failure", &["error"]),
    Filter::new("Time", &["hours", "since", "until"]),
    Filter::new("Ended", &["endedHours", "endedSince", "endedUntil"]),
    Filter::new("Subscription", &["subscription"]),
    Filter::new("Event or notification id", &["q"]),
];
/// What the fields of the form hold.
pub(super) const FIELDS: [&str; 12] = [
    "status",
    "eventType",
    "value",
    "code",
    "error",
    "hours",
    "since",
    "until",
    "endedHours",
    "endedSince",
    "endedUntil",
    "subscription",
];

/// What the address asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeliveryParams {
    pub(super) subscription: Option<Uuid>,
    status: Option<String>,
    event_type: Option<String>,
    value: Option<String>,
    code: Option<String>,
    error: Option<String>,
    hours: Option<u32>,
    since: Option<String>,
    until: Option<String>,
    ended_hours: Option<u32>,
    ended_since: Option<String>,
    ended_until: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
    pub(super) q: Option<String>,
}

impl DeliveryParams {
    /// The same as the list over the API takes it; `subscription` is the one whose page it is.
    pub(super) fn filter(&self, frame: &Frame, subscription: Option<Uuid>) -> Result<AllParams, Problem> {
        let within = hours_ago("hours", self.hours, frame)?;
        let ended_within = hours_ago("endedHours", self.ended_hours, frame)?;
        if subscription.is_some() && self.subscription.is_some() {
            let detail = "cannot be chosen here: the page is of one subscription already";
            return Err(Problem::query("subscription", detail));
        }
        let time = |name: &'static str, text: Option<&str>| words::asked(name, text, frame.preferences.zone);
        Ok(AllParams {
            subscription: subscription.or(self.subscription),
            status: self.status.clone(),
            event_type: self.event_type.clone(),
            code: self.code.clone(),
            error: self.error.clone(),
            event_id: typed(self.q.as_deref()),
            value: typed(self.value.as_deref()),
            // Both hold, so that the later one does.
            since: time("since", self.since.as_deref())?.max(within),
            until: time("until", self.until.as_deref())?,
            ended_since: time("endedSince", self.ended_since.as_deref())?.max(ended_within),
            ended_until: time("endedUntil", self.ended_until.as_deref())?,
            limit: Some(self.limit.unwrap_or(ROWS)),
            cursor: self.cursor.clone(),
        })
    }
}

/// When so many hours ago was.
fn hours_ago(
    name: &'static str,
    hours: Option<u32>,
    frame: &Frame,
) -> Result<Option<DateTime<Utc>>, Problem> {
    if hours.is_some_and(|hours| !(1..=WEEK).contains(&hours)) {
        return Err(Problem::query(name, format!("must be between 1 and {WEEK}")));
    }
    Ok(hours.map(|hours| frame.now - TimeDelta::hours(hours.into())))
}

/// What was typed, if it was more than blanks.
pub(super) fn typed(text: Option<&str>) -> Option<String> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned)
}
