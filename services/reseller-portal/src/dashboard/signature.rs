//! R12: whether a request was signed as it should be, and if not, why.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http_api::{Draft, FieldProblem, Id, Params, Problem, Wrong};
use pages::{Fields, Page};
use serde::Deserialize;
use signing::HEADER_SIGNATURE;
use uuid::Uuid;

use super::frame::Frame;
use super::{Route, confirm, words};
use crate::app::App;
use crate::notifications::{self, NotificationDocument};
use crate::request::Reseller;
use crate::signature_checks::{self, CheckDocument, CheckPayload};
use crate::subscriptions::SubscriptionDocument;

/// Where it is.
const PLACE: &str = "/app/tools/signature";

pub(super) fn routes() -> Vec<Route> {
    vec![super::page(PLACE, page), super::act(PLACE, check)]
}

/// What was typed, and what is wrong with it.
#[derive(Default)]
struct Typed {
    subscription: String,
    headers: String,
    body: String,
    is_recorded: bool,
    /// Whether headers and body are those of an attempt, so that the signature is all that is missing.
    is_of_attempt: bool,
    errors: Vec<FieldProblem>,
}

#[derive(Template)]
#[template(path = "signature.html")]
struct Signature {
    frame: Frame,
    subscriptions: Vec<SubscriptionDocument>,
    typed: Typed,
    found: Option<CheckDocument>,
}

impl Typed {
    /// What was sent, with room for the signature, which is not kept.
    fn of_attempt(document: NotificationDocument, number: Option<u32>) -> Self {
        let mut history = document.history.iter().rev();
        let attempt = history.find(|attempt| number.is_none_or(|number| attempt.number == number));
        let headers = attempt.map(|attempt| &attempt.request.headers);
        let lines = headers.into_iter().flatten();
        let lines: String = lines.map(|(name, value)| format!("{name}: {value}\n")).collect();
        Self {
            subscription: document.subscription_id.to_string(),
            headers: format!("{lines}webhook-signature: "),
            body: document.body,
            is_recorded: true,
            is_of_attempt: headers.is_some(),
            errors: Vec::new(),
        }
    }
}

impl Signature {
    fn host(&self, subscription: &SubscriptionDocument) -> String {
        words::place(&subscription.url)
    }

    fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.typed.errors, field)
    }
}

async fn show(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    (typed, found): (Typed, Option<CheckDocument>),
) -> Result<Response, Problem> {
    let status = confirm::status(&typed.errors);
    let page = Signature {
        frame,
        subscriptions: super::subscriptions_of(app, reseller).await?,
        typed,
        found,
    };
    Ok((status, Page(page)).into_response())
}

/// Which request the form begins with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FromParams {
    subscription: Option<Uuid>,
    /// The notification of the attempt.
    notification: Option<Uuid>,
    /// The number of the attempt, the newest when missing.
    a: Option<u32>,
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<FromParams>,
) -> Result<Response, Problem> {
    let typed = match params.notification {
        Some(id) => {
            let found = notifications::find(State(Arc::clone(&app)), reseller.clone(), Id(id)).await?;
            Typed::of_attempt(found.0, params.a)
        }
        None => Typed {
            subscription: params.subscription.map_or_else(String::new, |id| id.to_string()),
            ..Typed::default()
        },
    };
    show(&app, &reseller, frame, (typed, None)).await
}

/// Headers as they are written beneath each other.
fn headers(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect()
}

/// Why these headers cannot be checked yet. A signature that is left blank is one that an attempt could not be filled in with; one that is
/// missing altogether is checked, since a proxy may have dropped it.
fn unready(headers: &BTreeMap<String, String>) -> Option<&'static str> {
    if headers.is_empty() {
        return Some("must be lines such as webhook-id: order-17");
    }
    let signature = headers.get(HEADER_SIGNATURE)?;
    signature.is_empty().then_some(
        "must have the webhook-signature that your endpoint got: it is not kept, so that it is not filled in",
    )
}

async fn check(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    fields: Fields,
) -> Result<Response, Problem> {
    let text = |name| fields.get(name).unwrap_or_default().to_owned();
    let mut typed = Typed {
        subscription: text("subscription"),
        headers: text("headers"),
        // To the byte: blanks around it are signed too.
        body: fields.all("body").into_iter().next().unwrap_or_default(),
        is_recorded: fields.get("at").is_some(),
        is_of_attempt: false,
        errors: Vec::new(),
    };
    let Ok(subscription) = typed.subscription.parse() else {
        typed.errors = vec![FieldProblem::new("subscription", "must be one of yours")];
        return show(&app, &reseller, frame, (typed, None)).await;
    };
    let pasted = headers(&typed.headers);
    if let Some(detail) = unready(&pasted) {
        typed.errors = vec![FieldProblem::new("headers", detail)];
        return show(&app, &reseller, frame, (typed, None)).await;
    }
    let payload = CheckPayload {
        headers: Some(pasted),
        body: Some(typed.body.clone()),
        at: typed.is_recorded.then(|| "recorded".to_owned()),
    };
    let (state, draft) = (State(Arc::clone(&app)), Draft(payload, Wrong::default()));
    match signature_checks::check(state, reseller.clone(), Id(subscription), draft).await {
        Ok(found) => show(&app, &reseller, frame, (typed, Some(found.0))).await,
        Err(problem) => {
            typed.errors = confirm::mendable(problem)?;
            show(&app, &reseller, frame, (typed, None)).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_pasted() {
        let read = headers("Webhook-Id: a:b\n webhook-timestamp :17\nnonsense\n");
        let expected = [("webhook-id", "a:b"), ("webhook-timestamp", "17")];
        assert_eq!(
            read,
            expected
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        );
    }
}
