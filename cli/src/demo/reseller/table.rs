//! What became of each kind of event, as a table.

use super::case::{Ended, Posted};
use crate::demo::table::{answer, counted};
use crate::ingest::{Answer, Notification};
use crate::output::{self, Column, Table};

/// One row per case.
pub(super) fn of(cases: &[Ended]) -> Table {
    let mut table = output::table([
        Column::prose("event"),
        Column::whole("posted").spare(1),
        Column::prose("answer").spare(2),
        Column::prose("status"),
        Column::whole("attempts").spare(3),
        Column::prose("what the API says of it"),
    ]);
    for ended in cases {
        let Posted { case, answers } = &ended.posted;
        let notifications = || ended.events.iter().flat_map(|event| &event.notifications);
        let attempts = notifications().filter(|notification| notification.attempts > 0);
        table.add_row([
            case.kind.to_owned(),
            answers.len().to_string(),
            counted(answers.iter().map(answer)),
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
    let refused = ended.posted.answers.iter().find_map(|answer| match answer {
        Answer::Refused { problem, .. } => Some(problem.to_string()),
        Answer::Accepted { .. } => None,
    });
    refused
        .or_else(|| ended.unseen.first().cloned())
        .unwrap_or_default()
}
