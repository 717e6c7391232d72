//! R1: each subscription at a glance, and what needs the reseller.

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
use crate::overview::{self, NeedDocument, OverviewRowDocument};
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
}

/// Something that needs the reseller, and the page on which it is dealt with.
struct Finding {
    tone: &'static str,
    host: String,
    need: NeedDocument,
    part: &'static str,
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
    let (overview, views) = overview::first(&app, &reseller, SHOWN).await?;
    let all = views.len();
    let (counted_up_to, needs) = (u64::from(overview.counted_up_to), overview.needs_you);
    let state = frame.asked("state");
    let mut rows = Vec::new();
    for (view, seen) in views.into_iter().zip(overview.subscriptions) {
        let subscription = SubscriptionDocument::of(view, &app.config);
        if state.is_empty() || subscription.state.as_str() == state {
            rows.push(Row {
                subscription,
                seen,
                counted_up_to,
            });
        }
    }
    let finding = |need: NeedDocument| {
        let row = rows
            .iter()
            .find(|row| row.subscription.id == need.subscription_id)?;
        Some(Finding::of(need, words::place(&row.subscription.url)))
    };
    Ok(Page(Overview {
        findings: needs.into_iter().filter_map(finding).collect(),
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

    /// What failed and is not delivered since.
    fn undelivered(&self) -> u64 {
        self.seen.failed.saturating_sub(self.delivered_since())
    }

    fn delivered_since(&self) -> u64 {
        self.seen.delivered_by_resending
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
}

impl Finding {
    fn of(need: NeedDocument, host: String) -> Self {
        let (tone, part, act) = match need.sentence.code {
            "degraded" | "failing" => (
                "warn",
                "deliveries?status=RETRY,FAILED,GIVEN_UP",
                "See what failed",
            ),
            "unverified" | "challenge-failed" => ("hold", "verify", "Verify it"),
            "held" => ("hold", "settings", "Settings"),
            "failing-on-our-side" => ("wait", "deliveries?status=RETRY", "See what waits"),
            "secret-ends" => ("wait", "secrets", "Secrets"),
            // Nothing waits yet, and more can be asked for.
            "quota-used" => ("wait", "quota", "Quota"),
            "quota-used-up" => ("wait", "deliveries?status=SCHEDULED", "See what waits"),
            // It is deactivated, for one of several reasons.
            _ => ("bad", "settings", "Settings"),
        };
        Self {
            tone,
            host,
            need,
            part,
            act,
        }
    }

    fn address(&self) -> String {
        format!("/app/s/{}/{}", self.need.subscription_id, self.part)
    }
}
