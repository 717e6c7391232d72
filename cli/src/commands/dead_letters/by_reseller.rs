//! `postrider dead-letters groups --by reseller`.

use serde_json::Value;

use crate::output::{self, Column, Form, Table};
use crate::shown::{cell, items};

/// Shows whose dead letters there are, and how many.
pub(super) fn print(document: &Value, form: Form) -> anyhow::Result<()> {
    if form == Form::Json {
        return output::json(document);
    }
    let shown = items(&document["items"]).len();
    let total = document["total"].as_u64().unwrap_or_default();
    form.table(&table_of(document))?;
    if shown == 0 {
        output::note("no dead letter of a reseller matches");
    } else if total > shown as u64 {
        output::note(format!(
            "of {total} resellers those with the most; --limit shows more"
        ));
    }
    Ok(())
}

fn table_of(document: &Value) -> Table {
    let mut table = output::table([
        Column::whole("dead letters"),
        Column::whole("reseller").name(),
        Column::whole("mostly").spare(1),
        Column::whole("first").spare(5),
        Column::whole("last").spare(3),
        Column::whole("the last one").spare(4),
        Column::prose("detail").spare(2),
    ]);
    for reseller in items(&document["items"]) {
        let more = if reseller["atLeast"] == true {
            " or more"
        } else {
            ""
        };
        table.add_row([
            format!("{}{more}", cell(reseller, "/count")),
            cell(reseller, "/resellerId"),
            cell(reseller, "/fingerprint"),
            super::seconds(&cell(reseller, "/firstSeen")),
            super::seconds(&cell(reseller, "/lastSeen")),
            cell(reseller, "/sample/id"),
            cell(reseller, "/sample/detail"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_that_was_given_up_says_so() {
        let of = |at_least: bool| {
            let document = json!({"items": [{
                "resellerId": "acme", "count": 250, "atLeast": at_least, "fingerprint": "delivery/http/503/html",
                "firstSeen": "2026-11-20T09:00:00Z", "lastSeen": "2026-11-21T12:00:00.123Z", "sample": {"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "detail": "503"}
            }], "total": 1});
            table_of(&document).tsv()
        };
        let rest = "\tacme\tdelivery/http/503/html\t2026-11-20T09:00:00Z\t2026-11-21T12:00:00Z\t019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d\t503";
        assert!(of(true).ends_with(&format!("250 or more{rest}")), "{}", of(true));
        assert!(of(false).ends_with(&format!("\n250{rest}")), "{}", of(false));
    }
}
