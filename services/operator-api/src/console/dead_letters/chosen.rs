//! Which dead letters a page is about: a filter in the words of the API, as it stands in an address, a form or a job.

use axum::extract::FromRequestParts as _;
use chrono::{DateTime, DurationRound as _, SecondsFormat, TimeDelta, Utc};
use http::Request;
use http_api::{Params, Problem, ProblemKind};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;
use uuid::Uuid;

use crate::console::frame::Frame;

/// The words of a filter, in the order in which they are said.
const WORDS: [(&str, &str); 12] = [
    ("state", "state"),
    ("lane", "lane"),
    ("reason", "reason"),
    ("fingerprint", "kind"),
    ("target", "where"),
    ("reseller", "reseller"),
    ("subscription", "subscription"),
    ("eventType", "event type"),
    ("prototype", "prototype"),
    ("since", "since"),
    ("until", "before"),
    ("job", "job"),
];

/// Times that are seen from now, in an address that is not tied to a day. The API takes moments alone.
pub(in crate::console) const AGES: [(&str, &str, i64); 4] = [
    ("1h", "the last hour", 1),
    ("24h", "the last 24 hours", 24),
    ("7d", "the last 7 days", 7 * 24),
    ("28d", "the last 28 days", 28 * 24),
];

/// A filter, with whatever else an address says that is not the page's own: the API refuses that by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::console) struct Chosen(Vec<(String, String)>);

impl Chosen {
    /// What the address of a page says, but for the words that are the page's `own`.
    pub(in crate::console) fn asked(frame: &Frame, own: &[&str]) -> Self {
        let query = frame.address.split_once('?').map_or("", |(_, query)| query);
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        // An empty field of a form restricts nothing.
        let said = pairs.filter(|(name, value)| !value.is_empty() && !own.contains(&name.as_str()));
        Self(said.collect())
    }

    /// What the fields of the form of a job say; its field `job` is the job that it makes.
    pub(in crate::console) fn written(field: impl Fn(&str) -> Option<String>) -> Self {
        let words = WORDS
            .iter()
            .filter(|(name, _)| *name != "job")
            .filter_map(|(name, _)| Some(((*name).to_owned(), field(name)?)));
        Self(words.collect())
    }

    /// What a job has resolved: `state` is what it made of them.
    pub(in crate::console) fn resolved_by(job: Uuid, state: &str) -> Self {
        Self::default().with("state", state).with("job", job.to_string())
    }

    /// What a job keeps; of open dead letters, as every job is.
    pub(in crate::console) fn kept(filter: &Value) -> Self {
        let words = WORDS.iter().filter(|(name, _)| *name != "state");
        let kept =
            words.filter_map(|(name, _)| Some(((*name).to_owned(), filter[*name].as_str()?.to_owned())));
        Self(kept.collect())
    }

    /// A word of it; empty when it is not said.
    pub(in crate::console) fn word(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// The same with another word; an empty one restricts nothing.
    pub(in crate::console) fn with(&self, name: &str, value: impl AsRef<str>) -> Self {
        let others = self.0.iter().filter(|(key, _)| key != name).cloned();
        let word = Some((name.to_owned(), value.as_ref().to_owned()));
        Self(
            others
                .chain(word.filter(|(_, value)| !value.is_empty()))
                .collect(),
        )
    }

    /// Whether it restricts nothing but to open ones.
    pub(in crate::console) fn is_empty(&self) -> bool {
        self.without_state().0.is_empty()
    }

    /// Whether only open ones are meant: nothing else can be replayed or discarded.
    pub(in crate::console) fn is_open(&self) -> bool {
        matches!(self.word("state"), "" | "OPEN") && self.word("job").is_empty()
    }

    fn without_state(&self) -> Self {
        self.with("state", "")
    }

    /// Its words, for the fields of a form.
    pub(in crate::console) fn words(&self) -> &[(String, String)] {
        &self.0
    }

    /// An address of the console with it, and with `more` before it.
    pub(in crate::console) fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(more.iter().filter(|(_, value)| !value.is_empty()));
        match query.extend_pairs(&self.0).finish() {
            none if none.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }

    /// Where a job about it is begun. That every open dead letter is meant has to be said.
    pub(in crate::console) fn job(&self, action: &str) -> String {
        let all = if self.is_empty() { "1" } else { "" };
        self.without_state()
            .link("/console/jobs/new", &[("action", action), ("all", all)])
    }

    /// Whether it begins at a moment, rather than at a time that is seen from now.
    pub(in crate::console) fn is_since_moment(&self) -> bool {
        let since = self.word("since");
        !since.is_empty() && !AGES.iter().any(|(age, _, _)| *age == since)
    }

    /// The same with moments instead of times that are seen from now.
    pub(in crate::console) fn at(&self, now: DateTime<Utc>) -> Self {
        let age = AGES.iter().find(|(age, _, _)| *age == self.word("since"));
        age.map_or_else(
            || self.clone(),
            |(_, _, hours)| self.with("since", moment(now - TimeDelta::hours(*hours))),
        )
    }

    /// The moment at which it begins, if that is seen from now, for a link that shows others the same. To the minute, so that a live page
    /// that has not changed is not sent again.
    pub(in crate::console) fn pinned(&self, now: &DateTime<Utc>) -> Option<String> {
        let minute = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(*now);
        let pinned = self.at(minute);
        (pinned != *self).then(|| pinned.word("since").to_owned())
    }

    /// The parameters of an operation of the API, with `more`.
    pub(in crate::console) async fn params<T: DeserializeOwned>(
        &self,
        now: DateTime<Utc>,
        more: &[(&str, &str)],
    ) -> Result<Params<T>, Problem> {
        let request = Request::get(self.at(now).link("/", more)).body(());
        let request =
            request.map_err(|_| Problem::new(ProblemKind::INVALID_QUERY, "the filter is too long"))?;
        let (mut parts, ()) = request.into_parts();
        Params::from_request_parts(&mut parts, &()).await
    }

    /// The filter in the body of a job.
    pub(in crate::console) fn body(&self, now: DateTime<Utc>) -> Value {
        let words = self.at(now).without_state().0.into_iter();
        Value::Object(
            words
                .map(|(name, value)| (name, Value::String(value)))
                .collect::<Map<_, _>>(),
        )
    }

    /// In words: `lane push, kind swrve/503`.
    pub(in crate::console) fn said(&self) -> String {
        let words = WORDS.iter().map(|(name, called)| (*called, self.word(name)));
        let said = words
            .filter(|(_, value)| !value.is_empty())
            .map(|(called, value)| {
                let age = AGES.iter().find(|(age, _, _)| *age == value);
                match (called, age, value.parse::<DateTime<Utc>>()) {
                    ("since", Some((_, words, _)), _) => format!("of {words}"),
                    ("since" | "before", None, Ok(at)) => {
                        format!("{called} {}", at.format("%-d %b %Y, %H:%M:%S UTC"))
                    }
                    _ => format!("{called} {value}"),
                }
            });
        said.collect::<Vec<_>>().join(", ")
    }

    /// The same at any time.
    pub(in crate::console) fn whenever(&self) -> Self {
        self.with("since", "").with("until", "")
    }

    /// The command of the command line that does the same.
    pub(in crate::console) fn command(&self, verb: &str, now: DateTime<Utc>) -> String {
        let mut command = format!("postrider dead-letters {verb}");
        if self.is_empty() {
            command.push_str(" --all");
        }
        command.push_str(&self.at(now).without_state().options());
        command
    }

    /// The command that shows what this filter chooses: `what` is the command below `dead-letters`. It takes times that are seen from now as
    /// they are.
    pub(in crate::console) fn listing(&self, what: &str) -> String {
        format!("postrider dead-letters {what}{}", self.options())
    }

    /// Its words as options of the command line.
    fn options(&self) -> String {
        let option = |(name, value): &(String, String)| {
            let option = match name.as_str() {
                "eventType" => "event-type",
                other => other,
            };
            format!(" --{option} '{}'", value.replace('\'', r"'\''"))
        };
        self.0.iter().map(option).collect()
    }
}

/// A moment as it stands in an address.
pub(in crate::console) fn moment(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(words: &[(&str, &str)]) -> Chosen {
        Chosen(
            words
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn a_filter_is_an_address_a_body_and_a_sentence() {
        let now = "2026-11-23T14:00:00Z".parse().expect("a time");
        let filter = chosen(&[("lane", "push"), ("since", "24h"), ("target", "a&b=\"c")]);
        assert_eq!(
            filter.job("replay"),
            "/console/jobs/new?action=replay&lane=push&since=24h&target=a%26b%3D%22c"
        );
        assert_eq!(
            filter.body(now),
            json!({"lane": "push", "since": "2026-11-22T14:00:00Z", "target": "a&b=\"c"})
        );
        assert_eq!(filter.said(), "lane push, where a&b=\"c, of the last 24 hours");
        assert_eq!(
            filter.with("state", "ALL").listing("list"),
            "postrider dead-letters list --lane 'push' --since '24h' --target 'a&b=\"c' --state 'ALL'"
        );
        assert_eq!(
            Chosen::kept(&filter.body(now)),
            filter
                .at(now)
                .with("since", "")
                .with("since", "2026-11-22T14:00:00Z")
        );
    }

    #[test]
    fn a_link_to_a_time_that_is_seen_from_now_is_to_its_minute() {
        let now = "2026-11-23T14:00:59Z".parse().expect("a time");
        let since = |since: &str| chosen(&[("since", since), ("lane", "push")]).pinned(&now);
        assert_eq!(since("7d").as_deref(), Some("2026-11-16T14:00:00Z"));
        assert_eq!(since("2026-11-16T14:00:00Z"), None);
        assert_eq!(Chosen::default().pinned(&now), None);
    }

    #[test]
    fn what_a_job_has_resolved_is_not_open_whatever_the_state_says() {
        let job = Uuid::from_u128(7);
        let resolved = Chosen::resolved_by(job, "REPLAYED");
        assert_eq!(
            resolved.link("/list", &[]),
            format!("/list?state=REPLAYED&job={job}")
        );
        assert_eq!(resolved.said(), format!("state REPLAYED, job {job}"));
        assert!(!resolved.with("state", "").is_open() && !resolved.with("state", "").is_empty());
    }

    #[test]
    fn a_job_that_a_form_makes_is_no_word_of_its_filter() {
        let field = |name: &str| ["lane", "job"].contains(&name).then(|| "push".to_owned());
        assert_eq!(Chosen::written(field), chosen(&[("lane", "push")]));
    }

    #[test]
    fn jobs_are_about_open_ones_alone() {
        let all = chosen(&[("state", "ALL"), ("lane", "push")]);
        assert!(!all.is_open() && !all.is_empty());
        assert_eq!(all.job("discard"), "/console/jobs/new?action=discard&lane=push");
        let open = chosen(&[("state", "OPEN")]);
        assert!(open.is_open() && open.is_empty());
        assert_eq!(open.job("discard"), "/console/jobs/new?action=discard&all=1");
    }
}
