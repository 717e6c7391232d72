//! `postrider subscriptions`: what a reseller is told of, and where.

mod args;
mod check;
mod create;
mod delete;
mod deliveries;
mod list;
mod metrics;
mod retry_now;
mod states;
mod test_event;
mod update;
mod wait;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Common;
use crate::output;
use crate::portal::Portal;
use crate::shown::cell;

pub(crate) use args::SubscriptionsCommand;

use args::{ConfirmArgs, One};

/// Does what the command says.
pub(crate) async fn run(command: SubscriptionsCommand) -> anyhow::Result<()> {
    use SubscriptionsCommand as Command;
    match command {
        Command::List(args) => list::list(args).await,
        Command::Show(args) => list::show_one(&args).await,
        Command::Check(args) => check::check(args).await,
        Command::Create(args) => create::create(*args).await,
        Command::Update(args) => update::update(*args).await,
        Command::Activate(args) => wait::activate(&args).await,
        Command::Verify(args) => wait::command_and_wait(&args, "verify").await,
        Command::Deactivate(args) => delete::deactivate(&args).await,
        Command::Pause(one) => act(&one, "pause").await,
        Command::Resume(one) => act(&one, "resume").await,
        Command::RetryNow(one) => retry_now::retry_now(&one).await,
        Command::Confirm(args) => confirm(&args).await,
        Command::Test(args) => test_event::test(&args).await,
        Command::Delete(args) => delete::run(&args).await,
        Command::Metrics(args) => metrics::metrics(&args).await,
        Command::States(args) => states::states(&args).await,
    }
}

fn portal<F: Args>(common: &Common<F>) -> anyhow::Result<Portal> {
    Portal::connect(&common.portal)
}

fn path(id: Uuid) -> String {
    format!("/subscriptions/{id}")
}

/// A subscription, and the version of what can be changed of it.
async fn find(portal: &Portal, id: Uuid) -> anyhow::Result<(Value, Option<String>)> {
    let path = path(id);
    portal.versioned(portal.request(Method::GET, &path), &path).await
}

async fn act(one: &One, action: &str) -> anyhow::Result<()> {
    let document = command(&portal(&one.common)?, one.id, action).await?;
    tell(one, &document)
}

async fn command(portal: &Portal, id: Uuid, action: &str) -> anyhow::Result<Value> {
    portal.post(&format!("{}/{action}", path(id)), &json!({})).await
}

fn tell(one: &One, document: &Value) -> anyhow::Result<()> {
    if one.common.is_json() {
        return output::json(document);
    }
    output::result(format_args!("{}: {}", one.id, state(document)))?;
    Ok(())
}

fn state(document: &Value) -> String {
    let paused = match (&document["pausedAt"], &document["heldAt"]) {
        (_, held) if !held.is_null() => ", paused by the operators of the platform, who alone let it go on",
        (paused, _) if !paused.is_null() => ", paused",
        _ => "",
    };
    format!(
        "{} ({}){paused}",
        cell(document, "/state"),
        cell(document, "/stateReason")
    )
}

async fn confirm(args: &ConfirmArgs) -> anyhow::Result<()> {
    let (one, portal) = (&args.one, portal(&args.one.common)?);
    let path = format!("{}/email", path(one.id));
    let Some(code) = &args.code else {
        portal.post_empty(&format!("{path}/resend")).await?;
        output::note(format_args!(
            "the code is sent again, unless the address is confirmed; then: postrider subscriptions confirm {} --code CODE",
            one.id
        ));
        return Ok(());
    };
    let body = json!({ "code": code.trim() });
    let document: Value = portal.post(&format!("{path}/confirm"), &body).await?;
    if one.common.is_json() {
        return output::json(&document);
    }
    output::result(format_args!(
        "{}: {} is confirmed",
        one.id,
        cell(&document, "/email")
    ))?;
    Ok(())
}
