//! `postrider cancel`: not sending what has not been sent yet.

use anyhow::{Context as _, bail};
use chrono::{DateTime, TimeDelta, Utc};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::clock::{Clock as _, SystemClock};
use domain::counted::{number, of};
use domain::reason::WAITS_FOR;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::jobs::options;
use super::search::{self, LastAnswer};
use crate::api::Api;
use crate::confirm::{Act, Yes};
use crate::operator::Common;
use crate::output::{self, JsonArgs};
use crate::web;

/// What of the reseller lane is cancelled: one, and several.
pub(crate) const NOTIFICATIONS: [&str; 2] = [
    "notification that waits and matches",
    "notifications that wait and match",
];

#[derive(Debug, Subcommand)]
pub(crate) enum CancelCommand {
    /// A push that waits or is queued.
    Push(CancelArgs),
    /// A notification that waits or is queued: one event for one subscription.
    Notification(CancelArgs),
    /// All pushes or notifications that wait and match, at most 5,000 at once; with --all until none is left.
    #[command(after_help = "Examples:
  postrider cancel waiting --lane push --prototype campaign-2026-11 --dry-run
  postrider cancel waiting --lane push --prototype campaign-2026-11 --note 'called off' --yes --all
  postrider cancel waiting --lane reseller --reseller acme --status SCHEDULED --note 'by their request' --yes
  postrider cancel waiting --lane reseller --with-url hooks.acme.example --code 5xx --note 'the endpoint is gone' --dry-run")]
    Waiting(Box<WaitingArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct WaitingArgs {
    /// Of which lane.
    #[arg(long, value_parser = PossibleValuesParser::new(["push", "reseller"]))]
    lane: String,
    /// In this status.
    #[arg(long, ignore_case = true,
          value_parser = PossibleValuesParser::new(["SCHEDULED", "PENDING", "IN_MEMORY", "RETRY"]))]
    status: Option<String>,
    /// Pushes of this message prototype.
    #[arg(long, value_name = "KEY")]
    prototype: Option<String>,
    /// Pushes for devices of this platform.
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(["IOS", "ANDROID"]))]
    platform: Option<String>,
    /// Notifications of this reseller.
    #[arg(long, value_name = "ID")]
    reseller: Option<String>,
    /// Notifications of this subscription.
    #[arg(long, value_name = "ID")]
    subscription: Option<Uuid>,
    /// Notifications of subscriptions with this in their URL.
    #[arg(long, value_name = "TEXT", conflicts_with = "subscription")]
    with_url: Option<String>,
    /// Told with this reason in the lists of what waits; of pushes REPLAYED alone.
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(WAITS_FOR))]
    reason: Option<String>,
    /// Notifications of events of this type.
    #[arg(long, value_name = "NAME")]
    event_type: Option<String>,
    #[command(flatten)]
    answer: LastAnswer,
    /// Accepted at this time or later; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    since: Option<DateTime<Utc>>,
    /// Accepted before this time; a time, or an age such as 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    until: Option<DateTime<Utc>>,
    /// Goes on with what is left, 5,000 after 5,000, until nothing matches that was accepted before the command was given.
    #[arg(long)]
    all: bool,
    /// Count, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Why; kept in the audit log and with each dead letter.
    #[arg(long, required_unless_present = "dry_run")]
    note: Option<String>,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

impl WaitingArgs {
    fn body(&self) -> Value {
        let upper = |word: &Option<String>| word.as_deref().map(str::to_uppercase);
        let filter = [
            ("status", json!(upper(&self.status))),
            ("prototype", json!(self.prototype)),
            ("platform", json!(upper(&self.platform))),
            ("reseller", json!(self.reseller)),
            ("subscription", json!(self.subscription)),
            ("url", json!(self.with_url)),
            ("reason", json!(upper(&self.reason))),
            ("eventType", json!(self.event_type)),
            ("since", json!(self.since)),
            ("until", json!(self.until)),
        ];
        let filter = filter.into_iter().filter(|(_, value)| !value.is_null());
        let mut filter: Map<_, _> = filter.map(|(name, value)| (name.to_owned(), value)).collect();
        filter.extend(self.answer.query());
        json!({"lane": self.lane, "filter": filter, "note": self.note, "dryRun": self.dry_run})
    }
}

/// How far it goes where more match than are cancelled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// No further.
    Once,
    /// Until none is left.
    All,
}

fn count(document: &Value, name: &str) -> u64 {
    document[name].as_u64().unwrap_or_default()
}

/// How many more match, as far as they were counted; portals do not count them.
fn left(document: &Value) -> Option<String> {
    let left = document["left"].as_u64().filter(|left| *left > 0)?;
    let least = match document["leftAtLeast"] == json!(true) {
        true => "at least ",
        false => "",
    };
    Some(format!("{least}{}", number(left)))
}

/// What is said where more may match than were found.
pub(crate) fn more(document: &Value, is_dry: bool) -> String {
    match (document["more"] == json!(true), document["matching"] == json!(0)) {
        (false, _) => String::new(),
        (true, true) => {
            "; not all were looked at: restrict it further, by --status, --since or --until".to_owned()
        }
        (true, false) => match (left(document), is_dry) {
            (Some(left), true) => format!("; {left} more match than are cancelled at once"),
            (Some(left), false) => format!("; {left} more match: give the command again, or with --all"),
            (None, true) => "; more may match than are cancelled at once".to_owned(),
            (None, false) => "; more may match: give the command again".to_owned(),
        },
    }
}

/// What is said of those that had been delivered and were to be sent again.
pub(crate) fn delivered(document: &Value) -> String {
    match document["delivered"].as_u64().unwrap_or_default() {
        0 => String::new(),
        delivered => format!(
            ", {} not sent again",
            of(
                delivered,
                "of them stays delivered and is",
                "of them stay delivered and are"
            )
        ),
    }
}

/// Cancels what waits and matches, once it is confirmed how much that is; a dry run counts it. `what` names one and more of them, `which` are the
/// options that chose them. Returns the answer, which is the count alone where nothing matches.
pub(crate) async fn cancel_many(
    api: &Api,
    path: &str,
    body: &Value,
    (what, which): ([&str; 2], &str),
    (yes, extent): (Yes, Extent),
) -> anyhow::Result<Value> {
    let mut body = body.clone();
    if body["dryRun"] != true && !yes.is_given() {
        let mut preview = body.clone();
        preview["dryRun"] = true.into();
        let counted: Value = api.post(path, &preview).await?;
        let mut matching = count(&counted, "matching");
        if matching == 0 {
            return Ok(counted);
        }
        let mut least = "";
        if extent == Extent::All {
            matching += count(&counted, "left");
            if counted["leftAtLeast"] == true {
                least = "at least ";
            }
        }
        let [one, more] = what;
        let sent = if matching == 1 {
            "it is never"
        } else {
            "none of them is ever"
        };
        let act = Act {
            what: &format!("cancel {least}{} {which}", of(matching, one, more)),
            effect: &effect(sent, what == NOTIFICATIONS),
            instead: "--dry-run to count without cancelling",
        };
        yes.confirm(&act, || ())?;
        let newest = counted["newest"].as_str().unwrap_or_default();
        let newest = newest.parse::<DateTime<Utc>>();
        let newest = newest.context("the API did not say how new what matches is")?;
        only_up_to(&mut body, newest);
    }
    api.post(path, &body).await
}

/// Leaves out what is accepted after the newest that was counted, while the question waits: it is not what was said yes to. An end that was given
/// stays.
fn only_up_to(body: &mut Value, newest: DateTime<Utc>) {
    // Identifiers know milliseconds, and the end itself is left out.
    if let Some(after) = newest.checked_add_signed(TimeDelta::milliseconds(1)) {
        only_before(body, after);
    }
}

/// Leaves out what is accepted at this time or later. An end that was given stays.
fn only_before(body: &mut Value, end: DateTime<Utc>) {
    let filter = if body["filter"].is_object() {
        &mut body["filter"]
    } else {
        body
    };
    if filter["until"].is_null() {
        filter["until"] = search::written(end).into();
    }
}

/// Makes sure that one is meant, of a `kind`: a push or a notification. `shows` is the command that tells of it.
pub(crate) fn confirm_one(yes: Yes, (kind, id): (&str, Uuid), shows: &str) -> anyhow::Result<()> {
    let act = Act {
        what: &format!("cancel the {kind} {id}"),
        effect: &effect("it is never", kind == "notification"),
        instead: &format!("`postrider {shows} {id}` to see what it waits for"),
    };
    yes.confirm(&act, || ())
}

/// What follows for what is cancelled. `sent` says of which that it is never sent.
fn effect(sent: &str, is_notification: bool) -> String {
    // No other lane sends again what was delivered.
    let delivered = if is_notification {
        "; what had been delivered before stays so"
    } else {
        ""
    };
    format!("{sent} sent then, not by a replay or a resend either{delivered}")
}

/// Goes on after what came `first` of it until nothing more matches, or nothing more can be cancelled. Each time has its own entry in the audit
/// log. Returns what came of all of it.
async fn go_on(api: &Api, path: &str, body: &Value, first: Value) -> anyhow::Result<Value> {
    let (mut all, mut last) = (first.clone(), first);
    while last["more"] == true && count(&last, "cancelled") > 0 {
        let so_far = format!("{} cancelled", of(count(&all, "cancelled"), "is", "are"));
        let left = left(&last).unwrap_or_else(|| "more".to_owned());
        output::note(format_args!("{so_far}, {left} to go"));
        last = api
            .post(path, body)
            .await
            .with_context(|| format!("{so_far}, and the next were not"))?;
        add(&mut all, &last);
    }
    Ok(all)
}

/// Adds what came of the next ones to what came of those before.
fn add(all: &mut Value, next: &Value) {
    for name in ["matching", "cancelled", "delivered"] {
        all[name] = (count(all, name) + count(next, name)).into();
    }
    for (status, more) in next["byStatus"].as_object().into_iter().flatten() {
        let before = count(&all["byStatus"], status);
        all["byStatus"][status] = (before + more.as_u64().unwrap_or_default()).into();
    }
    for name in ["left", "leftAtLeast", "more"] {
        all[name] = next[name].clone();
    }
    let at = |document: &Value, name: &str| {
        let at = document[name].as_str()?;
        at.parse::<DateTime<Utc>>().ok()
    };
    let (oldest, newest) = (at(all, "oldest"), at(all, "newest"));
    if at(next, "oldest").is_some_and(|at| oldest.is_none_or(|oldest| at < oldest)) {
        all["oldest"] = next["oldest"].clone();
    }
    if at(next, "newest").is_some_and(|at| newest.is_none_or(|newest| at > newest)) {
        all["newest"] = next["newest"].clone();
    }
}

async fn waiting(args: WaitingArgs) -> anyhow::Result<()> {
    let is_dry = args.dry_run;
    let mut body = args.body();
    if body["filter"] == json!({}) {
        bail!("say which of them: of a whole lane nothing is cancelled by mistake; --since alone would do");
    }
    let told = |document: &Value| {
        let more = more(document, is_dry);
        if is_dry {
            let matching = of(count(document, "matching"), "waits and matches", "wait and match");
            return format!("{matching}{more}; nothing was done");
        }
        let left = count(document, "matching").saturating_sub(count(document, "cancelled"));
        let left = match left {
            0 => String::new(),
            left => format!(", {left} were being sent or had ended"),
        };
        let delivered = delivered(document);
        format!(
            "{} cancelled{delivered}{left}{more}",
            of(count(document, "cancelled"), "is", "are")
        )
    };
    let what = match &*args.lane {
        "push" => ["push that waits and matches", "pushes that wait and match"],
        _ => NOTIFICATIONS,
    };
    let which = options(&body["filter"]);
    let api = args.common.operator.connect()?;
    let extent = match args.all {
        true => Extent::All,
        false => Extent::Once,
    };
    if args.all {
        // What comes meanwhile is not meant, and would keep it going.
        only_before(&mut body, SystemClock.now());
    }
    let path = "/cancellations";
    let mut document = cancel_many(&api, path, &body, (what, &which), (args.yes, extent)).await?;
    if args.all {
        document = go_on(&api, path, &body, document).await?;
    }
    args.common.show(&document, told)
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Its identifier, or the path at which it is looked up, such as /push/ID.
    #[arg(value_parser = web::any_identifier)]
    id: Uuid,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: String,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// Does what the command says.
pub(crate) async fn run(command: CancelCommand) -> anyhow::Result<()> {
    let (kind, collection, args) = match command {
        CancelCommand::Push(args) => ("push", "pushes", args),
        CancelCommand::Notification(args) => ("notification", "notifications", args),
        CancelCommand::Waiting(args) => return waiting(*args).await,
    };
    confirm_one(args.yes, (kind, args.id), "explain")?;
    let path = format!("/{collection}/{}/cancel", args.id);
    let told = |document: &Value| {
        let previous = document["previous"].as_str().unwrap_or_default();
        let delivered = if document["status"] == json!("SENT") {
            ": it stays delivered and is not sent again"
        } else {
            ""
        };
        format!(
            "{kind} {} was {} and is cancelled{delivered}",
            args.id,
            output::harmless(previous)
        )
    };
    args.common.act(&path, &json!({"note": args.note}), told).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_count_is_left_alone() {
        let newest: DateTime<Utc> = "2026-11-21T12:00:00.123456Z".parse().expect("a time");
        let ended = |mut body: Value| {
            only_up_to(&mut body, newest);
            body
        };
        assert_eq!(
            ended(json!({"lane": "push", "filter": {"prototype": "Spring"}})),
            json!({"lane": "push", "filter": {"prototype": "Spring", "until": "2026-11-21T12:00:00.124456Z"}})
        );
        assert_eq!(
            ended(json!({"status": "RETRY"})),
            json!({"status": "RETRY", "until": "2026-11-21T12:00:00.124456Z"})
        );
        let given = json!({"status": "RETRY", "until": "2026-11-20T00:00:00Z"});
        assert_eq!(ended(given.clone()), given);
    }

    #[test]
    fn what_came_of_each_time_adds_up() {
        let mut all = json!({"matching": 5_000, "byStatus": {"RETRY": 5_000}, "oldest": "2026-11-21T12:00:00Z", "newest": "2026-11-21T13:00:00Z",
                             "left": 3, "leftAtLeast": false, "more": true, "cancelled": 4_999, "delivered": 1});
        let next = json!({"matching": 3, "byStatus": {"RETRY": 1, "PENDING": 2}, "oldest": "2026-11-21T11:00:00.5Z",
                          "newest": "2026-11-21T12:30:00Z", "left": 0, "leftAtLeast": false, "more": false, "cancelled": 3, "delivered": 0});
        add(&mut all, &next);
        assert_eq!(
            all,
            json!({"matching": 5_003, "byStatus": {"RETRY": 5_001, "PENDING": 2}, "oldest": "2026-11-21T11:00:00.5Z",
                   "newest": "2026-11-21T13:00:00Z", "left": 0, "leftAtLeast": false, "more": false, "cancelled": 5_002, "delivered": 1})
        );
    }
}
