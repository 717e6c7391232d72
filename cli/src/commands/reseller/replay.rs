//! `postrider replay`: sends again what a subscription missed.

use std::time::Duration;

use anyhow::bail;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Common, identifier, look};
use crate::age::Age;
use crate::output;
use crate::portal::Portal;
use crate::progress::Progress;
use crate::shown::{self, Shown, cell};

/// How often a replay is looked at that is waited for.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(after_help = "\
What FAILED or was GIVEN_UP is sent again, and what never was made is made; everything else is left alone.

Examples:
  postrider replay 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --newer-than 2h --wait
  postrider replay 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --since 2026-11-21T12:00:00Z --until 2026-11-21T14:00:00Z")]
pub(crate) struct ReplayArgs {
    /// Of which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    /// Of events that were accepted at this time or later, such as 2026-11-21T12:00:00Z.
    #[arg(
        long,
        value_name = "TIME", value_parser = crate::age::time,
        required_unless_present = "newer_than",
        conflicts_with = "newer_than"
    )]
    since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time; until now when not given.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time)]
    until: Option<DateTime<Utc>>,
    /// Of events that were accepted less than this long ago, such as 2h.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// Waits until it has been through all events.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    common: Common,
}

const ROWS: [Shown; 7] = [
    ("subscription", "/subscriptionId"),
    ("status", "/status"),
    ("since", "/since"),
    ("until", "/until"),
    ("a second, at most", "/perSecond"),
    ("events looked at", "/examined"),
    ("notifications", "/replayed"),
];

/// Does what the command says.
pub(crate) async fn run(args: ReplayArgs) -> anyhow::Result<()> {
    let portal = Portal::connect(&args.common.portal)?;
    let since = args
        .since
        .or_else(|| args.newer_than.map(|age| age.before(SystemClock.now())));
    let written = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let mut body = json!({ "since": since.map(written) });
    if let Some(until) = args.until {
        body["until"] = written(until).into();
    }
    let path = format!("/subscriptions/{}/replays", args.subscription);
    let mut replay: Value = portal.post(&path, &body).await?;
    let path = format!("{path}/{}", cell(&replay, "/id"));
    let progress = args.wait.then(|| Progress::waiting("replaying"));
    while let Some(progress) = &progress
        && replay["status"] == "RUNNING"
    {
        let looked_at = cell(&replay, "/examined");
        progress.say(&format!("{looked_at} events looked at"));
        tokio::time::sleep(POLL).await;
        replay = look(&portal, &path).await?;
    }
    drop(progress);
    if args.common.json {
        output::json(&replay)?;
    } else {
        output::result(shown::record("replay", &replay, ROWS))?;
    }
    if args.wait && replay["status"] != "COMPLETED" {
        bail!("the replay ended as {}", cell(&replay, "/status"));
    }
    Ok(())
}
