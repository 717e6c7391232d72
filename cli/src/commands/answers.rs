//! `postrider notifications answers`: what endpoints answered, by status code, for operators.

use chrono::{DateTime, Utc};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::age::{Age, at_or_ago};
use crate::commands::search;
use crate::operator::Common;
use crate::output::{self, Column, Form};
use crate::shown::{self, ShownColumn, cell};

#[derive(Debug, Args)]
#[command(after_help = "\
Attempts are counted by the hour, so that the count begins with a whole one: the line below the table says with which.
The answer \"none\" is of attempts without one: it did not come in time, there was no connection, or the attempt failed on our side.

Examples:
  postrider notifications answers                       which answers came since the hour before this one?
  postrider notifications answers --newer-than 1d --reseller acme
  postrider notifications answers --json | jq '.items[] | select(.code >= 500)'")]
pub(crate) struct AnswersArgs {
    /// From the hour on that has this time, at most 7 days back; a time, or an age such as 3h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, conflicts_with = "newer_than")]
    since: Option<DateTime<Utc>>,
    /// From the hour on that was so long ago, such as 3h; 1h if neither is given.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// Of this reseller.
    #[arg(long, value_name = "ID", conflicts_with = "subscription")]
    reseller: Option<String>,
    /// Of this subscription.
    #[arg(long, value_name = "ID")]
    subscription: Option<Uuid>,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 4] = [
    (Column::whole("answer"), "/answer"),
    (Column::whole("count"), "/count"),
    (Column::whole("subscriptions").spare(1), "/subscriptions"),
    (Column::prose("most"), "/named"),
];

/// Shows what was answered.
pub(crate) async fn run(args: AnswersArgs) -> anyhow::Result<()> {
    let since = at_or_ago(args.since, args.newer_than, SystemClock.now());
    let query = search::query([
        ("since", since.map(search::written)),
        ("reseller", args.reseller),
        ("subscription", args.subscription.map(|id| id.to_string())),
    ]);
    let api = args.common.operator.connect()?;
    let document: Value = api.get("/notifications/answers", &query).await?;
    let form = args.common.form();
    if form == Form::Json {
        return output::json(&document);
    }
    let items: Vec<Value> = shown::items(&document["items"]).iter().map(readable).collect();
    let is_empty = items.is_empty();
    shown::print(
        &json!({ "items": items }),
        form,
        COLUMNS,
        "nothing was sent in that time",
    )?;
    if is_empty {
        search::note_reseller(&api, query.get("reseller")).await?;
    }
    if form.is_for_people() {
        output::note(format_args!(
            "attempts since {}, counted by the hour",
            cell(&document, "/since")
        ));
    }
    Ok(())
}

/// An entry with its code and its subscriptions in words.
fn readable(item: &Value) -> Value {
    let mut readable = item.clone();
    readable["answer"] = match cell(item, "/code") {
        code if code.is_empty() => "none".into(),
        code => code.into(),
    };
    let named = shown::items(&item["most"]).iter().map(|one| {
        let of = |name| cell(one, name);
        format!(
            "{} of {} {}",
            of("/count"),
            of("/resellerId"),
            of("/subscriptionId")
        )
    });
    readable["named"] = named.collect::<Vec<_>>().join(", ").into();
    readable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_subscriptions_that_gave_most_of_it() {
        let item = json!({"code": 503, "count": 42, "subscriptions": 2, "most": [
            {"resellerId": "acme", "subscriptionId": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "count": 40},
            {"resellerId": "\u{1b}[2J", "subscriptionId": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e", "count": 2},
        ]});
        let missing = json!({"code": null, "count": 1, "subscriptions": 1, "most": []});
        let rows = json!([readable(&item), readable(&missing)]);
        assert_eq!(
            rows[0]["named"],
            "40 of acme 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d, 2 of \u{fffd}[2J 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e"
        );
        assert_eq!(
            (&rows[0]["answer"], &rows[1]["answer"]),
            (&json!("503"), &json!("none"))
        );
        insta::assert_snapshot!(output::at_widths(&shown::list(&rows, COLUMNS)));
    }
}
