//! Which dead letters a request means: the same words in a query string and in a body.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use domain::event::EventError;
use http_api::{FieldCode, FieldProblem, Problem, WrongQuery};
use store::{DeadLetterFilter, DeadLetterLane, DeadLetterReason, DeadLetterState};

use crate::request;

/// Longest text that is looked for, in bytes.
const TEXT_MAX_BYTES: usize = 1_000;
/// How much of a prototype a dead letter keeps, in characters.
const PROTOTYPE_MAX: usize = 200;

/// A filter as it was written. What is missing restricts nothing, but for the state, which is then `OPEN`, or any with a job.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FilterText<'a> {
    pub(crate) lane: Option<&'a str>,
    pub(crate) state: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) fingerprint: Option<&'a str>,
    pub(crate) target: Option<&'a str>,
    pub(crate) subscription: Option<&'a str>,
    pub(crate) reseller: Option<&'a str>,
    pub(crate) event_type: Option<&'a str>,
    pub(crate) prototype: Option<&'a str>,
    pub(crate) since: Option<DateTime<Utc>>,
    pub(crate) until: Option<DateTime<Utc>>,
    pub(crate) job: Option<&'a str>,
}

impl FilterText<'_> {
    /// Reads the filter of a query string.
    ///
    /// # Errors
    ///
    /// The [`Problem`] that names each word that means nothing.
    pub(crate) fn checked(&self) -> Result<DeadLetterFilter, Problem> {
        let (filter, words) = self.read();
        let mut wrong = WrongQuery::default();
        for word in words {
            wrong.add(Problem::parameter(word));
        }
        wrong.with(Ok(filter))
    }

    /// Reads the filter, and tells each word that means nothing. It is to be used only if there is none.
    pub(crate) fn read(&self) -> (DeadLetterFilter, Vec<FieldProblem>) {
        let mut wrongs = Vec::new();
        let state = match self.state {
            // What a job has resolved is not open.
            None => self.job.is_none().then_some(DeadLetterState::Open),
            Some("ALL") => None,
            some => {
                let states = names(&DeadLetterState::ALL, DeadLetterState::as_str);
                meant(word("state", some, &states, ", or ALL"), &mut wrongs)
            }
        };
        let lanes = names(&DeadLetterLane::ALL, DeadLetterLane::as_str);
        let reasons = names(&DeadLetterReason::ALL, DeadLetterReason::as_str);
        let filter = DeadLetterFilter {
            lane: meant(word("lane", self.lane, &lanes, ""), &mut wrongs),
            state,
            reason: meant(word("reason", self.reason, &reasons, ""), &mut wrongs),
            fingerprint: meant(fingerprint(self.fingerprint), &mut wrongs),
            target: meant(text("target", self.target), &mut wrongs),
            subscription: meant(self.subscription.map(subscription).transpose(), &mut wrongs),
            reseller: meant(text("reseller", self.reseller), &mut wrongs),
            event_type: meant(self.event_type.map(event_type).transpose(), &mut wrongs),
            prototype: meant(prototype(self.prototype), &mut wrongs),
            since: meant(time("since", self.since), &mut wrongs),
            until: meant(time("until", self.until), &mut wrongs),
            job: meant(self.job.map(job).transpose(), &mut wrongs),
        };
        if let (Some(since), Some(until)) = (filter.since, filter.until)
            && since >= until
        {
            wrongs.push(FieldProblem::new("until", "must be later than since").coded(FieldCode::Conflict));
        }
        (filter, wrongs)
    }
}

/// What a word means; nothing where it is wrong, which is kept.
fn meant<T: Default>(read: Result<T, FieldProblem>, wrongs: &mut Vec<FieldProblem>) -> T {
    read.unwrap_or_else(|wrong| {
        wrongs.push(wrong);
        T::default()
    })
}

pub(crate) fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> String {
    all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn word<T: FromStr>(
    name: &'static str,
    given: Option<&str>,
    possible: &str,
    besides: &str,
) -> Result<Option<T>, FieldProblem> {
    let read = |word: &str| {
        let wrong = || FieldProblem::new(name, format!("must be one of {possible}{besides}"));
        word.parse().map_err(|_| wrong().coded(FieldCode::UnknownValue))
    };
    given.map(read).transpose()
}

pub(crate) fn text(name: &'static str, given: Option<&str>) -> Result<Option<String>, FieldProblem> {
    let Some(text) = given else { return Ok(None) };
    if text.is_empty() {
        let detail = "must not be empty; leave it out to restrict nothing";
        return Err(FieldProblem::new(name, detail).coded(FieldCode::Missing));
    }
    if text.len() > TEXT_MAX_BYTES || text.contains('\0') {
        let detail = format!("must be at most {TEXT_MAX_BYTES} bytes without the character U+0000");
        return Err(FieldProblem::new(name, detail).at_most(TEXT_MAX_BYTES));
    }
    Ok(Some(text.to_owned()))
}

/// All that anything begins with is no restriction, and often a variable that was not set.
fn fingerprint(given: Option<&str>) -> Result<Option<String>, FieldProblem> {
    if given == Some("*") {
        let detail = "must begin with something before *; leave it out to restrict nothing";
        return Err(FieldProblem::new("fingerprint", detail).coded(FieldCode::WrongFormat));
    }
    text("fingerprint", given)
}

fn prototype(given: Option<&str>) -> Result<Option<String>, FieldProblem> {
    let prototype = text("prototype", given)?;
    match &prototype {
        Some(long) if long.chars().count() > PROTOTYPE_MAX => {
            let detail = format!(
                "must be at most {PROTOTYPE_MAX} characters, which is what a dead letter keeps of it"
            );
            Err(FieldProblem::new("prototype", detail).at_most(PROTOTYPE_MAX))
        }
        _ => Ok(prototype),
    }
}

pub(crate) fn time(
    name: &'static str,
    given: Option<DateTime<Utc>>,
) -> Result<Option<DateTime<Utc>>, FieldProblem> {
    match given {
        Some(at) if !request::can_be_asked(at) => {
            Err(FieldProblem::new(name, "must be in the years 1970 to 9999").coded(FieldCode::OutOfRange))
        }
        given => Ok(given),
    }
}

fn subscription(text: &str) -> Result<uuid::Uuid, FieldProblem> {
    let detail = "must be the identifier of a subscription, such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    let wrong = || FieldProblem::new("subscription", detail).coded(FieldCode::WrongFormat);
    text.parse().map_err(|_| wrong())
}

fn job(text: &str) -> Result<uuid::Uuid, FieldProblem> {
    let detail = "must be the identifier of a job, such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    let wrong = || FieldProblem::new("job", detail).coded(FieldCode::WrongFormat);
    text.parse().map_err(|_| wrong())
}

pub(crate) fn event_type(text: &str) -> Result<String, FieldProblem> {
    if domain::subscription::is_event_type(text) {
        return Ok(text.to_owned());
    }
    Err(FieldProblem::new("eventType", EventError::Type.to_string()).coded(FieldCode::WrongFormat))
}

/// The filter whose words are the fields of `$given`, of a job that is given beside it.
macro_rules! words {
    ($given:expr) => {
        $crate::dead_letters::filter::words!($given, None)
    };
    ($given:expr, $job:expr) => {
        $crate::dead_letters::filter::FilterText {
            lane: $given.lane.as_deref(),
            state: $given.state.as_deref(),
            reason: $given.reason.as_deref(),
            fingerprint: $given.fingerprint.as_deref(),
            target: $given.target.as_deref(),
            subscription: $given.subscription.as_deref(),
            reseller: $given.reseller.as_deref(),
            event_type: $given.event_type.as_deref(),
            prototype: $given.prototype.as_deref(),
            since: $given.since,
            until: $given.until,
            job: $job,
        }
    };
}

pub(crate) use words;

/// A query string that holds a filter, and whatever else a handler takes: `deny_unknown_fields` and a flattened filter do
/// not go together.
macro_rules! query_with_filter {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub(crate) struct $name {
            /// Of this lane: `push` or `reseller`.
            lane: Option<String>,
            /// In this state: `OPEN`, `REPLAYED`, `DISCARDED`, or `ALL`.
            #[param(default = "OPEN")]
            state: Option<String>,
            /// For this reason: `FAILED`, `GIVEN_UP`, `REJECTED` or `MALFORMED`.
            reason: Option<String>,
            /// Of this kind of failure; `*` at the end stands for anything.
            #[param(example = "delivery/http/*")]
            fingerprint: Option<String>,
            /// Where the failure was: scheme, host and port of the endpoint, or Swrve's code.
            #[param(example = "https://hooks.acme.example")]
            target: Option<String>,
            /// About notifications for this subscription.
            subscription: Option<String>,
            /// About notifications for this reseller.
            reseller: Option<String>,
            /// About events of this type.
            #[param(example = "domain.created")]
            event_type: Option<String>,
            /// About pushes of this message prototype.
            prototype: Option<String>,
            /// Written at this time or later.
            since: Option<chrono::DateTime<chrono::Utc>>,
            /// Written before this time.
            until: Option<chrono::DateTime<chrono::Utc>>,
            /// Replayed or discarded by this job: then of any state, unless one is given.
            job: Option<String>,
            $($(#[$doc])* $field: $type,)*
        }

        impl $name {
            pub(crate) fn filter(&self) -> Result<store::DeadLetterFilter, http_api::Problem> {
                crate::dead_letters::filter::words!(self, self.job.as_deref()).checked()
            }
        }
    };
}

pub(crate) use query_with_filter;

#[cfg(test)]
mod tests;
