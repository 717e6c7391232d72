//! `postrider push`: handing in one push, looking at one, and finding some.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use domain::counted::of;
use domain::push::{Platform, PushStatus};
use serde_json::Value;
use uuid::Uuid;

use crate::commands::outcome::Within;
use crate::commands::search::{self, PushListArgs};
use crate::file;
use crate::ingest::{self, Answer, Attempt, Ingest, IngestArgs, Push, PushRequest};
use crate::output::{self, Column, Form, FormArgs, Table};
use crate::progress::Progress;
use crate::web;

const AGAIN: &str = "it was handed in before with this idempotency key; nothing new was stored";
/// How often a push is looked at that is waited for.
const POLL: Duration = Duration::from_millis(500);
/// How long one push is waited for in all that is beyond the pace of the key.
const PATIENCE: Duration = Duration::from_secs(60);
/// The least that is waited then, whatever the answer says.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// How often a command that takes long says how far it is.
const TELL: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  postrider push --platform ANDROID --prototype 'Good bye' --push-key 463B3209 --message 'See you!' --wait
  postrider push --platform IOS --prototype Hello --push-key 463B3209 --message 'Good morning' --cron '* * 9-17 ? * MON-FRI'
  postrider push --data @pushes.jsonl
  postrider push show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider push list --device 463B3209"
)]
pub(crate) struct PushArgs {
    #[command(subcommand)]
    command: Option<PushCommand>,
    #[command(flatten)]
    ingest: IngestArgs,
    #[command(flatten)]
    push: PostArgs,
}

#[derive(Debug, Subcommand)]
enum PushCommand {
    /// Shows what has become of a push.
    Show {
        /// Its identifier, as `postrider push` printed it, or the Location that POST /push answered.
        #[arg(value_parser = identifier)]
        id: Uuid,
        #[command(flatten)]
        form: FormArgs,
        #[command(flatten)]
        ingest: IngestArgs,
    },
    /// Lists pushes of a device, of a prototype or in a status; over the operator API.
    #[command(visible_alias = "ls")]
    List(Box<PushListArgs>),
}

/// Required unless a subcommand is given, which is why the types are optional.
#[derive(Debug, Args)]
struct PostArgs {
    /// The platform of the client's device.
    #[arg(long, required_unless_present = "data", ignore_case = true, value_parser = platform())]
    platform: Option<Platform>,
    /// The message prototype, which decides on the Swrve push key; a push without it is accepted, and fails.
    #[arg(long)]
    prototype: Option<String>,
    /// The client's device id in Swrve.
    #[arg(long, required_unless_present = "data")]
    push_key: Option<String>,
    /// The text.
    #[arg(long, required_unless_present = "data")]
    message: Option<String>,
    /// Sends it once, at the first time that this Quartz cron expression matches: second, minute, hour, day of the month, month, day of the week and, if
    /// need be, year, with ? for one of the two days, in the time zone of the setting push.timeZone, which is UTC by default; at once when not given.
    #[arg(long)]
    cron: Option<String>,
    /// The push as POST /push takes it, or several, one after another; @FILE reads them from there (@- from standard input).
    #[arg(long, value_name = "JSON", conflicts_with_all = ["platform", "prototype", "push_key", "message", "cron"])]
    data: Option<String>,
    /// Makes it safe to repeat the command: the same key and push are stored once; of several, the push at each place.
    #[arg(long)]
    idempotency_key: Option<String>,
    /// Waits until it has ended; exit code 1 when it is not SENT.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    form: FormArgs,
}

/// An identifier, or the path of a `Location` that ends with one.
fn identifier(text: &str) -> Result<Uuid, &'static str> {
    web::identifier(text)
        .ok_or("write the identifier of a push, such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")
}

fn platform() -> impl clap::builder::TypedValueParser<Value = Platform> {
    PossibleValuesParser::new(Platform::ALL.map(Platform::as_str))
        .try_map(|name| name.to_uppercase().parse::<Platform>())
}

/// Does what the command says.
pub(crate) async fn run(args: PushArgs) -> anyhow::Result<()> {
    match args.command {
        Some(PushCommand::Show { id, form, ingest }) => show(&Ingest::new(&ingest)?, id, form.form()).await,
        Some(PushCommand::List(args)) => search::pushes(&args).await,
        None => post(&Ingest::new(&args.ingest)?, args.push).await,
    }
}

async fn post(ingest: &Ingest, args: PostArgs) -> anyhow::Result<()> {
    let pushes = requests(&args)?;
    let total = pushes.len();
    // Of several, each has a key of its own, so that the command can be repeated when it ends in the middle.
    let several = (total > 1).then(|| match &args.idempotency_key {
        Some(key) => key.clone(),
        None => Uuid::now_v7().to_string(),
    });
    let repeat = several.as_ref().map(|key| {
        format!(
            "mend it and repeat the whole with --idempotency-key {key}: what is stored is not stored again"
        )
    });
    let progress = (several.is_some() && !args.wait).then(|| Progress::of("handed in"));
    let form = args.form.form();
    let (mut refused, mut unsent) = (0_usize, 0_usize);
    for (done, push) in pushes.iter().enumerate() {
        if let Some(progress) = &progress {
            progress.show(done as u64, total as u64, "");
        }
        let place = done + 1;
        let key = match &several {
            Some(key) => Some(format!("{key}/{place}")),
            None => args.idempotency_key.clone(),
        };
        let answer = match &several {
            Some(_) => at_its_pace(ingest, push, key.as_deref()).await,
            None => ingest.post(push, key.as_deref()).await,
        };
        let mistaken = matches!(answer, Ok(Answer::Refused { status: 422, .. }));
        let id = match (
            answer.and_then(|answer| ingest::accepted(&answer, "push", AGAIN)),
            &repeat,
        ) {
            (Ok(id), _) => id,
            // The mistake of one push: those after it may be right.
            (Err(error), Some(_)) if mistaken => {
                output::note(format_args!("error: push {place} of {total}: {error}"));
                refused += 1;
                continue;
            }
            (Err(error), Some(repeat)) => {
                let left = format!("push {place} of {total} and those after it may not be stored; {repeat}");
                return Err(error.context(left));
            }
            (Err(error), None) => return Err(error),
        };
        let was_sent = !args.wait || {
            let not_come = [
                format!("the push {id} has not ended"),
                format!("`postrider push show {id}` shows what becomes of it"),
            ];
            args.within.limit(until_ended(ingest, id), not_come).await?
        };
        unsent += usize::from(!was_sent);
        match form {
            Form::Table | Form::Name => output::result(id)?,
            form => show(ingest, id, form).await?,
        }
        if let (Some(cron), false) = (&args.cron, args.wait) {
            note_first_time(ingest, id, cron).await;
        }
    }
    drop(progress);
    let counted = of(total as u64, "push", "pushes");
    if let Some(repeat) = repeat.filter(|_| refused > 0) {
        bail!("{refused} of {counted} refused, the others are stored; {repeat}");
    }
    if unsent > 0 {
        bail!("{unsent} of {counted} not sent");
    }
    Ok(())
}

/// Hands in one of several. What is beyond the pace of the key waits until there is more of it.
async fn at_its_pace(ingest: &Ingest, push: &Value, key: Option<&str>) -> anyhow::Result<Answer> {
    let mut waited = Duration::ZERO;
    loop {
        let answer = ingest.post(push, key).await?;
        let Some(pause) = pause(&answer, waited) else {
            return Ok(answer);
        };
        tokio::time::sleep(pause).await;
        waited += pause;
    }
}

/// How long to wait before it is handed in again, when so much was waited for it already; `None` leaves it at this answer.
fn pause(answer: &Answer, waited: Duration) -> Option<Duration> {
    let Answer::Refused {
        status: 429,
        retry_after: Some(after),
        ..
    } = answer
    else {
        return None;
    };
    let after = (*after).max(PAUSE_MIN);
    (waited.saturating_add(after) <= PATIENCE).then_some(after)
}

/// What is to be handed in, as the API takes it.
fn requests(args: &PostArgs) -> anyhow::Result<Vec<Value>> {
    if let Some(data) = &args.data {
        let text = match data.strip_prefix('@') {
            Some(path) => file::read(path)?,
            None => data.clone(),
        };
        let pushes = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let pushes: Vec<Value> = pushes.collect::<Result<_, _>>().context("--data is not JSON")?;
        if pushes.is_empty() {
            bail!("--data holds no push; write one as a JSON object, several one after another");
        }
        return Ok(pushes);
    }
    if args.prototype.is_none() {
        output::note("note: without --prototype there is no Swrve push key, so that the push will fail");
    }
    let missing = "invariant: clap has seen to it that it is given";
    let request = PushRequest {
        platform: args.platform.context(missing)?.as_str().to_owned(),
        message_prototype_key: args.prototype.clone(),
        push_key: args.push_key.clone().context(missing)?,
        message: args.message.clone().context(missing)?,
        cron_expression: args.cron.clone(),
    };
    Ok(vec![serde_json::to_value(request)?])
}

/// Says when a push with a cron expression is sent, which looks as if it were sent more than once. That it cannot be looked up is no failure: it is
/// stored.
async fn note_first_time(ingest: &Ingest, id: Uuid, cron: &str) {
    if let Ok(push) = ingest.find(id).await {
        let said = match (push.status, push.next_attempt_at) {
            (PushStatus::Scheduled, Some(at)) => format!(", at the first time of `{cron}`: {}", time(at)),
            _ => format!(": {}", push.explanation),
        };
        output::note(format_args!("it is sent once{}", output::harmless(&said)));
    }
}

/// Waits until a push has ended, and says whether it was sent.
async fn until_ended(ingest: &Ingest, id: Uuid) -> anyhow::Result<bool> {
    let progress = Progress::waiting("waiting until it has ended");
    let (mut told, began) = (String::new(), Instant::now());
    loop {
        let push = ingest.find(id).await?;
        let standing = format!("{id} is {}: {}", push.status, output::harmless(&push.explanation));
        match push.status {
            PushStatus::Sent | PushStatus::Failed | PushStatus::GivenUp => {
                progress.note(standing);
                return Ok(push.status == PushStatus::Sent);
            }
            // What is queued is sent within moments; what is not says why.
            status
                if told != standing
                    && (matches!(status, PushStatus::Retry | PushStatus::Scheduled)
                        || began.elapsed() >= TELL) =>
            {
                progress.note(&standing);
                told = standing;
            }
            _ => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn show(ingest: &Ingest, id: Uuid, form: Form) -> anyhow::Result<()> {
    let document: Value = ingest.get(&format!("/push/{id}"), &()).await?;
    if form == Form::Json {
        return output::json(&document);
    }
    let push: Push = serde_json::from_value(document)?;
    let mut table = Table::record("push", &push.id.to_string());
    for (name, value) in properties(&push) {
        table.add_row([name, output::harmless(&value).as_str()]);
    }
    form.table(&table)?;
    if form.is_for_people() {
        form.table(&attempts_of(&push))?;
    }
    Ok(())
}

fn attempts_of(push: &Push) -> Table {
    let mut attempts = output::table([
        Column::whole("attempt"),
        Column::whole("started").spare(2),
        Column::whole("took").spare(1),
        Column::whole("status"),
        Column::prose("error"),
    ]);
    for attempt in &push.history {
        attempts.add_row([
            attempt.number.to_string(),
            time(attempt.started_at),
            attempt
                .millis
                .map(|millis| format!("{millis} ms"))
                .unwrap_or_default(),
            attempt.status.clone(),
            output::harmless(&error_of(attempt)),
        ]);
    }
    attempts
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn properties(push: &Push) -> Vec<(&'static str, String)> {
    let rows = [
        ("status", Some(push.status.to_string())),
        ("explanation", Some(push.explanation.clone())),
        ("reason", push.reason.clone()),
        ("platform", Some(push.platform.clone())),
        ("prototype", push.message_prototype_key.clone()),
        ("cron", push.cron_expression.clone()),
        ("created", Some(time(push.created_at))),
        ("next attempt", push.next_attempt_at.map(time)),
        ("finished", push.finished_at.map(time)),
        ("attempts", Some(push.attempts.to_string())),
    ];
    let given = |(name, value): (_, Option<_>)| Some((name, value?));
    rows.into_iter().filter_map(given).collect()
}

/// The HTTP status of an answer, and the code in its body where that is another number.
pub(super) fn answer(status: Option<i64>, code: Option<i64>) -> Option<String> {
    match (status, code) {
        (Some(status), Some(code)) if code != status => Some(format!("{status}, code {code}")),
        (status, code) => status.or(code).map(|number| number.to_string()),
    }
}

fn error_of(attempt: &Attempt) -> String {
    let code = answer(attempt.response_status, attempt.swrve_error_code);
    let parts = [
        attempt.error_type.map(|kind| kind.as_str().to_owned()),
        code,
        attempt.swrve_error_message.clone(),
        attempt.other_error.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn a_push_is_named_by_its_identifier_or_by_the_location_that_was_answered() {
        let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
        for text in [
            id.to_owned(),
            format!("/push/{id}"),
            format!("http://127.0.0.1:8080/push/{id}"),
        ] {
            assert_eq!(identifier(&text).unwrap().to_string(), id);
        }
        assert!(identifier("/push/nonsense").is_err());
    }

    #[test]
    fn an_answer_names_its_status_and_a_code_that_is_another_number() {
        for (status, code, told) in [
            (Some(503), Some(503), Some("503")),
            (Some(400), Some(1042), Some("400, code 1042")),
            (None, Some(1042), Some("1042")),
            (Some(200), None, Some("200")),
            (None, None, None),
        ] {
            assert_eq!(answer(status, code).as_deref(), told);
        }
    }

    #[test]
    fn what_is_beyond_the_pace_is_waited_for_up_to_a_minute() {
        let refused = |status, seconds: Option<u64>| Answer::Refused {
            status,
            retry_after: seconds.map(Duration::from_secs),
            problem: Problem::default(),
        };
        let seconds =
            |answer: &Answer, waited| pause(answer, Duration::from_secs(waited)).map(|pause| pause.as_secs());
        assert_eq!(seconds(&refused(429, Some(3)), 0), Some(3));
        assert_eq!(seconds(&refused(429, Some(0)), 0), Some(1));
        assert_eq!(seconds(&refused(429, Some(3)), 57), Some(3));
        assert_eq!(seconds(&refused(429, Some(3)), 58), None);
        assert_eq!(seconds(&refused(429, Some(u64::MAX)), 58), None);
        assert_eq!(seconds(&refused(429, None), 0), None);
        assert_eq!(seconds(&refused(503, Some(3)), 0), None);
    }
}
