//! `postrider subscriptions delete` and `deactivate`, which give up what waits: asked for first.

use domain::counted::number;
use serde_json::Value;
use uuid::Uuid;

use super::args::Confirmed;
use super::{act, path, portal};
use crate::confirm::{Act, Yes};
use crate::output;
use crate::portal::Portal;
use crate::shown::cell;

/// Deletes a subscription, once it is confirmed what is given up with it.
pub(super) async fn run(Confirmed { one, yes }: &Confirmed) -> anyhow::Result<()> {
    let (portal, id) = (portal(&one.common)?, one.id);
    confirm(*yes, &portal, (id, "delete"), deletion).await?;
    portal.delete(&path(id)).await?;
    output::note(format_args!("the subscription {id} is deleted"));
    Ok(())
}

/// Deactivates a subscription, once it is confirmed what is given up with it.
pub(super) async fn deactivate(Confirmed { one, yes }: &Confirmed) -> anyhow::Result<()> {
    let portal = portal(&one.common)?;
    confirm(*yes, &portal, (one.id, "deactivate"), deactivation).await?;
    act(one, "deactivate").await
}

/// Makes sure that it is meant. `effect` says what follows, of how much waits.
async fn confirm(
    yes: Yes,
    portal: &Portal,
    (id, verb): (Uuid, &str),
    effect: fn(&Value) -> String,
) -> anyhow::Result<()> {
    if yes.is_given() {
        return Ok(());
    }
    let subscription: Value = portal.get(&path(id), &()).await?;
    let summary = format!("{}/scheduled/summary", path(id));
    let waits: Value = portal.get(&summary, &()).await?;
    let act = Act {
        what: &format!("{verb} the subscription {id} to {}", cell(&subscription, "/url")),
        effect: &effect(&waits),
        instead: &format!("`postrider subscriptions pause {id}` to stop it for a while"),
    };
    yes.confirm(&act, || ())
}

/// What cannot be looked at any more.
const UNREADABLE: &str = "its notifications, their attempts and its states can no longer be read";

/// What a subscription that is made in its place does not know.
const MADE_AGAIN: &str = "a replay of one that is made again sends what this one has delivered once more, unless `--since` is when it was deleted";

/// What follows when a subscription is deleted for which this waits.
fn deletion(waits: &Value) -> String {
    let counted = given_up(waits);
    format!("nothing more is sent to it{counted}, {UNREADABLE}, and that cannot be undone; {MADE_AGAIN}")
}

/// What follows when it is deactivated.
fn deactivation(waits: &Value) -> String {
    let counted = given_up(waits);
    format!(
        "nothing more is sent to it{counted}, and events become no notifications of it until it is activated"
    )
}

/// How many wait that are given up.
fn given_up(waits: &Value) -> String {
    match waits["total"].as_u64().unwrap_or_default() {
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
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_said_how_much_a_deletion_gives_up_and_that_nothing_can_be_read_afterwards() {
        let said = |total: u64| deletion(&json!({"total": total, "countedUpTo": 10_000}));
        assert_eq!(
            said(0),
            "nothing more is sent to it, its notifications, their attempts and its states can no longer be read, and that cannot be undone; a \
             replay of one that is made again sends what this one has delivered once more, unless `--since` is when it was deleted"
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

    #[test]
    fn it_is_said_how_much_a_deactivation_gives_up_and_until_when_it_lasts() {
        assert_eq!(
            deactivation(&json!({"total": 12, "countedUpTo": 10_000})),
            "nothing more is sent to it, 12 notifications that wait are given up, and events become no notifications of it until it is activated"
        );
    }
}
