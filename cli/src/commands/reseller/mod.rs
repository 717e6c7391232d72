//! What resellers do with their key, over the reseller portal: one file per thing.
//!
//! No document of the portal is known here as a whole: what is shown is picked out by its name, and `--json` prints the
//! document as it came.

pub(crate) mod notifications;
pub(crate) mod quota;
pub(crate) mod replay;
pub(crate) mod secrets;
pub(crate) mod subscriptions;
pub(crate) mod tail;

use std::time::Duration;

use clap::Args;
use reqwest::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use crate::portal::{Portal, PortalArgs};
use crate::problem::Refusal;

/// How long and how often a portal is asked again that cannot answer now.
const NOT_NOW: (Duration, u32) = (Duration::from_secs(1), 60);

/// What every command here takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// As JSON, just as the portal answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    portal: PortalArgs,
}

/// An identifier of the portal, as an argument.
pub(crate) fn identifier(text: &str) -> Result<Uuid, &'static str> {
    text.parse().map_err(|_| {
        "write an identifier such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d; `postrider subscriptions list`, `notifications list` and \
         `secrets list` show them"
    })
}

/// What is at `path`, for a command that waits for something there: a portal that cannot answer now is asked again.
pub(in crate::commands) async fn look(portal: &Portal, path: &str) -> anyhow::Result<Value> {
    let (pause, times) = NOT_NOW;
    let mut asked = 1;
    loop {
        match portal.get(path, &()).await {
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
