//! R7, all retries at once: trying now what of a subscription waits for its next attempt, counted first.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use domain::counted::of;
use http_api::{Id, Problem};
use pages::done_if;
use uuid::Uuid;

use super::confirm::Confirm;
use super::frame::Frame;
use super::scheduled::COUNTED_MAX;
use super::{Route, words};
use crate::app::App;
use crate::notifications::WaitsFor;
use crate::notifications::waiting::{self, SummaryDocument};
use crate::request::{Reseller, Resender};
use crate::retry_now::{self, RetriesNowDocument};
use crate::subscriptions::SubscriptionDocument;

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/s/{id}/retry-now", ask),
        super::act("/app/s/{id}/retry-now", retry),
    ]
}

/// Where what waits is listed.
fn place(id: Uuid) -> String {
    format!("/app/s/{id}/scheduled")
}

fn form(frame: &Frame, subscription: &SubscriptionDocument, summary: &SummaryDocument) -> Confirm {
    let retries = summary.waiting.iter().filter(|sum| sum.reason == WaitsFor::Retry);
    let count: u64 = retries.map(|sum| sum.count).sum();
    let obstacle = super::takes_nothing(subscription.state);
    let or_more = if count >= u64::from(summary.counted_up_to) {
        " or more"
    } else {
        ""
    };
    let waits = of(count, "notification", "notifications");
    let mut said = vec![format!(
        "{waits}{or_more} of {} {} for the next attempt.",
        words::place(&subscription.url),
        if count == 1 { "waits" } else { "wait" }
    )];
    match obstacle {
        Some(why) => said.push(format!("Nothing is tried now: {why}.")),
        None if count == 0 => said.push("There is nothing to try.".to_owned()),
        None => said.push(
            "Those that are due first are tried at once, at most 1,000 of them, at the pace of the subscription. Each uses one of the attempts \
             that it has left: while the endpoint is out of order, wait. What is under way cannot be called back."
                .to_owned(),
        ),
    }
    if obstacle.is_none() && summary.paused_by.is_some() {
        said.push("The subscription is paused: they are tried when the pause ends.".to_owned());
    }
    let is_possible = count > 0 && obstacle.is_none();
    Confirm {
        id: "retry-now",
        title: "Try all of them now".to_owned(),
        said,
        action: format!("/app/s/{}/retry-now", subscription.id),
        back: place(subscription.id),
        button: if is_possible { "Try them now" } else { "" },
        is_dangerous: false,
        expected: None,
        needs: "resend",
        may: frame.may_resend(),
        in_dialog: false,
        typed: None,
    }
}

async fn ask(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let subscription = super::subscription(&app, &reseller, id).await?;
    let summary = waiting::sums(&app, &reseller, id, COUNTED_MAX).await?;
    Ok(form(&frame, &subscription, &summary).page(frame))
}

async fn retry(State(app): State<Arc<App>>, resender: Resender, Id(id): Id) -> Result<Response, Problem> {
    let Json(tried) = retry_now::retry_now(State(app), resender, Id(id)).await?;
    Ok(done_if(tried.retries > 0, &place(id), &said_of(&tried)))
}

/// What is tried at once, in sentences.
fn said_of(tried: &RetriesNowDocument) -> String {
    if tried.retries == 0 {
        return "Nothing waits for its next attempt that is not due already.".to_owned();
    }
    let are = of(tried.retries, "is", "are");
    let mut said = match tried.paused_by {
        None => format!("{are} tried now, at the pace of the subscription."),
        Some(_) => format!("{are} due now, and tried when the pause ends."),
    };
    if tried.more {
        said.push_str(" Others may be left: the same once more has the next ones tried.");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_how_many_are_tried_and_what_keeps_them() {
        let said = |retries, more, paused_by| {
            said_of(&RetriesNowDocument {
                retries,
                more,
                paused_by,
            })
        };
        assert_eq!(
            said(1_000, true, None),
            "1,000 are tried now, at the pace of the subscription. Others may be left: the same once more has the next ones tried."
        );
        assert_eq!(
            said(1, false, Some("RESELLER")),
            "1 is due now, and tried when the pause ends."
        );
        assert!(said(0, false, None).ends_with("not due already."));
    }
}
