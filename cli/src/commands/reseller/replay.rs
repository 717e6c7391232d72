//! `postrider replay`: sends again what a subscription missed.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use clap::{ArgGroup, Args, Subcommand};
use domain::clock::{Clock as _, SystemClock};
use domain::counted::of as counted;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Common, identifier, look, obstacle};
use crate::age::{Age, at_or_ago};
use crate::commands::outcome::{self, NOT_ALL, NotCome, Outcome, OutcomeArgs};
use crate::commands::search;
use crate::output::{self, Column};
use crate::part::Part;
use crate::portal::{PAGE_MAX, Portal};
use crate::progress::Progress;
use crate::shown::{self, Shown, ShownColumn, cell};

/// How often a replay is looked at that is waited for.
const POLL: Duration = Duration::from_millis(500);
/// A replay that has not got on for so long may stand still because of its subscription.
const STANDS: Duration = Duration::from_secs(2);
/// The statuses of what has not been delivered.
const NOT_DELIVERED: &str = "SCHEDULED,PENDING,IN_MEMORY,RETRY,FAILED,GIVEN_UP";
/// What is said besides when nothing is sent again.
const LEFT_OUT: &str = "test events are left out, and `postrider resend` sends one of those again";
/// As many parts of the list are looked at for the outcome; of a longer one it is that of a sample.
const PARTS_MAX: u32 = 10;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("from").required(true))]
#[command(after_help = "\
What FAILED or was GIVEN_UP is sent again, and what never was made is made, also of events that were accepted before there was the subscription;
everything else is left alone, test events too. It reaches back as far as the installation lets it, 30 days by default: `postrider replay $ID --newer-than 30d --dry-run` counts first.

Examples:
  postrider replay 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --newer-than 2h --dry-run
  postrider replay 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --newer-than 2h --wait
  postrider replay 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --since 2026-11-21T12:00:00Z --until 2026-11-21T14:00:00Z")]
pub(crate) struct ReplayArgs {
    /// Of which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    /// Of events that were accepted at this time or later; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, group = "from")]
    since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time, which may be an age such as 2h; until now when not given.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, visible_alias = "older-than")]
    until: Option<DateTime<Utc>>,
    /// Of events that were accepted less than this long ago, such as 2h.
    #[arg(long, value_name = "AGE", group = "from")]
    newer_than: Option<Age>,
    /// Of what was missed in these ways alone: FAILED, GIVEN_UP, or MISSED for events that there is no notification of.
    #[arg(long, value_delimiter = ',')]
    status: Vec<String>,
    /// Of these event types alone, such as domain.created.
    #[arg(
        long,
        value_name = "TYPES",
        value_delimiter = ',',
        visible_alias = "event-type"
    )]
    event_types: Vec<String>,
    /// Only counts what would be sent again, of the first 10,000 events of the time.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    outcome: OutcomeArgs,
    #[command(flatten)]
    common: Common,
}

const ROWS: [Shown; 11] = [
    ("subscription", "/subscriptionId"),
    ("status", "/status"),
    ("since", "/since"),
    ("until", "/until"),
    ("a second, at most", "/perSecond"),
    ("events examined", "/examined"),
    ("notifications", "/replayed"),
    ("left out as cancelled", "/cancelled"),
    ("last got on", "/updatedAt"),
    ("ended", "/finishedAt"),
    ("cancelled by", "/cancelledBy"),
];

const PREVIEW: [Shown; 6] = [
    ("since", "/since"),
    ("until", "/until"),
    ("a second, at most", "/perSecond"),
    ("events examined", "/examined"),
    ("notifications", "/count"),
    ("left out as cancelled", "/cancelled"),
];

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider replays list 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider replays cancel 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d 01a1fd84-191a-7187-8c92-644d9a28fa8b")]
pub(crate) enum ReplaysCommand {
    /// Lists them, the newest first.
    #[command(visible_alias = "ls")]
    List {
        /// Of which subscription.
        #[arg(value_parser = identifier)]
        subscription: Uuid,
        /// In this status.
        #[arg(long, ignore_case = true, value_parser = ["RUNNING", "COMPLETED", "CANCELLED"])]
        status: Option<String>,
        #[command(flatten)]
        part: Part,
        #[command(flatten)]
        common: Common,
    },
    /// Shows how far one is.
    Show(OneReplay),
    /// Ends one that runs; what it has sent again stays so.
    Cancel(OneReplay),
}

#[derive(Debug, Args)]
pub(crate) struct OneReplay {
    /// Of which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    /// The replay, from `postrider replays list`.
    #[arg(value_parser = identifier)]
    replay: Uuid,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 7] = [
    (Column::whole("replay"), "/id"),
    (Column::whole("status"), "/status"),
    (Column::time("since").spare(2), "/since"),
    (Column::time("until").spare(3), "/until"),
    (Column::whole("events examined").spare(4), "/examined"),
    (Column::whole("notifications"), "/replayed"),
    (Column::time("ended").spare(1), "/finishedAt"),
];

/// Shows and ends replays.
pub(crate) async fn replays(command: ReplaysCommand) -> anyhow::Result<()> {
    let (one, is_cancelled) = match command {
        ReplaysCommand::List {
            subscription,
            status,
            part,
            common,
        } => {
            let path = format!("/subscriptions/{subscription}/replays");
            let query = search::query([("status", status.map(|status| status.to_uppercase()))]);
            let portal = Portal::connect(&common.portal)?;
            let nothing = |_: &Value| "there is no replay".to_owned();
            let pages = part.of(&portal, &path, query);
            shown::print_pages(pages, common.form(), COLUMNS, nothing).await?;
            return Ok(());
        }
        ReplaysCommand::Show(one) => (one, false),
        ReplaysCommand::Cancel(one) => (one, true),
    };
    let portal = Portal::connect(&one.common.portal)?;
    let path = format!("/subscriptions/{}/replays/{}", one.subscription, one.replay);
    if is_cancelled {
        portal.delete(&path).await?;
    }
    let document: Value = portal.get(&path, &()).await?;
    let print = || shown::record("replay", &document, ROWS);
    one.common.form().print(&document, print)?;
    if document["status"] == "RUNNING" {
        let subscription = look(&portal, &format!("/subscriptions/{}", one.subscription), &()).await?;
        if let Some(obstacle) = obstacle(&subscription) {
            output::note(format_args!("the replay stands still: {obstacle}"));
        }
    }
    Ok(())
}

/// Does what the command says.
pub(crate) async fn run(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let since = at_or_ago(args.since, args.newer_than, SystemClock.now());
    let since = since.context("invariant: clap has seen to it that one of both is given")?;
    let started = Instant::now();
    let portal = Portal::connect(&args.common.portal)?;
    let mut body = json!({ "since": search::written(since) });
    if let Some(until) = args.until {
        body["until"] = search::written(until).into();
    }
    for (name, list) in [("statuses", &args.status), ("eventTypes", &args.event_types)] {
        if !list.is_empty() {
            body[name] = json!(list);
        }
    }
    let path = format!("/subscriptions/{}/replays", args.subscription);
    if args.dry_run {
        body["dryRun"] = true.into();
        let preview: Value = portal.post(&path, &body).await?;
        preview_of(&args, &preview)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut replay: Value = portal.post(&path, &body).await?;
    let (id, of) = (cell(&replay, "/id"), args.subscription);
    output::note(format_args!(
        "replay {id} runs; `postrider replays show {of} {id}` shows how far it is, and `postrider replays cancel {of} {id}` ends it"
    ));
    if args.outcome.wait {
        let not_come = [
            format!("the replay {id} has not been through"),
            format!("`postrider replays show {of} {id}` shows how far it is"),
        ];
        let ended = until_ended(&portal, of, &id);
        replay = args.outcome.within.limit(ended, not_come).await?;
        let patience = args
            .outcome
            .within
            .left(started, args.outcome.patience, Duration::ZERO);
        let outcomes = wait_for(&portal, &[Again::of_replay(&replay)], patience).await?;
        replay["outcome"] = together(&outcomes);
    }
    let outcome = match &replay["outcome"] {
        Value::Null => None,
        outcome => Some(Outcome::read(outcome)?),
    };
    args.common.form().print(&replay, || {
        let mut record = shown::record("replay", &replay, ROWS);
        if let Some(outcome) = &outcome {
            record.add_row(["outcome", outcome.sentence().as_str()]);
        }
        record
    })?;
    if args.outcome.wait && replay["status"] != "COMPLETED" {
        bail!("the replay ended as {}", cell(&replay, "/status"));
    }
    if !args.outcome.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let others = replay["outcome"]["others"].as_u64().unwrap_or_default();
    if others > 0 {
        output::note(format_args!(
            "{} of that time {} not delivered yet and {} turn or a retry anyhow; `postrider notifications list {of} --status \
             SCHEDULED,PENDING,RETRY` lists them, and `postrider resend` has a retry made at once",
            counted(others, "more notification", "more notifications"),
            if others == 1 { "is" } else { "are" },
            if others == 1 {
                "waits for its"
            } else {
                "wait for their"
            },
        ));
        if replay["replayed"] == 0 {
            return Ok(ExitCode::from(NOT_ALL));
        }
    } else if replay["replayed"] == 0 {
        output::note(nothing(&args, &replay));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(outcome::exit_code(outcome.as_ref(), &BTreeMap::new()))
}

/// What is said when nothing is sent again: of a replay that is through and left nothing alone that waits, or of a count.
fn nothing(args: &ReplayArgs, document: &Value) -> String {
    let count = |name: &str| document[name].as_u64().unwrap_or_default();
    let examined = counted(count("examined"), "event", "events");
    let is_of_all = args.status.is_empty() && args.event_types.is_empty();
    let why = if count("examined") == 0 {
        "no event was accepted in that time".to_owned()
    } else if is_of_all {
        let waits = if args.dry_run { " or is on its way" } else { "" };
        let cancelled = if count("cancelled") > 0 {
            ", or was cancelled"
        } else {
            ""
        };
        format!(
            "what the subscription gets of the {examined} of that time was delivered already{waits}{cancelled}"
        )
    } else {
        format!("none of the {examined} of that time matches")
    };
    format!("nothing is to be sent again: {why}; {LEFT_OUT}")
}

/// Shows what a replay would send again.
fn preview_of(args: &ReplayArgs, preview: &Value) -> anyhow::Result<()> {
    let subscription = args.subscription.to_string();
    args.common.form().print(preview, || {
        let mut table = shown::record_of(("subscription", &subscription), preview, PREVIEW);
        for by in ["byStatus", "byEventType"] {
            for (name, count) in preview[by].as_object().into_iter().flatten() {
                table.add_row([output::harmless(name), count.to_string()]);
            }
        }
        table
    })?;
    if preview["isWhole"] == false {
        output::note("there are more events in that time than were counted");
    } else if preview["count"] == 0 {
        output::note(nothing(args, preview));
    }
    Ok(())
}

/// Waits until a replay has ended.
///
/// # Errors
///
/// [`NotCome`] when it does not go on because its subscription gets nothing.
async fn until_ended(portal: &Portal, subscription: Uuid, id: &str) -> anyhow::Result<Value> {
    let progress = Progress::waiting("replaying");
    let path = format!("/subscriptions/{subscription}/replays/{id}");
    let (mut examined, mut moved) = (Value::Null, Instant::now());
    loop {
        let replay = look(portal, &path, &()).await?;
        if replay["status"] != "RUNNING" {
            return Ok(replay);
        }
        if replay["examined"] != examined {
            examined = replay["examined"].clone();
            moved = Instant::now();
        } else if moved.elapsed() >= STANDS {
            let subscription = look(portal, &format!("/subscriptions/{subscription}"), &()).await?;
            if let Some(obstacle) = obstacle(&subscription) {
                let of = cell(&subscription, "/id");
                let ends = format!("`postrider replays cancel {of} {id}` ends it");
                let text = format!("{obstacle}. Until then the replay {id} stands still; {ends}");
                return Err(NotCome(text).into());
            }
            moved = Instant::now();
        }
        let examined = replay["examined"].as_u64().unwrap_or_default();
        progress.say(&counted(examined, "event examined", "events examined"));
        tokio::time::sleep(POLL).await;
    }
}

/// What was sent again of a subscription.
pub(super) struct Again {
    pub(super) subscription: String,
    /// Of events that were accepted at this time or later.
    pub(super) since: Option<String>,
    /// Of events that were accepted before this time.
    pub(super) until: Option<String>,
    /// When it began, by the clock of the portal.
    pub(super) began: Option<DateTime<Utc>>,
    /// How many.
    pub(super) count: u64,
}

impl Again {
    fn of_replay(replay: &Value) -> Self {
        Self {
            subscription: cell(replay, "/subscriptionId"),
            since: Some(cell(replay, "/since")),
            until: Some(cell(replay, "/until")),
            began: cell(replay, "/createdAt").parse().ok(),
            count: replay["replayed"].as_u64().unwrap_or_default(),
        }
    }
}

/// Waits for what becomes of all that was sent again, and tells what may keep the rest from being sent. Returns the outcome of each.
pub(super) async fn wait_for(
    portal: &Portal,
    again: &[Again],
    patience: Duration,
) -> anyhow::Result<Vec<Value>> {
    let mut outcomes = vec![Value::Null; again.len()];
    outcome::wait(patience, async || {
        look_at_each(portal, again, &mut outcomes).await
    })
    .await?;
    for (again, outcome) in again.iter().zip(&outcomes) {
        if outcome["waiting"] != 0 {
            let path = format!("/subscriptions/{}", again.subscription);
            let subscription = look(portal, &path, &()).await?;
            obstacle(&subscription).into_iter().for_each(output::note);
        }
    }
    Ok(outcomes)
}

/// Looks again at those of which something waits, or which were not looked at before; returns the outcome of all.
async fn look_at_each(
    portal: &Portal,
    again: &[Again],
    outcomes: &mut [Value],
) -> anyhow::Result<Option<Value>> {
    for (again, outcome) in again.iter().zip(outcomes.iter_mut()) {
        if outcome["waiting"] != 0 {
            *outcome = outcome_of(portal, again).await?;
        }
    }
    Ok(Some(together(outcomes)))
}

/// Several outcomes as one.
pub(super) fn together(outcomes: &[Value]) -> Value {
    let sum = |name: &str| -> u64 {
        let counts = outcomes.iter().filter_map(|outcome| outcome[name].as_u64());
        counts.sum()
    };
    json!({
        "delivered": sum("delivered"), "waiting": sum("waiting"), "failedAgain": sum("failedAgain"), "cancelled": sum("cancelled"),
        "gone": sum("gone"), "examined": sum("examined"), "whole": outcomes.iter().all(|outcome| outcome["whole"] == true),
        "byFingerprint": [], "others": sum("others"),
    })
}

/// What became of what was sent again, in the form in which jobs have it. Of the notifications of its time those are
/// counted that have not been delivered and that changed since it began, as many as were sent again at most: others, which were being tried
/// again anyhow, cannot be told from them; those that were left alone are `others`.
async fn outcome_of(portal: &Portal, again: &Again) -> anyhow::Result<Value> {
    let (began, count) = (again.began, again.count);
    let path = format!("/subscriptions/{}/notifications", again.subscription);
    let (mut waiting, mut failed, mut examined, mut others) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut cursor = None;
    for part in 1.. {
        let query = [
            ("status", Some(NOT_DELIVERED.to_owned())),
            ("since", again.since.clone()),
            ("until", again.until.clone()),
            ("limit", Some(PAGE_MAX.to_owned())),
            ("cursor", cursor),
        ];
        let page = look(portal, &path, &query).await?;
        for notification in shown::items(&page["items"]) {
            examined += 1;
            let changed: Option<DateTime<Utc>> = cell(notification, "/updatedAt").parse().ok();
            match notification["status"].as_str() {
                Some("FAILED" | "GIVEN_UP") if changed < began => {}
                _ if changed < began => others += 1,
                Some("FAILED" | "GIVEN_UP") => failed += 1,
                _ => waiting += 1,
            }
        }
        cursor = page["next"].as_str().map(str::to_owned);
        if cursor.is_none() || part == PARTS_MAX {
            break;
        }
    }
    failed = failed.min(count);
    others += waiting.saturating_sub(count - failed);
    waiting = waiting.min(count - failed);
    Ok(json!({
        "delivered": count - failed - waiting, "waiting": waiting, "failedAgain": failed, "cancelled": 0, "gone": 0,
        "examined": examined, "whole": cursor.is_none(), "byFingerprint": [], "others": others,
    }))
}
