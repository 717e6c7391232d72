//! `postrider notifications`, `postrider attempts` and `postrider resend`.

use std::time::Duration;

use anyhow::bail;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Common, identifier, look};
use crate::age::Age;
use crate::output::{self, Column};
use crate::portal::Portal;
use crate::pretty;
use crate::progress::Progress;
use crate::shown::{self, Shown, ShownColumn, cell};

/// How often a notification is looked at that is waited for.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider notifications list 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status FAILED,GIVEN_UP --newer-than 1d
  postrider notifications show 019aa2f0-5b1c-8025-9519-0863916ea2df")]
pub(crate) enum NotificationsCommand {
    /// Lists those of the last 7 days, the newest event first.
    #[command(visible_alias = "ls")]
    List(Box<ListArgs>),
    /// Shows one, with its body.
    Show(OneNotification),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    /// Of these statuses, such as FAILED,GIVEN_UP.
    #[arg(long)]
    status: Option<String>,
    /// Of these event types, such as domain.created.
    #[arg(long, value_name = "TYPES")]
    event_types: Option<String>,
    /// Of events that were accepted at this time or later, such as 2026-11-21T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time, conflicts_with = "newer_than")]
    since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time)]
    until: Option<DateTime<Utc>>,
    /// Of events that were accepted less than this long ago, such as 3h.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Where the previous part ended.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct OneNotification {
    /// The notification.
    #[arg(value_parser = identifier)]
    id: Uuid,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  postrider attempts 019aa2f0-5b1c-8025-9519-0863916ea2df")]
pub(crate) struct AttemptsArgs {
    #[command(flatten)]
    one: OneNotification,
}

#[derive(Debug, Args)]
#[command(after_help = "\
It is the same notification: the same event, body and idempotency key, signed again.

Example:
  postrider resend 019aa2f0-5b1c-8025-9519-0863916ea2df --wait")]
pub(crate) struct ResendArgs {
    #[command(flatten)]
    one: OneNotification,
    /// Waits until it has ended; exit code 1 when it is not SENT.
    #[arg(long)]
    wait: bool,
}

const COLUMNS: [ShownColumn; 8] = [
    (Column::whole("notification"), "/id"),
    (Column::whole("event").spare(2), "/eventId"),
    (Column::whole("event type"), "/eventType"),
    (Column::whole("status"), "/status"),
    (Column::whole("reason").spare(3), "/reason"),
    (Column::whole("paused by").spare(5), "/pausedBy"),
    (Column::whole("attempts").spare(1), "/attempts"),
    (Column::whole("accepted").spare(4), "/acceptedAt"),
];

const ROWS: [Shown; 11] = [
    ("event", "/eventId"),
    ("event type", "/eventType"),
    ("subscription", "/subscriptionId"),
    ("status", "/status"),
    ("reason", "/reason"),
    ("paused by", "/pausedBy"),
    ("attempts", "/attempts"),
    ("next attempt", "/nextAttemptAt"),
    ("accepted", "/acceptedAt"),
    ("updated", "/updatedAt"),
    ("ended", "/finishedAt"),
];

const ATTEMPTS: [ShownColumn; 7] = [
    (Column::whole("attempt"), "/number"),
    (Column::whole("began").spare(2), "/startedAt"),
    (Column::whole("ms").spare(1), "/millis"),
    (Column::whole("to").spare(3), "/request/url"),
    (Column::whole("result"), "/status"),
    (Column::whole("answer"), "/response/status"),
    (Column::prose("error"), "/error"),
];

/// Does what the command says.
pub(crate) async fn run(command: NotificationsCommand) -> anyhow::Result<()> {
    match command {
        NotificationsCommand::List(args) => list(*args).await,
        NotificationsCommand::Show(one) => {
            let document = find(&Portal::connect(&one.common.portal)?, one.id).await?;
            if one.common.json {
                return output::json(&document);
            }
            output::result(shown::record("notification", &document, ROWS))?;
            output::result(pretty::json(document["body"].as_str().unwrap_or_default()))?;
            Ok(())
        }
    }
}

async fn find(portal: &Portal, id: Uuid) -> anyhow::Result<Value> {
    portal.get(&format!("/notifications/{id}"), &()).await
}

async fn list(args: ListArgs) -> anyhow::Result<()> {
    let since = args
        .since
        .or_else(|| args.newer_than.map(|age| age.before(SystemClock.now())));
    let written = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let query = [
        ("status", args.status),
        ("eventType", args.event_types),
        ("since", since.map(written)),
        ("until", args.until.map(written)),
        ("limit", Some(args.limit.to_string())),
        ("cursor", args.cursor),
    ];
    let path = format!("/subscriptions/{}/notifications", args.subscription);
    let document: Value = Portal::connect(&args.common.portal)?.get(&path, &query).await?;
    shown::print(&document, args.common.json, COLUMNS, "no notification matches")
}

/// Shows what was tried, and what came of it.
pub(crate) async fn attempts(args: AttemptsArgs) -> anyhow::Result<()> {
    let AttemptsArgs { one } = args;
    let document = find(&Portal::connect(&one.common.portal)?, one.id).await?;
    let history = &document["history"];
    if one.common.json {
        return output::json(history);
    }
    output::note(standing(&document));
    if *history != json!([]) {
        output::result(shown::list(history, ATTEMPTS))?;
    }
    for attempt in history.as_array().into_iter().flatten() {
        let body = attempt["response"]["body"].as_str().unwrap_or_default();
        if !body.is_empty() {
            output::result(format_args!(
                "\nanswer to attempt {}:\n{}",
                cell(attempt, "/number"),
                pretty::indented(&pretty::json(body))
            ))?;
        }
    }
    Ok(())
}

fn standing(document: &Value) -> String {
    let reason = cell(document, "/reason");
    let reason = if reason.is_empty() {
        reason
    } else {
        format!(" ({reason})")
    };
    let attempts = match document["attempts"].as_u64().unwrap_or_default() {
        1 => "1 attempt".to_owned(),
        more => format!("{more} attempts"),
    };
    format!(
        "{} is {}{reason} after {attempts}",
        cell(document, "/id"),
        cell(document, "/status")
    )
}

/// Sends one again that has ended.
pub(crate) async fn resend(args: ResendArgs) -> anyhow::Result<()> {
    let (one, portal) = (&args.one, Portal::connect(&args.one.common.portal)?);
    let path = format!("/notifications/{}/resend", one.id);
    let document: Value = portal.post(&path, &json!({})).await?;
    if args.wait {
        let ended = until_ended(&portal, one.id).await;
        if one.common.json {
            output::json(&find(&portal, one.id).await?)?;
        } else if ended.is_ok() {
            output::result(standing(&find(&portal, one.id).await?))?;
        }
        return ended;
    }
    if one.common.json {
        return output::json(&document);
    }
    output::result(format_args!(
        "{} is sent again; `postrider attempts {}` shows what comes of it",
        one.id, one.id
    ))?;
    Ok(())
}

/// Waits until a notification has ended.
pub(super) async fn until_ended(portal: &Portal, id: Uuid) -> anyhow::Result<()> {
    let progress = Progress::waiting("waiting until it has ended");
    let mut told = String::new();
    loop {
        let document = look(portal, &format!("/notifications/{id}")).await?;
        let standing = standing(&document);
        match document["status"].as_str().unwrap_or_default() {
            "SENT" => {
                progress.note(standing);
                return Ok(());
            }
            "FAILED" | "GIVEN_UP" => bail!("{standing}; `postrider attempts {id}` shows what was answered"),
            "RETRY" | "SCHEDULED" if told != standing => {
                progress.note(format_args!(
                    "{standing}; next attempt {}",
                    cell(&document, "/nextAttemptAt")
                ));
                told = standing;
            }
            _ => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_fit_the_terminal() {
        let url = "https://hooks.reseller.example/postrider/notifications?tenant=4711";
        let history = json!([
            {"number": 1, "startedAt": "2026-11-21T12:00:00.123456Z", "millis": 15_003, "request": {"url": url},
             "status": "ERROR", "error": "no answer within 15 s, of which connecting to 203.0.113.7:443 took 12 ms"},
            {"number": 2, "startedAt": "2026-11-21T12:00:31.5Z", "millis": 42, "request": {"url": url}, "status": "OK",
             "response": {"status": 204}},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&history, ATTEMPTS)));
    }
}
