//! `postrider waiting`: what waits in all, by what it waits for.

use clap::Args;
use serde_json::{Value, json};

use crate::operator::Common;
use crate::output::{self, Column, Form};
use crate::shown::{self, ShownColumn, cell};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider waiting                             of both lanes and Web Push: for what, how many, the oldest and the next due
  postrider notifications list --all --status SCHEDULED  when the turn of each comes that is in line: QUOTA, RATE, POSTPONED
  postrider push list --waiting                 pushes one by one, the oldest first; notifications list has it too
  postrider waiting --json | jq '.items[] | select(.lane == \"push\")'")]
pub(crate) struct WaitingArgs {
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 6] = [
    (Column::whole("lane"), "/lane"),
    (Column::whole("reason").spare(2), "/reason"),
    (Column::prose("waits"), "/text"),
    (Column::whole("count"), "/counted"),
    (Column::time("oldest"), "/oldest"),
    (Column::time("next due").spare(1), "/nextDueAt"),
];

/// Shows what waits.
pub(crate) async fn run(args: &WaitingArgs) -> anyhow::Result<()> {
    let document: Value = args.common.operator.connect()?.get("/waiting", &()).await?;
    let form = args.common.form();
    if form == Form::Json {
        return output::json(&document);
    }
    let items: Vec<Value> = shown::items(&document["items"]).iter().map(readable).collect();
    shown::print(&json!({ "items": items }), form, COLUMNS, "nothing waits")
}

/// An entry with its count in words, and whether its lane is paused or held.
fn readable(item: &Value) -> Value {
    let mut readable = item.clone();
    let count = cell(item, "/count");
    let counted = if item["more"] == true {
        format!("{count} or more")
    } else {
        count
    };
    readable["counted"] = counted.into();
    let stopped = [("paused", item["paused"] == true), ("held", item["held"] == true)];
    // Of a lane that is both the pause is told: what ends the hold does not end that.
    if let Some((how, _)) = stopped.iter().find(|(_, is_so)| *is_so) {
        readable["lane"] = format!("{} ({how})", cell(item, "/lane")).into();
    }
    readable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_is_held_is_told_as_one_that_is_paused() {
        let lane = |paused, held| {
            readable(&json!({"lane": "push", "count": 9, "paused": paused, "held": held}))["lane"].clone()
        };
        assert_eq!(lane(false, true), "push (held)");
        assert_eq!(lane(true, true), "push (paused)");
        assert_eq!(lane(false, false), "push");
    }

    #[test]
    fn what_waits_fits_the_terminal() {
        let items = [
            json!({"lane": "push", "reason": "WINDOW", "text": "for a sending window", "count": 10_000, "more": true,
                   "oldest": "2026-11-21T08:00:00Z", "nextDueAt": "2026-11-21T12:30:00Z", "paused": true}),
            json!({"lane": "reseller", "reason": "ROOM", "text": "for room in the queue", "count": 12, "more": false,
                   "oldest": "2026-11-21T11:59:58.5Z", "nextDueAt": null, "paused": false}),
            json!({"lane": "webpush", "reason": "USER_AGENT", "text": "for their user agents to take them", "count": 420, "more": false,
                   "oldest": null, "nextDueAt": null, "paused": false}),
        ];
        let rows: Vec<Value> = items.iter().map(readable).collect();
        insta::assert_snapshot!(output::at_widths(&shown::list(&json!(rows), COLUMNS)));
    }
}
