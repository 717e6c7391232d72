//! Which dead letters: the same options for every command about them.

use anyhow::bail;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::age::{Age, at_or_ago};
use crate::api::Api;
use crate::commands::resellers::at_endpoint;
use crate::commands::search;
use crate::output;

/// Which dead letters. What is not given restricts nothing.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FilterArgs {
    /// Of this lane: push or reseller.
    #[arg(long, value_parser = ["push", "reseller"])]
    lane: Option<String>,
    /// For this reason.
    #[arg(long, value_parser = ["FAILED", "GIVEN_UP", "REJECTED", "MALFORMED"], ignore_case = true)]
    reason: Option<String>,
    /// Of this kind of failure; * at the end stands for anything.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    fingerprint: Option<String>,
    /// Where the failure was: the endpoint's URL, its scheme, host and port for all endpoints there, or Swrve's code.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    target: Option<String>,
    /// For this subscription.
    #[arg(long, value_name = "ID")]
    subscription: Option<Uuid>,
    /// For this reseller.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    reseller: Option<String>,
    /// About events of this type.
    #[arg(long, value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    event_type: Option<String>,
    /// About pushes of this message prototype.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    prototype: Option<String>,
    /// Written at this time or later; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "newer_than")]
    since: Option<DateTime<Utc>>,
    /// Written before this time; a time, or an age such as 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "older_than")]
    until: Option<DateTime<Utc>>,
    /// Written less than this long ago, such as 3d.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// Written longer ago than this, such as 2h.
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
}

/// The filter as the API takes it, in a query string and in a body.
pub(crate) type Filter = Map<String, Value>;

impl FilterArgs {
    /// Notes that no such reseller is known, if one is given that is not.
    pub(super) async fn note_reseller(&self, api: &Api) -> anyhow::Result<()> {
        let reseller = self.reseller.clone().map(Value::from);
        search::note_reseller(api, reseller.as_ref()).await
    }

    /// Whether no option is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.filter(DateTime::UNIX_EPOCH).is_empty()
    }

    /// The target, if one is given.
    pub(super) fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// The same filter, with the subscription in the place of a target that is the URL of its endpoint.
    pub(super) async fn found(&self, api: &Api) -> anyhow::Result<Self> {
        let Some(url) = self.target.as_deref().filter(|target| has_path(target)) else {
            return Ok(self.clone());
        };
        let found = at_endpoint(api, url).await?;
        let mut filter = self.clone();
        match &found[..] {
            [] => filter.target = Some(url.trim_end_matches('/').to_owned()),
            [(id, reseller)] if self.subscription.is_none_or(|given| given == *id) => {
                output::note(format_args!(
                    "{url} is the endpoint of the subscription {id} of {reseller}"
                ));
                (filter.target, filter.subscription) = (None, Some(*id));
            }
            _ => {
                let found: Vec<String> = found
                    .iter()
                    .map(|(id, reseller)| format!("{id} of {reseller}"))
                    .collect();
                bail!(
                    "the endpoint {url} is that of {}; leave --target out and choose one with --subscription",
                    found.join(", and ")
                );
            }
        }
        Ok(filter)
    }

    /// The filter, with ages counted from `now`.
    pub(crate) fn filter(&self, now: DateTime<Utc>) -> Filter {
        let time = |at, age| at_or_ago(at, age, now).map(search::written);
        let given = [
            ("lane", self.lane.clone()),
            ("reason", self.reason.as_ref().map(|reason| reason.to_uppercase())),
            ("fingerprint", self.fingerprint.clone()),
            ("target", self.target.clone()),
            ("subscription", self.subscription.map(|id| id.to_string())),
            ("reseller", self.reseller.clone()),
            ("eventType", self.event_type.clone()),
            ("prototype", self.prototype.clone()),
            ("since", time(self.since, self.newer_than)),
            ("until", time(self.until, self.older_than)),
        ];
        let given = given.into_iter();
        given
            .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
            .collect()
    }
}

/// Whether a target says more than scheme, host and port.
pub(super) fn has_path(target: &str) -> bool {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    // In mails an endpoint stands without its scheme.
    rest.contains(['/', '?']) && !rest.contains(' ')
}

/// Without what is written after the newest dead letter that was counted: the operator has not seen it. An end that was given stays.
pub(crate) fn only_up_to(mut filter: Filter, newest: DateTime<Utc>) -> Filter {
    // The database keeps microseconds, and the end itself is left out.
    if let Some(after) = newest.checked_add_signed(TimeDelta::microseconds(1)) {
        filter.entry("until").or_insert(search::written(after).into());
    }
    filter
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        filter: FilterArgs,
    }

    fn filter(line: &str) -> Filter {
        let line = Line::try_parse_from(line.split(' ')).expect("a command line");
        line.filter.filter(DateTime::UNIX_EPOCH)
    }

    #[test]
    fn what_was_counted_ends_with_the_newest_of_it() {
        let newest: DateTime<Utc> = "2026-11-21T12:00:00.123456Z".parse().expect("a time");
        let until = |line| only_up_to(filter(line), newest)["until"].clone();
        assert_eq!(until("x --lane push"), "2026-11-21T12:00:00.123457Z");
        assert_eq!(until("x --until 2026-11-20T00:00:00Z"), "2026-11-20T00:00:00Z");
    }

    #[test]
    fn an_option_with_nothing_in_it_is_no_filter() {
        Line::command().debug_assert();
        for option in ["fingerprint", "target", "reseller", "event-type", "prototype"] {
            let line = ["x".to_owned(), format!("--{option}"), String::new()];
            assert!(Line::try_parse_from(line).is_err(), "{option}");
        }
    }
}
