//! What became of each kind of event, as a table.

use super::case::{Ended, Posted};
use crate::demo::table::{answered, counted, empty, why_not};
use crate::ingest::Notification;
use crate::output::Table;

/// One row per case.
pub(super) fn of(cases: &[Ended]) -> Table {
    let mut table = empty("event");
    for ended in cases {
        let Posted { case, answers } = &ended.posted;
        let notifications = || ended.events.iter().flat_map(|event| &event.notifications);
        let attempts = notifications().filter(|notification| notification.attempts > 0);
        table.add_row([
            case.kind.to_owned(),
            answers.len().to_string(),
            answered(answers),
            counted(notifications().map(|notification| notification.status.to_string())),
            counted(attempts.map(|notification| notification.attempts.to_string())),
            remark(ended),
        ]);
    }
    table
}

/// The notification about which there is most to say speaks for all.
fn remark(ended: &Ended) -> String {
    let notifications = ended.events.iter().flat_map(|event| &event.notifications);
    if let Some(notification) =
        notifications.max_by_key(|notification: &&Notification| notification.explanation.len())
    {
        return notification.explanation.clone();
    }
    if !ended.events.is_empty() {
        return "Stored; no subscription wants it.".to_owned();
    }
    why_not(&ended.posted.answers, &ended.unseen)
}
