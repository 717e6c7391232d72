//! Writes arrivals down when they have ended, and compares each with what it must be.

use std::sync::Arc;

use simulators::receiver::Verdict;

use crate::ledger::{Answer, Arrival, Ledger};
use crate::traffic::{EventOrder, PushOrder};

/// Requests that are looked at in one go.
const PAGE: usize = 2_000;

pub(super) fn swrve(
    swrve: &simulators::swrve::Running,
    cursor: &mut u64,
    ledger: &Arc<Ledger>,
    at_last: bool,
) {
    loop {
        let page = swrve.received(*cursor, PAGE);
        let mut arrivals = ledger.at_swrve();
        if page.oldest > *cursor + 1 {
            arrivals.object(format!(
                "Swrve has forgotten requests from number {} on",
                *cursor + 1
            ));
        }
        let whole = page.items.len() == PAGE;
        for item in page.items {
            if item.outcome == simulators::swrve::Outcome::Pending && !at_last {
                return;
            }
            *cursor = item.number;
            if item.user.is_empty() {
                arrivals.broken_off += 1;
                continue;
            }
            if let Some(objection) = about_push(&item) {
                arrivals.object(objection);
            }
            let arrival = Arrival {
                at_micros: item.arrival_micros as u64,
                answer: item.status.map_or(Answer::None, Answer::Status),
            };
            arrivals.add(item.user, arrival);
        }
        if !whole {
            return;
        }
    }
}

/// What is wrong with it.
fn about_push(item: &simulators::swrve::Received) -> Option<String> {
    let user = &item.user;
    let Some(order) = PushOrder::of(user) else {
        return Some(format!("Swrve got a push for the unknown user {user}"));
    };
    let expected = (order.push_key(), order.message());
    let right = (item.push_key.as_str(), &item.message) == (expected.0, &expected.1);
    (!right).then(|| format!("Swrve got for {user} {:?} with {:?}", item.message, item.push_key))
}

pub(super) fn endpoints(
    endpoints: &simulators::receiver::Running,
    cursor: &mut u64,
    ledger: &Arc<Ledger>,
    at_last: bool,
) {
    loop {
        let page = endpoints.received(*cursor, PAGE);
        let mut arrivals = ledger.at_receivers();
        if page.oldest > *cursor + 1 {
            arrivals.object(format!(
                "the endpoints have forgotten requests from number {} on",
                *cursor + 1
            ));
        }
        let whole = page.items.len() == PAGE;
        for item in page.items {
            if item.outcome == simulators::receiver::Outcome::Pending && !at_last {
                return;
            }
            *cursor = item.number;
            if item.verdict == Verdict::Unread || item.id.is_empty() {
                arrivals.broken_off += 1;
                continue;
            }
            if let Some(objection) = about_notification(&item) {
                arrivals.object(objection);
            }
            let arrival = Arrival {
                at_micros: item.arrival_micros,
                answer: item.status.map_or(Answer::None, Answer::Status),
            };
            arrivals.add(format!("{}/{}", item.path, item.id), arrival);
        }
        if !whole {
            return;
        }
    }
}

/// What is wrong with it: the bytes, what it is known by, or the signature.
fn about_notification(item: &simulators::receiver::Received) -> Option<String> {
    let id = &item.id;
    let Some(order) = EventOrder::of(id) else {
        return Some(format!("{} got the unknown event {id}", item.path));
    };
    let expected = order.delivered();
    if item.method != "POST" || item.body != expected {
        return Some(format!("{} got for {id} {:?}", item.path, item.body));
    }
    let idempotency_key = signing::idempotency_key(expected.as_bytes());
    for (header, value) in [
        ("webhook-id", id),
        ("event-id", id),
        ("idempotency-key", &idempotency_key),
    ] {
        if item.headers.get(header) != Some(value) {
            return Some(format!(
                "{} got for {id} the {header} {:?}",
                item.path,
                item.headers.get(header)
            ));
        }
    }
    let verified = item.verdict == Verdict::Verified;
    (!verified).then(|| {
        format!(
            "{} got {id}, whose signature is {}",
            item.path,
            item.verdict.as_str()
        )
    })
}

#[cfg(test)]
mod tests;
