//! `postrider notifications why`: what became of an event, subscription by subscription.

use anyhow::bail;
use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use super::notifications::listed_by;
use super::{Common, is_unknown};
use crate::output::{self, JsonArgs};
use crate::portal::Portal;
use crate::shown::{cell, items};
use crate::web;

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The event: the `id` of the body that your endpoint gets, which its caller gave it, or its identifier.
    #[arg(value_name = "EVENT")]
    event: String,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// Does what the command says.
pub(super) async fn run(args: &WhyArgs) -> anyhow::Result<()> {
    let portal = Portal::connect(&args.common.portal)?;
    let event: Value = match portal.get(&web::path(&["events", &args.event]), &()).await {
        Err(error) if is_unknown(&error) => {
            if let Some(said) = notification_called(&portal, &args.event).await {
                bail!(said);
            }
            bail!(
                "{} is no event of yours: none was accepted that is called so or has this identifier, or it is forgotten; {}",
                output::harmless(&args.event),
                listed_by(&args.event)
            )
        }
        found => found?,
    };
    if args.common.is_json() {
        return output::json(&event);
    }
    for line in lines(&event) {
        output::result(line)?;
    }
    Ok(())
}

/// That a notification of the reseller's has this identifier, if one has it.
async fn notification_called(portal: &Portal, text: &str) -> Option<String> {
    let id: Uuid = text.parse().ok()?;
    let found: Value = portal.get(&format!("/notifications/{id}"), &()).await.ok()?;
    let event = cell(&found, "/eventId");
    let event = output::harmless(&event);
    Some(format!(
        "{id} is a notification, of the event {event}; `postrider notifications why {event}` says what became of that, and `postrider \
         notifications story {id}` tells of the notification"
    ))
}

fn lines(event: &Value) -> Vec<String> {
    let (got, missed) = (items(&event["notifications"]), items(&event["missed"]));
    let mut lines = vec![format!(
        "{} ({}) was accepted {}",
        cell(event, "/eventId"),
        cell(event, "/type"),
        cell(event, "/acceptedAt")
    )];
    lines.extend(got.iter().map(|it| {
        let reason = match cell(it, "/reason") {
            reason if reason.is_empty() => reason,
            reason => format!(" ({reason})"),
        };
        format!(
            "  subscription {}: notification {} is {}{reason}",
            cell(it, "/subscriptionId"),
            cell(it, "/id"),
            cell(it, "/status")
        )
    }));
    lines.extend(missed.iter().map(|it| {
        format!(
            "  subscription {}: {}",
            cell(it, "/subscriptionId"),
            cell(it, "/explanation")
        )
    }));
    if got.is_empty() && missed.is_empty() {
        lines.push("  you have no subscription that could have got it".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_event_became_and_what_missed_it_have_a_line_each() {
        let mut event = json!({
            "eventId": "rs-1", "type": "domain.created", "acceptedAt": "2026-11-21T12:00:00Z",
            "notifications": [
                {"id": "n-1", "subscriptionId": "s-1", "status": "SENT", "reason": null},
                {"id": "n-2", "subscriptionId": "s-2", "status": "GIVEN_UP", "reason": "EXPIRED"},
            ],
            "missed": [{"subscriptionId": "s-3", "explanation": "Got nothing of it: it was deactivated."}],
        });
        let told = [
            "rs-1 (domain.created) was accepted 2026-11-21T12:00:00Z",
            "  subscription s-1: notification n-1 is SENT",
            "  subscription s-2: notification n-2 is GIVEN_UP (EXPIRED)",
            "  subscription s-3: Got nothing of it: it was deactivated.",
        ];
        assert_eq!(lines(&event), told);
        event["notifications"] = json!([]);
        event["missed"] = json!([]);
        assert_eq!(
            lines(&event),
            [told[0], "  you have no subscription that could have got it"]
        );
    }
}
