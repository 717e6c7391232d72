//! What the status shows in tables: lanes, queues, processes.

use serde_json::Value;

use super::words;
use crate::age::length;
use crate::output::{Column, Table, harmless, table};
use crate::shown::items;

pub(super) fn lanes(status: &Value) -> Table {
    let bound = status["countedUpTo"].as_u64().unwrap_or(u64::MAX);
    let count = |value: &Value| counted(value, bound);
    let mut shown = table([
        Column::whole("lane"),
        Column::whole("scheduled").spare(3),
        Column::whole("pending"),
        Column::whole("queued"),
        Column::whole("in flight").spare(2),
        Column::whole("retry"),
        Column::whole("lost"),
        Column::whole("oldest due"),
        Column::whole("time left").spare(5),
        Column::whole("per second").spare(1),
        Column::whole("failed").spare(4),
        Column::whole("dead letters"),
    ]);
    for lane in items(&status["lanes"]) {
        let name = words(&lane["lane"]);
        let name = if lane["paused"] == true {
            format!("{name} (paused)")
        } else {
            name
        };
        let rate = &lane["ratePerSecond"];
        let oldest = lane["oldestPendingSeconds"]
            .as_u64()
            .max(lane["oldestDueSeconds"].as_u64());
        shown.add_row([
            name,
            count(&lane["scheduled"]),
            count(&lane["pending"]),
            count(&lane["queued"]),
            count(&lane["inFlight"]),
            count(&lane["retry"]),
            count(&lane["lost"]),
            oldest.map_or("-".to_owned(), length),
            time_left(lane, bound),
            words(&rate["delivered"]),
            words(&rate["failed"]),
            count(&lane["deadLetters"]["open"]),
        ]);
    }
    shown
}

/// How long the backlog of a lane takes at its present pace; of more than is counted, at least how long.
fn time_left(lane: &Value, bound: u64) -> String {
    let more = lane["pending"].as_u64() > Some(bound);
    let least = if more { "> " } else { "" };
    lane["backlogSeconds"]
        .as_u64()
        .map_or("-".to_owned(), |left| format!("{least}{}", length(left)))
}

pub(super) fn broker(status: &Value) -> Table {
    let mut shown = table(["queue", "messages", "consumers", "capacity"]);
    for queue in items(&status["broker"]["queues"]) {
        let cells = ["name", "messages", "consumers", "capacity"];
        shown.add_row(cells.map(|cell| words(&queue[cell])));
    }
    shown
}

pub(super) fn processes(status: &Value) -> Table {
    let mut shown = table([
        Column::whole("service"),
        Column::whole("host"),
        Column::whole("process").spare(1),
        Column::whole("version").spare(4),
        Column::whole("since").spare(3),
        Column::whole("seen").spare(2),
        Column::prose("state"),
    ]);
    for process in items(&status["processes"]) {
        let failing = process["failing"].as_object();
        let failing: Vec<String> = failing
            .into_iter()
            .flatten()
            .map(|(name, reason)| format!("{}: {}", harmless(name), words(reason)))
            .collect();
        let state = match (
            process["silent"] == true,
            failing.is_empty(),
            process["leads"] == true,
        ) {
            (true, _, _) => "silent".to_owned(),
            (false, false, _) => failing.join(", "),
            (false, true, true) => "ready, leads the push lane".to_owned(),
            (false, true, false) => "ready".to_owned(),
        };
        shown.add_row([
            words(&process["service"]),
            words(&process["host"]),
            words(&process["pid"]),
            words(&process["version"]),
            words(&process["startedAt"]),
            process["seenSecondsAgo"]
                .as_u64()
                .map_or("-".to_owned(), |age| format!("{} ago", length(age))),
            state,
        ]);
    }
    shown
}

fn counted(value: &Value, bound: u64) -> String {
    match value.as_u64() {
        Some(count) if count > bound => format!("> {bound}"),
        _ => words(value),
    }
}
