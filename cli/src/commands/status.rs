//! `postrider status`: what is wrong, in words, and then the numbers.

mod changes;
mod tables;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use domain::counted::of;
use reqwest::StatusCode;
use serde_json::Value;

use self::changes::Changes;
use self::tables::{broker, lanes, processes};
use crate::age::length;
use crate::api::Api;
use crate::operator::OperatorArgs;
use crate::output::{
    BAD, COMMAND, GOOD, JsonArgs, error, exact, hanging, harmless, height, json, of_severity, result, styled,
    top, width,
};
use crate::problem::Refusal;
use crate::shown::items;

/// Something is critical, or a warning.
const UNHEALTHY: u8 = 3;
/// Where what is said of a finding begins.
const INDENT: usize = 10;
/// Makes a terminal begin a new picture at its top.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

const EXAMPLES: &str = "\
Examples:
  postrider status                 what is wrong, and the command that helps; then lanes, queues and processes
  postrider status --watch         what fits on the screen of it every two seconds, until Ctrl-C
  postrider status --watch 10      in a pipe each look begins with a line of its time and of what has changed
  postrider status --json | jq '.findings[] | select(.severity == \"critical\") | .text'

Exit codes:
  0  healthy
  1  could not find out
  3  something is critical, or a warning";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    form: JsonArgs,
    /// Asks again every so many seconds, until Ctrl-C, and says which findings are new and which have gone; the exit code is that of
    /// the last answer.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    watch: Option<u64>,
    #[command(flatten)]
    operator: OperatorArgs,
}

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let api = args.operator.connect()?;
    let Some(seconds) = args.watch else {
        let status = ask(&api).await?;
        show(&status, args.form.is_json())?;
        return Ok(code(&status));
    };
    let mut last = ExitCode::FAILURE;
    let mut changes = Changes::default();
    let mut ticks = tokio::time::interval(Duration::from_secs(seconds));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            biased;
            _ = &mut interrupted => return Ok(last),
            _ = ticks.tick() => {}
        }
        let asked = tokio::select! {
            _ = &mut interrupted => return Ok(last),
            asked = ask(&api) => asked,
        };
        let screen = height().filter(|_| io::stdout().is_terminal() && !args.form.is_json());
        if screen.is_some() {
            // Past what takes colours away, which takes this away, too.
            exact(CLEAR)?;
        }
        match asked {
            Ok(status) => {
                changes.look(&status);
                match screen {
                    Some(height) => result(on_screen(&status, &changes, (width(), height)))?,
                    None if args.form.is_json() => json(&status)?,
                    None => result(format_args!("{}{}\n", changes.separator(), picture(&status, "")))?,
                }
                last = code(&status);
            }
            Err(failure) => {
                error(&failure);
                last = ExitCode::FAILURE;
            }
        }
    }
}

/// The status. An API that is there and cannot even look up a key has said what is wrong.
async fn ask(api: &Api) -> anyhow::Result<Value> {
    match api.get::<Value>("/status", &[("", ""); 0]).await {
        Ok(status) => Ok(status),
        Err(error) => match error.downcast_ref::<Refusal>() {
            Some(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => Ok(away(&refusal.problem.detail)),
            Some(_) => Err(error),
            None => Err(error).context(
                "could not find out how the system is: check OPERATOR_URL or --url, and whether operator-api runs \
                 (`postrider serve operator-api`)",
            ),
        },
    }
}

/// What there is to say when the API has no database to ask, in the shape of its own answers.
fn away(detail: &str) -> Value {
    serde_json::json!({
        "at": null,
        "healthy": false,
        "findings": [{
            "id": "database-away",
            "severity": "critical",
            "text": format!("The operator API cannot ask the database: {detail}."),
            "meaning": "Nothing is accepted and nothing is delivered. What was accepted is in the database and goes on when \
                        it is back. What else is wrong is not known until then.",
            "command": "psql \"$DATABASE_URL\" -c 'SELECT 1'",
            "runbook": "the-database-is-away",
        }],
    })
}

fn code(status: &Value) -> ExitCode {
    if status["healthy"] == true {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNHEALTHY)
    }
}

fn show(status: &Value, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return json(status);
    }
    result(picture(status, ""))?;
    Ok(())
}

/// What fits on a screen, what is wrong first: the rest would push that out of sight.
fn on_screen(status: &Value, changes: &Changes, screen: (Option<usize>, usize)) -> String {
    top(&picture(status, &changes.latest()), screen, "postrider status")
}

/// Everything, as people read it. `changes` follows the verdict.
fn picture(status: &Value, changes: &str) -> String {
    let mut text = String::new();
    let (verdict, style) = if status["healthy"] == true {
        ("Healthy", GOOD)
    } else {
        ("Something is wrong", BAD)
    };
    // An API of an earlier version says no more than whether it is healthy.
    let headline = status["headline"].as_str().unwrap_or(verdict);
    let verdict = styled(&harmless(headline), style);
    let at = status["at"]
        .as_str()
        .map_or(String::new(), |at| format!(", {}", harmless(at)));
    let since = status["since"]
        .as_str()
        .map_or(String::new(), |since| format!("; since {}", harmless(since)));
    let _ = writeln!(text, "{verdict}{at}{since}{changes}");
    for finding in items(&status["findings"]) {
        let _ = writeln!(text, "\n{}", told(finding));
    }
    for table in [lanes(status), broker(status), processes(status)] {
        if !table.is_empty() {
            let _ = writeln!(text, "\n{table}");
        }
    }
    let rest = rest(status);
    if !rest.is_empty() {
        let _ = writeln!(text, "\n{rest}");
    }
    text.trim_end().to_owned()
}

fn told(finding: &Value) -> String {
    let severity = words(&finding["severity"]);
    let begin = format!("{:<9} ", severity.to_uppercase());
    let begin = styled(&begin, of_severity(&severity));
    let mut text = hanging(&begin, &words(&finding["text"]), INDENT);
    if finding["meaning"]
        .as_str()
        .is_some_and(|meaning| !meaning.is_empty())
    {
        let meaning = hanging(&" ".repeat(INDENT), &words(&finding["meaning"]), INDENT);
        let _ = write!(text, "\n{meaning}");
    }
    if finding["command"].is_string() {
        let _ = write!(
            text,
            "\n          $ {}",
            styled(&words(&finding["command"]), COMMAND)
        );
    }
    let _ = write!(text, "\n          docs/runbook.md#{}", words(&finding["runbook"]));
    text
}

/// What needs no table.
fn rest(status: &Value) -> String {
    let mut text = String::new();
    for lane in items(&status["lanes"]) {
        let lost = lane["lost"].as_u64().unwrap_or_default();
        if lost > 0 {
            let what = match lane["lane"].as_str() {
                Some("push") => ("push", "pushes"),
                _ => ("notification", "notifications"),
            };
            let _ = writeln!(
                text,
                "lost: {} of which the message or the sender is gone, the first for {}; a retry-worker rescues them within seconds, \
                 `postrider rescue` at once (docs/runbook.md#nothing-is-rescued)",
                of(lost, what.0, what.1),
                lane["oldestLostSeconds"].as_u64().map_or("-".to_owned(), length)
            );
        }
    }
    let leader = &status["leader"];
    if leader.is_object() {
        let _ = writeln!(
            text,
            "push lane led by {}; its epoch {} began at {} (one begins with another leader, and also with a hold or after a pause of the lane)",
            if leader["host"].is_string() {
                format!("process {} on {}", words(&leader["pid"]), words(&leader["host"]))
            } else {
                words(&leader["holder"])
            },
            words(&leader["epoch"]),
            words(&leader["since"])
        );
    }
    if let Some(states) = status["subscriptions"]["states"].as_object() {
        let states: Vec<String> = states
            .iter()
            .map(|(state, count)| format!("{} {}", words(count), harmless(state)))
            .collect();
        let states = if states.is_empty() {
            "none".to_owned()
        } else {
            states.join(", ")
        };
        let _ = writeln!(
            text,
            "subscriptions: {states}; {} paused{}",
            words(&status["subscriptions"]["paused"]),
            match status["subscriptions"]["pausedByReseller"].as_u64() {
                None | Some(0) => String::new(),
                Some(own) => format!(", {own} of them by their resellers (postrider pauses)"),
            }
        );
    }
    if status["mails"].is_object() {
        let mails = &status["mails"];
        let _ = writeln!(
            text,
            "mails: {} waiting, {} failed within a day",
            words(&mails["waiting"]),
            words(&mails["failed"])
        );
    }
    let webpush = &status["webpush"];
    if webpush.is_object() {
        let _ = writeln!(
            text,
            "web push: {} on {}{}; {} direct and {} stored a second",
            of(
                webpush["connections"].as_u64().unwrap_or_default(),
                "user agent",
                "user agents"
            ),
            of(items(&webpush["nodes"]).len() as u64, "node", "nodes"),
            match webpush["countedSecondsAgo"].as_u64() {
                Some(ago) => format!(", counted {} ago", length(ago)),
                None => String::new(),
            },
            words(&webpush["directPerSecond"]),
            words(&webpush["storedPerSecond"])
        );
        for month in items(&webpush["months"]) {
            let _ = writeln!(
                text,
                "web push of {}: {} stored, {} registered",
                words(&month["month"]),
                of(
                    month["messages"].as_u64().unwrap_or_default(),
                    "message",
                    "messages"
                ),
                of(
                    month["userAgents"].as_u64().unwrap_or_default(),
                    "user agent",
                    "user agents"
                )
            );
        }
    }
    if status["partitions"].is_object() {
        let _ = writeln!(
            text,
            "partitions: {} ahead",
            of(
                status["partitions"]["monthsAhead"].as_u64().unwrap_or_default(),
                "month",
                "months"
            )
        );
    }
    for job in items(&status["jobs"]) {
        let _ = writeln!(
            text,
            "job {}: {} {}, {} of {}",
            words(&job["id"]),
            words(&job["action"]).to_lowercase(),
            words(&job["status"]).to_lowercase(),
            words(&job["examined"]),
            words(&job["matching"])
        );
    }
    text.trim_end().to_owned()
}

/// A value as text; nothing is a dash.
fn words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => harmless(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::at_widths;

    /// The picture without colours.
    fn plain(status: &Value) -> String {
        anstream::adapter::strip_str(&picture(status, "")).to_string()
    }

    #[test]
    fn what_is_wrong_comes_first_with_the_command_that_helps() {
        let status = json!({
            "at": "2026-11-21T12:00:00Z", "healthy": false, "headline": "Something is wrong, with the lane push paused",
            "since": "2026-11-21T11:58:30Z", "countedUpTo": 100_000,
            "findings": [{"id": "service-missing", "severity": "critical", "text": "No dispatcher runs.",
                          "meaning": "No push is sent.", "command": "postrider serve dispatcher",
                          "runbook": "a-process-is-down"}],
            "lanes": [{"lane": "push", "paused": true, "pending": 100_001, "oldestPendingSeconds": 61}],
        });
        let text = plain(&status);
        let found = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("{part:?} is not in {text}"))
        };
        let headline =
            "Something is wrong, with the lane push paused, 2026-11-21T12:00:00Z; since 2026-11-21T11:58:30Z";
        assert!(found(headline) < found("CRITICAL  No dispatcher runs."));
        assert!(found("$ postrider serve dispatcher") < found("push (paused)"));
        found("docs/runbook.md#a-process-is-down");
        found("> 100000");
        found("1 min 1 s");
    }

    #[test]
    fn the_moment_of_the_leader_is_that_of_its_epoch_and_not_told_as_a_change_of_the_leader() {
        let status = json!({"healthy": true, "leader": {"holder": "one", "epoch": 4, "since": "2026-11-21T11:58:30Z", "host": "one", "pid": 17}});
        let text = plain(&status);
        let said = "push lane led by process 17 on one; its epoch 4 began at 2026-11-21T11:58:30Z (";
        assert!(text.contains(said) && text.contains("after a pause"), "{text}");
    }

    #[test]
    fn what_is_new_and_what_has_gone_is_told_once_with_its_time() {
        let status = |at: &str, ids: &[&str]| {
            let findings: Vec<_> = ids
                .iter()
                .map(|id| json!({"id": id, "command": null, "text": format!("{id} at {at}.")}))
                .collect();
            json!({"at": format!("2026-11-21T12:00:{at}Z"), "findings": findings})
        };
        let mut changes = Changes::default();
        changes.look(&status("00", &["a"]));
        assert_eq!(changes.separator(), "--- look 1 at 2026-11-21T12:00:00Z\n");
        changes.look(&status("02", &["a", "b"]));
        assert_eq!(
            changes.separator(),
            "--- look 2 at 2026-11-21T12:00:02Z\n12:00:02 new: b at 02.\n"
        );
        changes.look(&status("04", &["b"]));
        let gone = "12:00:04 gone after 4 s: a at 02.";
        assert_eq!(changes.separator().lines().last(), Some(gone));
        assert_eq!(changes.latest(), format!("\n12:00:02 new: b at 02.\n{gone}"));
        changes.look(&status("06", &["b"]));
        assert_eq!(changes.separator().lines().count(), 1);
    }

    /// What the lines of a picture take on a terminal of this width.
    fn rows(text: &str, width: usize) -> usize {
        text.lines()
            .map(|line| line.chars().count().div_ceil(width).max(1))
            .sum()
    }

    #[test]
    fn a_screen_ends_at_its_height_with_what_is_wrong_first() {
        let finding = |number: u64| {
            let text = format!("Finding {number}.");
            json!({"severity": "warning", "text": text, "meaning": "m".repeat(100), "runbook": "clocks"})
        };
        let queue = |number: u64| json!({"name": format!("queue-{number}"), "messages": number});
        let status = json!({
            "healthy": false, "findings": (0..3).map(finding).collect::<Vec<_>>(),
            "broker": {"queues": (0..20).map(queue).collect::<Vec<_>>()},
        });
        let whole = plain(&status);
        for (width, height) in [(80, 24), (80, 6), (200, 24), (40, 10), (80, 2)] {
            let shown = on_screen(&status, &Changes::default(), (Some(width), height));
            let shown = anstream::adapter::strip_str(&shown).to_string();
            assert!(rows(&shown, width) < height, "{width} x {height}: {shown}");
            let (top, last) = shown.rsplit_once('\n').unwrap_or(("", &shown));
            assert!(whole.starts_with(top), "{shown}");
            let above = if top.is_empty() {
                0
            } else {
                top.split('\n').count()
            };
            let left = whole.lines().count() - above;
            assert_eq!(last, format!("{left} more lines: postrider status"));
            if height == 24 {
                assert!(top.contains("Finding 2."), "{width} x {height}: {shown}");
            }
        }
        assert_eq!(
            rows(&on_screen(&status, &Changes::default(), (None, 1_000)), 1_000),
            rows(&whole, 1_000)
        );
    }

    #[test]
    fn an_api_without_a_database_is_something_wrong_and_not_a_failure() {
        let status = away("the API key cannot be looked up now");
        assert_eq!(code(&status), ExitCode::from(UNHEALTHY));
        assert!(picture(&status, "").contains("cannot ask the database"));
    }

    #[test]
    fn what_is_lost_is_named_with_what_becomes_of_it() {
        let lane = |lane, lost| json!({"lane": lane, "lost": lost, "oldestLostSeconds": 7});
        let status = json!({"healthy": true, "lanes": [lane("push", 0), lane("reseller", 1)]});
        let said = rest(&status);
        assert!(said.starts_with("lost: 1 notification of which"), "{said}");
        assert!(
            said.contains("the first for 7 s") && said.contains("nothing-is-rescued"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }

    #[test]
    fn text_of_strangers_does_nothing_to_a_terminal() {
        let status = json!({"healthy": true, "findings": [{"severity": "notice", "text": "paused: \u{1b}[2J", "runbook": "x"}]});
        assert!(!picture(&status, "").contains("\u{1b}[2J"));
    }

    #[test]
    fn lanes_and_processes_fit_the_terminal() {
        let lane = |lane, paused| {
            json!({"lane": lane, "paused": paused, "scheduled": 1_204, "pending": 100_001, "queued": 5_000, "inFlight": 61,
                   "retry": 12, "lost": 0, "oldestDueSeconds": 93_784, "backlogSeconds": 430, "ratePerSecond": {"delivered": 244.7, "failed": 0.02},
                   "deadLetters": {"open": 12_043}})
        };
        let process = |service, failing: Value| {
            json!({"service": service, "host": "postrider-7d4b9c6f58-x2x9k", "pid": 4_711, "version": "0.1.0",
                   "startedAt": "2026-11-21T12:00:00.123456Z", "seenSecondsAgo": 3, "leads": service == "dispatcher",
                   "failing": failing})
        };
        let status = json!({
            "countedUpTo": 100_000, "lanes": [lane("push", true), lane("reseller", false)],
            "processes": [
                process("dispatcher", json!({})),
                process("retry-worker", json!({"broker": "the connection to rabbitmq-0.rabbitmq.internal:5672 was refused"})),
            ],
        });
        insta::assert_snapshot!("lanes_fit_the_terminal", at_widths(&lanes(&status)));
        insta::assert_snapshot!("processes_fit_the_terminal", at_widths(&processes(&status)));
    }
}
