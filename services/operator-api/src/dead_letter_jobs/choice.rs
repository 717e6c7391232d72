//! Which dead letters a body chooses: a filter that takes what the list's parameters take, but only of open ones.

use chrono::{DateTime, Utc};
use http_api::{FieldCode, FieldProblem};
use serde::{Deserialize, Deserializer};
use store::{DeadLetterFilter, DeadLetterState};
use utoipa::ToSchema;

use crate::dead_letters::filter;

/// A filter; what is missing restricts nothing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = DeadLetterFilter)]
pub(crate) struct FilterPayload {
    /// Of this lane: `push` or `reseller`.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) lane: Option<String>,
    /// `OPEN` or missing: nothing else can be replayed or discarded.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) state: Option<String>,
    /// For this reason: `FAILED`, `GIVEN_UP`, `REJECTED` or `MALFORMED`.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) reason: Option<String>,
    /// Of this kind of failure; `*` at the end stands for anything.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) fingerprint: Option<String>,
    /// Where the failure was: scheme, host and port of the endpoint, or Swrve's code.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) target: Option<String>,
    /// About notifications for this subscription.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) subscription: Option<String>,
    /// About notifications for this reseller.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) reseller: Option<String>,
    /// About events of this type.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) event_type: Option<String>,
    /// About pushes of this message prototype.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) prototype: Option<String>,
    /// Written at this time or later.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Written before this time.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) until: Option<DateTime<Utc>>,
}

impl FilterPayload {
    /// The filter, or what is wrong with it.
    pub(super) fn read(&self) -> Result<DeadLetterFilter, Vec<FieldProblem>> {
        let (filter, words) = filter::words!(self).read();
        let in_body = |word: FieldProblem| FieldProblem {
            field: format!("filter.{}", word.field).into(),
            ..word
        };
        let mut wrongs: Vec<_> = words.into_iter().map(in_body).collect();
        if filter.state != Some(DeadLetterState::Open)
            && wrongs.iter().all(|known| known.field != "filter.state")
        {
            let detail = "must be OPEN: nothing else can be replayed or discarded";
            wrongs.push(FieldProblem::new("filter.state", detail).coded(FieldCode::UnknownValue));
        }
        if wrongs.is_empty() {
            Ok(filter)
        } else {
            Err(wrongs)
        }
    }
}

/// A member that is there has a value: `null` from a program whose variable was not set would stand for every dead letter.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_without_a_value_is_refused() {
        assert!(serde_json::from_value::<FilterPayload>(json!({})).is_ok());
        for member in ["lane", "fingerprint", "subscription", "since", "until"] {
            let filter = serde_json::from_value::<FilterPayload>(json!({ member: null }));
            assert!(filter.is_err(), "{member}");
        }
    }

    #[test]
    fn a_word_that_stands_for_every_dead_letter_is_named() {
        for (filter, field) in [
            (json!({"fingerprint": "*"}), "filter.fingerprint"),
            (json!({"target": ""}), "filter.target"),
        ] {
            let filter: FilterPayload = serde_json::from_value(filter).expect("a filter");
            let problem = filter.read().expect_err("it should be refused");
            assert_eq!(problem[0].field, field);
        }
        let filter = json!({"lane": "fast", "target": ""});
        let filter: FilterPayload = serde_json::from_value(filter).expect("a filter");
        let problems = filter.read().expect_err("it should be refused");
        let fields: Vec<_> = problems.into_iter().map(|problem| problem.field).collect();
        assert_eq!(fields, ["filter.lane", "filter.target"]);
    }
}
