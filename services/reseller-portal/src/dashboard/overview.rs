//! R1: each subscription at a glance, and what needs the reseller.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::subscription::SubscriptionState;
use http_api::{Id, Params, Problem};
use pages::{Markup, Page};

use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::metrics::{self, MetricsDocument, MetricsParams};
use crate::notifications;
use crate::notifications::list::NotificationParams;
use crate::quotas::{self, QuotaDocument};
use crate::request::{PartParams, Reseller};
use crate::secrets;
use crate::subscriptions::{self, SubscriptionDocument};

/// Most notifications in RETRY that are looked at.
const RETRIES_MAX: u32 = 200;
/// The hours of seven days.
const WEEK: u32 = 168;

pub(super) fn routes() -> Vec<Route> {
    vec![super::page(super::HOME, page)]
}

/// A subscription with what became of its notifications.
struct Row {
    subscription: SubscriptionDocument,
    metrics: MetricsDocument,
    quota: QuotaDocument,
    /// How many wait for another attempt, and when the next of them is made.
    retrying: u64,
    next_retry_at: Option<DateTime<Utc>>,
    /// Until when a secret signs that was replaced.
    old_secret_until: Option<DateTime<Utc>>,
}

/// Something that needs the reseller.
struct Finding {
    tone: &'static str,
    text: String,
    meaning: String,
    address: String,
    act: &'static str,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    rows: Vec<Row>,
    findings: Vec<Finding>,
    /// How many there are in all states.
    all: usize,
    maximum: u32,
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
) -> Result<impl IntoResponse, Problem> {
    let part = Params(PartParams {
        limit: Some(200),
        cursor: None,
    });
    let found = subscriptions::list(State(Arc::clone(&app)), reseller.clone(), part)
        .await?
        .0;
    let all = found.items.len();
    let state = frame.asked("state");
    let mut rows = Vec::new();
    for subscription in found.items {
        if state.is_empty() || subscription.state.as_str() == state {
            rows.push(row(&app, &reseller, subscription).await?);
        }
    }
    let mut findings: Vec<(u8, Finding)> = rows.iter().flat_map(|row| row.findings(&app, &frame)).collect();
    findings.sort_by_key(|(rank, _)| *rank);
    Ok(Page(Overview {
        findings: findings.into_iter().map(|(_, finding)| finding).collect(),
        frame,
        rows,
        all,
        maximum: app.config.reseller.subscription.maximum,
    }))
}

async fn row(
    app: &Arc<App>,
    reseller: &Reseller,
    subscription: SubscriptionDocument,
) -> Result<Row, Problem> {
    let (state, id) = (|| State(Arc::clone(app)), || Id(subscription.id));
    let week = Params(MetricsParams { hours: Some(WEEK) });
    let in_retry = Params(NotificationParams {
        status: Some("RETRY".to_owned()),
        limit: Some(RETRIES_MAX),
        ..NotificationParams::default()
    });
    let (metrics, quota, retries, secrets) = tokio::try_join!(
        metrics::show(state(), reseller.clone(), id(), week),
        quotas::show(state(), reseller.clone(), id()),
        notifications::list(state(), reseller.clone(), id(), in_retry),
        secrets::list(state(), reseller.clone(), id()),
    )?;
    let replaced = secrets.0.items.iter().filter(|secret| secret.active);
    Ok(Row {
        metrics: metrics.0,
        quota: quota.0,
        retrying: retries.0.items.len() as u64,
        next_retry_at: retries.0.items.iter().filter_map(|row| row.next_attempt_at).min(),
        old_secret_until: replaced.filter_map(|secret| secret.expires_at).min(),
        subscription,
    })
}

impl Row {
    fn host(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn week(&self, now: DateTime<Utc>) -> Markup {
        words::week(&self.metrics.hours, self.metrics.since, now)
    }

    fn success(&self) -> Option<String> {
        self.metrics.success_rate.map(words::percent)
    }

    fn p95(&self) -> Option<String> {
        self.metrics.latency_millis.p95.map(words::millis)
    }

    fn why(&self) -> &'static str {
        words::state_reason(self.subscription.state_reason)
    }

    fn is_full(&self) -> bool {
        self.quota.remaining_today == 0
    }

    /// What the state is called: a pause is what holds it, whatever else it is.
    fn standing(&self) -> &'static str {
        let s = &self.subscription;
        match s.state {
            SubscriptionState::Active | SubscriptionState::Degraded if s.held_at.is_some() => "HELD",
            SubscriptionState::Active | SubscriptionState::Degraded if s.paused_at.is_some() => "PAUSED",
            state => state.as_str(),
        }
    }

    /// With how bad it is, the worst first.
    fn findings(&self, app: &App, frame: &Frame) -> Vec<(u8, Finding)> {
        let (s, host) = (&self.subscription, self.host());
        let place = |part: &str| format!("/app/s/{}/{part}", s.id);
        let mut found = Vec::new();
        let mut add = |rank, tone, text, meaning, address, act| {
            let finding = Finding {
                tone,
                text,
                meaning,
                address,
                act,
            };
            found.push((rank, finding));
        };
        match s.state {
            SubscriptionState::Deactivated => add(
                0,
                "bad",
                format!("{host} is deactivated: {}.", self.why()),
                "Nothing is sent to it. Activate it once the endpoint works; a replay sends what it missed."
                    .to_owned(),
                place("settings"),
                "Settings",
            ),
            SubscriptionState::Degraded => {
                let hours = app.config.reseller.health.deactivated_after.as_secs();
                let after = frame.length(hours);
                add(
                    1,
                    "warn",
                    format!("{host} has failed for a while."),
                    format!("It becomes deactivated when it has failed for {after} on end."),
                    format!("{}?status=RETRY,FAILED,GIVEN_UP", place("deliveries")),
                    "See what failed",
                );
            }
            SubscriptionState::PendingVerification => add(
                2,
                "hold",
                format!("{host} is not verified: {}.", self.why()),
                "Its endpoint has to answer a challenge; until then its events wait.".to_owned(),
                place("verify"),
                "Verify it",
            ),
            SubscriptionState::Active => {}
        }
        if s.held_at.is_some() {
            add(
                3,
                "hold",
                format!("The operators of the platform have paused {host}."),
                "Its events wait, and are sent when they let it go on. Resuming it here does not do that."
                    .to_owned(),
                place("settings"),
                "Settings",
            );
        }
        let (used, quota) = (self.quota.used_today, u64::from(self.quota.daily_quota));
        if used.saturating_mul(5) >= quota.saturating_mul(4) && quota > 0 {
            add(
                4,
                "wait",
                format!(
                    "{host} has used {} of {} notifications of today.",
                    frame.number(used),
                    frame.number(quota)
                ),
                "What is more than the quota waits for tomorrow; nothing is lost.".to_owned(),
                place("deliveries?status=SCHEDULED"),
                "See what waits",
            );
        }
        if let Some(until) = self.old_secret_until {
            let until = until.with_timezone(&frame.preferences.zone);
            add(
                5,
                "wait",
                format!("A secret of {host} signs until {}.", until.format("%a %-d %b, %H:%M")),
                "Until then every request carries a signature of the new one too: let your endpoint know that one.".to_owned(),
                place("settings"),
                "Settings",
            );
        }
        found
    }
}
