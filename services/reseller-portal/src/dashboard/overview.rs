//! R1: each subscription at a glance, and what needs the reseller.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use http_api::Problem;
use pages::{Markup, Page};

use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::notifications::WaitsFor;
use crate::overview::{self, OverviewRowDocument};
use crate::request::Reseller;
use crate::subscriptions::SubscriptionDocument;

/// Most subscriptions that are shown; a reseller has fewer.
const SHOWN: u32 = 200;

pub(super) fn routes() -> Vec<Route> {
    vec![super::page(super::HOME, page)]
}

/// A subscription with what became of its notifications.
struct Row {
    subscription: SubscriptionDocument,
    seen: OverviewRowDocument,
    /// Up to how many are counted as waiting.
    counted_up_to: u64,
    /// Until when a secret signs that was replaced, if that is soon.
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
    let found = super::subscriptions_of(&app, &reseller).await?;
    let all = found.len();
    let overview = overview::first(&app, &reseller, SHOWN).await?;
    let (counted_up_to, needs) = (u64::from(overview.counted_up_to), overview.needs_you);
    let ends = |id| {
        let mut ends = needs.iter();
        let end = ends.find(|need| need.subscription_id == id && need.sentence.code == "secret-ends")?;
        end.sentence.params.get("at")?.as_str()?.parse().ok()
    };
    let mut seen: HashMap<_, _> = overview
        .subscriptions
        .into_iter()
        .map(|row| (row.id, row))
        .collect();
    let state = frame.asked("state");
    let mut rows = Vec::new();
    for subscription in found {
        // One that was made or deleted between the two is on the next page.
        let Some(seen) = seen.remove(&subscription.id) else {
            continue;
        };
        if state.is_empty() || subscription.state.as_str() == state {
            rows.push(Row {
                old_secret_until: ends(subscription.id),
                subscription,
                seen,
                counted_up_to,
            });
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

impl Row {
    fn host(&self) -> String {
        words::host(&self.subscription.url)
    }

    /// The URL without its query, which can hold a token.
    fn endpoint(&self) -> String {
        explain::words::endpoint(&self.subscription.url)
    }

    fn week(&self, now: DateTime<Utc>) -> Markup {
        let present = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
        let since = present - TimeDelta::hours(overview::HOURS - 1);
        let hours = self.seen.hours.iter();
        let ended = hours.map(|hour| (hour.hour, hour.delivered, hour.failed));
        words::week_of(ended, since, now)
    }

    fn success(&self) -> Option<String> {
        self.seen.success_rate.map(words::percent)
    }

    fn p95(&self) -> Option<String> {
        self.seen.p95_millis.map(words::millis)
    }

    /// Whether it waits for a new endpoint to be verified: what comes meanwhile waits with it.
    fn has_moved(&self) -> bool {
        self.subscription.state_reason == StateReason::EndpointChanged.as_str()
    }

    fn why(&self) -> &'static str {
        words::state_reason(self.subscription.state_reason)
    }

    fn is_full(&self) -> bool {
        self.seen.quota.used_today >= u64::from(self.seen.quota.daily_quota)
    }

    fn waiting(&self) -> u64 {
        self.seen.waiting.iter().map(|waiting| waiting.count).sum()
    }

    fn waiting_for(&self, reason: WaitsFor) -> u64 {
        let mut waiting = self.seen.waiting.iter();
        waiting
            .find(|waiting| waiting.reason == reason)
            .map_or(0, |waiting| waiting.count)
    }

    fn retrying(&self) -> u64 {
        self.waiting_for(WaitsFor::Retry)
    }

    /// What waits for its day or its second.
    fn scheduled(&self) -> u64 {
        self.waiting_for(WaitsFor::Quota) + self.waiting_for(WaitsFor::Rate)
    }

    /// What is added to a count that may be of the first ones.
    fn or_more(&self, count: u64) -> &'static str {
        if count >= self.counted_up_to {
            " or more"
        } else {
            ""
        }
    }

    /// When the next attempt is made, if that is what happens next.
    fn next_retry_at(&self) -> Option<DateTime<Utc>> {
        let next = self.seen.next.as_ref();
        next.filter(|next| next.sentence.code == "retried")?.at
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
        let (s, host) = (&self.subscription, words::place(&self.subscription.url));
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
                if self.has_moved() {
                    "Its new endpoint has to answer a challenge; until then its events wait."
                } else {
                    "Its endpoint has to answer a challenge; until then it gets no events. A replay brings them."
                }
                .to_owned(),
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
        let (used, quota) = (self.seen.quota.used_today, u64::from(self.seen.quota.daily_quota));
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
