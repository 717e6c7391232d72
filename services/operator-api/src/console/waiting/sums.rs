//! What a lane waits for, added up as `GET /waiting` tells it, in one look that all pages share: no list is counted for it.

use domain::counted::number;
use explain::words;

use crate::status::StatusDocument;
use crate::waiting::WaitingDocument;

/// What all of the lane waits for, the most first, and why; none where nothing waits.
pub(super) fn said(waiting: &WaitingDocument, status: &StatusDocument, lane: &str) -> Option<String> {
    let of_lane = waiting.items.iter().filter(|waits| waits.lane == lane);
    let sums: Vec<String> = of_lane
        .map(|waits| {
            let more = if waits.more { " or more" } else { "" };
            format!("{}{more} {}", number(waits.count), waits.text)
        })
        .collect();
    if sums.is_empty() {
        return None;
    }
    let mut said = vec![format!("In the lane: {}.", sums.join(", "))];
    if lane != "push" {
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
