//! The story of an event: what became of each of its notifications, in short. Pure.

use chrono::TimeDelta;
use domain::notification::NotificationStatus;
use domain::subscription::PausedBy;
use store::PauseView;
use store::webhook::{EventNotification, EventView};

use crate::afterwards::Afterwards;
use crate::delay;
use crate::explanation::{
    Context, Explanation, Line, Next, end_of, ends_at, resolve, resume, said_of_all, sentence,
};
use crate::reseller::Sentence;
use crate::words::{endpoint, length, number, of};

/// Most notifications that are told one by one.
const TOLD_MAX: usize = 50;
/// Most commands about single notifications.
const COMMANDS_MAX: usize = 5;

/// What became of an event: of each of its notifications, in short.
pub fn describe(event: &EventView, context: &Context) -> Explanation {
    let notifications = &event.notifications;
    let sent = notifications
        .iter()
        .filter(|it| it.status == NotificationStatus::Sent)
        .count();
    let failed = notifications
        .iter()
        .filter(|it| {
            matches!(
                it.status,
                NotificationStatus::Failed | NotificationStatus::GivenUp
            )
        })
        .count();
    let waiting = notifications.len() - sent - failed;
    let state = match (notifications.len(), waiting, failed) {
        (0, _, _) => "UNMATCHED",
        (_, 0, 0) => "DELIVERED",
        (_, 0, _) => "ENDED",
        _ => "WAITING",
    };
    let mut said = match &event.missed {
        Some(missed) if notifications.is_empty() && missed.is_empty() => Sentence::new(
            "no-subscription",
            "Matched nothing: its reseller had no subscription when it came. It is stored, and nothing is sent.",
        ),
        _ => headline(notifications.len(), sent, failed, waiting),
    };
    let held = held_back(event, context);
    said.text.push_str(&held);
    let said = said.with("isHeldBack", !held.is_empty());
    let next = next(event, waiting, context);
    Explanation {
        story: lines(event, context),
        commands: commands(event, context),
        ..Explanation::new((event.id, "event", state.to_owned()), said, next)
    }
}

fn headline(all: usize, sent: usize, failed: usize, waiting: usize) -> Sentence {
    let count = |count: usize| number(count as u64);
    let of_all = format!(
        "Of its {} notifications {} delivered, {} still to be delivered, and {} will not be.",
        count(all),
        of(sent as u64, "is", "are"),
        of(waiting as u64, "is", "are"),
        count(failed)
    );
    let (code, text) = match all {
        0 => (
            "no-match",
            "Matched no subscription that was active when it came; it is stored, and nothing is sent.",
        ),
        1 if sent == 1 => ("delivered", "Its one notification was delivered."),
        1 if failed == 1 => ("not-delivered", "Its one notification will not be delivered."),
        1 => ("waits", "Its one notification is still to be delivered."),
        _ => ("several", of_all.as_str()),
    };
    Sentence::new(code, text)
        .with("notifications", all)
        .with("delivered", sent)
        .with("waiting", waiting)
        .with("failed", failed)
}

fn lines(event: &EventView, context: &Context) -> Vec<Line> {
    let (code, test) = match event.test_of {
        Some(_) => ("test-event", "A test event"),
        None => ("accepted", "Accepted"),
    };
    let text = format!(
        "{test}: {} of {}, known to receivers as {} ({} bytes).",
        event.event_type,
        event.reseller_id,
        event.event_id,
        number(event.body_bytes.into())
    );
    let accepted = Sentence::new(code, text)
        .with("eventType", &event.event_type)
        .with("reseller", &event.reseller_id)
        .with("eventId", &event.event_id)
        .with("bytes", event.body_bytes);
    let mut lines = vec![Line::new(event.created_at, accepted)];
    let missed = event.missed.iter().flatten().take(TOLD_MAX);
    lines.extend(missed.map(|missed| {
        let text = format!(
            "The subscription {} got nothing of it: {}.",
            missed.id, missed.miss
        );
        let said = Sentence::new("missed", text).with("subscription", missed.id);
        Line::new(event.created_at, said)
    }));
    lines.extend(event.notifications.iter().take(TOLD_MAX).map(|it| {
        let text = format!(
            "The notification {} for {} ({}): {}",
            it.id.uuid(),
            it.subscription_id,
            endpoint(&it.url),
            standing(it, event, context)
        );
        let said = Sentence::new("notification", text)
            .with("notification", it.id.uuid())
            .with("subscription", it.subscription_id)
            .with("status", it.status.as_str());
        Line::new(it.updated_at, said)
    }));
    lines.sort_by_key(|line| line.at);
    lines
}

/// The pauses by operators for whose end a notification waits, the widest first.
fn pauses_of<'a>(it: &EventNotification, event: &EventView, context: &'a Context) -> Vec<&'a PauseView> {
    match it.waits_for() {
        None | Some(PausedBy::Reseller) => Vec::new(),
        Some(PausedBy::Lane | PausedBy::AllOfReseller | PausedBy::Operator) => {
            context.pauses_of(&event.reseller_id, it.subscription_id)
        }
    }
}

/// How long after its event a notification was delivered, if that was late.
fn late(it: &EventNotification, event: &EventView) -> Option<TimeDelta> {
    let took = it.finished_at? - event.created_at;
    (it.status == NotificationStatus::Sent && took >= delay::LEAST).then_some(took)
}

/// Where a notification stands; of one that an operator holds back also who, since when and why.
fn standing(it: &EventNotification, event: &EventView, context: &Context) -> String {
    match &pauses_of(it, event, context)[..] {
        [] => {
            let said = crate::event_notification(it, context.now);
            let Some(late) = late(it, event) else {
                return said;
            };
            let took = length(late.to_std().unwrap_or_default());
            let said = said.trim_end_matches('.');
            format!("{said}, {took} after the event was accepted; its own story says what took the time.")
        }
        pauses => sentence(&format!("Waits: {}", said_of_all(pauses))),
    }
}

/// What keeps all that waits from being sent, as it follows the headline; nothing when some of it is on its way.
fn held_back(event: &EventView, context: &Context) -> String {
    let mut waiting = event.notifications.iter().filter(|it| !it.status.is_terminal());
    let Some(first) = waiting.clone().next() else {
        return String::new();
    };
    let Some(by) = first.waits_for() else {
        return String::new();
    };
    if !waiting.all(|it| it.waits_for() == Some(by)) {
        return String::new();
    }
    let why = match &pauses_of(first, event, context)[..] {
        [] => by.said().to_owned(),
        pauses => said_of_all(pauses),
    };
    sentence(&format!(" It is held back: {why}"))
}

fn next(event: &EventView, waiting: usize, context: &Context) -> Next {
    if waiting == 0 {
        return after_the_end(event, context);
    }
    let (paused, open): (Vec<_>, Vec<_>) = event
        .notifications
        .iter()
        .filter(|it| !it.status.is_terminal())
        .partition(|it| it.waits_for().is_some());
    let of_first = paused.first().map(|it| pauses_of(it, event, context));
    let by = paused.first().and_then(|it| it.waits_for());
    let are_alike = paused
        .iter()
        .all(|it| it.waits_for() == by && Some(pauses_of(it, event, context)) == of_first);
    // What ends the waiting of one may leave another waiting.
    let pauses = of_first.filter(|_| are_alike).unwrap_or_default();
    let pause = pauses.first();
    let ends = paused.first().map(|it| match pause {
        _ if !are_alike => (
            "resumed",
            "one by one, when what holds each back has ended, which its own story tells".to_owned(),
        ),
        Some(pause) => (
            "resumed",
            end_of(&pauses, &format!("the {} {}", pause.scope, pause.key)),
        ),
        None if it.waits_for() == Some(PausedBy::Reseller) => (
            "resumed-by-reseller",
            "when its reseller resumes the subscription, unless it is too old by then".to_owned(),
        ),
        None => ("resumed", "when an operator resumes it".to_owned()),
    });
    let ends = match ends {
        Some((code, ends)) if open.is_empty() => {
            let next = Next::some_time(code, format!("It goes on {ends}."))
                .with("scope", pause.map(|pause| &pause.scope))
                .with("key", pause.map(|pause| &pause.key));
            return Next {
                at: ends_at(&pauses),
                ..next
            };
        }
        ends => ends,
    };
    let ahead = open.iter().filter_map(|it| it.next_attempt_at);
    let mut next = match ahead.filter(|at| *at > context.now).min() {
        Some(at) => Next::at(
            at,
            "next-attempt",
            "The next attempt that waits for a time is made.",
        ),
        None => Next::some_time(
            "sent-in-turn",
            "What waits is sent in the turn of its subscription.",
        ),
    };
    if let Some((code, ends)) = ends {
        next.text = format!("{} What is paused goes on {ends}.", next.text);
        return next.with("pausedOnes", code);
    }
    next
}

/// What may still become of an event of which nothing waits: of those of its notifications that were not delivered, the most.
fn after_the_end(event: &EventView, context: &Context) -> Next {
    let undelivered = event
        .notifications
        .iter()
        .filter(|it| it.status != NotificationStatus::Sent);
    let afterwards = undelivered.map(|it| {
        let switch = it.resend_after_outage;
        let by_itself = it.outage && switch.unwrap_or(context.rules.after_outage);
        Afterwards::of(it.reason.as_ref(), by_itself, it.dead_letter.is_some())
    });
    let Some(most) = afterwards.max() else {
        return Next::some_time("done", "Nothing: it is done.");
    };
    let mut next = most.next();
    if event.notifications.len() > 1 {
        next.text = format!("{} Each that was not delivered has its own story.", next.text);
    }
    next
}

/// The commands for the dead letter of a notification that was not delivered, if it is the only one; of several, each notification's own
/// story has them.
fn about_dead_letter(event: &EventView) -> Vec<String> {
    let mut letters = event
        .notifications
        .iter()
        .filter(|it| it.status.is_terminal())
        .filter_map(|it| it.dead_letter);
    match (letters.next(), letters.next()) {
        (Some(letter), None) => resolve(letter).to_vec(),
        _ => Vec::new(),
    }
}

fn commands(event: &EventView, context: &Context) -> Vec<String> {
    let mut resumes: Vec<String> = Vec::new();
    let held = event.notifications.iter();
    for pause in held.flat_map(|it| pauses_of(it, event, context)) {
        let command = resume(pause);
        if resumes.len() < COMMANDS_MAX && !resumes.contains(&command) {
            resumes.push(command);
        }
    }
    let all = event.notifications.iter();
    let open = all.clone().filter(|it| it.status != NotificationStatus::Sent);
    let open = open
        .chain(all.filter(|it| late(it, event).is_some()))
        .take(COMMANDS_MAX)
        .map(|it| format!("postrider explain {}", it.id.uuid()));
    let resume_and_open = resumes.into_iter().chain(open);
    resume_and_open.chain(about_dead_letter(event)).collect()
}
