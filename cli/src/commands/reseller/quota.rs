//! `postrider quota`: how much a subscription may get, and asking for more.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Common, identifier};
use crate::output::{self, Column, Form, JsonArgs};
use crate::portal::Portal;
use crate::shown::{self, Shown, ShownColumn};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider quota show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider quota days 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider quota request 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --daily-quota 2000000 --reason 'We take over a registrar.'
  postrider quota withdraw 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
pub(crate) enum QuotaCommand {
    /// Shows what is used today, what is left, and what was asked for.
    Show {
        /// Of which subscription.
        #[arg(value_parser = identifier)]
        subscription: Uuid,
        #[command(flatten)]
        common: Common,
    },
    /// Shows how much of it was used on each of the last 28 days.
    Days {
        /// Of which subscription.
        #[arg(value_parser = identifier)]
        subscription: Uuid,
        #[command(flatten)]
        common: Common,
    },
    /// Asks for more notifications a day, more attempts a second, or both; an administrator decides.
    Request(RequestArgs),
    /// Takes back a request that is not decided yet.
    Withdraw {
        /// Of which subscription.
        #[arg(value_parser = identifier)]
        subscription: Uuid,
        /// The request, from `postrider quota show`; the one that waits when not given.
        #[arg(value_parser = identifier)]
        request: Option<Uuid>,
        #[command(flatten)]
        common: Common<JsonArgs>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// For which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    /// Notifications a day; as many as now when not given.
    #[arg(long, value_name = "N", required_unless_present = "requests_per_second")]
    daily_quota: Option<u32>,
    /// Attempts a second; as many as now when not given.
    #[arg(long, value_name = "N")]
    requests_per_second: Option<u32>,
    /// Why, for the administrator who decides.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    common: Common,
}

const ROWS: [Shown; 12] = [
    ("notifications a day", "/dailyQuota"),
    ("used today", "/usedToday"),
    ("left today", "/remainingToday"),
    ("used up at this pace", "/usedUpAt"),
    ("wait for a coming day", "/scheduled"),
    ("the next day begins", "/resetsAt"),
    ("time zone", "/timeZone"),
    ("requests a second", "/requestsPerSecond"),
    ("open quota request", "/openRequest/id"),
    ("asks for", "/openRequest/dailyQuota"),
    ("asks for, a second", "/openRequest/requestsPerSecond"),
    ("its reason", "/openRequest/reason"),
];

const REQUESTS: [ShownColumn; 9] = [
    (Column::whole("quota request"), "/id"),
    (Column::whole("asked for"), "/dailyQuota"),
    (Column::whole("a second").spare(4), "/requestsPerSecond"),
    (Column::whole("status"), "/status"),
    (Column::whole("granted"), "/granted"),
    (Column::whole("granted a second").spare(3), "/grantedPerSecond"),
    (Column::prose("reason").spare(2), "/reason"),
    (Column::prose("note").spare(1), "/note"),
    (Column::time("made").spare(2), "/createdAt"),
];

const DAYS: [ShownColumn; 4] = [
    (Column::whole("day"), "/day"),
    (Column::whole("used"), "/used"),
    (Column::whole("quota"), "/quota"),
    (Column::whole("ended").spare(1), "/ended"),
];

/// What the columns of the days count.
const COUNTED: &str = "used: what was charged to the day; ended: what was delivered or failed for good on it, whichever day that was charged to";

/// A quota request by itself.
const REQUEST: [Shown; 5] = [
    ("asked for", "/dailyQuota"),
    ("asked for, a second", "/requestsPerSecond"),
    ("reason", "/reason"),
    ("status", "/status"),
    ("made", "/createdAt"),
];

/// Does what the command says.
pub(crate) async fn run(command: QuotaCommand) -> anyhow::Result<()> {
    match command {
        QuotaCommand::Show { subscription, common } => show(subscription, &common).await,
        QuotaCommand::Days { subscription, common } => days(subscription, &common).await,
        QuotaCommand::Request(args) => request(&args).await,
        QuotaCommand::Withdraw {
            subscription,
            request,
            common,
        } => withdraw(&common, subscription, request).await,
    }
}

async fn show(subscription: Uuid, common: &Common) -> anyhow::Result<()> {
    let portal = Portal::connect(&common.portal)?;
    let quota: Value = portal
        .get(&format!("/subscriptions/{subscription}/quota"), &())
        .await?;
    let form = common.form();
    if form == Form::Name {
        // What the next command, `quota withdraw`, is called with.
        return match quota["openRequest"]["id"].as_str() {
            Some(id) => Ok(output::result(id)?),
            None => Ok(()),
        };
    }
    let whose = ("subscription", &*subscription.to_string());
    form.print(&quota, || shown::record_of(whose, &quota, ROWS))?;
    if !form.is_for_people() {
        return Ok(());
    }
    let path = format!("/subscriptions/{subscription}/quota-requests");
    let requests: Value = portal.get(&path, &()).await?;
    form.table(&shown::list(&requests["items"], REQUESTS))
}

async fn days(subscription: Uuid, common: &Common) -> anyhow::Result<()> {
    let document: Value = Portal::connect(&common.portal)?
        .get(&format!("/subscriptions/{subscription}/quota/days"), &())
        .await?;
    let form = common.form();
    form.print(&document, || shown::list(&document["days"], DAYS))?;
    if form.is_for_people() {
        output::note(COUNTED);
        output::note(format_args!(
            "{} on the busiest of these days, with what waits today; the quota is {} (days begin in {})",
            shown::cell(&document, "/busiest"),
            shown::cell(&document, "/dailyQuota"),
            shown::cell(&document, "/timeZone"),
        ));
    }
    Ok(())
}

async fn request(args: &RequestArgs) -> anyhow::Result<()> {
    let path = format!("/subscriptions/{}/quota-requests", args.subscription);
    let body = json!({
        "dailyQuota": args.daily_quota, "requestsPerSecond": args.requests_per_second, "reason": args.reason,
    });
    let portal = Portal::connect(&args.common.portal)?;
    let request: Value = portal.post(&path, &body).await?;
    match args.common.form() {
        Form::Table => output::result(shown::cell(&request, "/id"))?,
        form => form.print(&request, || shown::record("quota request", &request, REQUEST))?,
    }
    let of = args.subscription;
    output::note(format_args!(
        "it waits for a decision; `postrider quota show {of}` shows it, and `postrider quota withdraw {of}` takes it back"
    ));
    Ok(())
}

async fn withdraw(
    common: &Common<JsonArgs>,
    subscription: Uuid,
    request: Option<Uuid>,
) -> anyhow::Result<()> {
    let portal = Portal::connect(&common.portal)?;
    let path = format!("/subscriptions/{subscription}/quota-requests");
    let request = match request {
        Some(request) => request.to_string(),
        None => {
            // One waits at a time, and it is the newest.
            let newest: Option<Value> = portal.newest(&path).await?;
            let waits = newest.filter(|newest| newest["status"] == "REQUESTED");
            let waits = waits
                .context("no quota request of the subscription waits for a decision; nothing was done")?;
            shown::cell(&waits, "/id")
        }
    };
    portal.delete(&format!("{path}/{request}")).await?;
    if common.is_json() {
        return output::json(&json!({ "id": request, "withdrawn": true }));
    }
    output::note(format_args!(
        "the quota request {request} is withdrawn and listed no more; `postrider activity --action quota-request` tells of it"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_fit_the_terminal() {
        let days = json!([
            {"day": "2026-11-20", "used": null, "quota": null, "ended": 812},
            {"day": "2026-11-21", "used": 1_000_000, "quota": 1_000_000, "ended": 998_017},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&days, DAYS)));
    }
}
