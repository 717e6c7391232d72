//! R6: the story of a notification, its attempts, and what it holds.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;
use explain::reseller::{Step, Story};
use http::header;
use http_api::{Id, Params, Problem, ProblemKind};
use pages::{Markup, Page, done};
use serde::Deserialize;

use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::notifications::document::AttemptDocument;
use crate::notifications::{self, NotificationDocument};
use crate::request::{Reseller, Resender};
use crate::secrets;
use crate::subscriptions::SubscriptionDocument;

/// Bodies up to here are shown as a whole.
const SHOWN_MAX_BYTES: usize = 64 * 1024;
/// What is shown of others.
const BEGINNING_BYTES: usize = 16 * 1024;
/// How many attempts have a tab.
const TABS: usize = 12;

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/n/{id}", page),
        super::page("/app/n/{id}/body", body),
        super::act("/app/n/{id}/resend", resend),
    ]
}

#[derive(Deserialize)]
struct AttemptParams {
    a: Option<u32>,
}

#[derive(Template)]
#[template(path = "notification.html")]
struct Notification {
    frame: Frame,
    document: NotificationDocument,
    subscription: SubscriptionDocument,
    story: Story,
    /// The attempt that is shown.
    at: Option<usize>,
    /// When the secrets were made that signed it.
    signed_with: Vec<DateTime<Utc>>,
}

/// A line of the comparison of two attempts.
struct Line {
    name: &'static str,
    before: Option<String>,
    now: String,
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<AttemptParams>,
) -> Result<impl IntoResponse, Problem> {
    // One after the other: a page takes one connection at a time, as an operation does.
    let (document, story) = notifications::find_with_story(&app, &reseller, id).await?;
    let subscription = super::subscription(&app, &reseller, document.subscription_id).await?;
    let secrets = secrets::of(&app, &reseller, document.subscription_id).await?;
    let asked = |attempt: &AttemptDocument| params.a.is_none_or(|number| attempt.number == number);
    // Of a number that no attempt has, the newest is shown.
    let at = document.history.iter().rposition(asked);
    let at = at.or_else(|| document.history.len().checked_sub(1));
    let started = at.map(|at| document.history[at].started_at);
    let signed = secrets.iter().filter(|secret| {
        let ended = [secret.expires_at, secret.revoked_at];
        started.is_some_and(|at| secret.created_at <= at && ended.iter().flatten().all(|end| *end > at))
    });
    Ok(Page(Notification {
        signed_with: signed.map(|secret| secret.created_at).collect(),
        frame,
        subscription,
        story,
        at,
        document,
    }))
}

/// What it holds, to the byte.
async fn body(State(app): State<Arc<App>>, reseller: Reseller, Id(id): Id) -> Result<Response, Problem> {
    let document = notifications::find(State(app), reseller, Id(id)).await?.0;
    if document.body.is_empty() {
        let detail = "this visit does not allow it: its link was made without the capability bodies";
        return Err(Problem::new(ProblemKind::FORBIDDEN, detail));
    }
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{id}.json\""),
        ),
    ];
    Ok((headers, document.body).into_response())
}

async fn resend(State(app): State<Arc<App>>, resender: Resender, Id(id): Id) -> Result<Response, Problem> {
    let _ = notifications::resend(State(app), resender, Id(id)).await?;
    let said = "It is sent again: the same event id and body. This page follows it.";
    Ok(done(&format!("/app/n/{id}"), said))
}

impl Notification {
    fn host(&self) -> String {
        words::place(&self.subscription.url)
    }

    /// Why one that has ended is not sent again, if it is not.
    fn not_resent(&self) -> Option<&'static str> {
        let row = &self.document.row;
        let is_cancelled = row.reason.as_deref() == Some(NotificationReason::Cancelled.as_str());
        match row.status {
            NotificationStatus::GivenUp if is_cancelled => Some("it was cancelled, which is final"),
            status if status.is_terminal() => super::takes_nothing(self.subscription.state),
            _ => None,
        }
    }

    fn is_over(&self) -> bool {
        self.document.row.status.is_terminal()
    }

    fn tone(&self) -> &'static str {
        match self.document.row.status {
            NotificationStatus::Sent => "ok",
            NotificationStatus::Failed | NotificationStatus::GivenUp => "bad",
            NotificationStatus::Retry => "warn",
            _ if self.document.row.paused_by.is_some() => "hold",
            _ => "wait",
        }
    }

    fn tone_of(&self, step: &Step) -> &'static str {
        match step.sentence.code {
            "attempt-delivered" => "ok",
            "attempt-failed" => "bad",
            "attempt-lost" => "warn",
            code if ["cancelled", "resend-cancelled", "held"]
                .iter()
                .any(|begin| code.starts_with(begin)) =>
            {
                "hold"
            }
            _ => "wait",
        }
    }

    /// The attempt that a step tells of.
    fn attempt_of(&self, step: &Step) -> Option<u64> {
        step.sentence.params.get("attempt")?.as_u64()
    }

    fn shown(&self) -> Option<&AttemptDocument> {
        self.document.history.get(self.at?)
    }

    fn is_shown(&self, attempt: &AttemptDocument) -> bool {
        self.shown().is_some_and(|shown| shown.number == attempt.number)
    }

    /// The attempt that is shown, beside the one before it.
    fn compared(&self) -> Vec<Line> {
        let Some(at) = self.at else { return Vec::new() };
        let before = at
            .checked_sub(1)
            .and_then(|before| self.document.history.get(before));
        let facts = |attempt: &AttemptDocument| {
            let answer = attempt.response.as_ref();
            [
                ("Sent to", attempt.request.url.clone()),
                (
                    "Answer",
                    answer.map_or("none".to_owned(), |answer| answer.status.to_string()),
                ),
                (
                    "Took",
                    attempt.millis.map_or(
                        "not over".to_owned(),
                        |millis| words::millis(millis.max(0) as f64),
                    ),
                ),
                (
                    "Error",
                    attempt.error.clone().unwrap_or_else(|| "none".to_owned()),
                ),
            ]
        };
        let now = facts(&self.document.history[at]);
        let before = before.map(facts);
        let line = |(place, (name, now)): (usize, (&'static str, String))| {
            let before = before.as_ref().map(|facts| facts[place].1.clone());
            Line {
                name,
                before: before.filter(|before| *before != now),
                now,
            }
        };
        now.into_iter().enumerate().map(line).collect()
    }

    /// What it holds as it is read; of a long one the beginning.
    fn body(&self) -> Markup {
        let body = &self.document.body;
        let end = if self.is_cut() {
            body.floor_char_boundary(BEGINNING_BYTES)
        } else {
            body.len()
        };
        self.frame.folded(&body[..end], "body", "Body")
    }

    /// The attempts that have a tab: the newest.
    fn newest(&self) -> impl Iterator<Item = &AttemptDocument> {
        self.document.history.iter().rev().take(TABS)
    }

    /// Those that have none.
    fn older(&self) -> Vec<&AttemptDocument> {
        self.document.history.iter().rev().skip(TABS).collect()
    }

    fn is_older_shown(&self) -> bool {
        self.older().into_iter().any(|attempt| self.is_shown(attempt))
    }

    fn is_cut(&self) -> bool {
        self.document.body.len() > SHOWN_MAX_BYTES
    }

    /// The same request by hand, but for its signature.
    fn curl(&self) -> Option<String> {
        let attempt = self
            .shown()
            .filter(|_| !self.document.body.is_empty() && !self.is_cut())?;
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let headers = attempt.request.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!(" \\\n  -H {}", quoted(&format!("{name}: {value}"))))
            .collect();
        Some(format!(
            "curl -X POST {}{headers} \\\n  -H \"webhook-signature: $SIGNATURE\" \\\n  --data-binary {}",
            quoted(&attempt.request.url),
            quoted(&self.document.body)
        ))
    }
}
