//! R11: deliveries to a subscription in numbers, as bars and as a table.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use chrono_tz::Tz;
use domain::latency::Delays;
use http::header;
use http_api::{Id, Params, Problem, ReadParams};
use pages::{Markup, Page};
use serde::Deserialize;

use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::metrics::{self, Counts, MetricsDocument, MetricsParams};
use crate::request::Reseller;
use crate::subscriptions::SubscriptionDocument;

/// The times that are offered, in hours, and what they are called.
const RANGES: [(u32, &str); 4] = [
    (24, "24 hours"),
    (72, "3 days"),
    (168, "7 days"),
    (672, "4 weeks"),
];

/// The height of the chart of delays.
const DELAYS_HEIGHT: f64 = 96.0;

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/s/{id}/metrics", page),
        super::page("/app/s/{id}/metrics.csv", export),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeParams {
    hours: Option<u32>,
}

/// A bar: some hours, which begin at a full one in the viewer's zone.
struct Step {
    begins: DateTime<Utc>,
    counts: Counts,
    delays: Delays,
}

impl Step {
    fn delay(&self, part: f64) -> Option<f64> {
        self.delays.percentile(part)
    }
}

#[derive(Template)]
#[template(path = "metrics.html")]
struct Metrics {
    frame: Frame,
    subscription: SubscriptionDocument,
    metrics: MetricsDocument,
    hours: u32,
    /// The hours of a bar.
    width: u32,
    /// The first one first, those without attempts too.
    steps: Vec<Step>,
}

impl Metrics {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn ranges(&self) -> &'static [(u32, &'static str)] {
        &RANGES
    }

    fn bars(&self) -> Markup {
        let bars = self.steps.iter().map(|step| {
            let counts = &step.counts;
            [counts.delivered, counts.retried, counts.failed]
        });
        let counts = &self.metrics.counts;
        let label = format!(
            "{} delivered, {} tried again and {} failed in {} hours",
            counts.delivered, counts.retried, counts.failed, self.hours
        );
        words::stacked(&bars.collect::<Vec<_>>(), &label)
    }

    /// Within which time after their events half and 95 of 100 were delivered, as a line each; none where that is not known of any bar. From
    /// milliseconds to days is more than an even scale can show: equal heights stand for equal factors.
    fn delays(&self) -> Option<Markup> {
        let known = |part: f64| self.steps.iter().map(move |step| step.delay(part));
        let longest = |part: f64| known(part).flatten().reduce(f64::max);
        let (half, most) = (longest(0.5)?, longest(0.95)?);
        let top = most.max(1.0).ln_1p();
        let path = |part: f64| {
            let (mut path, mut is_begun) = (String::new(), false);
            for (place, delay) in known(part).enumerate() {
                if let Some(delay) = delay {
                    let y = 2.0 + (DELAYS_HEIGHT - 4.0) * (1.0 - delay.max(0.0).ln_1p() / top);
                    let command = if is_begun { 'L' } else { 'M' };
                    path.push_str(&format!("{command}{} {y:.1}h8", place * 10));
                }
                is_begun = delay.is_some();
            }
            path
        };
        let label = format!(
            "From the event to its delivery: half within {} at most, 95 of 100 within {}",
            words::wait(half),
            words::wait(most)
        );
        Some(Markup(format!(
            r#"<svg class="spark tall" viewBox="0 0 {width} {DELAYS_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}"><path class="line-warn" d="{most}"/><path class="line-ok" d="{half}"/></svg>"#,
            width = self.steps.len() * 10,
            most = path(0.95),
            half = path(0.5),
        )))
    }

    fn rate(&self, rate: Option<f64>) -> String {
        rate.map_or_else(|| "–".to_owned(), words::percent)
    }

    fn millis(&self, millis: Option<f64>) -> String {
        millis.map_or_else(|| "–".to_owned(), words::millis)
    }

    fn delay(&self, millis: Option<f64>) -> String {
        millis.map_or_else(|| "–".to_owned(), words::wait)
    }

    fn size(&self, size: u64) -> String {
        words::bytes(size)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an average of sizes, rounded for people"
    )]
    fn average(&self) -> String {
        let average = self.metrics.payload_bytes.average;
        average.map_or_else(|| "–".to_owned(), |average| words::bytes(average.round() as u64))
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn part(&self, count: u64) -> String {
        words::percent(count as f64 / self.metrics.counts.attempts.max(1) as f64)
    }
}

async fn read(
    app: &Arc<App>,
    reseller: &Reseller,
    Id(id): Id,
    hours: u32,
) -> Result<MetricsDocument, Problem> {
    let params = ReadParams::of(MetricsParams {
        hours: Some(hours),
        step: None,
        event_type: None,
    });
    let show = metrics::show(State(Arc::clone(app)), reseller.clone(), Id(id), params);
    Ok(show.await?.0)
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<RangeParams>,
) -> Result<impl IntoResponse, Problem> {
    let hours = params.hours.unwrap_or(RANGES[0].0);
    let metrics = read(&app, &reseller, Id(id), hours).await?;
    let subscription = super::subscription(&app, &reseller, id).await?;
    let width = match hours {
        0..=24 => 1,
        25..=72 => 3,
        73..=168 => 6,
        _ => 24,
    };
    Ok(Page(Metrics {
        steps: steps(&metrics, (hours, width), frame.preferences.zone),
        frame,
        subscription,
        metrics,
        hours,
        width,
    }))
}

/// Hours gathered to bars.
fn steps(metrics: &MetricsDocument, (hours, width): (u32, u32), zone: Tz) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut last = None;
    let mut known = metrics.hours.iter().peekable();
    for hour in 0..hours {
        let begins = metrics.since + TimeDelta::hours(i64::from(hour));
        let local = begins.with_timezone(&zone);
        let key = (local.date_naive(), local.hour() / width);
        if last.replace(key) != Some(key) {
            steps.push(Step {
                begins,
                counts: Counts::default(),
                delays: Delays::default(),
            });
        }
        let Some(step) = steps.last_mut() else { continue };
        while let Some(found) = known.next_if(|known| known.hour <= begins) {
            step.counts.add(&found.counts);
            step.delays.add(&found.delays);
        }
    }
    steps
}

/// The hours for a spreadsheet. Nothing in it is text of strangers.
async fn export(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    Params(params): Params<RangeParams>,
) -> Result<impl IntoResponse, Problem> {
    let hours = params.hours.unwrap_or(RANGES[0].0);
    let metrics = read(&app, &reseller, Id(id), hours).await?;
    let mut lines =
        "hour,attempts,delivered,retried,failed,delay_p50_millis,delay_p95_millis,delay_p99_millis\r\n"
            .to_owned();
    let number = |millis: Option<f64>| millis.map_or_else(String::new, |millis| format!("{millis:.0}"));
    for hour in &metrics.hours {
        let at = hour.hour.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let counts = &hour.counts;
        lines.push_str(&format!(
            "{at},{},{},{},{},{},{},{}\r\n",
            counts.attempts,
            counts.delivered,
            counts.retried,
            counts.failed,
            number(hour.delivery_delay_millis.p50),
            number(hour.delivery_delay_millis.p95),
            number(hour.delivery_delay_millis.p99),
        ));
    }
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"metrics-{id}-{hours}h.csv\""),
        ),
    ];
    Ok((headers, lines))
}
