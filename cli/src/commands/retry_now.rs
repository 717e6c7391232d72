//! `postrider retry-now`: making retries at once that wait for their time.

use anyhow::bail;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use domain::counted::of;
use serde_json::{Value, json};
use uuid::Uuid;

use super::pauses::LaneName;
use super::resellers::at_endpoint;
use crate::api::Api;
use crate::confirm::{Act, Yes};
use crate::operator::OperatorArgs;
use crate::output::{self, JsonArgs};
use crate::shown::{cell, items};
use crate::web;

/// What is tried again at once.
#[derive(Debug, Subcommand)]
pub(crate) enum RetryNowCommand {
    /// Pushes in RETRY.
    Push(ManyArgs),
    /// Notifications in RETRY.
    Notification(ManyArgs),
    /// Everything in RETRY of one subscription.
    Subscription {
        /// Its identifier.
        #[arg(value_parser = web::any_identifier)]
        id: Uuid,
        #[command(flatten)]
        word: Word,
    },
    /// Everything in RETRY for one endpoint.
    Endpoint {
        /// Its URL, as `postrider subscriptions list` shows it.
        #[arg(value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
        endpoint: String,
        #[command(flatten)]
        yes: Yes,
        #[command(flatten)]
        word: Word,
    },
    /// Everything in RETRY of a lane.
    Lane {
        /// Which one.
        lane: LaneName,
        #[command(flatten)]
        yes: Yes,
        #[command(flatten)]
        word: Word,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ManyArgs {
    /// Their identifiers, or the paths at which they are looked up, such as /push/ID.
    #[arg(value_name = "ID", required = true, value_parser = web::any_identifier)]
    ids: Vec<Uuid>,
    #[command(flatten)]
    word: Word,
}

#[derive(Debug, Args)]
pub(crate) struct Word {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    form: JsonArgs,
    #[command(flatten)]
    operator: OperatorArgs,
}

/// What is asked for in one request: where, and what it is in words.
type Asked = (String, String);

/// Does what the command says.
pub(crate) async fn run(command: RetryNowCommand) -> anyhow::Result<()> {
    let named = |kind: &str, id: &Uuid| (format!("/{kind}s/{id}"), format!("the {kind} {id}"));
    let (asked, word): (Vec<Asked>, Word) = match command {
        RetryNowCommand::Push(ManyArgs { ids, word }) => (
            ids.iter()
                .map(|id| (format!("/pushes/{id}"), format!("the push {id}")))
                .collect(),
            word,
        ),
        RetryNowCommand::Notification(ManyArgs { ids, word }) => {
            (ids.iter().map(|id| named("notification", id)).collect(), word)
        }
        RetryNowCommand::Subscription { id, word } => (vec![named("subscription", &id)], word),
        RetryNowCommand::Endpoint { endpoint, yes, word } => {
            let found = at_endpoint(&word.operator.connect()?, &endpoint).await?;
            if found.is_empty() {
                bail!(
                    "no subscription has the endpoint {endpoint}; `postrider subscriptions list --with-url PART` finds it by a part"
                );
            }
            let count = of(found.len() as u64, "subscription", "subscriptions");
            let what = format!("try at once what waits for a retry at {endpoint}, of {count}");
            confirm(
                yes,
                &what,
                "`postrider notifications list --all --status RETRY` to see what waits",
            )?;
            let subscriptions = found.iter().map(|(id, _)| named("subscription", id));
            (subscriptions.collect(), word)
        }
        RetryNowCommand::Lane { lane, yes, word } => {
            if !yes.is_given() {
                let waiting: Value = word.operator.connect()?.get("/waiting", &()).await?;
                let what = format!(
                    "try at once what waits for a retry in the lane {}, {}",
                    lane.as_str(),
                    retries_of(&waiting, lane.as_str())
                );
                confirm(yes, &what, "`postrider waiting` to see what waits")?;
            }
            let path = web::path(&["lanes", lane.as_str()]);
            (vec![(path, format!("the lane {}", lane.as_str()))], word)
        }
    };
    let (api, body) = (word.operator.connect()?, json!({ "note": word.note }));
    for (path, what) in asked {
        let done = retry(&api, &format!("{path}/retry-now"), &body).await?;
        if word.form.is_json() {
            output::json(&done)?;
        } else {
            output::result(sentence(&what, &done))?;
        }
    }
    Ok(())
}

/// Asks before what acts on many.
fn confirm(yes: Yes, what: &str, instead: &str) -> anyhow::Result<()> {
    let effect = "each uses the next of the attempts that it has left";
    yes.confirm(
        &Act {
            what,
            effect,
            instead,
        },
        || {},
    )
}

/// How much of a lane waits for a retry.
fn retries_of(waiting: &Value, lane: &str) -> String {
    let mut items = items(&waiting["items"]).iter();
    let found = items.find(|it| it["lane"] == lane && it["reason"] == "RETRY");
    let count = found.and_then(|it| it["count"].as_u64()).unwrap_or_default();
    let more = found.is_some_and(|it| it["more"] == true);
    format!("{count}{} in all", if more { " or more" } else { "" })
}

/// Asks until nothing is left, and adds up.
async fn retry(api: &Api, path: &str, body: &Value) -> anyhow::Result<Value> {
    let mut retries = 0;
    loop {
        let mut done: Value = api.post(path, body).await?;
        retries += done["retries"].as_u64().unwrap_or_default();
        if done["more"] != true {
            done["retries"] = retries.into();
            return Ok(done);
        }
    }
}

/// What came of it.
fn sentence(what: &str, done: &Value) -> String {
    let mut said = match done["retries"].as_u64().unwrap_or_default() {
        0 => return format!("nothing of {what} waits for a retry"),
        1 => format!("{what}: 1 retry is due now"),
        count => format!("{what}: {} are due now", of(count, "retry", "retries")),
    };
    if done["lastAttempt"] == true {
        said.push_str(", the last attempt that is left");
    }
    for pause in items(&done["stillPaused"]) {
        said.push_str("; nothing is sent yet, since ");
        said.push_str(&cell(pause, ""));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_of_one_when_the_attempt_is_its_last() {
        let said = |last| {
            let done = json!({"retries": 1, "more": false, "stillPaused": [], "lastAttempt": last});
            sentence("the push 1", &done)
        };
        assert_eq!(said(false), "the push 1: 1 retry is due now");
        assert_eq!(
            said(true),
            "the push 1: 1 retry is due now, the last attempt that is left"
        );
    }

    #[test]
    fn it_is_said_how_many_are_due_and_what_keeps_them() {
        let said = |retries: u64, pauses: &[&str]| {
            let done = json!({"retries": retries, "more": false, "stillPaused": pauses});
            sentence("the lane push", &done)
        };
        assert_eq!(said(0, &[]), "nothing of the lane push waits for a retry");
        assert_eq!(said(1, &[]), "the lane push: 1 retry is due now");
        assert_eq!(
            said(46, &["the lane push is paused by ann"]),
            "the lane push: 46 retries are due now; nothing is sent yet, since the lane push is paused by ann"
        );
    }
}
