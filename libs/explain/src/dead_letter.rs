//! The story of a dead letter, which begins with that of what it is about. Pure.

use store::{AuditView, DeadLetterReason, DeadLetterState, DeadLetterView};

use crate::explanation::{Context, Explanation, Line, Next, of_acts, resolution, resolve, sentence};
use crate::reseller::Sentence;

/// The acts of the audit log that resolve it.
const RESOLVING: [&str; 2] = ["dead-letter.replay", "dead-letter.discard"];

/// `subject` is the story of what it is about, if that is still known.
pub fn describe(
    letter: &DeadLetterView,
    acts: &[AuditView],
    subject: Option<Explanation>,
    context: &Context,
) -> Explanation {
    let about = match (letter.push, letter.notification) {
        (Some(push), _) => format!("the push {push}"),
        (None, Some(notification)) => format!("the notification {notification}"),
        (None, None) => "a message that could not be read".to_owned(),
    };
    let text = sentence(&format!(
        "The dead letter was made ({}, {}): {}",
        letter.reason, letter.fingerprint, letter.detail
    ));
    let made = Sentence::new("dead-letter-made", text)
        .with("reason", letter.reason.to_string())
        .with("fingerprint", &letter.fingerprint)
        .with("detail", &letter.detail);
    let (mut lines, standing) = match subject {
        Some(subject) => (subject.story, Some((subject.headline_code, subject.headline))),
        None => (Vec::new(), None),
    };
    // What it is about tells of its dead letters too.
    let own = format!("dead letter {}", letter.id);
    let resolution = resolution(letter);
    lines.retain(|line| !line.text.contains(&own) && resolution.as_ref() != Some(line));
    lines.push(Line::new(letter.created_at, made));
    // Its resolution tells what one that is resolved by itself has in the audit log, too.
    let is_told = |act: &&AuditView| resolution.is_some() && RESOLVING.contains(&act.action.as_str());
    lines.extend(of_acts(acts.iter().filter(|act| !is_told(act))));
    lines.extend(resolution);
    lines.sort_by_key(|line| line.at);
    let mut said = headline(letter, &about, context);
    if let Some((code, standing)) = standing {
        said.text.push_str(&format!(" Where that stands: {standing}"));
        said = said.with("stands", code);
    }
    let of = (letter.id, "deadLetter", letter.state.to_string());
    Explanation {
        story: lines,
        commands: commands(letter),
        ..Explanation::new(of, said, next(letter))
    }
}

fn headline(letter: &DeadLetterView, about: &str, context: &Context) -> Sentence {
    let by = letter.resolved_by.as_deref().unwrap_or("an operator");
    let at = letter
        .resolved_at
        .map_or(String::new(), |at| format!(", {}", context.when(at)));
    let (code, text) = match letter.state {
        DeadLetterState::Replayed => (
            "replayed",
            format!("Was replayed by {by}{at}; it was about {about}."),
        ),
        DeadLetterState::Discarded => {
            let note = letter.note.as_deref().unwrap_or("no reason given");
            let text = format!("Was discarded by {by}{at}; it was about {about}: {note}");
            ("discarded", sentence(&text))
        }
        DeadLetterState::Open => (
            "open",
            format!(
                "Waits for an operator since {}; it is about {about}.",
                context.when(letter.created_at)
            ),
        ),
    };
    Sentence::new(code, text)
        .with("push", letter.push)
        .with("notification", letter.notification)
        .with("since", letter.created_at)
        .with("at", letter.resolved_at)
        .with("by", &letter.resolved_by)
        .with("note", &letter.note)
}

fn next(letter: &DeadLetterView) -> Next {
    let (code, text) = match (letter.state, letter.reason) {
        (DeadLetterState::Open, DeadLetterReason::Malformed) => (
            "discard",
            "Nothing, until an operator discards it: what cannot be read cannot be replayed.",
        ),
        (DeadLetterState::Open, _) => ("resolve", "Nothing, until an operator replays or discards it."),
        _ => ("done", "Nothing: it is resolved."),
    };
    Next::some_time(code, text)
}

fn commands(letter: &DeadLetterView) -> Vec<String> {
    let mut commands = Vec::new();
    if letter.state == DeadLetterState::Open {
        let can_be_sent = letter.reason != DeadLetterReason::Malformed;
        let all = resolve(letter.id).into_iter();
        commands.extend(all.filter(|command| can_be_sent || !command.contains(" replay ")));
    }
    if let Some(about) = letter.push.or(letter.notification) {
        commands.push(format!("postrider explain {about}"));
    }
    commands
}
