//! Commands to a subscription after which its endpoint is challenged, and the wait until that is verified.

use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use uuid::Uuid;

use super::args::Waited;
use super::check::check_of;
use super::{act, command, find, path, portal, state, tell};
use crate::commands::reseller::{NOT_NOW, is_not_now, look};
use crate::output;
use crate::portal::Portal;
use crate::problem::Refusal;
use crate::progress::Progress;
use crate::shown::cell;

/// How often a subscription is looked at that is waited for.
const POLL: Duration = Duration::from_secs(1);

pub(super) async fn command_and_wait(args: &Waited, action: &str) -> anyhow::Result<()> {
    let one = &args.one;
    if !args.wait {
        return act(one, action).await;
    }
    let portal = portal(&one.common)?;
    let active = async {
        let document = command_in_time(&portal, one.id, action).await?;
        tell(one, &until_active(&portal, one.id, &document).await?)
    };
    args.within.limit(active, not_active(one.id)).await
}

/// Activates one, and says how what it has missed is sent: that is not done by itself.
pub(super) async fn activate(args: &Waited) -> anyhow::Result<()> {
    let id = args.one.id;
    // Without this nothing is said, and the command does what it does.
    let before = find(&portal(&args.one.common)?, id).await.ok();
    let deactivated = before.filter(|(before, _)| before["state"] == "DEACTIVATED");
    command_and_wait(args, "activate").await?;
    if let Some((before, _)) = deactivated {
        let since = cell(&before, "/stateChangedAt");
        output::note(format_args!(
            "what it has missed since it was deactivated is not sent by itself: `postrider replay {id} --since {since}` sends it, with --dry-run \
             it is counted; an earlier time takes in what waited then and was given up"
        ));
    }
    Ok(())
}

/// Gives a command, again when the portal wants it later.
async fn command_in_time(portal: &Portal, id: Uuid, action: &str) -> anyhow::Result<Value> {
    let (pause, times) = NOT_NOW;
    let mut told = String::new();
    for _ in 1..times {
        let error = match command(portal, id, action).await {
            Err(error) if is_not_now(&error) => error,
            answered => return answered,
        };
        let refusal = error.downcast_ref::<Refusal>();
        let pause = refusal.and_then(|refusal| refusal.retry_after).unwrap_or(pause);
        let why = refusal.map(|refusal| output::harmless(&refusal.problem.to_string()));
        let why = why.unwrap_or_default();
        if why != told {
            output::note(format_args!(
                "{id}: {why}; the portal is asked again in {} s, as it wants it",
                pause.as_secs()
            ));
            told = why;
        }
        tokio::time::sleep(pause).await;
    }
    command(portal, id, action).await
}

/// What has not happened, and what to do, when the time is over.
pub(super) fn not_active(id: Uuid) -> [String; 2] {
    [
        format!("the subscription {id} has not become ACTIVE"),
        format!("`postrider subscriptions show {id}` shows what came of the last challenge"),
    ]
}

/// How often the endpoint was challenged in vain, and what came of it the last time.
fn challenges(document: &Value) -> (String, String) {
    (
        cell(document, "/verification/failedAttempts"),
        cell(document, "/verification/error"),
    )
}

/// Waits until the endpoint is verified, or will not be unless the reseller acts. What came of challenges before `began`, the
/// subscription as the command left it, is none of its business. Returns the subscription as it has become.
pub(super) async fn until_active(portal: &Portal, id: Uuid, began: &Value) -> anyhow::Result<Value> {
    let progress = Progress::waiting("waiting until the endpoint is verified");
    let mut told = challenges(began);
    loop {
        let document = look(portal, &path(id), &()).await?;
        let now = challenges(&document);
        match cell(&document, "/state").as_str() {
            "ACTIVE" => {
                progress.note(format_args!(
                    "the endpoint is verified; the subscription {id} is ACTIVE"
                ));
                return Ok(document);
            }
            "PENDING_VERIFICATION" if !document["verification"]["nextAttemptAt"].is_null() => {}
            _ => bail!(
                "the subscription {id} is {}: {}; {} shows step by step how far a request gets",
                state(&document),
                now.1,
                check_of(&document)
            ),
        }
        if now != told {
            let (failed, error) = &now;
            progress.note(format_args!(
                "challenge {failed} was not met: {error}; the next one comes at {}, or with `postrider subscriptions verify {id}`; {} shows \
                 step by step how far a request gets",
                cell(&document, "/verification/nextAttemptAt"),
                check_of(&document),
            ));
            told = now;
        }
        tokio::time::sleep(POLL).await;
    }
}
