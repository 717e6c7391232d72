//! `postrider notifications resend`: many notifications of a subscription, of several, or of all, sent again at once.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::slice;
use std::time::{Duration, Instant};

use anyhow::bail;
use chrono::{DateTime, Utc};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use domain::counted::{number, of as counted};
use serde_json::{Value, json};
use uuid::Uuid;

use super::replay::{self, Again};
use super::{Common, identifier};
use crate::age::{Age, at_or_ago};
use crate::commands::outcome::{self, Outcome, OutcomeArgs};
use crate::commands::search::{self, status_code};
use crate::confirm::{Act, Yes};
use crate::output::{self, Column, Form};
use crate::portal::Portal;
use crate::shown::{self, Shown, ShownColumn, cell};

/// Most of all subscriptions together, as in the dashboard.
const OF_ALL_MAX: u64 = 10_000;

/// What `--wait` does here.
const WAIT: &str =
    "Waits until all are sent, and then for what becomes of them; exit code 4 if not all were delivered";

#[derive(Debug, Args)]
#[command(after_help = "\
They are the same notifications, with the same ids and bodies, the oldest event first. Without --status delivered ones are sent again too, test
events among them. At most 10,000 at once, after those that were sent again before; `postrider replay` takes more, and leaves delivered ones alone.
What is in RETRY is tried at once where --id names it, and all of it by `postrider subscriptions retry-now`.
Without a subscription it is of all that something is sent to, at most 10,000 together, and asks first, or needs --yes. Of several it counts
before anything is sent, and with --wait each has a line that says what became of its notifications.

Examples:
  postrider notifications resend 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status FAILED,GIVEN_UP --newer-than 2h --dry-run
  postrider notifications resend 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status FAILED,GIVEN_UP --newer-than 2h --wait
  postrider notifications resend 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status FAILED,GIVEN_UP --ended-since 1h --dry-run
  postrider notifications resend 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --code 5xx --per-second 5
  postrider notifications resend --code 5xx --ended-since 1h --dry-run
  postrider notifications resend --code 5xx --ended-since 1h --wait")]
#[command(mut_arg("wait", |wait| wait.help(WAIT)))]
pub(crate) struct ResendManyArgs {
    /// Of which subscriptions; of all that something is sent to if none is given.
    #[arg(value_name = "SUBSCRIPTION", value_parser = identifier)]
    subscriptions: Vec<Uuid>,
    /// The same as SUBSCRIPTION.
    #[arg(long = "subscription", value_name = "ID", value_parser = identifier, value_delimiter = ',',
        conflicts_with = "subscriptions")]
    of: Vec<Uuid>,
    /// These notifications of one subscription, those in RETRY at once; goes with no filter.
    #[arg(long = "id", value_name = "ID", value_parser = identifier, value_delimiter = ',',
        conflicts_with_all = ["status", "event_types", "code", "since", "until", "newer_than", "ended_since", "ended_until"])]
    ids: Vec<Uuid>,
    /// Of these statuses: SENT, FAILED, GIVEN_UP; of all three if none is given, and so delivered ones too.
    #[arg(long, value_delimiter = ',')]
    status: Vec<String>,
    /// Of these event types, such as domain.created.
    #[arg(
        long,
        value_name = "TYPES",
        value_delimiter = ',',
        visible_alias = "event-type"
    )]
    event_types: Vec<String>,
    /// The endpoint answered the last attempt with this status code, or with one of a class, such as 5xx.
    #[arg(long, value_name = "N", value_parser = status_code)]
    code: Option<String>,
    /// Of events that were accepted at this time or later; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "newer_than")]
    since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time; a time, or an age such as 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, visible_alias = "older-than")]
    until: Option<DateTime<Utc>>,
    /// Of events that were accepted less than this long ago, such as 2h.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// Delivered, failed or given up at this time or later, whenever the event was accepted; a time, or an age such as 1h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    ended_since: Option<DateTime<Utc>>,
    /// Delivered, failed or given up before this time; a time, or an age such as 10m.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    ended_until: Option<DateTime<Utc>>,
    /// Most of them that are sent in a second.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_second: Option<u32>,
    /// Only counts them.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    outcome: OutcomeArgs,
    #[command(flatten)]
    common: Common,
}

const ROWS: [Shown; 6] = [
    ("notifications", "/count"),
    ("left out as cancelled", "/skipped/cancelled"),
    ("sent anyhow", "/skipped/unfinished"),
    ("unknown", "/skipped/unknown"),
    ("a second, at most", "/perSecond"),
    ("seconds", "/seconds"),
];

impl ResendManyArgs {
    /// The subscriptions that are named, each once.
    fn named(&self) -> Vec<Uuid> {
        let mut named = [self.subscriptions.as_slice(), &self.of].concat();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// How long the outcome of these may be waited for by a command that began at `started`.
    fn patience(&self, started: Instant, resent: &[Value]) -> Duration {
        let seconds = resent.iter().filter_map(|resent| resent["seconds"].as_u64());
        let sending = Duration::from_secs(seconds.max().unwrap_or_default());
        self.outcome.within.left(started, self.outcome.patience, sending)
    }

    fn body(&self, now: DateTime<Utc>) -> Value {
        let written = |at: DateTime<Utc>| Value::from(search::written(at));
        let since = at_or_ago(self.since, self.newer_than, now);
        let listed = |list: &[String]| (!list.is_empty()).then(|| json!(list));
        let mut body = json!({ "dryRun": self.dry_run });
        for (name, value) in [
            ("ids", (!self.ids.is_empty()).then(|| json!(self.ids))),
            ("statuses", listed(&self.status)),
            ("eventTypes", listed(&self.event_types)),
            ("code", self.code.as_deref().map(Value::from)),
            ("since", since.map(written)),
            ("until", self.until.map(written)),
            ("endedSince", self.ended_since.map(written)),
            ("endedUntil", self.ended_until.map(written)),
            ("perSecond", self.per_second.map(Value::from)),
        ] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        body
    }

    /// What to do about what was counted.
    fn advice(&self, is_none: bool) -> &'static str {
        let by_acceptance = self.since.is_some() || self.until.is_some() || self.newer_than.is_some();
        let by_end = self.ended_since.is_some() || self.ended_until.is_some();
        if is_none && by_acceptance && !by_end {
            "the time is when events were accepted: --ended-since and --ended-until go by when notifications ended"
        } else {
            "without --dry-run they are"
        }
    }
}

const COUNTED: [ShownColumn; 3] = [
    (Column::whole("subscription"), "/subscriptionId"),
    (Column::whole("endpoint").spare(1), "/url"),
    (Column::whole("count"), "/count"),
];

const WAITED: [ShownColumn; 6] = [
    (Column::whole("subscription"), "/subscriptionId"),
    (Column::whole("endpoint").spare(1), "/url"),
    (Column::whole("count").spare(2), "/count"),
    (Column::whole("delivered"), "/outcome/delivered"),
    (Column::whole("waiting"), "/outcome/waiting"),
    (Column::whole("failed again"), "/outcome/failedAgain"),
];

/// Sends them again, or counts them.
pub(crate) async fn run(args: ResendManyArgs) -> anyhow::Result<ExitCode> {
    match args.named().as_slice() {
        [id] => of_one(&args, *id).await,
        named => of_several(&args, named).await,
    }
}

async fn of_one(args: &ResendManyArgs, id: Uuid) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let path = format!("/subscriptions/{id}/resends");
    let body = args.body(SystemClock.now());
    let portal = Portal::connect(&args.common.portal)?;
    let mut resent: Value = portal.post(&path, &body).await?;
    let count = resent["count"].as_u64().unwrap_or_default();
    if args.outcome.wait && count > 0 {
        let again = again(id.to_string(), &resent, &body);
        let patience = args.patience(started, slice::from_ref(&resent));
        resent["outcome"] = replay::together(&replay::wait_for(&portal, &[again], patience).await?);
    }
    let outcome = match &resent["outcome"] {
        Value::Null => None,
        outcome => Some(Outcome::read(outcome)?),
    };
    let form = args.common.form();
    form.print(&resent, || {
        let subscription = id.to_string();
        let mut table = shown::record_of(("subscription", &subscription), &resent, ROWS);
        for by in ["byStatus", "byEventType"] {
            for (name, count) in resent[by].as_object().into_iter().flatten() {
                table.add_row([output::harmless(name), count.to_string()]);
            }
        }
        if let Some(outcome) = &outcome {
            table.add_row(["outcome", outcome.sentence().as_str()]);
        }
        table
    })?;
    if form != Form::Json && outcome.is_none() {
        if args.dry_run {
            let is_none = count == 0;
            let count = counted(count, "notification", "notifications");
            output::note(format_args!(
                "{count} would be sent again; {}",
                args.advice(is_none)
            ));
        } else {
            output::note(done(id, &resent));
        }
    }
    if outcome.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(outcome::exit_code(outcome.as_ref(), &BTreeMap::new()))
}

/// What was done of a subscription, and what was left alone.
fn done(id: Uuid, resent: &Value) -> String {
    let number = |pointer: &str| {
        resent
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    };
    let (count, retries) = (number("/count"), number("/byStatus/RETRY"));
    let left = match number("/skipped/unfinished") {
        0 => String::new(),
        left => format!(
            "; {} sent anyhow",
            counted(left, "has not ended and is", "have not ended and are")
        ),
    };
    if count == 0 {
        return format!("nothing of {id} is sent again{left}");
    }
    let how = match retries {
        0 => "sent again one after the other".to_owned(),
        _ if retries == count => "tried at once".to_owned(),
        _ => format!(
            "sent again one after the other, {} at once",
            counted(retries, "that waited for a retry", "that waited for a retry")
        ),
    };
    let count = counted(count, "notification", "notifications");
    format!("{count} of {id} {how}{left}; --wait waits for what becomes of them")
}

/// What was sent again of a subscription, by what the portal answered to this body.
fn again(subscription: String, resent: &Value, body: &Value) -> Again {
    let written = |name: &str| body[name].as_str().map(str::to_owned);
    Again {
        subscription,
        since: written("since"),
        until: written("until"),
        began: cell(resent, "/at").parse().ok(),
        count: count_of(resent),
    }
}

/// Those of the subscriptions that are named, or of all that something is sent to, each asked for by itself; counted first.
async fn of_several(args: &ResendManyArgs, named: &[Uuid]) -> anyhow::Result<ExitCode> {
    if !args.ids.is_empty() {
        bail!("name one subscription: --id is of one");
    }
    let portal = Portal::connect(&args.common.portal)?;
    let mut body = args.body(SystemClock.now());
    body["dryRun"] = true.into();
    let mut rows = Vec::new();
    for of in subscriptions(&portal, named).await? {
        rows.push(ask(&portal, of, &body).await?);
    }
    rows.retain(|row| count_of(row) > 0);
    let mut outcome = None;
    if !(args.dry_run || rows.is_empty()) {
        if named.is_empty() {
            agree(args, &rows)?;
        }
        let started = Instant::now();
        body["dryRun"] = false.into();
        send(&portal, &mut rows, &body).await?;
        if args.outcome.wait {
            let again: Vec<Again> = rows
                .iter()
                .map(|row| again(cell(row, "/subscriptionId"), row, &body))
                .collect();
            let patience = args.patience(started, &rows);
            let outcomes = replay::wait_for(&portal, &again, patience).await?;
            outcome = Some(replay::together(&outcomes));
            for (row, outcome) in rows.iter_mut().zip(outcomes) {
                row["outcome"] = outcome;
            }
        }
    }
    tell(args, named, (&rows, outcome))
}

/// The identifiers and URLs of the subscriptions that are named, or of all that something is sent to.
async fn subscriptions(portal: &Portal, named: &[Uuid]) -> anyhow::Result<Vec<(String, String)>> {
    let mut found: Vec<Value> = Vec::new();
    for id in named {
        found.push(portal.get(&format!("/subscriptions/{id}"), &()).await?);
    }
    if named.is_empty() {
        found = portal.all_since("/subscriptions", None).await?;
        found.retain(|one| matches!(one["state"].as_str(), Some("ACTIVE" | "DEGRADED")));
    }
    let of = |one: &Value| (cell(one, "/id"), cell(one, "/url"));
    Ok(found.iter().map(of).collect())
}

/// Sends those of each row again; what the portal answers takes its place.
async fn send(portal: &Portal, rows: &mut [Value], body: &Value) -> anyhow::Result<()> {
    let mut done = 0;
    for row in rows {
        let of = (cell(row, "/subscriptionId"), cell(row, "/url"));
        match ask(portal, of, body).await {
            Ok(resent) => *row = resent,
            Err(refused) => {
                let done = counted(done, "notification", "notifications");
                output::note(format_args!(
                    "{done} of other subscriptions sent again before this:"
                ));
                return Err(refused);
            }
        }
        done += count_of(row);
    }
    Ok(())
}

/// Says how many were sent again, and what became of them where that was waited for.
fn tell(
    args: &ResendManyArgs,
    named: &[Uuid],
    (rows, outcome): (&[Value], Option<Value>),
) -> anyhow::Result<ExitCode> {
    let count: u64 = rows.iter().map(count_of).sum();
    let mut document = json!({ "dryRun": args.dry_run, "count": count, "items": rows });
    let told = outcome.as_ref().map(Outcome::read).transpose()?;
    if let Some(outcome) = outcome {
        document["outcome"] = outcome;
    }
    let form = args.common.form();
    form.print(&document, || match &told {
        Some(_) => shown::list(&document["items"], WAITED),
        None => shown::list(&document["items"], COUNTED),
    })?;
    if form != Form::Json {
        let count = counted(count, "notification", "notifications");
        let of = match named.len() {
            0 => "all subscriptions".to_owned(),
            several => counted(several as u64, "subscription", "subscriptions"),
        };
        if args.dry_run {
            let advice = args.advice(rows.is_empty());
            output::note(format_args!("{count} of {of} would be sent again; {advice}"));
        } else if let Some(told) = &told {
            output::note(format_args!("{count} of {of} sent again: {}", told.sentence()));
        } else if rows.is_empty() {
            output::note(format_args!("nothing of {of} is sent again"));
        } else {
            output::note(format_args!(
                "{count} of {of} sent again; --wait waits for what becomes of them"
            ));
        }
    }
    match told {
        None => Ok(ExitCode::SUCCESS),
        told => Ok(outcome::exit_code(told.as_ref(), &BTreeMap::new())),
    }
}

fn count_of(row: &Value) -> u64 {
    row["count"].as_u64().unwrap_or_default()
}

/// What a resend of one subscription is answered, with which one it is.
async fn ask(portal: &Portal, (id, url): (String, String), body: &Value) -> anyhow::Result<Value> {
    let mut answer: Value = portal.post(&format!("/subscriptions/{id}/resends"), body).await?;
    answer["subscriptionId"] = id.into();
    answer["url"] = url.into();
    Ok(answer)
}

/// Makes sure that so many of so many subscriptions are meant.
fn agree(args: &ResendManyArgs, rows: &[Value]) -> anyhow::Result<()> {
    let count: u64 = rows.iter().map(count_of).sum();
    let notifications = counted(count, "notification", "notifications");
    if count > OF_ALL_MAX {
        bail!(
            "{notifications} of all subscriptions match, more than {} together: restrict them further, or name a subscription",
            number(OF_ALL_MAX)
        );
    }
    let subscriptions = counted(rows.len() as u64, "subscription", "subscriptions");
    let act = Act {
        what: &format!("send {notifications} of {subscriptions} again"),
        effect: "",
        instead: "--dry-run to count them",
    };
    args.yes.confirm(&act, || ())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ResendManyArgs,
    }

    #[test]
    fn what_is_tried_at_once_and_what_is_left_alone_is_said() {
        let id = Uuid::nil();
        let said = |count: u64, retries: u64, unfinished: u64| {
            let by_status = json!({"FAILED": count - retries, "RETRY": retries});
            let skipped = json!({ "unfinished": unfinished });
            done(
                id,
                &json!({"count": count, "byStatus": by_status, "skipped": skipped}),
            )
        };
        let wait = "; --wait waits for what becomes of them";
        assert_eq!(
            said(2, 0, 0),
            format!("2 notifications of {id} sent again one after the other{wait}")
        );
        assert_eq!(
            said(1, 1, 0),
            format!("1 notification of {id} tried at once{wait}")
        );
        assert_eq!(
            said(3, 1, 2),
            format!(
                "3 notifications of {id} sent again one after the other, 1 that waited for a retry at once; 2 have not ended and are sent \
                 anyhow{wait}"
            )
        );
        assert_eq!(
            said(0, 0, 1),
            format!("nothing of {id} is sent again; 1 has not ended and is sent anyhow")
        );
    }

    #[test]
    fn what_is_given_is_asked_for_and_nothing_else() {
        let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let body = |more: &[&str]| {
            let line = ["resend", id].into_iter().chain(more.iter().copied());
            Line::parse_from(line).args.body(now)
        };
        assert_eq!(
            body(&["--status", "FAILED,GIVEN_UP", "--newer-than", "2h", "--dry-run"]),
            json!({"dryRun": true, "statuses": ["FAILED", "GIVEN_UP"], "since": "2026-11-21T10:00:00Z"})
        );
        assert_eq!(
            body(&["--id", id, "--per-second", "5"]),
            json!({"dryRun": false, "ids": [id], "perSecond": 5})
        );
        assert_eq!(body(&["--code", "5XX"]), json!({"dryRun": false, "code": "5xx"}));
        let advice = |more: &[&str], is_none| {
            let line = ["resend", id].into_iter().chain(more.iter().copied());
            Line::parse_from(line).args.advice(is_none)
        };
        assert!(advice(&["--newer-than", "1h"], true).contains("--ended-since"));
        for (more, is_none) in [(["--newer-than", "1h"], false), (["--ended-since", "1h"], true)] {
            assert_eq!(advice(&more, is_none), "without --dry-run they are");
        }
        let ended = [
            "--ended-since",
            "2026-11-21T11:00:00Z",
            "--ended-until",
            "2026-11-21T11:30:00Z",
        ];
        assert_eq!(
            body(&ended),
            json!({"dryRun": false, "endedSince": "2026-11-21T11:00:00Z", "endedUntil": "2026-11-21T11:30:00Z"})
        );
    }
}
