//! `postrider pause`, `resume` and `pauses`: stopping a lane, a subscription or all of a reseller for a while.

use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::operator::OperatorArgs;
use crate::output::{self, Column};
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
    fn as_str(self) -> &'static str {
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
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Word {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// As JSON, just as the API answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider pauses
  postrider pauses --json")]
pub(crate) struct PausesArgs {
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pause {
    scope: String,
    key: String,
    reseller_id: Option<String>,
    note: String,
    paused_by: String,
    paused_at: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    scope: String,
    key: String,
    changed: bool,
    pause: Option<Pause>,
    still_paused: Vec<String>,
}

/// Pauses something.
pub(crate) async fn pause(command: PauseCommand) -> anyhow::Result<()> {
    let (path, reason) = match command {
        PauseCommand::Lane { lane, reason } => (path(&["lanes", lane.as_str()]), reason),
        PauseCommand::Subscription { id, reason } => (path(&["subscriptions", &id.to_string()]), reason),
        PauseCommand::Reseller { reseller, reason } => (path(&["resellers", &reseller]), reason),
    };
    let body = json!({"note": reason.note});
    act(&format!("{path}/pause"), &body, &reason.common, true).await
}

/// Lets something go on.
pub(crate) async fn resume(command: ResumeCommand) -> anyhow::Result<()> {
    let (path, word) = match command {
        ResumeCommand::Lane { lane, word } => (path(&["lanes", lane.as_str()]), word),
        ResumeCommand::Subscription { id, word } => (path(&["subscriptions", &id.to_string()]), word),
        ResumeCommand::Reseller { reseller, word } => (path(&["resellers", &reseller]), word),
    };
    let body = word.note.map_or_else(|| json!({}), |note| json!({"note": note}));
    act(&format!("{path}/resume"), &body, &word.common, false).await
}

/// Lists what is paused.
pub(crate) async fn list(args: &PausesArgs) -> anyhow::Result<()> {
    let document: Value = args
        .common
        .operator
        .connect()?
        .get("/pauses", &[] as &[(&str, &str)])
        .await?;
    if args.common.json {
        return output::json(&document);
    }
    let pauses: Vec<Pause> = serde_json::from_value(document["items"].clone())?;
    if pauses.is_empty() {
        output::note("nothing is paused");
        return Ok(());
    }
    let mut table = output::table([
        Column::whole("what"),
        Column::whole("which"),
        Column::whole("reseller").spare(1),
        Column::whole("since").spare(3),
        Column::whole("by").spare(2),
        Column::prose("note").spare(4),
    ]);
    for pause in pauses {
        table.add_row([
            pause.scope,
            output::harmless(&pause.key),
            output::harmless(&pause.reseller_id.unwrap_or_default()),
            pause.paused_at,
            output::harmless(&pause.paused_by),
            output::harmless(&pause.note),
        ]);
    }
    output::result(table)?;
    Ok(())
}

async fn act(path: &str, body: &Value, common: &Common, pausing: bool) -> anyhow::Result<()> {
    let document: Value = common.operator.connect()?.post(path, body).await?;
    if common.json {
        return output::json(&document);
    }
    output::result(sentence(&serde_json::from_value(document)?, pausing))?;
    Ok(())
}

/// What has come of it.
fn sentence(change: &Change, pausing: bool) -> String {
    let what = format!("{} {}", change.scope, output::harmless(&change.key));
    let mut said = match (pausing, change.changed, &change.pause) {
        (true, true, _) => format!("{what} is paused"),
        (true, false, Some(pause)) => format!(
            "{what} was paused before, by {} at {}: {}",
            output::harmless(&pause.paused_by),
            pause.paused_at,
            output::harmless(&pause.note)
        ),
        (true, false, None) => format!("{what} was paused before"),
        (false, true, _) if change.still_paused.is_empty() => format!("{what} goes on"),
        (false, true, _) => format!("the pause of {what} is over"),
        (false, false, _) => format!("{what} was not paused"),
    };
    for obstacle in change.still_paused.iter().filter(|_| !pausing) {
        said.push_str("; it still waits, since ");
        said.push_str(&output::harmless(obstacle));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(changed: bool, still_paused: &[&str]) -> Change {
        Change {
            scope: "subscription".to_owned(),
            key: "7".to_owned(),
            changed,
            pause: None,
            still_paused: still_paused.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn what_keeps_it_waiting_is_said_when_a_pause_ends() {
        assert_eq!(sentence(&change(true, &[]), true), "subscription 7 is paused");
        assert_eq!(sentence(&change(true, &[]), false), "subscription 7 goes on");
        assert_eq!(
            sentence(&change(false, &[]), false),
            "subscription 7 was not paused"
        );
        assert_eq!(
            sentence(&change(true, &["all of reseller acme is paused"]), false),
            "the pause of subscription 7 is over; it still waits, since all of reseller acme is paused"
        );
    }
}
