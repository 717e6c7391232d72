//! `postrider notifications cancel`: one notification, or all of a subscription that wait and match.

use anyhow::bail;
use chrono::{DateTime, Utc};
use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::clock::{Clock as _, SystemClock};
use domain::counted::of;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Common, identifier, told_apart};
use crate::age::{Age, at_or_ago};
use crate::commands::cancel::{Extent, NOTIFICATIONS, cancel_many, confirm_one, delivered, more};
use crate::commands::jobs::options;
use crate::confirm::Yes;
use crate::output::{self, JsonArgs};
use crate::portal::Portal;

#[derive(Debug, Args)]
#[command(after_help = "\
What is being sent is left alone, and what was cancelled stays so. At most 5,000 at once: given again, the command goes on.

Examples:
  postrider notifications cancel 019aa2f0-5b1c-8025-9519-0863916ea2df
  postrider notifications cancel --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --status SCHEDULED --dry-run
  postrider notifications cancel --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --before 2026-11-21 --note 'transferred away' --yes")]
pub(crate) struct CancelArgs {
    /// The notification.
    #[arg(value_parser = identifier, required_unless_present = "subscription")]
    id: Option<Uuid>,
    /// Of this subscription all that wait and match.
    #[arg(long, value_name = "ID", value_parser = identifier, conflicts_with = "id")]
    subscription: Option<Uuid>,
    /// In this status.
    #[arg(long, ignore_case = true, conflicts_with = "id",
          value_parser = PossibleValuesParser::new(["SCHEDULED", "PENDING", "IN_MEMORY", "RETRY"]))]
    status: Option<String>,
    /// Of events of this type, such as domain.created.
    #[arg(
        long,
        value_name = "NAME",
        visible_alias = "event-types",
        conflicts_with = "id"
    )]
    event_type: Option<String>,
    /// Of events that were accepted at this time or later; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with_all = ["id", "newer_than"])]
    since: Option<DateTime<Utc>>,
    /// Of events that were accepted before this time; a time, or an age such as 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, visible_aliases = ["before", "older-than"],
        conflicts_with = "id")]
    until: Option<DateTime<Utc>>,
    /// Of events that were accepted less than this long ago, such as 2h.
    #[arg(long, value_name = "AGE", conflicts_with = "id")]
    newer_than: Option<Age>,
    /// Only counts them, all that wait where nothing says which.
    #[arg(long, conflicts_with = "id")]
    dry_run: bool,
    /// Why; kept in your activity.
    #[arg(long, conflicts_with = "id")]
    note: Option<String>,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

impl CancelArgs {
    /// Those of a subscription that are meant.
    fn filter(&self, now: DateTime<Utc>) -> Value {
        let since = at_or_ago(self.since, self.newer_than, now);
        let fields = [
            ("status", json!(self.status.as_deref().map(str::to_uppercase))),
            ("eventType", json!(self.event_type)),
            ("since", json!(since)),
            ("until", json!(self.until)),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        let given: Map<_, _> = given.map(|(name, value)| (name.to_owned(), value)).collect();
        given.into()
    }

    fn body(&self, mut body: Value) -> Value {
        body["dryRun"] = self.dry_run.into();
        if let Some(note) = &self.note {
            body["note"] = note.as_str().into();
        }
        body
    }

    /// Whether it is said which of them; to be counted they may be all.
    fn says_which(&self, filter: &Value) -> bool {
        self.dry_run || *filter != json!({})
    }
}

/// Cancels it, or them.
pub(crate) async fn run(args: CancelArgs) -> anyhow::Result<()> {
    let filter = args.filter(SystemClock.now());
    let portal = || Portal::connect(&args.common.portal);
    let cancelled: Value = match (args.id, args.subscription) {
        (Some(id), _) => {
            confirm_one(args.yes, ("notification", id), "notifications story")?;
            let path = format!("/notifications/{id}/cancel");
            let portal = portal()?;
            match portal.post(&path, &json!({})).await {
                Err(error) => return Err(told_apart(&portal, id, error).await),
                cancelled => cancelled?,
            }
        }
        (None, Some(_)) if !args.says_which(&filter) => {
            bail!(
                "say which of them, by --status, --event-type, --since, --newer-than or --until, so that not all are cancelled by mistake"
            )
        }
        (None, Some(id)) => {
            let path = format!("/subscriptions/{id}/cancellations");
            let which = format!("--subscription {id} {}", options(&filter));
            let (what, ask) = ((NOTIFICATIONS, &*which), (args.yes, Extent::Once));
            let portal = portal()?;
            cancel_many(&portal, &path, &args.body(filter), what, ask).await?
        }
        (None, None) => bail!("name a notification, or give --subscription"),
    };
    if args.common.is_json() {
        return output::json(&cancelled);
    }
    match args.id {
        Some(id) if cancelled["status"] == json!("SENT") => {
            output::note(format_args!("{id} stays delivered and is not sent again"));
        }
        Some(id) => output::note(format_args!("{id} is cancelled and is not sent any more")),
        None => output::result(told(&cancelled))?,
    }
    Ok(())
}

/// What came of cancelling many.
fn told(document: &Value) -> String {
    let number = |name: &str| document[name].as_u64().unwrap_or_default();
    let (matching, cancelled) = (number("matching"), number("cancelled"));
    let is_dry = document["dryRun"] == json!(true);
    let more = more(document, is_dry);
    if is_dry {
        let matching = of(
            matching,
            "notification waits and matches",
            "notifications wait and match",
        );
        return format!("{matching}{more}; nothing was done");
    }
    let left = match matching.saturating_sub(cancelled) {
        0 => String::new(),
        left => format!(", {} being sent or had ended", of(left, "was", "were")),
    };
    let delivered = delivered(document);
    let cancelled = of(cancelled, "notification is", "notifications are");
    format!("{cancelled} cancelled{delivered}{left}{more}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CancelArgs,
    }

    const ID: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";

    fn parsed(more: &[&str]) -> Result<CancelArgs, clap::Error> {
        let line = ["cancel"].into_iter().chain(more.iter().copied());
        Line::try_parse_from(line).map(|line| line.args)
    }

    #[test]
    fn what_is_given_is_asked_for_and_nothing_else() {
        let args = parsed(&[
            "--subscription",
            ID,
            "--status",
            "scheduled",
            "--before",
            "2026-11-21",
            "--dry-run",
        ]);
        let args = args.unwrap();
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let body = args.body(args.filter(now));
        assert_eq!(
            body,
            json!({"status": "SCHEDULED", "until": "2026-11-21T00:00:00Z", "dryRun": true})
        );
        let args = parsed(&[
            "--subscription",
            ID,
            "--event-types",
            "domain.created",
            "--newer-than",
            "2h",
        ]);
        assert_eq!(
            args.unwrap().filter(now),
            json!({"eventType": "domain.created", "since": "2026-11-21T10:00:00Z"})
        );
    }

    #[test]
    fn what_is_cancelled_is_said_and_what_is_counted_may_be_all() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let says_which = |more: &[&str]| {
            let args = parsed(&[&["--subscription", ID][..], more].concat()).unwrap();
            args.says_which(&args.filter(now))
        };
        assert!(!says_which(&[]));
        assert!(says_which(&["--dry-run"]) && says_which(&["--newer-than", "2h"]));
    }

    #[test]
    fn one_is_named_or_a_subscription_is_and_never_both() {
        let wrongs: [&[&str]; 4] = [
            &[],
            &[ID, "--subscription", ID],
            &[ID, "--status", "SCHEDULED"],
            &[ID, "--dry-run"],
        ];
        for wrong in wrongs {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
        assert!(parsed(&[ID]).is_ok());
    }

    #[test]
    fn what_was_left_alone_and_what_goes_on_is_said() {
        let document = json!({"dryRun": false, "matching": 5000, "cancelled": 4998, "more": true});
        assert_eq!(
            told(&document),
            "4,998 notifications are cancelled, 2 were being sent or had ended; more may match: give the command again"
        );
        let delivered =
            json!({"dryRun": false, "matching": 3, "cancelled": 3, "delivered": 2, "more": false});
        assert_eq!(
            told(&delivered),
            "3 notifications are cancelled, 2 of them stay delivered and are not sent again"
        );
        let counted = json!({"dryRun": true, "matching": 1, "cancelled": 0, "more": false});
        assert_eq!(
            told(&counted),
            "1 notification waits and matches; nothing was done"
        );
        // Given again, it would look at the same ones.
        let none = json!({"dryRun": false, "matching": 0, "cancelled": 0, "more": true});
        assert_eq!(
            told(&none),
            "0 notifications are cancelled; not all were looked at: restrict it further, by --status, --since or --until"
        );
    }
}
