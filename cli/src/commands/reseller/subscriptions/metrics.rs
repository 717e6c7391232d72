//! `postrider subscriptions metrics`: the deliveries of the last hours in numbers.

use serde_json::Value;

use super::args::MetricsArgs;
use super::{deliveries, path, portal};
use crate::output::{self, Column, Form};
use crate::shown::{self, Shown};

const METRICS: [Shown; 15] = [
    ("since", "/since"),
    ("attempts", "/attempts"),
    ("delivered", "/delivered"),
    ("failed for good", "/failed"),
    ("tried again", "/retried"),
    ("success rate", "/successRate"),
    ("failure rate", "/failureRate"),
    ("retry rate", "/retryRate"),
    ("half took ms", "/latencyMillis/p50"),
    ("95 of 100 took ms", "/latencyMillis/p95"),
    ("99 of 100 took ms", "/latencyMillis/p99"),
    ("attempts without answer", "/unanswered"),
    ("half delivered within ms", "/deliveryDelayMillis/p50"),
    ("95 of 100 delivered within ms", "/deliveryDelayMillis/p95"),
    ("99 of 100 delivered within ms", "/deliveryDelayMillis/p99"),
];

/// How coarse the times are, which are counted in buckets that grow: `domain::latency`.
const ESTIMATED: &str = "times are estimates: those of attempts may be off by a fifth, those from event to delivery (\"delivered within\", \"in ms\") by \
     two fifths";

pub(super) async fn metrics(args: &MetricsArgs) -> anyhow::Result<()> {
    let (one, form) = (&args.one, args.one.common.form());
    let path = format!("{}/metrics", path(one.id));
    let mut query = vec![("hours", args.hours.to_string())];
    query.extend(args.step.map(|step| ("step", step.to_string())));
    query.extend(args.event_type.clone().map(|name| ("eventType", name)));
    let document: Value = portal(&one.common)?.get(&path, &query).await?;
    let mut types = shown::items(&document["byEventType"]).iter();
    let of_type = types.find(|of| of["eventType"].as_str() == args.event_type.as_deref());
    if let (Some(name), None) = (&args.event_type, of_type)
        && form != Form::Json
    {
        output::note(output::harmless(&format!(
            "no attempt of the last {} h was for an event of the type {name}; --by-event-type lists those that were",
            args.hours
        )));
    }
    if form.is_for_people() && document["attempts"] != 0 {
        output::note(ESTIMATED);
    }
    form.print(&document, || {
        if args.by_event_type {
            let of = (Column::whole("event type"), "/eventType");
            return deliveries::listed(&document["byEventType"], of, form);
        }
        let from = (Column::time("from"), "/hour");
        if args.event_type.is_some() {
            let hours = of_type.map_or(&Value::Null, |of| &of["hours"]);
            return deliveries::listed(hours, from, form);
        }
        if args.step.is_some() {
            return deliveries::listed(&document["hours"], from, form);
        }
        let whose = ("subscription", &*one.id.to_string());
        let mut readable = document.clone();
        for rate in ["successRate", "failureRate", "retryRate"] {
            if let Some(share) = document[rate].as_f64() {
                readable[rate] = format!("{:.1} %", share * 100.0).into();
            }
        }
        let mut table = shown::record_of(whose, &readable, METRICS);
        for (status, count) in document["answers"].as_object().into_iter().flatten() {
            table.add_row([format!("answers {status}"), count.to_string()]);
        }
        table
    })
}
