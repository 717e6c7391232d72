//! Finding things over the operator API: pushes, notifications, events.
//!
//! The commands of resellers have the same names; with `--reseller` they ask here, on a key of the house.

mod columns;
mod events;
mod notifications;
mod pushes;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value};

use crate::age::{Age, at_or_ago};
use crate::api::Api;
use crate::output::{self, Form};
use crate::part::{Pages, Part};
use crate::shown::{self, ShownColumn};

pub(crate) use self::events::{EventListArgs, events};
pub(crate) use self::notifications::{LastAnswer, NotificationQuery, notifications, status_code};
pub(crate) use self::pushes::{PushListArgs, pushes, pushes_of};

/// The statuses of those that wait.
const WAITING: [&str; 4] = ["SCHEDULED", "PENDING", "IN_MEMORY", "RETRY"];

/// The statuses of pushes and notifications.
pub(crate) const STATUSES: [&str; 7] = [
    "SCHEDULED",
    "PENDING",
    "IN_MEMORY",
    "RETRY",
    "SENT",
    "FAILED",
    "GIVEN_UP",
];

/// Of what is late the latest was accepted longest ago.
const BY_END: &str = "what was accepted before that time and ended in it is left out: --ended-since and --ended-until, such as --ended-since 1d, go by \
                      when it ended";

/// When, and which part of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct Stretch {
    /// Accepted at this time or later; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "newer_than")]
    since: Option<DateTime<Utc>>,
    /// Accepted before this time; a time, or an age such as 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "older_than")]
    until: Option<DateTime<Utc>>,
    /// Accepted less than this long ago, such as 3h.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// Accepted longer ago than this, such as 10m.
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
    #[command(flatten)]
    pub(crate) part: Part,
}

/// What is asked, as a query string takes it.
pub(crate) type Query = Map<String, Value>;

pub(crate) fn query<const N: usize>(given: [(&str, Option<String>); N]) -> Query {
    let given = given.into_iter();
    given
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect()
}

impl Stretch {
    /// Whether it says when.
    pub(crate) fn has_times(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.newer_than.is_some() || self.older_than.is_some()
    }

    /// Adds when to what is asked.
    pub(crate) fn add_to(&self, query: &mut Query) {
        let now = SystemClock.now();
        let time = |at, age| at_or_ago(at, age, now).map(written);
        let times = [
            ("since", time(self.since, self.newer_than)),
            ("until", time(self.until, self.older_than)),
        ];
        query.extend(self::query(times));
    }
}

/// A time as a query string takes it.
pub(crate) fn written(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn seconds(late: Option<Age>) -> Option<String> {
    late.map(|age| age.duration().as_secs().to_string())
}

fn upper(word: Option<&String>) -> Option<String> {
    word.map(|word| word.to_uppercase())
}

/// Words as one parameter takes several.
pub(crate) fn joined(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(",").to_uppercase())
}

/// The statuses that are asked for: those that are given, or all in which something waits.
pub(crate) fn statuses(given: &[String], waiting: bool) -> Vec<String> {
    if waiting {
        WAITING.map(str::to_owned).to_vec()
    } else {
        given.to_vec()
    }
}

/// Says what tells where the time of what was late went, which no list knows; and how all that ended late in a time are found, where the time
/// that was given is that of accepting.
fn note_late(late: Option<Age>, (stretch, is_by_end): (&Stretch, bool), found: &[Value]) {
    if late.is_some() && stretch.has_times() && !is_by_end {
        output::note(BY_END);
    }
    if let (Some(_), Some(first)) = (late, found.first()) {
        output::note(format_args!(
            "`postrider explain {}` tells what the time went to",
            shown::cell(first, "/id")
        ));
    }
}

/// Says how what waits is found when a list with statuses that have ended, which goes through all the newest first, has not come to any of it.
fn note_waiting(document: &Value, statuses: &[String]) {
    let waits = |status: &&String| WAITING.contains(&&*status.to_uppercase());
    let waiting = statuses.iter().filter(waits).count();
    let is_mixed = waiting > 0 && waiting < statuses.len();
    if is_mixed && shown::items(&document["items"]).is_empty() && !document["next"].is_null() {
        output::note(
            "with statuses that have ended the newest are looked at first; --waiting lists all that wait, the oldest first",
        );
    }
}

/// Says of a reseller that nothing was found of whether it is known, and which one may have been meant.
pub(crate) async fn note_reseller(api: &Api, reseller: Option<&Value>) -> anyhow::Result<()> {
    let Some(reseller) = reseller.and_then(Value::as_str) else {
        return Ok(());
    };
    let document: Value = api.get("/resellers", &[("limit", "200")]).await?;
    let known: Vec<&str> = shown::items(&document["items"])
        .iter()
        .filter_map(|known| known["id"].as_str())
        .collect();
    if !known.contains(&reseller) && document["next"].is_null() {
        output::note(output::harmless(&format!(
            "no reseller {reseller} is known: none of that name has a subscription{}",
            domain::nearest::question(reseller, known)
        )));
    }
    Ok(())
}

/// Prints a part of a list, and returns what [`shown::print_pages`] does.
pub(super) async fn print<const COLUMNS: usize>(
    pages: Pages<'_>,
    form: Form,
    columns: [ShownColumn; COLUMNS],
    what: &str,
) -> anyhow::Result<Value> {
    shown::print_pages(pages, form, columns, |document| nothing(document, what)).await
}

/// What is said where nothing was found. A part in which that is so may be followed by others.
pub(super) fn nothing(document: &Value, what: &str) -> String {
    match document["next"].as_str() {
        Some(_) => format!(
            "no {what} matches among the {} that were looked at",
            document["examined"]
        ),
        None => format!("no {what} matches"),
    }
}
