//! `postrider notifications story`: what became of a notification, in sentences; or of each that an event became.

use anyhow::bail;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use uuid::Uuid;

use super::notifications::listed_by;
use super::{Common, identifier, is_unknown, subscription_called};
use crate::commands::search;
use crate::output::{self, JsonArgs};
use crate::portal::Portal;
use crate::shown::{cell, items};

/// Of an event that became more, the headlines of so many are asked for.
const HEADLINES_MAX: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct StoryArgs {
    /// The notification; or its event, by its identifier or by what its caller called it.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    of: String,
    /// Of an event that became several: the notification of this subscription.
    #[arg(long, value_name = "ID", value_parser = identifier)]
    subscription: Option<Uuid>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// What there is to tell.
enum Found {
    /// Of a notification, or of an event that became one alone.
    One(Value),
    /// Of an event that became several: the beginning of their list.
    Several(Value),
}

/// Does what the command says.
pub(super) async fn run(args: &StoryArgs) -> anyhow::Result<()> {
    let portal = Portal::connect(&args.common.portal)?;
    match find(&portal, args).await? {
        Found::One(story) if args.common.is_json() => output::json(&story),
        Found::One(story) => tell(&story),
        Found::Several(list) => headlines(&portal, args, &list).await,
    }
}

/// The story of the notification with this identifier or of the only one that an event became, or all that it became.
async fn find(portal: &Portal, args: &StoryArgs) -> anyhow::Result<Found> {
    let of = &args.of;
    if let Ok(id) = of.parse::<Uuid>() {
        match story_of(portal, id).await {
            Err(error) if is_unknown(&error) => {
                if let Some(said) = subscription_called(portal, id).await {
                    bail!(said);
                }
            }
            told => return Ok(Found::One(told?)),
        }
    }
    let query = search::query([
        ("eventId", Some(of.clone())),
        ("subscription", args.subscription.map(|id| id.to_string())),
    ]);
    let found: Value = portal.get("/notifications", &query).await?;
    let name = output::harmless(of);
    match items(&found["items"]) {
        [] if args.subscription.is_some() => bail!(
            "{name} is no notification, and no event of the last 7 days that became one of this subscription; `postrider notifications why {name}` \
             says what became of an event and why a subscription got nothing of it"
        ),
        [] => bail!(
            "{name} is no notification, and no event of the last 7 days that became one; `postrider notifications why {name}` says of an event \
             why each subscription got nothing of it, {}",
            listed_by(of)
        ),
        [one] => {
            let id: Uuid = cell(one, "/id").parse()?;
            output::note(match args.subscription {
                None => format!("{name} is an event, which became the notification {id} alone"),
                Some(of) => {
                    format!("{name} is an event, which became the notification {id} of the subscription {of}")
                }
            });
            Ok(Found::One(story_of(portal, id).await?))
        }
        _ => Ok(Found::Several(found)),
    }
}

async fn story_of(portal: &Portal, id: Uuid) -> anyhow::Result<Value> {
    portal.get(&format!("/notifications/{id}/story"), &()).await
}

/// A line of each notification that an event became, and how the whole story of one is told.
async fn headlines(portal: &Portal, args: &StoryArgs, list: &Value) -> anyhow::Result<()> {
    let (name, notifications) = (output::harmless(&args.of), items(&list["items"]));
    let or_more = if list["next"].is_null() { "" } else { " or more" };
    output::note(format_args!(
        "{name} is an event, which became several notifications: {}{or_more}; --subscription ID tells the whole story of one",
        notifications.len()
    ));
    let mut stories = Vec::new();
    for notification in notifications.iter().take(HEADLINES_MAX) {
        let (id, subscription) = (cell(notification, "/id"), cell(notification, "/subscriptionId"));
        let story = story_of(portal, id.parse()?).await?;
        if args.common.is_json() {
            stories.push(story);
            continue;
        }
        output::result(format_args!(
            "subscription {subscription}: notification {id}: {}",
            cell(&story, "/headline/text")
        ))?;
    }
    if notifications.len() > HEADLINES_MAX {
        output::note(format_args!(
            "these are the first {HEADLINES_MAX}; `postrider notifications list --event-id {name}` lists all"
        ));
    }
    if args.common.is_json() {
        return output::json(&json!({ "items": stories }));
    }
    Ok(())
}

fn tell(story: &Value) -> anyhow::Result<()> {
    output::result(cell(story, "/headline/text"))?;
    for step in items(&story["story"]) {
        output::result(format_args!("  {}  {}", cell(step, "/at"), cell(step, "/text")))?;
    }
    output::result(format_args!("next: {}", cell(story, "/next/text")))?;
    let causes = items(&story["waited"]);
    if !causes.is_empty() {
        output::result("its time went to:")?;
    }
    for cause in causes {
        output::result(format_args!("  {}", cell(cause, "/text")))?;
    }
    Ok(())
}
