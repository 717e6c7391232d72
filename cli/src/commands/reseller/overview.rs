//! `postrider overview`, `postrider activity` and `postrider limits`: how it stands with everything, who did what, and what the
//! installation allows.

use clap::Args;
use serde_json::{Map, Value, json};

use super::Common;
use crate::commands::search::{self, Stretch};
use crate::output::{self, Column, Form};
use crate::portal::Portal;
use crate::shown::{self, Shown, ShownColumn, cell};

#[derive(Debug, Args)]
#[command(after_help = "Example:
  postrider overview")]
pub(crate) struct OverviewArgs {
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider activity --newer-than 1d
  postrider activity --action subscription
  postrider activity --by OPERATOR
  postrider activity --mails")]
pub(crate) struct ActivityArgs {
    /// Of this action, such as subscription.pause; subscription stands for every action on subscriptions.
    #[arg(long)]
    action: Option<String>,
    /// By whom: YOU, OPERATOR, or one name of yours as the list has it.
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// The mails about your subscriptions instead, of any time: to whom, about what, and whether they were sent.
    #[arg(long, conflicts_with_all = ["action", "by", "since", "until", "newer_than", "older_than"])]
    mails: bool,
    #[command(flatten)]
    stretch: Stretch,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  postrider limits")]
pub(crate) struct LimitsArgs {
    #[command(flatten)]
    common: Common,
}

const SUBSCRIPTIONS: [ShownColumn; 9] = [
    (Column::whole("subscription"), "/id"),
    (Column::whole("url").spare(2), "/url"),
    (Column::whole("state"), "/state"),
    (Column::whole("delivered in 7 days"), "/delivered"),
    (Column::whole("failed"), "/failed"),
    (Column::whole("95 of 100 took ms").spare(3), "/p95Millis"),
    (Column::prose("waiting").spare(1), "/waits"),
    (Column::whole("quota of today").spare(4), "/used"),
    (Column::prose("description").spare(5), "/description"),
];

const ACTIVITY: [ShownColumn; 7] = [
    (Column::time("at"), "/at"),
    (Column::whole("by").spare(3), "/by"),
    (Column::whole("name").spare(2), "/name"),
    (Column::whole("action"), "/action"),
    (Column::whole("subscription").name(), "/subscriptionId"),
    (Column::whole("notification").spare(4), "/notificationId"),
    (Column::prose("note").spare(1), "/note"),
];

const MAILS: [ShownColumn; 9] = [
    (Column::whole("mail").spare(4), "/id"),
    (Column::whole("about"), "/kind"),
    (Column::whole("status"), "/status"),
    (Column::whole("subscription").spare(3), "/subscriptionId"),
    (Column::whole("to"), "/recipient"),
    (Column::time("happened"), "/createdAt"),
    (Column::time("due").spare(2), "/dueAt"),
    (Column::time("ended").spare(1), "/finishedAt"),
    (Column::whole("occasions").spare(5), "/occurrences"),
];

const LIMITS: [Shown; 20] = [
    ("subscriptions, at most", "/subscriptions"),
    ("notifications a day", "/dailyQuota"),
    ("days begin in", "/timeZone"),
    ("requests a second", "/requestsPerSecond"),
    ("ports of endpoints", "/ports"),
    ("timeout in ms", "/timeoutMillis"),
    ("timeout in ms, at most", "/maxTimeoutMillis"),
    ("retries, plan SHORT", "/retries/SHORT"),
    ("retries, plan DAY", "/retries/DAY"),
    ("what waits is given up after days", "/maxAgeDays"),
    ("sent again after an outage", "/resendAfterOutage"),
    ("bytes kept of an answer", "/responseBodyBytes"),
    ("secrets valid at once, at most", "/secrets"),
    ("a replaced secret signs on, hours", "/overlapHours"),
    ("secrets can be viewed", "/secretsCanBeViewed"),
    ("secrets can be brought", "/secretsCanBeChosen"),
    ("addresses are confirmed", "/addressesAreConfirmed"),
    ("replays go back, days", "/replayDays"),
    ("replayed a second, at most", "/replaysPerSecond"),
    ("lists go back, days", "/notificationDays"),
];

/// Shows how it stands with each subscription, after what needs the reseller.
pub(crate) async fn run(args: OverviewArgs) -> anyhow::Result<()> {
    let document: Value = Portal::connect(&args.common.portal)?
        .get("/overview", &())
        .await?;
    let form = args.common.form();
    if form == Form::Json {
        return output::json(&document);
    }
    if form.is_for_people() {
        for need in shown::items(&document["needsYou"]) {
            output::result(format_args!(
                "{}: {}",
                cell(need, "/subscriptionId"),
                cell(need, "/text")
            ))?;
        }
    }
    let rows: Vec<Value> = shown::items(&document["subscriptions"])
        .iter()
        .map(readable)
        .collect();
    if rows.is_empty() {
        output::note(
            "there is no subscription yet; `postrider subscriptions create --help` shows how to make one",
        );
    }
    form.table(&shown::list(&json!(rows), SUBSCRIPTIONS))?;
    if document["hasMore"] == true {
        output::note("there are more subscriptions: `postrider subscriptions list` lists them");
    }
    Ok(())
}

/// A row with the lists in it in words.
fn readable(row: &Value) -> Value {
    let waits = shown::items(&row["waiting"])
        .iter()
        .map(|waiting| format!("{} {}", cell(waiting, "/count"), cell(waiting, "/reason")));
    let mut readable = row.clone();
    if !row["pausedBy"].is_null() {
        readable["state"] = format!("{}, paused", cell(row, "/state")).into();
    }
    readable["waits"] = waits.collect::<Vec<_>>().join(", ").into();
    if row["deliveredByResending"]
        .as_u64()
        .is_some_and(|count| count > 0)
    {
        let (failed, since) = (cell(row, "/failed"), cell(row, "/deliveredByResending"));
        readable["failed"] = format!("{failed}, {since} delivered since").into();
    }
    readable["used"] = format!(
        "{} of {}",
        cell(row, "/quota/usedToday"),
        cell(row, "/quota/dailyQuota")
    )
    .into();
    readable
}

/// Lists what was done by the reseller and for it, the newest first.
pub(crate) async fn activity(args: ActivityArgs) -> anyhow::Result<()> {
    if args.mails {
        return mails(&args).await;
    }
    let mut query = search::query([("action", args.action), ("by", args.by)]);
    args.stretch.add_to(&mut query);
    let portal = Portal::connect(&args.common.portal)?;
    let pages = args.stretch.part.of(&portal, "/activity", query);
    let nothing = |_: &Value| "nothing was done".to_owned();
    shown::print_pages(pages, args.common.form(), ACTIVITY, nothing).await?;
    Ok(())
}

async fn mails(args: &ActivityArgs) -> anyhow::Result<()> {
    let portal = Portal::connect(&args.common.portal)?;
    let pages = args.stretch.part.of(&portal, "/mails", Map::new());
    let nothing = |_: &Value| "there is no mail".to_owned();
    shown::print_pages(pages, args.common.form(), MAILS, nothing).await?;
    Ok(())
}

/// Shows what the installation allows, where a subscription has nothing of its own.
pub(crate) async fn limits(args: LimitsArgs) -> anyhow::Result<()> {
    let portal = Portal::connect(&args.common.portal)?;
    let document: Value = portal.get("/limits", &()).await?;
    args.common.form().print(&document, || {
        let mut readable = document.clone();
        if document["requestsPerSecond"].is_null() {
            readable["requestsPerSecond"] = "any number".into();
        }
        shown::record_of(("installation", &portal.url("")), &readable, LIMITS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_fit_the_terminal() {
        let subscription = "01a1fd84-ba0d-74fc-a5c1-94d557988f4b";
        let mails = json!([
            {"id": "01a1fd84-191a-7334-a6ae-613178d80d71", "kind": "RETRIES_EXHAUSTED", "status": "SENT", "subscriptionId": subscription,
             "recipient": "ops@reseller.example", "createdAt": "2026-11-21T12:00:00Z", "finishedAt": "2026-11-21T12:00:03.5Z"},
            {"id": subscription, "kind": "STATE_CHANGED", "status": "PENDING", "subscriptionId": subscription,
             "recipient": "ops@reseller.example", "createdAt": "2026-11-21T12:05:00Z", "dueAt": "2026-11-21T12:05:30Z", "finishedAt": null},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&mails, MAILS)));
    }

    #[test]
    fn an_act_shows_the_note_that_was_given_for_it() {
        let acts = json!([{"at": "2026-11-21T12:00:00Z", "by": "YOU", "action": "notification.cancel-many", "note": "moved away"}]);
        let listed = shown::list(&acts, ACTIVITY).at(Some(120));
        assert!(listed.contains("moved away"), "{listed}");
    }

    #[test]
    fn a_mail_says_how_many_occasions_it_tells_of() {
        let mails =
            json!([{"id": "1", "kind": "DELIVERY_REFUSED", "status": "PENDING", "occurrences": 4711}]);
        let listed = shown::list(&mails, MAILS).at(None);
        assert!(
            listed.contains("occasions") && listed.contains("4711"),
            "{listed}"
        );
    }

    #[test]
    fn what_waits_and_the_quota_are_told_in_words() {
        let row = json!({
            "id": "01a1fd84-191a-7334-a6ae-613178d80d71", "state": "ACTIVE", "pausedBy": "RESELLER", "waiting": [{"reason": "QUOTA", "count": 12}, {"reason": "RETRY", "count": 1}],
            "quota": {"usedToday": 70, "dailyQuota": 100}, "failed": 12, "deliveredByResending": 5,
        });
        let readable = readable(&row);
        assert_eq!(readable["waits"], "12 QUOTA, 1 RETRY");
        assert_eq!(readable["used"], "70 of 100");
        assert_eq!(readable["failed"], "12, 5 delivered since");
        assert_eq!(readable["state"], "ACTIVE, paused");
    }
}
