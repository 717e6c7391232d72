//! What a lane waits for, added up: as far as the look at the system knows it that all pages share, so that no list is counted for it.

use std::cmp::Reverse;

use explain::words;

use crate::status::StatusDocument;

/// What all of the lane waits for, the most first, and why; none where nothing waits, or the database cannot be asked.
pub(super) fn said(status: &StatusDocument, lane: &str) -> Option<String> {
    let of = status.lanes.iter().flatten().find(|of| of.lane == lane)?;
    let is_push = lane == "push";
    let in_line = if is_push {
        "for a sending window"
    } else {
        "in line for a daily quota or requests per second"
    };
    let mut sums = [
        (of.scheduled, in_line),
        (of.pending, "for room in the queue"),
        (of.queued, "in the queue"),
        (of.retry, "for another attempt"),
        (of.in_flight, "being sent"),
    ];
    sums.sort_by_key(|(count, _)| Reverse(*count));
    let sums: Vec<String> = sums
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", words::counted(*count)))
        .collect();
    if sums.is_empty() {
        return None;
    }
    let mut said = vec![format!("In the lane: {}.", sums.join(", "))];
    if !is_push {
        let quotas = status.findings.iter().find(|found| found.id == "quotas-used-up");
        said.extend(quotas.map(|found| found.text.clone()));
        let pauses = status.pauses.iter().flatten();
        let pauses = pauses.filter(|pause| pause.scope != "lane").count() as u64;
        if pauses > 0 {
            let pauses = words::of(
                pauses,
                "pause of a reseller or a subscription holds a part of them back",
                "pauses of resellers or subscriptions hold a part of them back",
            );
            said.push(format!("{pauses}."));
        }
    }
    Some(said.join(" "))
}
