//! `postrider audit`: who changed what, when, and why.

use chrono::{DateTime, Utc};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use serde_json::Value;
use uuid::Uuid;

use crate::age::{Age, at_or_ago};
use crate::api::Api;
use crate::commands::search;
use crate::operator::Common;
use crate::output::{self, Column};
use crate::part::Part;
use crate::shown::{self, ShownColumn};

/// The subjects that are one thing of the installation, and have no identifier.
const WITHOUT_ID: [&str; 4] = ["leases", "broker", "database", "mails"];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider audit --newer-than 1d
  postrider audit --action dead-letter-job
  postrider audit --action quota --action api-key
  postrider audit --without rescue
  postrider audit --reseller acme --newer-than 7d
  postrider audit --subject push/019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
pub(crate) struct AuditArgs {
    /// By this actor: the name of an API key, or all of what an entry says.
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Of this action, such as dead-letter.replay; may be repeated. dead-letter stands for every action on dead letters, and quota for all that
    /// change a quota.
    #[arg(long = "action", value_name = "ACTION", value_delimiter = ',')]
    actions: Vec<String>,
    /// Not of this action, such as rescue for every action on rescues; may be repeated.
    #[arg(long, value_name = "ACTION", value_delimiter = ',')]
    without: Vec<String>,
    /// About this: its kind and its identifier or name, such as push/019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d or event-type/host.updated.
    #[arg(long)]
    subject: Option<String>,
    /// About this reseller or a subscription of its own, or by one of its keys and people.
    #[arg(long, value_name = "ID", conflicts_with_all = ["actor", "without", "subject"])]
    reseller: Option<String>,
    /// At this time or later; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "newer_than")]
    since: Option<DateTime<Utc>>,
    /// Before this time; a time, or an age such as 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "older_than")]
    until: Option<DateTime<Utc>>,
    /// Less than this long ago, such as 3d.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// Longer ago than this, such as 2h.
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 6] = [
    (Column::time("at"), "/at"),
    (Column::whole("actor"), "/actor"),
    (Column::whole("action"), "/action"),
    // Most subjects are too wide for what else a narrow terminal has room for.
    (Column::whole("subject").spare(2).name(), "/subject"),
    (Column::prose("note").spare(1), "/note"),
    // What it was and what it is, of what was changed.
    (Column::prose("details").spare(3), "/details"),
];

/// Lists the log, the newest entry first.
pub(crate) async fn run(args: &AuditArgs) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let time = |at, age| at_or_ago(at, age, now).map(search::written);
    let listed = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
    let query = search::query([
        ("actor", args.actor.clone()),
        ("action", listed(&args.actions)),
        ("without", listed(&args.without)),
        ("subject", args.subject.clone()),
        ("reseller", args.reseller.clone()),
        ("since", time(args.since, args.newer_than)),
        ("until", time(args.until, args.older_than)),
    ]);
    let api = args.common.operator.connect()?;
    let pages = args.part.of(&api, "/audit", query);
    let advice = args.subject.as_deref().and_then(advice_on_subject);
    let nothing = |_: &Value| match &advice {
        Some(advice) => format!("no entry matches; {advice}"),
        None => "no entry matches".to_owned(),
    };
    shown::print_pages(pages, args.common.form(), COLUMNS, nothing).await?;
    if let Some(letter) = args.subject.as_deref().and_then(letter_of) {
        note_job(&api, letter).await;
    }
    Ok(())
}

/// How a subject is written that was written in another way.
fn advice_on_subject(subject: &str) -> Option<String> {
    if let Some(name) = key_by_name(subject) {
        return Some(format!(
            "a key is api-key/ID, which `postrider keys list --name '{}'` shows",
            output::harmless(name)
        ));
    }
    let is_kind_and_id = subject.contains('/') || WITHOUT_ID.contains(&subject);
    (!is_kind_and_id).then(|| {
        "a subject is KIND/ID, such as event-type/host.updated, subscription/ID or reseller/acme".to_owned()
    })
}

/// The name, where a subject names a key by it and not by its identifier.
fn key_by_name(subject: &str) -> Option<&str> {
    let named = subject.strip_prefix("api-key/")?;
    named.parse::<Uuid>().is_err().then_some(named)
}

/// The dead letter that a subject is.
fn letter_of(subject: &str) -> Option<Uuid> {
    subject.strip_prefix("dead-letter/")?.parse().ok()
}

/// Says which job has resolved a dead letter: the entry is about that.
async fn note_job(api: &Api, letter: Uuid) {
    // The list was shown, and a dead letter may not be stored any more.
    let found: anyhow::Result<Value> = api.get(&format!("/dead-letters/{letter}"), &()).await;
    if let Some(note) = found.ok().as_ref().and_then(by_job) {
        output::note(note);
    }
}

/// What is said of a dead letter that a job has resolved.
fn by_job(letter: &Value) -> Option<String> {
    let job = letter["jobId"].as_str()?;
    Some(output::harmless(&format!(
        "a job has resolved this dead letter: `postrider audit --subject dead-letter-job/{job}` says who made it, and why"
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_subject_that_is_no_kind_and_identifier_is_told_how_one_is_written() {
        let said = advice_on_subject("host.updated").unwrap();
        assert!(
            said.starts_with("a subject is KIND/ID, such as event-type/host.updated"),
            "{said}"
        );
        let said = advice_on_subject("api-key/shop").unwrap();
        assert!(said.contains("`postrider keys list --name 'shop'`"), "{said}");
        assert_eq!(advice_on_subject("event-type/host.updated"), None);
        assert_eq!(advice_on_subject("broker"), None);
    }

    #[test]
    fn a_dead_letter_that_a_job_has_resolved_leads_to_the_entries_of_the_job() {
        let id = "5f0c9f0e-3a55-4d0a-9d43-0c6c2f7cf2b1";
        assert_eq!(letter_of(&format!("dead-letter/{id}")), id.parse().ok());
        assert_eq!(letter_of(&format!("dead-letter-job/{id}")), None);
        assert_eq!(letter_of(&format!("push/{id}")), None);
        assert_eq!(key_by_name("api-key/shop"), Some("shop"));
        assert_eq!(key_by_name(&format!("api-key/{id}")), None);
        let said = by_job(&json!({ "jobId": id })).unwrap();
        let command = format!("`postrider audit --subject dead-letter-job/{id}`");
        assert!(said.contains(&command), "{said}");
        assert_eq!(by_job(&json!({"state": "REPLAYED"})), None);
    }
}
