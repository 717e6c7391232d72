//! Finding things over the operator API: pushes, notifications, events.
//!
//! The commands of resellers have the same names; with `--reseller` they ask here, on a key of the house.

mod columns;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use domain::clock::{Clock as _, SystemClock};
use domain::notification::ERROR_TYPES;
use serde_json::{Map, Value};
use uuid::Uuid;

use self::columns::{EVENTS, LATE_NOTIFICATIONS, LATE_PUSHES, NOTIFICATIONS, PUSHES};
use crate::age::Age;
use crate::api::Api;
use crate::operator::{Common, OperatorArgs};
use crate::output::{self, Form};
use crate::part::{Pages, Part};
use crate::shown::{self, ShownColumn};

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

/// Most events that matched nothing that are named below a list of notifications.
const UNMATCHED_MAX: u64 = 50;
/// Most other resellers that are named where an event is none of the one that was asked for.
const OTHERS_MAX: usize = 3;

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

/// Which pushes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider push list --device 463B3209 --newer-than 1d         did the device get its push?
  postrider push list --status RETRY                            what is tried again, due longest first
  postrider push list --waiting                                 all that wait, the oldest first
  postrider push list --prototype Hello --status FAILED,GIVEN_UP --newer-than 2h
  postrider push list --reason CANCELLED                        what an operator has cancelled
  postrider push list --status FAILED,GIVEN_UP --ended-since 1h
  postrider push list --late 5m --newer-than 1d                 what ended more than 5 minutes after it was accepted")]
pub(crate) struct PushListArgs {
    /// For this device: the push key that they were handed in with; it is in no answer and no record.
    #[arg(long, value_name = "PUSH_KEY", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
    /// Of this message prototype.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    prototype: Option<String>,
    /// For devices of this platform.
    #[arg(long, value_parser = PossibleValuesParser::new(["IOS", "ANDROID"]), ignore_case = true)]
    platform: Option<String>,
    /// In these statuses, such as FAILED,GIVEN_UP; may be repeated.
    #[arg(long, value_parser = PossibleValuesParser::new(STATUSES), ignore_case = true, value_delimiter = ',')]
    status: Vec<String>,
    /// All that wait, the oldest first, in whichever status.
    #[arg(long, conflicts_with = "status")]
    waiting: bool,
    /// Moved by hand for this reason.
    #[arg(long, value_parser = PossibleValuesParser::new(["REPLAYED", "CANCELLED"]), ignore_case = true)]
    reason: Option<String>,
    /// Sent, failed, given up or cancelled at this time or later, whenever it was accepted; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    ended_since: Option<DateTime<Utc>>,
    /// Sent, failed, given up or cancelled before this time; a time, or an age such as 10m.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    ended_until: Option<DateTime<Utc>>,
    /// Ended more than so long after it was accepted, or after its dead letter was last replayed, such as 5m.
    #[arg(long, value_name = "AGE")]
    late: Option<Age>,
    #[command(flatten)]
    stretch: Stretch,
    #[command(flatten)]
    common: Common,
}

/// What only the operator API is asked of notifications.
#[derive(Debug, Default)]
pub(crate) struct NotificationQuery {
    pub(crate) reseller: Option<String>,
    pub(crate) subscription: Option<Uuid>,
    pub(crate) url: Option<String>,
    pub(crate) event_id: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) statuses: Vec<String>,
    pub(crate) reasons: Vec<String>,
    pub(crate) event_type: Option<String>,
    pub(crate) answer: LastAnswer,
    pub(crate) ended_since: Option<DateTime<Utc>>,
    pub(crate) ended_until: Option<DateTime<Utc>>,
    pub(crate) late: Option<Age>,
}

/// What the endpoint answered last.
#[derive(Debug, Default, Args)]
pub(crate) struct LastAnswer {
    /// The endpoint answered the last attempt with this status code, or with one of a class, such as 5xx.
    #[arg(long, value_name = "N", value_parser = status_code)]
    code: Option<String>,
    /// The last attempt failed in this way.
    #[arg(long, value_parser = PossibleValuesParser::new(ERROR_TYPES), ignore_case = true)]
    error: Option<String>,
}

/// A status code or a class, as the APIs take it.
pub(crate) fn status_code(text: &str) -> Result<String, &'static str> {
    const FORM: &str = "write a status code from 100 to 599, such as 503, or a class, such as 5xx";
    let text = text.to_ascii_lowercase();
    let first = text.strip_suffix("xx").map(|class| format!("{class}00"));
    let code = first.as_deref().unwrap_or(&text).parse::<u16>().ok();
    let is_one = code.is_some_and(|code| (100..600).contains(&code));
    if is_one { Ok(text) } else { Err(FORM) }
}

impl LastAnswer {
    pub(crate) fn is_asked(&self) -> bool {
        self.code.is_some() || self.error.is_some()
    }

    pub(crate) fn query(&self) -> Query {
        query([("code", self.code.clone()), ("error", upper(self.error.as_ref()))])
    }
}

/// Which events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider event list --value example.org --newer-than 2d      what was handed in about this domain?
  postrider event list --reseller acme --unmatched              what matched no subscription
  postrider event list --event-type domain.created --newer-than 1h")]
pub(crate) struct EventListArgs {
    /// Whose data has this as a whole value, such as the name of a domain.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    value: Option<String>,
    /// Of this reseller.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    reseller: Option<String>,
    /// Of this type.
    #[arg(long, alias = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    event_type: Option<String>,
    /// Only those that matched no subscription when they were accepted.
    #[arg(long)]
    unmatched: bool,
    #[command(flatten)]
    stretch: Stretch,
    #[command(flatten)]
    common: Common,
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
        let time = |at: Option<DateTime<Utc>>, age: Option<Age>| {
            at.or_else(|| age.map(|age| age.before(now))).map(written)
        };
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

/// Lists pushes.
pub(crate) async fn pushes(args: &PushListArgs) -> anyhow::Result<()> {
    let mut query = query([
        ("device", args.device.clone()),
        ("prototype", args.prototype.clone()),
        ("platform", upper(args.platform.as_ref())),
        ("status", joined(&statuses(&args.status, args.waiting))),
        ("reason", upper(args.reason.as_ref())),
        ("endedSince", args.ended_since.map(written)),
        ("endedUntil", args.ended_until.map(written)),
        ("lateBySeconds", seconds(args.late)),
    ]);
    args.stretch.add_to(&mut query);
    let api = args.common.operator.connect()?;
    let pages = args.stretch.part.of(&api, "/pushes", query);
    let (form, what) = (args.common.form(), "push");
    let document = if args.late.is_some() {
        print(pages, form, LATE_PUSHES, what).await?
    } else {
        print(pages, form, PUSHES, what).await?
    };
    let found = shown::items(&document["items"]);
    note_late(args.late, found);
    if found.iter().any(|push| !push["pausedBy"].is_null()) {
        output::note(
            "an operator has paused the lane, for which these wait; `postrider pauses` says who, and why",
        );
    }
    let elsewhere = match args.status.as_slice() {
        [one] => waits_elsewhere(&one.to_uppercase()),
        _ => None,
    };
    if let (true, Some(elsewhere)) = (found.is_empty(), elsewhere) {
        output::note(elsewhere);
    }
    note_waiting(&document, &args.status);
    Ok(())
}

/// Says what tells where the time of what was late went, which no list knows.
fn note_late(late: Option<Age>, found: &[Value]) {
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

/// Where else a push may wait than in a status in which none does.
fn waits_elsewhere(status: &str) -> Option<&'static str> {
    match status {
        "RETRY" | "PENDING" => Some(
            "while the lane is held or paused, what waits may be in the queue: `postrider push list --status IN_MEMORY` lists it",
        ),
        "IN_MEMORY" => Some(
            "while the lane is paused, what is in the queue soon becomes PENDING: `postrider push list --status PENDING` lists it",
        ),
        _ => None,
    }
}

/// The pushes of a device, the newest first: the latest one's identifier, if there is just this one, else a list of them.
pub(crate) async fn pushes_of(
    operator: &OperatorArgs,
    device: &str,
    form: Form,
) -> anyhow::Result<Option<String>> {
    let query = query([("device", Some(device.to_owned()))]);
    let document: Value = operator.connect()?.get("/pushes", &query).await?;
    if let [one] = shown::items(&document["items"])
        && document["next"].is_null()
    {
        return Ok(one["id"].as_str().map(str::to_owned));
    }
    if form == Form::Json || shown::items(&document["items"]).is_empty() {
        shown::print(&document, form, PUSHES, &nothing(&document, "push"))?;
        return Ok(None);
    }
    // `explain` has no -o wide, which the line below a list that is too narrow would name.
    output::result(shown::list(&document["items"], PUSHES))?;
    shown::note_next(&document);
    output::note(
        "`postrider explain PUSH` tells the story of one; `postrider push list --device` with `-o wide` has every column",
    );
    Ok(None)
}

/// Lists notifications.
pub(crate) async fn notifications(
    operator: &OperatorArgs,
    form: Form,
    asked: NotificationQuery,
    stretch: &Stretch,
) -> anyhow::Result<()> {
    let mut query = query([
        ("reseller", asked.reseller),
        ("subscription", asked.subscription.map(|id| id.to_string())),
        ("url", asked.url),
        ("eventId", asked.event_id),
        ("value", asked.value),
        ("status", joined(&asked.statuses)),
        ("reason", joined(&asked.reasons)),
        ("eventType", asked.event_type),
        ("endedSince", asked.ended_since.map(written)),
        ("endedUntil", asked.ended_until.map(written)),
        ("lateBySeconds", seconds(asked.late)),
    ]);
    query.extend(asked.answer.query());
    stretch.add_to(&mut query);
    let api = operator.connect()?;
    let pages = stretch.part.of(&api, "/notifications", query.clone());
    let what = "notification";
    let document = if asked.late.is_some() {
        print(pages, form, LATE_NOTIFICATIONS, what).await?
    } else {
        print(pages, form, NOTIFICATIONS, what).await?
    };
    note_late(asked.late, shown::items(&document["items"]));
    let is_empty = shown::items(&document["items"]).is_empty();
    if is_empty {
        note_reseller(&api, query.get("reseller")).await?;
        if query.contains_key("url") {
            output::note("`postrider subscriptions list --with-url` lists those that have this in their URL");
        }
    }
    note_waiting(&document, &asked.statuses);
    if query.contains_key("value") {
        return note_unmatched(&api, query, is_empty).await;
    }
    Ok(())
}

/// Says which events have the value and became no notification: no list of notifications has those.
async fn note_unmatched(api: &Api, mut query: Query, is_empty: bool) -> anyhow::Result<()> {
    // What is asked of notifications alone, no such event has.
    let is_of_notifications = [
        "status",
        "reason",
        "subscription",
        "url",
        "code",
        "error",
        "endedSince",
        "endedUntil",
        "lateBySeconds",
    ]
    .iter()
    .any(|name| query.contains_key(*name));
    if is_of_notifications {
        return Ok(());
    }
    query.insert("unmatched".to_owned(), "true".into());
    let document = Pages::new(api, "/events", query.clone(), UNMATCHED_MAX)
        .whole()
        .await?;
    let found = shown::items(&document["items"]);
    for event in found {
        let (id, reseller) = (shown::cell(event, "/id"), shown::cell(event, "/resellerId"));
        output::note(format_args!(
            "the event {id} of {reseller} has it and matched no subscription; `postrider explain {id}` says why"
        ));
    }
    if is_empty && found.is_empty() {
        return note_no_event(api, query).await;
    }
    Ok(())
}

/// Says that no event has the value, and which of another reseller has it.
async fn note_no_event(api: &Api, mut query: Query) -> anyhow::Result<()> {
    let reseller = query.get("reseller").and_then(Value::as_str).map(str::to_owned);
    output::note(output::harmless(&no_event(reseller.as_deref())));
    // An `eventId` goes with a reseller alone.
    if let Some(reseller) = reseller
        && !query.contains_key("eventId")
    {
        for name in ["reseller", "unmatched"] {
            query.remove(name);
        }
        query.insert("limit".to_owned(), UNMATCHED_MAX.into());
        // One part of the list, and no error where it cannot be had: what was asked for has been answered.
        let events: Value = api.get("/events", &query).await.unwrap_or_default();
        for told in of_others(shown::items(&events["items"]), &reseller) {
            output::note(told);
        }
    }
    Ok(())
}

/// That no event has the value that became no notification.
fn no_event(reseller: Option<&str>) -> String {
    let of = reseller.map_or(String::new(), |reseller| format!(" of {reseller}"));
    format!(
        "no event{of} that matched nothing has it either; --value finds whole values, such as example.org, and no parts of them"
    )
}

/// What tells of the newest event of each reseller but this one: its name may be written in another way.
fn of_others(events: &[Value], reseller: &str) -> Vec<String> {
    let mut named = vec![reseller];
    let mut told = Vec::new();
    for event in events {
        let Some(other) = event["resellerId"].as_str() else {
            continue;
        };
        if told.len() < OTHERS_MAX && !named.contains(&other) {
            named.push(other);
            let (id, other) = (shown::cell(event, "/id"), output::harmless(other));
            told.push(format!("an event of {other} has it: `postrider explain {id}`"));
        }
    }
    told
}

/// Lists events.
pub(crate) async fn events(args: &EventListArgs) -> anyhow::Result<()> {
    let mut query = query([
        ("value", args.value.clone()),
        ("reseller", args.reseller.clone()),
        ("eventType", args.event_type.clone()),
        ("unmatched", args.unmatched.then(|| "true".to_owned())),
    ]);
    args.stretch.add_to(&mut query);
    let api = args.common.operator.connect()?;
    let pages = args.stretch.part.of(&api, "/events", query.clone());
    let document = print(pages, args.common.form(), EVENTS, "event").await?;
    if shown::items(&document["items"]).is_empty() {
        note_reseller(&api, query.get("reseller")).await?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_reseller_has_is_named_once_for_each() {
        assert!(no_event(Some("demo")).starts_with("no event of demo that matched nothing has it either; "));
        assert!(no_event(None).starts_with("no event that matched nothing has it either; "));
        let event = |id: &str, reseller: &str| json!({"id": id, "resellerId": reseller});
        let events = [
            event("e-5", "Demo"),
            event("e-4", "demo"),
            event("e-3", "Demo"),
            event("e-2", "demo2"),
        ];
        assert_eq!(
            of_others(&events, "demo"),
            [
                "an event of Demo has it: `postrider explain e-5`",
                "an event of demo2 has it: `postrider explain e-2`"
            ]
        );
        assert!(of_others(&events[1..2], "demo").is_empty());
    }

    #[test]
    fn an_empty_list_names_the_other_status_in_which_pushes_wait() {
        for (asked, other) in [
            ("PENDING", "IN_MEMORY"),
            ("RETRY", "IN_MEMORY"),
            ("IN_MEMORY", "PENDING"),
        ] {
            let hint = waits_elsewhere(asked).unwrap();
            assert!(
                hint.contains(&format!("`postrider push list --status {other}`")),
                "{hint}"
            );
        }
        assert_eq!(waits_elsewhere("SENT"), None);
    }

    #[test]
    fn pushes_fit_the_terminal() {
        let pushes = json!([
            {"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "createdAt": "2026-11-21T12:00:00.123456Z", "status": "SENT",
             "finishedAt": "2026-11-21T12:00:01.123456Z", "attempts": 1, "messagePrototypeKey": "Good bye"},
            {"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e", "createdAt": "2026-11-21T12:00:00.123456Z", "status": "RETRY",
             "nextAttemptAt": "2026-11-21T12:01:00Z", "attempts": 2, "messagePrototypeKey": "Hello client",
             "pausedBy": "LANE", "lastFailure": {"code": 503, "error": "503 Service Unavailable: the platform is busy, try again later"}},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&pushes, PUSHES)));
    }

    #[test]
    fn a_push_that_failed_shows_the_code() {
        let failed = |failure: Value| {
            let push = json!([{"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "status": "RETRY", "lastFailure": failure}]);
            output::at_widths(&shown::list(&push, PUSHES))
        };
        let coded = failed(json!({"code": 5031, "error": "try later"}));
        assert!(coded.contains("5031 try later"), "{coded}");
        let unanswered = failed(json!({"code": null, "error": "no answer"}));
        assert!(unanswered.contains("no answer"), "{unanswered}");
        let wordless = failed(json!({"code": 503, "error": null}));
        assert!(wordless.contains("503"), "{wordless}");
    }

    #[test]
    fn notifications_fit_the_terminal() {
        let notifications = json!([
            {"id": "019aa2f0-5b1c-8025-9519-0863916ea2df", "eventId": "order-4711-created", "eventType": "domain.created",
             "url": "https://hooks.reseller.example/postrider/notifications?tenant=4711", "status": "RETRY",
             "acceptedAt": "2026-11-21T12:00:00.123456Z",
             "error": "the endpoint answered 503 Service Unavailable"},
            {"id": "019aa2f0-5b1c-8025-9519-0863916ea2e0", "eventId": "order-4712", "eventType": "contact.updated",
             "url": "https://a.example/", "status": "PENDING", "reason": "PAUSED", "pausedBy": "ALL_OF_RESELLER",
             "acceptedAt": "2026-11-21T12:00:00Z"},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&notifications, NOTIFICATIONS)));
    }

    #[test]
    fn a_notification_that_has_ended_says_when() {
        let ended = json!([{"id": "019aa2f0-5b1c-8025-9519-0863916ea2df", "status": "SENT",
                            "acceptedAt": "2026-11-21T12:00:00Z", "finishedAt": "2026-11-21T12:00:07Z"}]);
        let shown = output::at_widths(&shown::list(&ended, NOTIFICATIONS));
        assert!(shown.contains("2026-11-21T12:00:07Z"), "{shown}");
    }
}
