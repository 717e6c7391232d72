//! `postrider notifications failures`: how many failed for good, by how.

use chrono::{DateTime, Utc};
use clap::Args;
use domain::counted::{number, of as counted};
use serde_json::Value;

use super::{Common, OfSubscription};
use crate::commands::search;
use crate::output::{self, Column};
use crate::portal::Portal;
use crate::shown::{self, ShownColumn};

#[derive(Debug, Args)]
#[command(after_help = "\
Of each sum, `postrider notifications list --status FAILED,GIVEN_UP --error ERROR --code CODE` with --ended-since and --ended-until for the time lists
the notifications, save those that were sent again since.

Examples:
  postrider notifications failures 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --since 3d --until 2h
  postrider notifications failures --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
pub(crate) struct FailuresArgs {
    #[command(flatten)]
    of: OfSubscription,
    /// Failed at this time or later, within the last 7 days; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, visible_alias = "newer-than")]
    since: Option<DateTime<Utc>>,
    /// Failed before this time; a time, or an age such as 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age, visible_alias = "older-than")]
    until: Option<DateTime<Utc>>,
    #[command(flatten)]
    common: Common,
}

const SUMS: [ShownColumn; 6] = [
    (Column::whole("error"), "/errorType"),
    (Column::whole("answer"), "/code"),
    (Column::whole("count"), "/count"),
    (Column::whole("delivered since"), "/deliveredByResending"),
    (Column::time("first").spare(2), "/firstAt"),
    (Column::time("last").spare(1), "/lastAt"),
];

/// Counts what failed.
pub(super) async fn run(args: FailuresArgs) -> anyhow::Result<()> {
    let query = search::query([
        ("subscription", args.of.id().map(|id| id.to_string())),
        ("since", args.since.map(search::written)),
        ("until", args.until.map(search::written)),
    ]);
    let portal = Portal::connect(&args.common.portal)?;
    let failures: Value = portal.get("/notifications/failures", &query).await?;
    let form = args.common.form();
    form.print(&failures, || shown::list(&failures["items"], SUMS))?;
    if form.is_for_people() {
        output::note(standing(&failures));
    }
    Ok(())
}

/// How many failed, and how many of them are delivered by now, in a sentence.
fn standing(failures: &Value) -> String {
    let total = failures["total"].as_u64().unwrap_or_default();
    if total == 0 {
        return "nothing failed in that time".to_owned();
    }
    let or_more = if failures["atLeast"] == true {
        " or more"
    } else {
        ""
    };
    let in_all = format!("{}{or_more} in all", counted(total, "failure", "failures"));
    let delivered = failures["deliveredByResending"].as_u64().unwrap_or_default();
    if total == 1 {
        let stands = if delivered == 0 {
            "is still not delivered"
        } else {
            "was delivered since"
        };
        return format!("{in_all}, of a notification that {stands}");
    }
    let still_not = total.saturating_sub(delivered);
    let parts = match (delivered, still_not) {
        (0, _) => "all of notifications that are still not delivered".to_owned(),
        (_, 0) => "all of notifications that were delivered since".to_owned(),
        _ => format!(
            "{} of notifications that were delivered since, {} of notifications that are still not delivered",
            number(delivered),
            number(still_not)
        ),
    };
    format!("{in_all}: {parts}; a notification that failed several times counts each time")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_fit_the_terminal() {
        let failures = json!([
            {"errorType": "HTTP", "code": 503, "count": 1200, "deliveredByResending": 1100, "firstAt": "2026-11-21T12:00:31.5Z", "lastAt": "2026-11-21T14:08:00Z"},
            {"errorType": "TIMEOUT", "code": null, "count": 4, "deliveredByResending": 0, "firstAt": "2026-11-22T00:00:00Z", "lastAt": "2026-11-22T05:59:59Z"},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&failures, SUMS)));
    }

    #[test]
    fn what_was_cut_off_is_said_to_be_more() {
        let of = |total: u64, at_least: bool| standing(&json!({"total": total, "atLeast": at_least}));
        assert_eq!(of(0, false), "nothing failed in that time");
        assert_eq!(
            of(1, false),
            "1 failure in all, of a notification that is still not delivered"
        );
        assert!(of(100_000, true).starts_with("100,000 failures or more in all: all of "));
    }

    #[test]
    fn what_was_delivered_since_is_told_from_what_is_still_not_delivered() {
        let of = |total: u64, delivered: u64| {
            standing(&json!({"total": total, "atLeast": false, "deliveredByResending": delivered}))
        };
        assert_eq!(
            of(1_116, 1_100),
            "1,116 failures in all: 1,100 of notifications that were delivered since, 16 of notifications that are still not delivered; a \
             notification that failed several times counts each time"
        );
        for (delivered, said) in [
            (
                0,
                "2 failures in all: all of notifications that are still not delivered; ",
            ),
            (
                2,
                "2 failures in all: all of notifications that were delivered since; ",
            ),
        ] {
            assert!(of(2, delivered).starts_with(said), "{}", of(2, delivered));
        }
        assert_eq!(
            of(1, 1),
            "1 failure in all, of a notification that was delivered since"
        );
    }
}
