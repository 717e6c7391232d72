//! `postrider subscriptions`: what a reseller is told of, and where.

mod args;

use std::time::Duration;

use anyhow::bail;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Common, look, notifications};
use crate::file;
use crate::output::{self, Column};
use crate::portal::Portal;
use crate::progress::Progress;
use crate::shown::{self, Shown, ShownColumn, cell};

pub(crate) use args::SubscriptionsCommand;

use args::{CreateArgs, One, UpdateArgs, Waited};

/// How often a subscription is looked at that is waited for.
const POLL: Duration = Duration::from_secs(1);

const COLUMNS: [ShownColumn; 6] = [
    (Column::whole("subscription"), "/id"),
    (Column::whole("url"), "/url"),
    (Column::prose("event types").spare(1), "/eventTypes"),
    (Column::whole("state"), "/state"),
    (Column::whole("reason").spare(3), "/stateReason"),
    (Column::whole("paused since").spare(2), "/pausedAt"),
];

const ROWS: [Shown; 19] = [
    ("url", "/url"),
    ("event types", "/eventTypes"),
    ("email", "/email"),
    ("description", "/description"),
    ("state", "/state"),
    ("reason", "/stateReason"),
    ("since", "/stateChangedAt"),
    ("paused since", "/pausedAt"),
    ("failing since", "/failingSince"),
    ("verified", "/verification/verifiedAt"),
    ("next challenge", "/verification/nextAttemptAt"),
    ("failed challenges", "/verification/failedAttempts"),
    ("why", "/verification/error"),
    ("timeout in ms", "/timeoutMillis"),
    ("daily quota", "/dailyQuota"),
    ("requests a second", "/requestsPerSecond"),
    ("sent again after an outage", "/resendAfterOutage"),
    ("retry plan", "/retryPlan"),
    ("retries of 4xx", "/retryClientErrors"),
];

/// Does what the command says.
pub(crate) async fn run(command: SubscriptionsCommand) -> anyhow::Result<()> {
    use SubscriptionsCommand as Command;
    match command {
        Command::List(common) => list(&common).await,
        Command::Show(one) => {
            let document = portal(&one.common)?.get(&path(one.id), &()).await?;
            show(&one.common, &document)
        }
        Command::Create(args) => create(*args).await,
        Command::Update(args) => update(*args).await,
        Command::Activate(args) => command_and_wait(&args, "activate").await,
        Command::Verify(args) => command_and_wait(&args, "verify").await,
        Command::Deactivate(one) => act(&one, "deactivate").await,
        Command::Pause(one) => act(&one, "pause").await,
        Command::Resume(one) => act(&one, "resume").await,
        Command::Test(args) => test(&args).await,
        Command::Delete(one) => delete(&one).await,
    }
}

fn portal(common: &Common) -> anyhow::Result<Portal> {
    Portal::connect(&common.portal)
}

fn path(id: Uuid) -> String {
    format!("/subscriptions/{id}")
}

fn show(common: &Common, document: &Value) -> anyhow::Result<()> {
    if common.json {
        return output::json(document);
    }
    output::result(shown::record("subscription", document, ROWS))?;
    Ok(())
}

async fn list(common: &Common) -> anyhow::Result<()> {
    let document: Value = portal(common)?.get("/subscriptions", &[("limit", "200")]).await?;
    if common.json {
        return output::json(&document);
    }
    if document["items"] == json!([]) {
        output::note(
            "there is no subscription yet; `postrider subscriptions create --help` shows how to make one",
        );
        return Ok(());
    }
    output::result(shown::list(&document["items"], COLUMNS))?;
    Ok(())
}

async fn create(args: CreateArgs) -> anyhow::Result<()> {
    let portal = portal(&args.common)?;
    let mut body = serde_json::to_value(&args.fields)?;
    body["url"] = args.url.into();
    body["eventTypes"] = args.event_types.into();
    body["email"] = args.email.into();
    body["verifyLater"] = args.verify_later.into();
    if let Some(path) = &args.secret_file {
        body["secret"] = file::read(path)?.trim().into();
    }
    let created: Value = portal.post("/subscriptions", &body).await?;
    if args.common.json {
        output::json(&created)?;
    } else {
        output::result(format_args!("subscription {}", cell(&created, "/id")))?;
        output::result(format_args!("secret {}", cell(&created, "/secret/secret")))?;
    }
    output::note(
        "keep the secret like a password; `postrider secrets show` shows it where the operator allows that",
    );
    output::note(next_step(
        args.verify_later,
        args.secret_file.is_none(),
        &cell(&created, "/id"),
    ));
    if args.wait {
        let id: Uuid = cell(&created, "/id").parse()?;
        return until_active(&portal, id).await;
    }
    Ok(())
}

/// What a first-time user does next.
fn next_step(verify_later: bool, is_new: bool, id: &str) -> String {
    let start = if is_new {
        "start your endpoint with this secret, then "
    } else {
        ""
    };
    if verify_later {
        format!("{start}have it challenged: postrider subscriptions verify {id} --wait")
    } else if is_new {
        format!(
            "the first challenge is on its way; {start}have it challenged again: postrider subscriptions verify {id} --wait"
        )
    } else {
        String::from("the challenge is on its way")
    }
}

async fn update(args: UpdateArgs) -> anyhow::Result<()> {
    let mut body = serde_json::to_value(&args.fields)?;
    for (name, value) in [
        ("url", args.url.map(Value::from)),
        ("eventTypes", args.event_types.map(Value::from)),
        ("email", args.email.map(Value::from)),
    ] {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    if body == json!({}) {
        bail!(
            "nothing is to be changed; give one of --url, --event-types, --email, --description, --timeout-millis, \
             --resend-after-outage, --retry-plan and --retry-client-errors"
        );
    }
    let portal = portal(&args.common)?;
    let document = portal.send(Method::PATCH, &path(args.id), &body).await?;
    show(&args.common, &document)
}

async fn act(one: &One, action: &str) -> anyhow::Result<()> {
    let path = format!("{}/{action}", path(one.id));
    let document: Value = portal(&one.common)?.post(&path, &json!({})).await?;
    if one.common.json {
        return output::json(&document);
    }
    output::result(format_args!("{}: {}", one.id, state(&document)))?;
    Ok(())
}

fn state(document: &Value) -> String {
    let paused = if document["pausedAt"].is_null() {
        ""
    } else {
        ", paused"
    };
    format!(
        "{} ({}){paused}",
        cell(document, "/state"),
        cell(document, "/stateReason")
    )
}

async fn command_and_wait(args: &Waited, action: &str) -> anyhow::Result<()> {
    act(&args.one, action).await?;
    if args.wait {
        return until_active(&portal(&args.one.common)?, args.one.id).await;
    }
    Ok(())
}

/// Waits until the endpoint is verified, or will not be unless the reseller acts.
async fn until_active(portal: &Portal, id: Uuid) -> anyhow::Result<()> {
    let progress = Progress::waiting("waiting until the endpoint is verified");
    let mut told = String::new();
    loop {
        let document = look(portal, &path(id)).await?;
        let error = cell(&document, "/verification/error");
        match cell(&document, "/state").as_str() {
            "ACTIVE" => {
                progress.note(format_args!(
                    "the endpoint is verified; the subscription {id} is ACTIVE"
                ));
                return Ok(());
            }
            "PENDING_VERIFICATION" if !document["verification"]["nextAttemptAt"].is_null() => {}
            _ => bail!("the subscription {id} is {}: {error}", state(&document)),
        }
        if !error.is_empty() && error != told {
            progress.note(format_args!(
                "the challenge was not met, and comes again: {error}"
            ));
            told = error;
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn test(args: &Waited) -> anyhow::Result<()> {
    let common = &args.one.common;
    let portal = portal(common)?;
    let path = format!("{}/test", path(args.one.id));
    let sent: Value = portal.post(&path, &json!({})).await?;
    let id: Uuid = cell(&sent, "/notificationId").parse()?;
    if common.json {
        output::json(&sent)?;
    } else {
        output::result(id)?;
    }
    if args.wait {
        return notifications::until_ended(&portal, id).await;
    }
    Ok(())
}

async fn delete(one: &One) -> anyhow::Result<()> {
    portal(&one.common)?.delete(&path(one.id)).await?;
    output::note(format_args!("the subscription {} is deleted", one.id));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_fit_the_terminal() {
        let subscriptions = json!([
            {"id": "01a1fd84-191a-7334-a6ae-613178d80d71", "state": "ACTIVE", "stateReason": "VERIFIED",
             "url": "https://hooks.reseller.example/postrider/notifications?tenant=4711", "pausedAt": null,
             "eventTypes": ["domain.created", "domain.deleted", "domain.transfer.requested", "contact.*"]},
            {"id": "01a1fd84-ba0d-74fc-a5c1-94d557988f4b", "state": "PENDING_VERIFICATION", "stateReason": "CREATED",
             "url": "https://a.example/", "pausedAt": "2026-11-21T12:00:00.123456Z", "eventTypes": ["*"]},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&subscriptions, COLUMNS)));
    }

    #[test]
    fn one_subscription_fits_the_terminal() {
        let subscription = json!({
            "id": "01a1fd84-191a-7334-a6ae-613178d80d71", "state": "DEACTIVATED", "stateReason": "CONTINUOUS_FAILURE",
            "url": "https://hooks.reseller.example/postrider/notifications?tenant=4711&token=3c9909afec25354d551dae21590bb26e",
            "eventTypes": ["domain.*"], "email": "operations+postrider@reseller.example", "dailyQuota": 1_000_000,
            "verification": {"error": "the challenge was answered with 404 Not Found and a body of 31 bytes, which is not the token"},
        });
        insta::assert_snapshot!(output::at_widths(&shown::record(
            "subscription",
            &subscription,
            ROWS
        )));
    }
}
