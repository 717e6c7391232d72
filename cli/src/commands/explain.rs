//! `postrider explain`: the story of one push, event, notification, dead letter, subscription, or user agent of Web Push.

use std::fmt::Write as _;

use clap::{ArgGroup, Args};
use serde_json::Value;

use crate::commands::search;
use crate::operator::OperatorArgs;
use crate::output::{COMMAND, Form, JsonArgs, STRONG, hanging, harmless, json, result, styled};
use crate::shown::items;
use crate::web;

const EXAMPLES: &str = "\
Examples:
  postrider explain 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider explain order-17 --reseller acme      an event, by what its caller called it
  postrider explain order-17                      the same, if one reseller alone has such an event
  postrider explain --device 463B3209             did the device get its push?
  postrider explain 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group(ArgGroup::new("what").args(["id", "device"]).required(true)))]
pub(crate) struct ExplainArgs {
    /// The identifier of a push, an event, a notification, a dead letter, a subscription, or a user agent or message of Web Push; the path or
    /// address at which a push or event is looked up, such as /push/ID; with --reseller the `eventId` of an event, or a value in its data; any other text for which
    /// `postrider find` finds one of these.
    id: Option<String>,
    /// The push for this device, or a list of them if there are several: the push key that they were handed in with.
    #[arg(long, value_name = "PUSH_KEY", conflicts_with = "reseller")]
    device: Option<String>,
    /// Whose event it is, when it is named by the `eventId` that its caller gave, or by a value in its data.
    #[arg(long, value_name = "RESELLER")]
    reseller: Option<String>,
    #[command(flatten)]
    form: JsonArgs,
    #[command(flatten)]
    operator: OperatorArgs,
}

pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<()> {
    let api = args.operator.connect()?;
    let listed = if args.form.is_json() {
        Form::Json
    } else {
        Form::Table
    };
    let id = match args.device {
        Some(device) => search::pushes_of(&args.operator, &device, listed).await?,
        None => args.id,
    };
    let Some(id) = id else { return Ok(()) };
    let query = [("reseller", &args.reseller)];
    let story: Value = api.get(&web::path(&["explain", &id]), &query).await?;
    if args.form.is_json() {
        return json(&story);
    }
    result(told(&story))?;
    Ok(())
}

/// The story as people read it.
fn told(story: &Value) -> String {
    let text_of = |value: &Value| value.as_str().map(harmless).unwrap_or_default();
    let kind = match story["kind"].as_str() {
        Some("deadLetter") => "dead letter".to_owned(),
        Some("userAgent") => "user agent".to_owned(),
        _ => text_of(&story["kind"]),
    };
    let headline = format!("{kind} {}: {}", text_of(&story["id"]), text_of(&story["state"]));
    let mut text = format!(
        "{}\n{}\n",
        styled(&headline, STRONG),
        hanging("", &text_of(&story["headline"]), 0)
    );
    if let Some(delay) = story["delay"]["text"].as_str() {
        let _ = writeln!(text, "{}", hanging("", &harmless(delay), 0));
    }
    let lines = items(&story["story"]);
    if !lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        let at = format!("{}  ", second(&text_of(&line["at"])));
        let _ = writeln!(text, "{}", hanging(&at, &text_of(&line["text"]), at.len()));
    }
    let mut next = text_of(&story["next"]["text"]);
    // The end of a pause and the opening of a window are in the sentence.
    let at = story["next"]["at"].as_str();
    let at = at.map(|at| second(&harmless(at)));
    if let Some(at) = at.filter(|at| !next.contains(at)) {
        let _ = write!(next, " ({at})");
    }
    let _ = write!(text, "\n{}", hanging("Next: ", &next, 6));
    let commands = items(&story["commands"]);
    if !commands.is_empty() {
        text.push('\n');
    }
    for command in commands {
        let _ = write!(text, "\n  $ {}", styled(&text_of(command), COMMAND));
    }
    text
}

/// A time of the API, to the second.
fn second(at: &str) -> String {
    match at.get(..19) {
        Some(second) if at.ends_with('Z') => format!("{} UTC", second.replace('T', " ")),
        _ => at.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_story_is_told_line_by_line() {
        let story = json!({
            "id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "kind": "push", "state": "RETRY",
            "headline": "Is tried again at 2026-11-21 12:01:30 UTC (in 30 s): attempt 1 of 5 failed.",
            "delay": {"text": "1 min since it was accepted: 1 min waiting for another attempt.", "parts": []},
            "story": [{"at": "2026-11-21T12:00:00.123456Z", "text": "Accepted for IOS."}],
            "next": {"at": "2026-11-21T12:01:30Z", "text": "The retry-worker puts it into the queue again."},
            "commands": ["postrider rescue"],
        });
        assert_eq!(
            anstream::adapter::strip_str(&told(&story)).to_string(),
            "push 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d: RETRY\n\
             Is tried again at 2026-11-21 12:01:30 UTC (in 30 s): attempt 1 of 5 failed.\n\
             1 min since it was accepted: 1 min waiting for another attempt.\n\n\
             2026-11-21 12:00:00 UTC  Accepted for IOS.\n\n\
             Next: The retry-worker puts it into the queue again. (2026-11-21 12:01:30 UTC)\n\n  $ postrider rescue"
        );
    }

    #[test]
    fn a_time_that_the_next_sentence_names_is_told_once() {
        let said = "It goes on when the lane is resumed, or by itself at 2026-11-29 11:57:00 UTC.";
        let story = json!({
            "id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "kind": "push", "state": "PENDING", "headline": "Is held back.",
            "story": [], "next": {"at": "2026-11-29T11:57:00.5Z", "text": said}, "commands": [],
        });
        let told = anstream::adapter::strip_str(&told(&story)).to_string();
        assert!(told.ends_with(&format!("\nNext: {said}")), "{told}");
    }
}
