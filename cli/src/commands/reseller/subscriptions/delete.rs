//! `postrider subscriptions delete`: the end of a subscription, for good.

use domain::counted::number;
use serde_json::Value;

use super::args::DeleteArgs;
use super::{path, portal};
use crate::confirm::Act;
use crate::output;
use crate::shown::cell;

/// Deletes a subscription, once it is confirmed what is given up with it.
pub(super) async fn run(DeleteArgs { one, yes }: &DeleteArgs) -> anyhow::Result<()> {
    let (portal, id) = (portal(&one.common)?, one.id);
    if !yes.is_given() {
        let subscription: Value = portal.get(&path(id), &()).await?;
        let waits: Value = portal
            .get(&format!("{}/scheduled/summary", path(id)), &())
            .await?;
        let act = Act {
            what: &format!("delete the subscription {id} to {}", cell(&subscription, "/url")),
            effect: &given_up(&waits),
            instead: &format!("`postrider subscriptions pause {id}` to stop it for a while"),
        };
        yes.confirm(&act, || ())?;
    }
    portal.delete(&path(id)).await?;
    output::note(format_args!("the subscription {id} is deleted"));
    Ok(())
}

/// What cannot be looked at any more.
const UNREADABLE: &str = "its notifications, their attempts and its states can no longer be read";

/// What follows when a subscription is deleted for which this waits.
fn given_up(waits: &Value) -> String {
    let counted = match waits["total"].as_u64().unwrap_or_default() {
        0 => String::new(),
        1 => ", 1 notification that waits is given up".to_owned(),
        total => {
            // Each status is counted up to there.
            let is_cut_off = Some(total) >= waits["countedUpTo"].as_u64();
            let or_more = if is_cut_off { " or more" } else { "" };
            format!(
                ", {}{or_more} notifications that wait are given up",
                number(total)
            )
        }
    };
    format!("nothing more is sent to it{counted}, {UNREADABLE}, and that cannot be undone")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_said_how_much_a_deletion_gives_up_and_that_nothing_can_be_read_afterwards() {
        let said = |total: u64| given_up(&json!({"total": total, "countedUpTo": 10_000}));
        assert_eq!(
            said(0),
            "nothing more is sent to it, its notifications, their attempts and its states can no longer be read, and that cannot be undone"
        );
        for (total, counted) in [
            (1, ", 1 notification that waits is given up,"),
            (9_999, ", 9,999 notifications that wait are given up,"),
            (10_000, ", 10,000 or more notifications that wait are given up,"),
        ] {
            let said = said(total);
            assert!(said.contains(counted) && said.contains(UNREADABLE), "{said}");
        }
    }
}
