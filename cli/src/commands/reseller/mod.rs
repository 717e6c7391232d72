//! What resellers do with their key, over the reseller portal: one file per thing.
//!
//! No document of the portal is known here as a whole: what is shown is picked out by its name, and `--json` prints the
//! document as it came.

mod asked;
pub(crate) mod cancel;
mod failures;
pub(crate) mod notifications;
pub(crate) mod overview;
pub(crate) mod portal_links;
pub(crate) mod quota;
pub(crate) mod replay;
pub(crate) mod resends;
pub(crate) mod scheduled;
pub(crate) mod secrets;
mod story;
pub(crate) mod subscriptions;
pub(crate) mod tail;
mod why;

use std::time::Duration;

use clap::Args;
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::output::{Form, FormArgs, JsonArgs};
use crate::portal::{Portal, PortalArgs};
use crate::problem::Refusal;
use crate::shown::cell;
use crate::web;

/// How long and how often a portal is asked again that cannot answer now.
const NOT_NOW: (Duration, u32) = (Duration::from_secs(1), 60);

/// The heading of what only operators are answered.
const OPERATORS: &str = "For operators, over the operator API";

/// What every command here takes; those that act and say that it is done print JSON or words.
#[derive(Debug, Args)]
pub(crate) struct Common<F: Args = FormArgs> {
    #[command(flatten)]
    form: F,
    #[command(flatten)]
    portal: PortalArgs,
}

impl Common {
    fn form(&self) -> Form {
        self.form.form()
    }
}

impl Common<JsonArgs> {
    fn is_json(&self) -> bool {
        self.form.is_json()
    }
}

/// The subscription of which something is shown, named in either way in which commands take it.
#[derive(Debug, Args)]
pub(crate) struct OfSubscription {
    /// Of which subscription; of all that are the reseller's if none is given.
    #[arg(value_parser = identifier)]
    subscription: Option<Uuid>,
    /// The same as SUBSCRIPTION.
    #[arg(long = "subscription", value_name = "ID", value_parser = identifier, conflicts_with = "subscription")]
    of: Option<Uuid>,
}

impl OfSubscription {
    fn id(&self) -> Option<Uuid> {
        self.subscription.or(self.of)
    }
}

/// An identifier of the portal, or the path at which it is looked up, as an argument.
pub(crate) fn identifier(text: &str) -> Result<Uuid, &'static str> {
    web::identifier(text).ok_or(
        "write an identifier such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d; `postrider subscriptions list`, `notifications list` (those of an \
         event with `--event-id`) and `secrets list` show them",
    )
}

/// What is at `path`, for a command that waits for something there: a portal that cannot answer now is asked again.
pub(in crate::commands) async fn look(
    portal: &Portal,
    path: &str,
    query: &(impl Serialize + ?Sized),
) -> anyhow::Result<Value> {
    let (pause, times) = NOT_NOW;
    let mut asked = 1;
    loop {
        match portal.get(path, query).await {
            Err(error) if asked < times && is_not_now(&error) => {
                asked += 1;
                tokio::time::sleep(pause).await;
            }
            answered => return answered,
        }
    }
}

fn is_not_now(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref::<Refusal>().map(|refusal| refusal.status);
    matches!(
        status,
        Some(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    )
}

/// Whether the portal knows no such thing of the reseller's.
fn is_unknown(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<Refusal>();
    refusal.is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND)
}

/// The refusal of what is no notification, which may be a subscription.
async fn told_apart(portal: &Portal, id: Uuid, error: anyhow::Error) -> anyhow::Error {
    if !is_unknown(&error) {
        return error;
    }
    match subscription_called(portal, id).await {
        Some(said) => error.context(said),
        None => error,
    }
}

/// That a subscription of the reseller's has this identifier, if one has it.
async fn subscription_called(portal: &Portal, id: Uuid) -> Option<String> {
    let found: anyhow::Result<Value> = portal.get(&format!("/subscriptions/{id}"), &()).await;
    let said = || {
        format!(
            "{id} is a subscription of yours; `postrider notifications list {id}` lists its notifications"
        )
    };
    found.is_ok().then(said)
}

/// Why nothing is sent to a subscription at present and what changes that; `None` of one that gets what is due.
pub(in crate::commands) fn obstacle(subscription: &Value) -> Option<String> {
    let (id, state) = (cell(subscription, "/id"), cell(subscription, "/state"));
    let (why, mend) = match state.as_str() {
        "DEACTIVATED" => (
            format!("is DEACTIVATED ({})", cell(subscription, "/stateReason")),
            format!("`postrider subscriptions activate {id}` activates it"),
        ),
        "PENDING_VERIFICATION" => (
            "is PENDING_VERIFICATION: its endpoint has not answered its challenge yet".to_owned(),
            format!("`postrider subscriptions verify {id} --wait` has it challenged"),
        ),
        _ if !subscription["pausedAt"].is_null() => (
            "is paused: you have paused it".to_owned(),
            paused_by("RESELLER", &id),
        ),
        _ if !subscription["heldAt"].is_null() => (
            "is paused: the operators have paused it".to_owned(),
            paused_by("OPERATOR", &id),
        ),
        _ => return None,
    };
    Some(format!("the subscription {id} {why}; {mend}"))
}

/// What ends a pause.
fn paused_by(whose: &str, subscription: &str) -> String {
    match whose {
        "RESELLER" => format!("`postrider subscriptions resume {subscription}` lets it go on"),
        _ => String::from("it goes on by itself when they let it"),
    }
}
