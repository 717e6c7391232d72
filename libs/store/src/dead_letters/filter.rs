//! Which dead letters are meant: the same filter for lists, groups, replays and discards, and the same as in the API.

use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::named;
use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use crate::{DeadLetterLane, Error};

/// What has become of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum DeadLetterState {
    /// Nothing yet: an operator has to decide.
    Open,
    /// What it is about was made due again.
    Replayed,
    /// It needs nothing: an operator decided so, or that was clear from the beginning.
    Discarded,
}

named!(DeadLetterState, "state of a dead letter");

/// Why there is a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum DeadLetterReason {
    /// What it is about failed in a way that will not pass.
    Failed,
    /// It failed as often as it may.
    GivenUp,
    /// The broker gave its message up.
    Rejected,
    /// The message is none of ours.
    Malformed,
}

named!(DeadLetterReason, "reason of a dead letter");

/// Which dead letters. What is missing restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Of this lane.
    pub lane: Option<DeadLetterLane>,
    /// In this state.
    pub state: Option<DeadLetterState>,
    /// For this reason.
    pub reason: Option<DeadLetterReason>,
    /// Of this kind of failure; one that ends in `*` stands for all that begin so.
    pub fingerprint: Option<String>,
    /// Where the failure was.
    pub target: Option<String>,
    /// For this subscription.
    pub subscription: Option<Uuid>,
    /// For this reseller.
    pub reseller: Option<String>,
    /// About events of this type.
    pub event_type: Option<String>,
    /// About pushes of this message prototype.
    pub prototype: Option<String>,
    /// Created from here on.
    pub since: Option<DateTime<Utc>>,
    /// Created before this.
    pub until: Option<DateTime<Utc>>,
    /// Resolved by this job: none that is open.
    pub job: Option<Uuid>,
}

impl DeadLetterFilter {
    /// Appends its conditions on `dead_letters` to a query, each with an `AND` before it.
    pub(crate) fn restrict(&self, query: &mut QueryBuilder<Postgres>) {
        let names = [
            ("state", self.state.map(DeadLetterState::as_str)),
            ("lane", self.lane.map(DeadLetterLane::as_str)),
            ("reason", self.reason.map(DeadLetterReason::as_str)),
        ];
        for (column, name) in names {
            if let Some(name) = name {
                query.push(format_args!(" AND {column} = ")).push_bind(name);
            }
        }
        let texts = [
            ("target", &self.target),
            ("reseller_id", &self.reseller),
            ("event_type", &self.event_type),
            ("prototype", &self.prototype),
        ];
        for (column, text) in texts {
            if let Some(text) = text {
                query
                    .push(format_args!(" AND {column} = "))
                    .push_bind(text.clone());
            }
        }
        if let Some(fingerprint) = &self.fingerprint {
            match fingerprint.strip_suffix('*') {
                Some(start) => query
                    .push(" AND starts_with(fingerprint, ")
                    .push_bind(start.to_owned())
                    .push(")"),
                None => query.push(" AND fingerprint = ").push_bind(fingerprint.clone()),
            };
        }
        if let Some(id) = self.subscription {
            query.push(" AND subscription_id = ").push_bind(id);
        }
        if let Some(since) = self.since {
            query.push(" AND created_at >= ").push_bind(since);
        }
        if let Some(until) = self.until {
            query.push(" AND created_at < ").push_bind(until);
        }
        if let Some(job) = self.job {
            query.push(" AND job_id = ").push_bind(job);
        }
    }

    /// Whether the tallies by kind of failure know all that it asks for.
    pub(crate) fn is_by_tally(&self) -> bool {
        let others = (
            &self.subscription,
            &self.reseller,
            &self.event_type,
            &self.prototype,
            &self.job,
        );
        matches!(others, (None, None, None, None, None))
    }

    /// Whether it chooses among the kinds of failure, and the tallies know the rest of it.
    pub(crate) fn names_kinds(&self) -> bool {
        self.is_by_tally() && (self.fingerprint.is_some() || self.target.is_some())
    }

    /// The filter as the API takes it; what restricts nothing is left out.
    pub fn to_json(&self) -> Value {
        let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let fields = [
            ("lane", self.lane.map(|lane| lane.to_string())),
            ("state", self.state.map(|state| state.to_string())),
            ("reason", self.reason.map(|reason| reason.to_string())),
            ("fingerprint", self.fingerprint.clone()),
            ("target", self.target.clone()),
            ("subscription", self.subscription.map(|id| id.to_string())),
            ("reseller", self.reseller.clone()),
            ("eventType", self.event_type.clone()),
            ("prototype", self.prototype.clone()),
            ("since", self.since.map(time)),
            ("until", self.until.map(time)),
            ("job", self.job.map(|id| id.to_string())),
        ];
        let fields = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?))));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    /// Reads back what [`DeadLetterFilter::to_json`] has written.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when it holds something else: to leave a condition out would mean more dead letters than were meant.
    pub(crate) fn from_json(stored: &Value) -> Result<Self, Error> {
        let mut filter = Self::default();
        let fields = stored.as_object().ok_or_else(|| corrupt(stored))?;
        for (name, value) in fields {
            let text = value.as_str().ok_or_else(|| corrupt(stored))?;
            let whole = || Some(text.to_owned());
            match name.as_str() {
                "lane" => filter.lane = Some(read(text, stored)?),
                "state" => filter.state = Some(read(text, stored)?),
                "reason" => filter.reason = Some(read(text, stored)?),
                "fingerprint" => filter.fingerprint = whole(),
                "target" => filter.target = whole(),
                "subscription" => filter.subscription = Some(read(text, stored)?),
                "reseller" => filter.reseller = whole(),
                "eventType" => filter.event_type = whole(),
                "prototype" => filter.prototype = whole(),
                "since" => filter.since = Some(read(text, stored)?),
                "until" => filter.until = Some(read(text, stored)?),
                "job" => filter.job = Some(read(text, stored)?),
                _ => return Err(corrupt(stored)),
            }
        }
        Ok(filter)
    }
}

fn read<T: FromStr>(text: &str, stored: &Value) -> Result<T, Error> {
    text.parse().map_err(|_| corrupt(stored))
}

fn corrupt(stored: &Value) -> Error {
    Error::Corrupt {
        what: "dead letter filter",
        found: stored.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_back_as_it_was_written_and_nothing_else_is() {
        let whole = DeadLetterFilter {
            lane: Some(DeadLetterLane::Reseller),
            state: Some(DeadLetterState::Open),
            reason: Some(DeadLetterReason::GivenUp),
            fingerprint: Some("http/*".to_owned()),
            target: Some("https://acme.example".to_owned()),
            subscription: Some(Uuid::from_u128(7)),
            reseller: Some("acme".to_owned()),
            event_type: Some("domain.created".to_owned()),
            prototype: Some("Hello".to_owned()),
            since: Some(DateTime::UNIX_EPOCH),
            until: DateTime::from_timestamp_micros(1_795_000_000_123_456),
            job: Some(Uuid::from_u128(8)),
        };
        for filter in [whole, DeadLetterFilter::default()] {
            assert_eq!(DeadLetterFilter::from_json(&filter.to_json()).unwrap(), filter);
        }
        for other in [
            serde_json::json!({"colour": "red"}),
            serde_json::json!({"lane": "fast"}),
            serde_json::json!({"lane": 1}),
            serde_json::json!([]),
        ] {
            assert!(DeadLetterFilter::from_json(&other).is_err(), "{other}");
        }
    }
}
