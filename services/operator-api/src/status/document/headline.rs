//! The headline of the status, with what operators hold by their pauses.

use explain::words::of;
use store::status::PAUSED_COUNTED_MAX;

use crate::status::facts::Tables;

pub(super) fn headline(healthy: bool, tables: Option<&Tables>, held: Option<&str>) -> String {
    let verdict = if healthy { "Healthy" } else { "Something is wrong" };
    let is_paused = |lane: &str| tables.is_some_and(|tables| tables.lane_is_paused(lane));
    let lanes = match (is_paused("push"), is_paused("reseller")) {
        (false, false) => None,
        (true, false) => Some("the lane push paused"),
        (false, true) => Some("the lane reseller paused"),
        (true, true) => Some("both lanes paused"),
    };
    match (lanes, held) {
        (None, None) => verdict.to_owned(),
        (Some(with), None) | (None, Some(with)) => format!("{verdict}, with {with}"),
        (Some(lanes), Some(held)) => format!("{verdict}, with {lanes}, and {held}"),
    }
}

/// What pauses of subscriptions and resellers hold, as far as it is counted.
pub(super) fn held(tables: &Tables) -> Option<String> {
    let pauses = &tables.pauses;
    let is_paused = |reseller: &str| {
        let mut pauses = pauses.iter();
        pauses.any(|pause| pause.scope == "reseller" && pause.key == reseller)
    };
    // What waits for a subscription of a paused reseller waits for that pause already.
    let widest = pauses.iter().filter(|pause| {
        let reseller = pause.reseller.as_deref();
        pause.scope != "lane" && reseller.is_none_or(|reseller| !is_paused(reseller))
    });
    let (mut holding, mut uncounted) = (Vec::new(), 0_u64);
    for pause in widest {
        match tables.waiting_for(pause) {
            Some(0) => {}
            Some(waiting) => holding.push((pause, waiting)),
            None => uncounted += 1,
        }
    }
    let at_least = if holding.iter().any(|(_, waiting)| *waiting > PAUSED_COUNTED_MAX) {
        "at least "
    } else {
        ""
    };
    let waiting = holding
        .iter()
        .map(|(_, waiting)| (*waiting).min(PAUSED_COUNTED_MAX));
    let waiting = of(waiting.sum::<u64>(), "notification", "notifications");
    let counted = match holding.as_slice() {
        [] => None,
        [(pause, _)] => {
            let whose = match &pause.reseller {
                Some(reseller) => format!("a subscription of {reseller}"),
                None => format!("the {} {}", pause.scope, pause.key),
            };
            Some(format!("a pause that holds {at_least}{waiting} of {whose}"))
        }
        several => Some(format!("{} pauses that hold {at_least}{waiting}", several.len())),
    };
    let others = (uncounted > 0).then(|| {
        let pauses = of(uncounted, "pause", "pauses");
        format!("{pauses} of which it is not counted what waits")
    });
    match (counted, others) {
        (Some(counted), Some(others)) => Some(format!("{counted}, and {others}")),
        (counted, others) => counted.or(others),
    }
}
