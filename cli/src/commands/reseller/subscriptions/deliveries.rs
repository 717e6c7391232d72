//! The table of `postrider subscriptions metrics`: the deliveries of each event type, or of each step of time.

use serde_json::Value;

use crate::output::{self, Column, Form, Table};
use crate::shown::{self, ShownColumn, cell};

/// What stands for people where no delay is known.
const NONE: &str = "-";
/// Why that is.
const WITHOUT_DELAY: &str =
    "-: nothing was delivered, or only what was sent again or replayed, whose delay is not counted";

fn columns(of: ShownColumn) -> [ShownColumn; 6] {
    [
        of,
        (Column::whole("attempts"), "/attempts"),
        (Column::whole("delivered"), "/delivered"),
        (Column::whole("failed"), "/failed"),
        (Column::whole("half in ms"), "/half"),
        (Column::whole("95 % in ms"), "/most"),
    ]
}

/// The numbers of each, `of` which the first column says.
pub(super) fn listed(items: &Value, of: ShownColumn, form: Form) -> Table {
    let items: Vec<Value> = shown::items(items)
        .iter()
        .filter(|item| item.is_object())
        .map(|item| readable(item, form))
        .collect();
    if items.iter().any(|item| item["half"] == NONE) {
        output::note(WITHOUT_DELAY);
    }
    shown::list(&items.into(), columns(of))
}

/// An entry with its delays in words; for scripts an unknown one stays empty.
fn readable(item: &Value, form: Form) -> Value {
    let mut readable = item.clone();
    for (name, pointer) in [
        ("half", "/deliveryDelayMillis/p50"),
        ("most", "/deliveryDelayMillis/p95"),
    ] {
        let mut delay = cell(item, pointer);
        if delay.is_empty() && form.is_for_people() {
            NONE.clone_into(&mut delay);
        }
        readable[name] = delay.into();
    }
    readable
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types() -> Value {
        json!([
            {"eventType": "contact.changed", "attempts": 7, "delivered": 0, "failed": 1, "retried": 6,
             "deliveryDelayMillis": {"p50": null, "p95": null, "p99": null}},
            {"eventType": "domain.created", "attempts": 1204, "delivered": 1200, "failed": 0, "retried": 4,
             "deliveryDelayMillis": {"p50": 84.5, "p95": 122_063.1, "p99": 1_800_000.0}},
        ])
    }

    #[test]
    fn event_types_fit_the_terminal() {
        let of = (Column::whole("event type"), "/eventType");
        insta::assert_snapshot!(output::at_widths(&listed(&types(), of, Form::Table)));
    }

    #[test]
    fn a_delay_that_is_not_known_is_a_dash_for_people_alone() {
        let row = |form| {
            let of = (Column::whole("event type"), "/eventType");
            let table = listed(&types(), of, form).tsv();
            table.lines().nth(1).map(str::to_owned)
        };
        assert_eq!(row(Form::Wide).as_deref(), Some("contact.changed\t7\t0\t1\t-\t-"));
        assert_eq!(row(Form::Tsv).as_deref(), Some("contact.changed\t7\t0\t1\t\t"));
    }
}
