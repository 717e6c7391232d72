//! The story of an event: what became of each of its notifications, in short. Pure.

use domain::notification::NotificationStatus;
use store::webhook::{EventNotification, EventView};

use crate::explanation::{Context, Explanation, Line, Next};
use crate::words::{number, origin};

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
    Explanation {
        id: event.id,
        kind: "event",
        state: state.to_owned(),
        headline: match &event.missed {
            Some(missed) if notifications.is_empty() && missed.is_empty() => {
                "Matched nothing: its reseller had no subscription when it came. It is stored, and nothing is sent.".to_owned()
            }
            _ => headline(notifications.len(), sent, failed, waiting),
        },
        story: lines(event, context),
        next: next(notifications, waiting, context),
        commands: commands(notifications),
    }
}

fn headline(all: usize, sent: usize, failed: usize, waiting: usize) -> String {
    let count = |count: usize| number(count as u64);
    match all {
        0 => "Matched no subscription that was active when it came; it is stored, and nothing is sent."
            .to_owned(),
        1 if sent == 1 => "Its one notification was delivered.".to_owned(),
        1 if failed == 1 => "Its one notification will not be delivered.".to_owned(),
        1 => "Its one notification is still to be delivered.".to_owned(),
        _ => format!(
            "Of its {} notifications {} are delivered, {} still to be delivered, and {} will not be.",
            count(all),
            count(sent),
            count(waiting),
            count(failed)
        ),
    }
}

fn lines(event: &EventView, context: &Context) -> Vec<Line> {
    let test = if event.test_of.is_some() {
        "A test event"
    } else {
        "Accepted"
    };
    let mut lines = vec![Line {
        at: event.created_at,
        text: format!(
            "{test}: {} of {}, known to receivers as {} ({} bytes).",
            event.event_type,
            event.reseller_id,
            event.event_id,
            number(event.body_bytes.into())
        ),
    }];
    let missed = event.missed.iter().flatten().take(TOLD_MAX);
    lines.extend(missed.map(|missed| Line {
        at: event.created_at,
        text: format!(
            "The subscription {} got nothing of it: {}.",
            missed.id, missed.miss
        ),
    }));
    lines.extend(event.notifications.iter().take(TOLD_MAX).map(|it| Line {
        at: it.updated_at,
        text: format!(
            "The notification {} for {} ({}): {}",
            it.id.uuid(),
            it.subscription_id,
            origin(&it.url),
            crate::event_notification(it, context.now)
        ),
    }));
    lines.sort_by_key(|line| line.at);
    lines
}

fn next(notifications: &[EventNotification], waiting: usize, context: &Context) -> Next {
    if waiting == 0 {
        return Next::some_time("Nothing: it is done.");
    }
    let ahead = notifications.iter().filter_map(|it| it.next_attempt_at);
    match ahead.filter(|at| *at > context.now).min() {
        Some(at) => Next::at(
            at,
            format!(
                "The next attempt that waits for a time is at {}.",
                context.when(at)
            ),
        ),
        None => Next::some_time("What waits is sent in the turn of its subscription."),
    }
}

fn commands(notifications: &[EventNotification]) -> Vec<String> {
    let open = notifications
        .iter()
        .filter(|it| it.status != NotificationStatus::Sent);
    open.take(COMMANDS_MAX)
        .map(|it| format!("postrider explain {}", it.id.uuid()))
        .collect()
}
