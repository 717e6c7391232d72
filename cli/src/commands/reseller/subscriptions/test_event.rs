//! `postrider subscriptions test`: sends a test event, and waits for what comes of it.

use serde_json::{Value, json};
use uuid::Uuid;

use super::args::TestArgs;
use super::{path, portal};
use crate::commands::reseller::notifications;
use crate::output;
use crate::shown::cell;

pub(super) async fn test(test: &TestArgs) -> anyhow::Result<()> {
    let args = &test.waited;
    let common = &args.one.common;
    let portal = portal(common)?;
    let path = format!("{}/test", path(args.one.id));
    let mut body = json!({});
    for (name, value) in [("type", &test.event_type), ("variant", &test.variant)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let sent: Value = portal.post(&path, &body).await?;
    let id: Uuid = cell(&sent, "/notificationId").parse()?;
    if !args.wait {
        if common.is_json() {
            return output::json(&sent);
        }
        output::result(id)?;
        // It is sent: where it stands may stay unknown.
        if let Ok(found) = notifications::find(&portal, id).await
            && !found["pausedBy"].is_null()
        {
            let held = notifications::held_by(&cell(&found, "/pausedBy"), &cell(&found, "/subscriptionId"));
            output::note(format_args!(
                "the test event waits for the end of the pause: {held}"
            ));
        }
        return Ok(());
    }
    if !common.is_json() {
        output::result(id)?;
    }
    let ended = notifications::until_ended(&portal, id, args.within).await;
    if common.is_json() {
        let found = notifications::find(&portal, id).await?;
        let mut told = sent;
        for name in ["status", "reason", "attempts", "pausedBy"] {
            told[name] = found[name].clone();
        }
        output::json(&told)?;
    }
    output::note(ended?);
    Ok(())
}
