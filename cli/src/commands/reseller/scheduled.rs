//! `postrider notifications scheduled`: what waits, added up, of all subscriptions or of one; or what of one is in line for a day.

use anyhow::bail;
use chrono::NaiveDate;
use clap::Args;
use domain::counted::{number, of as counted};
use serde_json::{Value, json};
use uuid::Uuid;

use super::notifications::{COLUMNS, held_by};
use super::{Common, OfSubscription};
use crate::commands::search;
use crate::output::{self, Column};
use crate::part::Pages;
use crate::portal::Portal;
use crate::shown::{self, ShownColumn, cell};

#[derive(Debug, Args)]
#[command(after_help = "\
A reason is QUOTA (a day with room), RATE (its second), RETRY (the next attempt), PAUSED (the end of a pause), UNVERIFIED (the endpoint's
verification), POSTPONED (it could not be tried on our side) or TURN (those before it).

Examples:
  postrider notifications scheduled
  postrider notifications scheduled 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider notifications scheduled 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --day 2026-11-22")]
pub(crate) struct ScheduledArgs {
    #[command(flatten)]
    of: OfSubscription,
    /// Lists those of one subscription that wait for quota or rate until this day, such as 2026-11-22.
    #[arg(long)]
    day: Option<NaiveDate>,
    /// How many of that day are listed, 50 if it is not said; more than 200 are asked for page by page.
    #[arg(long, value_name = "N", requires = "day", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Where the previous part of that day ended.
    #[arg(long, requires = "day")]
    cursor: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// How many of a day are listed if it is not said.
const LISTED: u64 = 50;

const SUMS: [ShownColumn; 5] = [
    (Column::whole("reason"), "/reason"),
    (Column::whole("count"), "/count"),
    (Column::whole("day"), "/day"),
    (Column::time("first").spare(2), "/firstAt"),
    (Column::time("last").spare(1), "/lastAt"),
];

const OF_ALL: [ShownColumn; 3] = [
    (Column::whole("subscription"), "/subscriptionId"),
    (Column::whole("reason"), "/reason"),
    (Column::whole("count"), "/count"),
];

/// Adds up what waits, or lists what is in line for a day.
pub(crate) async fn run(args: ScheduledArgs) -> anyhow::Result<()> {
    match (args.of.id(), args.day) {
        (Some(id), Some(day)) => of_day(args, id, day).await,
        (Some(id), None) => sums(args, id).await,
        (None, Some(_)) => bail!("--day lists what is in line of one subscription: name that as well"),
        (None, None) => of_all(args).await,
    }
}

/// Adds up what waits of each subscription, as the overview has it.
async fn of_all(args: ScheduledArgs) -> anyhow::Result<()> {
    let overview: Value = Portal::connect(&args.common.portal)?
        .get("/overview", &())
        .await?;
    let document = waiting_of_all(&overview);
    let form = args.common.form();
    form.print(&document, || shown::list(&document["items"], OF_ALL))?;
    if form.is_for_people() {
        output::note(match shown::items(&document["items"]) {
            [] => "nothing waits".to_owned(),
            _ => format!(
                "of each subscription {} are counted in each status at most; `postrider notifications scheduled SUBSCRIPTION` counts on, and \
                 has the days",
                number(document["countedUpTo"].as_u64().unwrap_or_default())
            ),
        });
        if document["hasMore"] == true {
            output::note(
                "there are more subscriptions, which are not counted: `postrider subscriptions list` lists them",
            );
        }
    }
    Ok(())
}

fn waiting_of_all(overview: &Value) -> Value {
    let mut items = Vec::new();
    for subscription in shown::items(&overview["subscriptions"]) {
        for waiting in shown::items(&subscription["waiting"]) {
            items.push(json!({
                "subscriptionId": subscription["id"], "reason": waiting["reason"], "count": waiting["count"],
            }));
        }
    }
    json!({"items": items, "hasMore": overview["hasMore"], "countedUpTo": overview["countedUpTo"]})
}

async fn of_day(args: ScheduledArgs, id: Uuid, day: NaiveDate) -> anyhow::Result<()> {
    let path = format!("/subscriptions/{id}/scheduled");
    let query = search::query([("day", Some(day.to_string())), ("cursor", args.cursor)]);
    let portal = Portal::connect(&args.common.portal)?;
    let pages = Pages::new(&portal, &path, query, args.limit.unwrap_or(LISTED));
    let nothing = |_: &Value| {
        "nothing is in line for that day; without --day, what waits is added up by day".to_owned()
    };
    shown::print_pages(pages, args.common.form(), COLUMNS, nothing).await?;
    Ok(())
}

async fn sums(args: ScheduledArgs, id: Uuid) -> anyhow::Result<()> {
    let form = args.common.form();
    let path = format!("/subscriptions/{id}/scheduled/summary");
    let summary: Value = Portal::connect(&args.common.portal)?.get(&path, &()).await?;
    form.print(&summary, || shown::list(&summary["waiting"], SUMS))?;
    if form.is_for_people() {
        output::note(standing(&summary));
        let whose = cell(&summary, "/pausedBy");
        if !whose.is_empty() {
            output::note(held_by(&whose, &id.to_string()));
        }
    }
    Ok(())
}

/// How many wait, in a sentence.
fn standing(summary: &Value) -> String {
    let number = |pointer| {
        summary
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    };
    let total = number("/total");
    if total == 0 {
        return "nothing waits".to_owned();
    }
    // Each status is counted up to there, so that with fewer in all none was cut off.
    let or_more = if total >= number("/countedUpTo") {
        " or more"
    } else {
        ""
    };
    let waiting = counted(total, "notification", "notifications");
    let zone = cell(summary, "/timeZone");
    format!("{waiting}{or_more} in all; days begin at midnight, {zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_of_all_has_a_row_for_each_subscription_and_reason() {
        let overview = json!({"hasMore": false, "countedUpTo": 1000, "subscriptions": [
            {"id": "a", "waiting": [{"reason": "QUOTA", "count": 12}, {"reason": "RETRY", "count": 1}]},
            {"id": "b", "waiting": []},
        ]});
        let document = waiting_of_all(&overview);
        assert_eq!(
            document["items"],
            json!([
                {"subscriptionId": "a", "reason": "QUOTA", "count": 12},
                {"subscriptionId": "a", "reason": "RETRY", "count": 1},
            ])
        );
    }

    #[test]
    fn sums_fit_the_terminal() {
        let waiting = json!([
            {"reason": "RETRY", "day": "2026-11-21", "firstAt": "2026-11-21T12:00:31.5Z", "lastAt": "2026-11-21T12:08:00Z", "count": 3},
            {"reason": "QUOTA", "day": "2026-11-22", "firstAt": "2026-11-22T00:00:00Z", "lastAt": "2026-11-22T05:59:59Z", "count": 7500},
            {"reason": "TURN", "day": null, "firstAt": null, "lastAt": null, "count": 12},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&waiting, SUMS)));
    }

    #[test]
    fn what_was_cut_off_is_said_to_be_more() {
        let of = |total: u64| standing(&json!({"timeZone": "UTC", "countedUpTo": 100_000, "total": total}));
        assert_eq!(of(0), "nothing waits");
        assert_eq!(of(1), "1 notification in all; days begin at midnight, UTC");
        assert_eq!(
            of(100_000),
            "100,000 notifications or more in all; days begin at midnight, UTC"
        );
    }
}
