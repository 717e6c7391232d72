//! `postrider subscriptions retry-now`: trying at once what waits for a retry.

use domain::counted::of;
use serde_json::Value;

use super::args::One;
use super::{command, portal};
use crate::commands::reseller::paused_by;
use crate::output;
use crate::shown::cell;

/// Makes its retries due, as many as are made due at once.
pub(super) async fn retry_now(one: &One) -> anyhow::Result<()> {
    let tried = command(&portal(&one.common)?, one.id, "retry-now").await?;
    if one.common.is_json() {
        return output::json(&tried);
    }
    let id = one.id.to_string();
    output::result(said(&id, &tried))?;
    Ok(())
}

/// What is tried at once, and what keeps it.
fn said(id: &str, tried: &Value) -> String {
    let retries = tried["retries"].as_u64().unwrap_or_default();
    if retries == 0 {
        return format!("{id}: nothing waits for a retry that is not due already");
    }
    let mut said = format!("{id}: {} due now", of(retries, "retry is", "retries are"));
    if !tried["pausedBy"].is_null() {
        let ends = paused_by(&cell(tried, "/pausedBy"), id);
        said.push_str(&format!(
            "; nothing is sent yet, since the subscription is paused: {ends}"
        ));
    }
    if tried["more"] == true {
        said.push_str("; others may be left: give the command again");
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_said_how_many_are_due_what_keeps_them_and_whether_others_are_left() {
        let told = |retries: u64, more: bool, paused_by: Value| {
            said(
                "s",
                &json!({"retries": retries, "more": more, "pausedBy": paused_by}),
            )
        };
        assert_eq!(
            told(0, false, Value::Null),
            "s: nothing waits for a retry that is not due already"
        );
        assert_eq!(told(1, false, Value::Null), "s: 1 retry is due now");
        assert_eq!(
            told(1_000, true, Value::Null),
            "s: 1,000 retries are due now; others may be left: give the command again"
        );
        assert_eq!(
            told(2, false, json!("RESELLER")),
            "s: 2 retries are due now; nothing is sent yet, since the subscription is paused: `postrider subscriptions resume s` lets it go on"
        );
    }
}
