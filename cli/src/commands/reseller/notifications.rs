//! `postrider notifications`, `postrider attempts` and `postrider resend`.

use std::array;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use chrono::{DateTime, Utc};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::reason::{ENDED_FOR, WAITS_FOR};
use serde_json::{Value, json};
use uuid::Uuid;

use super::asked::{Asked, asked};
use super::cancel::{self, CancelArgs};
use super::failures::{self, FailuresArgs};
use super::resends::{self, ResendManyArgs};
use super::scheduled::{self, ScheduledArgs};
use super::story::{self, StoryArgs};
use super::why::{self, WhyArgs};
use super::{Common, OPERATORS, OfSubscription, look, paused_by, told_apart};
use crate::age::Age;
use crate::commands::answers::{self, AnswersArgs};
use crate::commands::outcome::{NotCome, Within};
use crate::commands::search::{self, LastAnswer, NotificationQuery, STATUSES, Stretch};
use crate::operator::OperatorArgs;
use crate::output::{self, Column, FormArgs, JsonArgs};
use crate::portal::Portal;
use crate::pretty;
use crate::progress::Progress;
use crate::shown::{self, Shown, ShownColumn, cell};
use crate::web;

/// How often a notification is looked at that is waited for.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider notifications list 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status FAILED,GIVEN_UP --newer-than 1d
  postrider notifications list 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status FAILED,GIVEN_UP --ended-since 1h
  postrider notifications list --event-id order-4711
  postrider notifications list --value example.org
  postrider notifications list --reseller acme --value example.org --newer-than 1d      for operators
  postrider notifications list --all --status RETRY --code 503                          for operators
  postrider notifications list --with-url hooks.example.org --status RETRY              for operators
  postrider notifications list --reseller acme --reason CANCELLED                       for operators
  postrider notifications list --reseller acme --ended-since 2026-11-21T12:00:00Z       for operators
  postrider notifications list --all --late 10m --ended-since 1d                        for operators
  postrider notifications show 019aa2f0-5b1c-8025-9519-0863916ea2df
  postrider notifications story 019aa2f0-5b1c-8025-9519-0863916ea2df
  postrider notifications why order-4711
  postrider notifications failures --since 3d
  postrider notifications answers --newer-than 1h                                       for operators
  postrider notifications scheduled
  postrider notifications scheduled 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider notifications scheduled 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --day 2026-11-22
  postrider notifications resend 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status FAILED --newer-than 2h --dry-run
  postrider notifications resend --code 5xx --ended-since 1h --dry-run
  postrider notifications cancel 019aa2f0-5b1c-8025-9519-0863916ea2df
  postrider notifications cancel --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status SCHEDULED --dry-run")]
pub(crate) enum NotificationsCommand {
    /// Lists those of the last 7 days, the newest event first; for operators all that are kept.
    #[command(visible_alias = "ls")]
    List(Box<ListArgs>),
    /// Shows one, with its body.
    Show(OneNotification),
    /// Tells what became of one, in sentences, and what comes next; of an event that became several, the headline of each.
    Story(StoryArgs),
    /// Tells what an event became, and why each other subscription got nothing of it.
    Why(WhyArgs),
    /// Counts those that failed for good in the last 7 days, by what the endpoint answered or how the last attempt failed.
    Failures(FailuresArgs),
    /// For operators: counts attempts by what endpoints answered, over all resellers, of one, or of a subscription.
    Answers(AnswersArgs),
    /// Adds up what waits, by what it waits for, of all subscriptions; of one by the day on which its turn comes as well, or lists what is in line
    /// for a day.
    Scheduled(ScheduledArgs),
    /// Sends many again that have ended, of a subscription or of all, or counts them.
    Resend(Box<ResendManyArgs>),
    /// Cancels one that waits, or all of a subscription that wait and match: they are not sent any more, by no retry, resend or replay.
    Cancel(Box<CancelArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    of: OfSubscription,
    /// For operators: of this reseller, whichever the subscription.
    #[arg(long, value_name = "ID", help_heading = OPERATORS)]
    reseller: Option<String>,
    /// For operators: of all resellers.
    #[arg(long, conflicts_with_all = ["subscription", "of", "reseller", "event_id"], help_heading = OPERATORS)]
    all: bool,
    /// For operators: of subscriptions with this in their URL.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["subscription", "of"], help_heading = OPERATORS)]
    with_url: Option<String>,
    /// Of this event: what its caller called it, which operators give with --reseller, or its identifier. Of all your subscriptions if
    /// none is given.
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// Of events that have this text as a whole value in their data, such as the name of a domain.
    #[arg(long, value_name = "TEXT", conflicts_with = "event_id")]
    value: Option<String>,
    /// Of these statuses, such as FAILED,GIVEN_UP; may be repeated.
    #[arg(long, value_parser = PossibleValuesParser::new(STATUSES), ignore_case = true, value_delimiter = ',')]
    status: Vec<String>,
    /// For operators: all that wait, those of the oldest event first, in whichever status.
    #[arg(long, conflicts_with_all = ["status", "event_id"], help_heading = OPERATORS)]
    waiting: bool,
    /// Of these event types, such as domain.created; operators name one.
    #[arg(long, value_name = "TYPES", visible_alias = "event-type", alias = "type")]
    event_types: Option<String>,
    #[command(flatten)]
    answer: LastAnswer,
    /// For operators: waiting for these reasons, such as QUOTA, or ended for these, such as CANCELLED; may be repeated.
    #[arg(long, value_parser = PossibleValuesParser::new(WAITS_FOR.into_iter().chain(ENDED_FOR)), ignore_case = true, value_delimiter = ',',
        help_heading = OPERATORS)]
    reason: Vec<String>,
    /// Delivered, failed, given up or cancelled at this time or later, whenever the event was accepted; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "event_id")]
    ended_since: Option<DateTime<Utc>>,
    /// Delivered, failed, given up or cancelled before this time; a time, or an age such as 10m.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "event_id")]
    ended_until: Option<DateTime<Utc>>,
    /// For operators: ended more than so long after its event was accepted, or after it was last sent again by hand, such as 10m.
    #[arg(long, value_name = "AGE", conflicts_with = "event_id", help_heading = OPERATORS)]
    late: Option<Age>,
    #[command(flatten)]
    stretch: Stretch,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OneNotification<F: Args = FormArgs> {
    /// The notification.
    #[arg(value_parser = notification)]
    id: Uuid,
    #[command(flatten)]
    common: Common<F>,
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
It is the same notification: the same event, body and idempotency key, signed again. One in RETRY is tried at once, which is the
next of the attempts that it has left.

Example:
  postrider resend 019aa2f0-5b1c-8025-9519-0863916ea2df --wait")]
pub(crate) struct ResendArgs {
    #[command(flatten)]
    one: OneNotification<JsonArgs>,
    /// Waits until it has ended; exit code 1 when it is not SENT.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    within: Within,
}

pub(super) const COLUMNS: [ShownColumn; 9] = [
    (Column::whole("notification"), "/id"),
    (Column::whole("event").spare(6), "/eventId"),
    (Column::whole("event type").spare(4), "/eventType"),
    (Column::whole("status"), "/status"),
    (Column::whole("reason").spare(1), "/reason"),
    (Column::whole("paused by").spare(2), "/pausedBy"),
    (Column::whole("attempts").spare(7), "/attempts"),
    (Column::time("accepted").spare(3), "/acceptedAt"),
    (Column::time("next attempt").spare(5), "/nextAttemptAt"),
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
pub(crate) async fn run(command: NotificationsCommand) -> anyhow::Result<ExitCode> {
    let done = match command {
        NotificationsCommand::List(args) => list(*args).await,
        NotificationsCommand::Story(args) => story::run(&args).await,
        NotificationsCommand::Why(args) => why::run(&args).await,
        NotificationsCommand::Failures(args) => failures::run(args).await,
        NotificationsCommand::Answers(args) => answers::run(args).await,
        NotificationsCommand::Scheduled(args) => scheduled::run(args).await,
        NotificationsCommand::Resend(args) => return resends::run(*args).await,
        NotificationsCommand::Cancel(args) => cancel::run(*args).await,
        NotificationsCommand::Show(one) => {
            let document = find(&Portal::connect(&one.common.portal)?, one.id).await?;
            let form = one.common.form();
            form.print(&document, || shown::record("notification", &document, ROWS))?;
            if form.is_for_people() {
                output::result(pretty::json(document["body"].as_str().unwrap_or_default()))?;
            }
            Ok(())
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The identifier of a notification, as an argument. What is none may be what an event is called, or be in its data.
fn notification(text: &str) -> Result<Uuid, String> {
    web::identifier(text).ok_or_else(|| {
        format!(
            "write the identifier of a notification, such as 019aa2f0-5b1c-8025-9519-0863916ea2df; {}",
            listed_by(text)
        )
    })
}

/// The commands that find notifications by what is no identifier of one.
pub(super) fn listed_by(text: &str) -> String {
    let text = output::harmless(text);
    format!(
        "`postrider notifications list --event-id {text}` lists those of an event that is called so, and `postrider notifications list --value \
         {text}` those of events that have it in their data"
    )
}

pub(super) async fn find(portal: &Portal, id: Uuid) -> anyhow::Result<Value> {
    match portal.get(&format!("/notifications/{id}"), &()).await {
        Err(error) => Err(told_apart(portal, id, error).await),
        found => found,
    }
}

/// Lists those of the reseller, or what operators ask for.
async fn list(args: ListArgs) -> anyhow::Result<()> {
    let is_by_end = args.ended_since.is_some() || args.ended_until.is_some();
    let is_for_operators = args.all
        || args.late.is_some()
        || args.waiting
        || !args.reason.is_empty()
        || args.reseller.is_some()
        || args.with_url.is_some();
    if asked(is_for_operators, &args.common.portal, &args.operator) == Asked::Operator {
        let is_narrow =
            args.value.is_some() || is_by_end || args.of.id().is_some() || args.event_id.is_some();
        if !is_for_operators && !is_narrow {
            bail!(
                "name a subscription, or give --reseller, --event-id or --value; --all lists those of all resellers"
            );
        }
        let query = NotificationQuery {
            reseller: args.reseller,
            subscription: args.of.id(),
            url: args.with_url,
            event_id: args.event_id,
            value: args.value,
            statuses: search::statuses(&args.status, args.waiting),
            reasons: args.reason,
            event_type: args.event_types,
            answer: args.answer,
            ended_since: args.ended_since,
            ended_until: args.ended_until,
            late: args.late,
        };
        return search::notifications(&args.operator, args.common.form(), query, &args.stretch).await;
    }
    of_the_reseller(args).await
}

/// Lists what the portal has of the reseller whose key is given.
async fn of_the_reseller(args: ListArgs) -> anyhow::Result<()> {
    let (event, by_value) = (args.event_id.clone(), args.value.is_some());
    let is_by_end = args.ended_since.is_some() || args.ended_until.is_some();
    let query = [
        ("eventId", args.event_id),
        ("value", args.value),
        ("status", search::joined(&args.status)),
        ("eventType", args.event_types),
        ("endedSince", args.ended_since.map(search::written)),
        ("endedUntil", args.ended_until.map(search::written)),
    ];
    let portal = Portal::connect(&args.common.portal)?;
    let mut query = search::query(query);
    args.stretch.add_to(&mut query);
    query.extend(args.answer.query());
    // The list of one subscription knows neither values nor answers nor when each ended.
    let is_searched = by_value || is_by_end || args.answer.is_asked();
    let path = match args.of.id() {
        Some(id) if is_searched => {
            query.insert("subscription".to_owned(), id.to_string().into());
            "/notifications".to_owned()
        }
        Some(id) => format!("/subscriptions/{id}/notifications"),
        None => "/notifications".to_owned(),
    };
    let pages = args.stretch.part.of(&portal, &path, query);
    let nothing = if by_value {
        "no notification of an event with this value; it has to be a whole value, such as example.org, and an event that \
         matched no subscription became none"
    } else if args.stretch.has_times() && !is_by_end {
        "no notification of an event that was accepted in that time matches; --ended-since and --ended-until go by when it ended"
    } else {
        "no notification matches"
    };
    let nothing = match event {
        Some(event) => format!(
            "no notification of such an event; `postrider notifications why {}` says what became of it and why each other subscription got \
             nothing, unless there is no such event",
            output::harmless(&event)
        ),
        None => nothing.to_owned(),
    };
    let (form, nothing) = (args.common.form(), |_: &Value| nothing);
    if args.of.id().is_some() && !is_searched {
        shown::print_pages(pages, form, COLUMNS, nothing).await?;
        return Ok(());
    }
    let to = (Column::whole("subscription").spare(8), "/subscriptionId");
    let columns: [ShownColumn; 10] = array::from_fn(|place| match place {
        0 => COLUMNS[0].clone(),
        1 => to.clone(),
        place => COLUMNS[place - 1].clone(),
    });
    shown::print_pages(pages, form, columns, nothing).await?;
    Ok(())
}

/// Shows what was tried, and what came of it.
pub(crate) async fn attempts(args: AttemptsArgs) -> anyhow::Result<()> {
    let AttemptsArgs { one } = args;
    let document = find(&Portal::connect(&one.common.portal)?, one.id).await?;
    let history = &document["history"];
    let form = one.common.form();
    if !form.is_for_people() {
        return form.print(&json!({ "items": history }), || shown::list(history, ATTEMPTS));
    }
    output::note(standing(&document));
    form.table(&shown::list(history, ATTEMPTS))?;
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
    let document: Value = match portal.post(&path, &json!({})).await {
        Err(error) => return Err(told_apart(&portal, one.id, error).await),
        sent => sent?,
    };
    if args.wait {
        let ended = until_ended(&portal, one.id, args.within).await;
        if one.common.is_json() {
            output::json(&find(&portal, one.id).await?)?;
            return ended.map(drop);
        }
        return Ok(output::result(ended?)?);
    }
    if one.common.is_json() {
        return output::json(&document);
    }
    let id = one.id;
    if document["pausedBy"].is_null() {
        output::result(format_args!(
            "{id} is sent again; `postrider attempts {id}` shows what comes of it"
        ))?;
    } else {
        output::result(format_args!(
            "{id} is sent again after the pause: {}",
            held_by(&cell(&document, "/pausedBy"), &cell(&document, "/subscriptionId"))
        ))?;
    }
    Ok(())
}

/// Whose pause something waits for, in words.
pub(super) fn held_by(whose: &str, subscription: &str) -> String {
    let who = match whose {
        "RESELLER" => "you have paused its subscription",
        _ => "the operators have paused it",
    };
    format!("{who}; {}", paused_by(whose, subscription))
}

/// Waits until a notification has ended; returns how it stands then.
///
/// # Errors
///
/// When it has ended without being sent, among others.
pub(super) async fn until_ended(portal: &Portal, id: Uuid, within: Within) -> anyhow::Result<String> {
    let not_come = [
        format!("the notification {id} has not ended"),
        format!("`postrider attempts {id}` shows what comes of it"),
    ];
    within.limit(ended(portal, id), not_come).await
}

async fn ended(portal: &Portal, id: Uuid) -> anyhow::Result<String> {
    let progress = Progress::waiting("waiting until it has ended");
    let mut told = String::new();
    loop {
        let document = look(portal, &format!("/notifications/{id}"), &()).await?;
        let standing = standing(&document);
        match document["status"].as_str().unwrap_or_default() {
            "SENT" => return Ok(standing),
            "FAILED" | "GIVEN_UP" => bail!("{standing}; `postrider attempts {id}` shows what was answered"),
            // Waiting for that would have no end in sight.
            _ if !document["pausedBy"].is_null() => {
                return Err(NotCome(format!(
                    "{id} waits: {}",
                    held_by(&cell(&document, "/pausedBy"), &cell(&document, "/subscriptionId"))
                ))
                .into());
            }
            "RETRY" | "SCHEDULED" if told != standing => {
                // There is none while the endpoint is not verified.
                let next = match document["nextAttemptAt"].as_str() {
                    Some(at) => format!("; next attempt {}", output::harmless(at)),
                    None => String::new(),
                };
                progress.note(format_args!("{standing}{next}"));
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
    fn what_is_no_notification_names_the_commands_that_find_some_by_it() {
        let said = notification("example.org").unwrap_err();
        assert!(
            said.contains("`postrider notifications list --event-id example.org`")
                && said.contains("`postrider notifications list --value example.org`"),
            "{said}"
        );
        assert!(notification("019aa2f0-5b1c-8025-9519-0863916ea2df").is_ok());
    }

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
