//! Finding notifications over the operator API, and the events that became none.

use chrono::{DateTime, Utc};
use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::notification::ERROR_TYPES;
use serde_json::Value;
use uuid::Uuid;

use super::columns::{LATE_NOTIFICATIONS, NOTIFICATIONS};
use super::{
    Query, Stretch, joined, note_late, note_reseller, note_waiting, print, query, seconds, upper, written,
};
use crate::age::Age;
use crate::api::Api;
use crate::operator::OperatorArgs;
use crate::output::{self, Form};
use crate::part::Pages;
use crate::shown;

/// Most events that matched nothing that are named below a list of notifications.
const UNMATCHED_MAX: u64 = 50;
/// Most other resellers that are named where an event is none of the one that was asked for.
const OTHERS_MAX: usize = 3;

/// What only the operator API is asked of notifications.
#[derive(Debug, Default)]
pub(crate) struct NotificationQuery {
    pub(crate) reseller: Option<String>,
    pub(crate) subscription: Option<Uuid>,
    pub(crate) url: Option<String>,
    pub(crate) event_id: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) statuses: Vec<String>,
    pub(crate) reasons: Vec<String>,
    pub(crate) event_type: Option<String>,
    pub(crate) answer: LastAnswer,
    pub(crate) ended_since: Option<DateTime<Utc>>,
    pub(crate) ended_until: Option<DateTime<Utc>>,
    pub(crate) late: Option<Age>,
}

/// What the endpoint answered last.
#[derive(Debug, Default, Args)]
pub(crate) struct LastAnswer {
    /// The endpoint answered the last attempt with this status code, or with one of a class, such as 5xx.
    #[arg(long, value_name = "N", value_parser = status_code)]
    code: Option<String>,
    /// The last attempt failed in this way.
    #[arg(long, value_parser = PossibleValuesParser::new(ERROR_TYPES), ignore_case = true)]
    error: Option<String>,
}

/// A status code or a class, as the APIs take it.
pub(crate) fn status_code(text: &str) -> Result<String, &'static str> {
    const FORM: &str = "write a status code from 100 to 599, such as 503, or a class, such as 5xx";
    let text = text.to_ascii_lowercase();
    let first = text.strip_suffix("xx").map(|class| format!("{class}00"));
    let code = first.as_deref().unwrap_or(&text).parse::<u16>().ok();
    let is_one = code.is_some_and(|code| (100..600).contains(&code));
    if is_one { Ok(text) } else { Err(FORM) }
}

impl LastAnswer {
    pub(crate) fn is_asked(&self) -> bool {
        self.code.is_some() || self.error.is_some()
    }

    pub(crate) fn query(&self) -> Query {
        query([("code", self.code.clone()), ("error", upper(self.error.as_ref()))])
    }
}

/// Lists notifications.
pub(crate) async fn notifications(
    operator: &OperatorArgs,
    form: Form,
    asked: NotificationQuery,
    stretch: &Stretch,
) -> anyhow::Result<()> {
    let mut query = query([
        ("reseller", asked.reseller),
        ("subscription", asked.subscription.map(|id| id.to_string())),
        ("url", asked.url),
        ("eventId", asked.event_id),
        ("value", asked.value),
        ("status", joined(&asked.statuses)),
        ("reason", joined(&asked.reasons)),
        ("eventType", asked.event_type),
        ("endedSince", asked.ended_since.map(written)),
        ("endedUntil", asked.ended_until.map(written)),
        ("lateBySeconds", seconds(asked.late)),
    ]);
    query.extend(asked.answer.query());
    stretch.add_to(&mut query);
    let api = operator.connect()?;
    let pages = stretch.part.of(&api, "/notifications", query.clone());
    let what = "notification";
    let document = if asked.late.is_some() {
        print(pages, form, LATE_NOTIFICATIONS, what).await?
    } else {
        print(pages, form, NOTIFICATIONS, what).await?
    };
    let is_by_end = asked.ended_since.is_some() || asked.ended_until.is_some();
    note_late(asked.late, (stretch, is_by_end), shown::items(&document["items"]));
    let is_empty = shown::items(&document["items"]).is_empty();
    if is_empty {
        note_reseller(&api, query.get("reseller")).await?;
        if query.contains_key("url") {
            output::note("`postrider subscriptions list --with-url` lists those that have this in their URL");
        }
    }
    note_waiting(&document, &asked.statuses);
    if query.contains_key("value") {
        return note_unmatched(&api, query, is_empty).await;
    }
    Ok(())
}

/// Says which events have the value and became no notification: no list of notifications has those.
async fn note_unmatched(api: &Api, mut query: Query, is_empty: bool) -> anyhow::Result<()> {
    // What is asked of notifications alone, no such event has.
    let is_of_notifications = [
        "status",
        "reason",
        "subscription",
        "url",
        "code",
        "error",
        "endedSince",
        "endedUntil",
        "lateBySeconds",
    ]
    .iter()
    .any(|name| query.contains_key(*name));
    if is_of_notifications {
        return Ok(());
    }
    query.insert("unmatched".to_owned(), "true".into());
    let document = Pages::new(api, "/events", query.clone(), UNMATCHED_MAX)
        .whole()
        .await?;
    let found = shown::items(&document["items"]);
    for event in found {
        let (id, reseller) = (shown::cell(event, "/id"), shown::cell(event, "/resellerId"));
        output::note(format_args!(
            "the event {id} of {reseller} has it and matched no subscription; `postrider explain {id}` says why"
        ));
    }
    if is_empty && found.is_empty() {
        return note_no_event(api, query).await;
    }
    Ok(())
}

/// Says that no event has the value, and which of another reseller has it.
async fn note_no_event(api: &Api, mut query: Query) -> anyhow::Result<()> {
    let reseller = query.get("reseller").and_then(Value::as_str).map(str::to_owned);
    output::note(output::harmless(&no_event(reseller.as_deref())));
    // An `eventId` goes with a reseller alone.
    if let Some(reseller) = reseller
        && !query.contains_key("eventId")
    {
        for name in ["reseller", "unmatched"] {
            query.remove(name);
        }
        query.insert("limit".to_owned(), UNMATCHED_MAX.into());
        // One part of the list, and no error where it cannot be had: what was asked for has been answered.
        let events: Value = api.get("/events", &query).await.unwrap_or_default();
        for told in of_others(shown::items(&events["items"]), &reseller) {
            output::note(told);
        }
    }
    Ok(())
}

/// That no event has the value that became no notification.
fn no_event(reseller: Option<&str>) -> String {
    let of = reseller.map_or(String::new(), |reseller| format!(" of {reseller}"));
    format!(
        "no event{of} that matched nothing has it either; --value finds whole values, such as example.org, and no parts of them"
    )
}

/// What tells of the newest event of each reseller but this one: its name may be written in another way.
fn of_others(events: &[Value], reseller: &str) -> Vec<String> {
    let mut named = vec![reseller];
    let mut told = Vec::new();
    for event in events {
        let Some(other) = event["resellerId"].as_str() else {
            continue;
        };
        if told.len() < OTHERS_MAX && !named.contains(&other) {
            named.push(other);
            let (id, other) = (shown::cell(event, "/id"), output::harmless(other));
            told.push(format!("an event of {other} has it: `postrider explain {id}`"));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_reseller_has_is_named_once_for_each() {
        assert!(no_event(Some("demo")).starts_with("no event of demo that matched nothing has it either; "));
        assert!(no_event(None).starts_with("no event that matched nothing has it either; "));
        let event = |id: &str, reseller: &str| json!({"id": id, "resellerId": reseller});
        let events = [
            event("e-5", "Demo"),
            event("e-4", "demo"),
            event("e-3", "Demo"),
            event("e-2", "demo2"),
        ];
        assert_eq!(
            of_others(&events, "demo"),
            [
                "an event of Demo has it: `postrider explain e-5`",
                "an event of demo2 has it: `postrider explain e-2`"
            ]
        );
        assert!(of_others(&events[1..2], "demo").is_empty());
    }
}
