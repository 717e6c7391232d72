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
        Some(subject) => (subject.story, Some(subject.headline)),
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
    let standing = standing.map_or(String::new(), |standing| {
        format!(" Where that stands: {standing}")
    });
    Explanation {
        id: letter.id,
        kind: "deadLetter",
        state: letter.state.to_string(),
        headline: format!("{}{standing}", headline(letter, &about, context)),
        story: lines,
        next: next(letter),
        delay: None,
        commands: commands(letter),
    }
}

fn headline(letter: &DeadLetterView, about: &str, context: &Context) -> String {
    let by = letter.resolved_by.as_deref().unwrap_or("an operator");
    let at = letter
        .resolved_at
        .map_or(String::new(), |at| format!(", {}", context.when(at)));
    match letter.state {
        DeadLetterState::Replayed => format!("Was replayed by {by}{at}; it was about {about}."),
        DeadLetterState::Discarded => {
            let note = letter.note.as_deref().unwrap_or("no reason given");
            sentence(&format!(
                "Was discarded by {by}{at}; it was about {about}: {note}"
            ))
        }
        DeadLetterState::Open => format!(
            "Waits for an operator since {}; it is about {about}.",
            context.when(letter.created_at)
        ),
    }
}

fn next(letter: &DeadLetterView) -> Next {
    Next::some_time(match (letter.state, letter.reason) {
        (DeadLetterState::Open, DeadLetterReason::Malformed) => {
            "Nothing, until an operator discards it: what cannot be read cannot be replayed."
        }
        (DeadLetterState::Open, _) => "Nothing, until an operator replays or discards it.",
        _ => "Nothing: it is resolved.",
    })
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
