//! `postrider subscriptions states`: the states that one has been in, and its pauses.

use serde_json::{Map, Value};

use super::args::StatesArgs;
use super::{path, portal};
use crate::output::Column;
use crate::shown::{self, ShownColumn};

const STATES: [ShownColumn; 5] = [
    (Column::time("since"), "/at"),
    (Column::whole("state"), "/state"),
    (Column::whole("reason"), "/stateReason"),
    (Column::whole("paused").spare(2), "/paused"),
    (Column::whole("paused by operators").spare(1), "/held"),
];

pub(super) async fn states(args: &StatesArgs) -> anyhow::Result<()> {
    let one = &args.one;
    let path = format!("{}/states", path(one.id));
    let portal = portal(&one.common)?;
    let pages = args.part.of(&portal, &path, Map::new());
    let nothing = |_: &Value| "no state is recorded".to_owned();
    shown::print_pages(pages, one.common.form(), STATES, nothing).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output;

    #[test]
    fn states_fit_the_terminal() {
        let states = json!([
            {"at": "2026-11-21T12:00:00.5Z", "state": "ACTIVE", "stateReason": "VERIFIED", "paused": true, "held": false},
            {"at": "2026-11-21T11:59:31Z", "state": "PENDING_VERIFICATION", "stateReason": "CREATED", "paused": false, "held": false},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&states, STATES)));
    }
}
