//! `postrider pause`, `resume` and `pauses`: stopping a lane, a subscription or all of a reseller for a while.

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::age::Age;
use crate::operator::Common;
use crate::output::{Column, Form, JsonArgs};
use crate::shown::{self, ShownColumn, cell};
use crate::web::path;

/// What can be paused.
#[derive(Debug, Subcommand)]
pub(crate) enum PauseCommand {
    /// A whole lane: nothing of it is sent any more, everything of it is still accepted.
    Lane {
        /// Which one.
        lane: LaneName,
        #[command(flatten)]
        reason: Reason,
    },
    /// One subscription.
    Subscription {
        /// Its identifier.
        id: Uuid,
        #[command(flatten)]
        reason: Reason,
    },
    /// All subscriptions of a reseller, and those that it makes meanwhile.
    Reseller {
        /// Its name.
        reseller: String,
        #[command(flatten)]
        reason: Reason,
    },
}

/// What can go on.
#[derive(Debug, Subcommand)]
pub(crate) enum ResumeCommand {
    /// A paused lane.
    Lane {
        /// Which one.
        lane: LaneName,
        #[command(flatten)]
        word: Word,
    },
    /// A paused subscription; one whose reseller is paused as well stays so.
    Subscription {
        /// Its identifier.
        id: Uuid,
        #[command(flatten)]
        word: Word,
    },
    /// A paused reseller, save for subscriptions that have a pause of their own.
    Reseller {
        /// Its name.
        reseller: String,
        #[command(flatten)]
        word: Word,
    },
}

/// A lane.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LaneName {
    /// Pushes to Swrve.
    Push,
    /// Notifications to resellers, their retries included.
    Reseller,
}

impl LaneName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Reseller => "reseller",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Reason {
    /// Why; everybody sees it who asks what is paused.
    #[arg(long)]
    note: String,
    /// It ends by itself after this time, such as 2h; without it and --until it lasts until it is resumed.
    #[arg(long = "for", value_name = "AGE", conflicts_with = "until")]
    length: Option<Age>,
    /// It ends by itself at this time.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time)]
    until: Option<DateTime<Utc>>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

impl Reason {
    /// When the pause ends by itself, if it does.
    fn end(&self, now: DateTime<Utc>) -> anyhow::Result<Option<DateTime<Utc>>> {
        match self.length {
            Some(length) => Ok(Some(length.after(now).context("that is too far in the future")?)),
            None => Ok(self.until),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Word {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider pauses
  postrider pauses --json")]
pub(crate) struct PausesArgs {
    /// Lists them, as without it.
    #[arg(hide = true, value_parser = ["list", "ls"])]
    list: Option<String>,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 10] = [
    (Column::whole("what"), "/scope"),
    (Column::whole("which").name(), "/key"),
    (Column::prose("name").spare(7), "/name"),
    (Column::whole("waiting"), "/shownWaiting"),
    (Column::whole("reseller").spare(5), "/resellerId"),
    (Column::whole("whose").spare(2), "/whose"),
    (Column::time("since").spare(6), "/pausedAt"),
    (Column::time("until").spare(4), "/until"),
    (Column::whole("by").spare(1), "/pausedBy"),
    (Column::prose("note").spare(3), "/note"),
];

/// Pauses something.
pub(crate) async fn pause(command: PauseCommand) -> anyhow::Result<()> {
    let (path, reason) = match command {
        PauseCommand::Lane { lane, reason } => (path(&["lanes", lane.as_str()]), reason),
        PauseCommand::Subscription { id, reason } => (path(&["subscriptions", &id.to_string()]), reason),
        PauseCommand::Reseller { reseller, reason } => (path(&["resellers", &reseller]), reason),
    };
    let mut body = json!({"note": reason.note});
    if let Some(until) = reason.end(SystemClock.now())? {
        body["until"] = json!(until);
    }
    let told = |change: &Value| sentence(change, true);
    reason.common.act(&format!("{path}/pause"), &body, told).await
}

/// Lets something go on.
pub(crate) async fn resume(command: ResumeCommand) -> anyhow::Result<()> {
    let (path, word) = match command {
        ResumeCommand::Lane { lane, word } => (path(&["lanes", lane.as_str()]), word),
        ResumeCommand::Subscription { id, word } => (path(&["subscriptions", &id.to_string()]), word),
        ResumeCommand::Reseller { reseller, word } => (path(&["resellers", &reseller]), word),
    };
    let body = word.note.map_or_else(|| json!({}), |note| json!({"note": note}));
    let told = |change: &Value| sentence(change, false);
    word.common.act(&format!("{path}/resume"), &body, told).await
}

/// Lists what is paused.
pub(crate) async fn list(args: &PausesArgs) -> anyhow::Result<()> {
    let mut document: Value = args.common.operator.connect()?.get("/pauses", &()).await?;
    let form = args.common.form();
    if form != Form::Json {
        for pause in document["items"].as_array_mut().into_iter().flatten() {
            let is_own = pause["byReseller"] == true;
            pause["whose"] = if is_own { "its reseller's" } else { "an operator's" }.into();
            pause["shownWaiting"] = waiting(pause).into();
        }
    }
    shown::print(&document, form, COLUMNS, "nothing is paused")
}

/// How many wait for the end of a pause, in words.
fn waiting(pause: &Value) -> String {
    match (pause["waiting"].as_u64(), pause["waitingCountedUpTo"].as_u64()) {
        (Some(count), Some(bound)) if count > bound => format!("> {bound}"),
        (Some(count), _) => count.to_string(),
        (None, _) => "not counted".to_owned(),
    }
}

/// What has come of it.
fn sentence(change: &Value, pausing: bool) -> String {
    let what = format!("{} {}", cell(change, "/scope"), cell(change, "/key"));
    let obstacles = shown::items(&change["stillPaused"]);
    let mut said = match (pausing, change["changed"] == true) {
        (true, true) => format!("{what} is paused{}", until(change)),
        (true, false) if change["pause"].is_object() => format!(
            "{what} was paused before, by {} at {}{}: {}; the new note and end were ignored, and to change them \
             `postrider resume {what}` and pause it again",
            cell(change, "/pause/pausedBy"),
            cell(change, "/pause/pausedAt"),
            until(change),
            cell(change, "/pause/note")
        ),
        (true, false) => format!("{what} was paused before"),
        (false, true) if obstacles.is_empty() => format!("{what} is resumed"),
        (false, true) => format!("the pause of {what} is over"),
        (false, false) => format!("{what} was not paused"),
    };
    for obstacle in obstacles.iter().filter(|_| !pausing) {
        said.push_str("; it still waits, since ");
        said.push_str(&cell(obstacle, ""));
    }
    said
}

/// Until when it is paused, where the pause ends by itself.
fn until(change: &Value) -> String {
    match cell(change, "/pause/until") {
        until if until.is_empty() => until,
        until => format!(" until {until}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(changed: bool, still_paused: &[&str], pausing: bool) -> String {
        let change = json!({"scope": "subscription", "key": "7", "changed": changed, "pause": null, "stillPaused": still_paused});
        sentence(&change, pausing)
    }

    #[test]
    fn what_waits_is_told_up_to_where_it_is_counted() {
        let said = |count| waiting(&json!({"waiting": count, "waitingCountedUpTo": 10_000}));
        assert_eq!(said(Some(12)), "12");
        assert_eq!(said(Some(10_001)), "> 10000");
        assert_eq!(said(None), "not counted");
    }

    #[test]
    fn what_keeps_it_waiting_is_said_when_a_pause_ends() {
        assert_eq!(said(true, &[], true), "subscription 7 is paused");
        assert_eq!(said(true, &[], false), "subscription 7 is resumed");
        let mut change = json!({"scope": "lane", "key": "push", "changed": true, "stillPaused": [], "pause":
            {"pausedBy": "ann", "pausedAt": "then", "note": "because", "until": "2026-11-21T14:00:00Z"}});
        assert_eq!(
            sentence(&change, true),
            "lane push is paused until 2026-11-21T14:00:00Z"
        );
        change["changed"] = json!(false);
        assert_eq!(
            sentence(&change, true),
            "lane push was paused before, by ann at then until 2026-11-21T14:00:00Z: because; the new note and end were \
             ignored, and to change them `postrider resume lane push` and pause it again"
        );
        assert_eq!(said(false, &[], false), "subscription 7 was not paused");
        assert_eq!(
            said(true, &["all of reseller acme is paused"], false),
            "the pause of subscription 7 is over; it still waits, since all of reseller acme is paused"
        );
    }
}
