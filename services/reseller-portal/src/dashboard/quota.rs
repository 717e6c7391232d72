//! R8: how much of the quota is used, and asking for more.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::capability::Capability;
use domain::subscription::QuotaRequestStatus;
use http_api::paging::List;
use http_api::{Draft, FieldProblem, Id, Ids, Params, Problem, ReadParams, Wrong};
use pages::{Fields, Markup, Page, done};
use uuid::Uuid;

use super::confirm::Confirm;
use super::frame::Frame;
use super::{Route, confirm, words};
use crate::app::App;
use crate::metrics::{self, MetricsDocument};
use crate::quotas::{self, QuotaDaysDocument, QuotaDocument, QuotaRequestDocument, QuotaRequestPayload};
use crate::request::{PartParams, QuotaKeeper, Reseller};
use crate::subscriptions::SubscriptionDocument;

/// One more on the day on which clocks go back.
const HOURS_OF_A_DAY: u32 = 25;

pub(super) fn routes() -> Vec<Route> {
    use super::{act, page as at};
    vec![
        at("/app/s/{id}/quota", page),
        act("/app/s/{id}/quota", ask),
        at("/app/s/{id}/quota-requests/{request}/withdraw", ask_to_withdraw),
        act("/app/s/{id}/quota-requests/{request}/withdraw", withdraw),
    ]
}

/// What was typed, and what is wrong with it.
#[derive(Default)]
struct Form {
    daily_quota: String,
    requests_per_second: String,
    reason: String,
    errors: Vec<FieldProblem>,
}

#[derive(Template)]
#[template(path = "quota.html")]
struct QuotaPage {
    frame: Frame,
    subscription: SubscriptionDocument,
    quota: QuotaDocument,
    days: QuotaDaysDocument,
    bars: Markup,
    /// What ended in each hour of today.
    hours: Markup,
    /// The request that waits for a decision.
    open: Option<QuotaRequestDocument>,
    withdrawal: Option<Confirm>,
    requests: List<QuotaRequestDocument>,
    form: Form,
}

impl QuotaPage {
    /// Whether the present quota is less than what the busiest of these days needed, as it is when more waits today.
    fn was_short(&self) -> bool {
        self.days.busiest > u64::from(self.quota.daily_quota)
    }

    /// How many of these days used up their quota. How much waited on them is not kept.
    fn days_used_up(&self) -> usize {
        let kept = self.days.days.iter().filter_map(|day| day.used.zip(day.quota));
        kept.filter(|(used, quota)| *used >= u64::from(*quota)).count()
    }

    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn used(&self) -> Markup {
        let part = self.quota.used_today as f64 / f64::from(self.quota.daily_quota.max(1));
        let tone = match part {
            ..0.8 => "ok",
            ..1.0 => "warn",
            _ => "bad",
        };
        words::progress(part, tone)
    }

    /// What a field is called at the top of the form.
    fn named(&self, field: &str) -> &'static str {
        match field {
            "reason" => "The reason",
            "requestsPerSecond" => "The number of attempts a second",
            _ => "The daily quota",
        }
    }

    fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.form.errors, field)
    }
}

fn place(id: Uuid) -> String {
    format!("/app/s/{id}/quota")
}

async fn requests(
    app: &Arc<App>,
    reseller: &Reseller,
    id: Uuid,
    (limit, cursor): (Option<u32>, Option<String>),
) -> Result<List<QuotaRequestDocument>, Problem> {
    let params = ReadParams::of(PartParams { limit, cursor });
    let list = quotas::list(State(Arc::clone(app)), reseller.clone(), Id(id), params);
    Ok(list.await?.0)
}

async fn show(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    id: Uuid,
    (params, form): (PartParams, Form),
) -> Result<Response, Problem> {
    let state = || State(Arc::clone(app));
    // One after the other: a page takes one connection at a time, as an operation does.
    let subscription = super::subscription(app, reseller, id).await?;
    let quota = quotas::show(state(), reseller.clone(), Id(id)).await?.0;
    let days = quotas::days(state(), reseller.clone(), Id(id)).await?.0;
    let ended = metrics::without_types(app, reseller, id, HOURS_OF_A_DAY).await?;
    // A new one is made only when the one before it is decided, so that none but the newest waits.
    let newest = requests(app, reseller, id, (Some(1), None)).await?;
    let requests = requests(app, reseller, id, (params.limit, params.cursor)).await?;
    let mut open = newest.items.into_iter();
    let open = open.rfind(|request| request.status == QuotaRequestStatus::Requested);
    let status = confirm::status(&form.errors);
    let page = QuotaPage {
        hours: hours(&ended, &days, app.config.reseller.quota.time_zone),
        bars: bars(&days),
        days,
        withdrawal: open
            .as_ref()
            .map(|open| withdrawal(&frame, id, open.id).in_dialog()),
        frame,
        subscription,
        quota,
        open,
        requests,
        form,
    };
    Ok((status, Page(page)).into_response())
}

/// What was used of each day, or ended on it where the use was not kept.
fn bars(days: &QuotaDaysDocument) -> Markup {
    let bars = days.days.iter().map(|day| [day.used.unwrap_or(day.ended), 0, 0]);
    let bars: Vec<_> = bars.collect();
    let most = bars.iter().map(|bar| bar[0]).max().unwrap_or_default();
    words::stacked(&bars, &format!("the use of 28 days; at most {most} on a day"))
}

/// What ended in each hour of today, which begins where the quota's days do.
fn hours(ended: &MetricsDocument, days: &QuotaDaysDocument, zone: Tz) -> Markup {
    let begun = |hour: &DateTime<Utc>| hour.with_timezone(&zone).date_naive() == days.today;
    // Those to come are empty: the picture is as wide as the day, and what has ended grows into it.
    let all = (0..2 * HOURS_OF_A_DAY).map(|hour| ended.since + TimeDelta::hours(hour.into()));
    let bars = all.filter(begun).map(|hour| {
        let found = ended.hours.iter().find(|one| one.hour == hour);
        let counts = found.map(|one| [one.counts.delivered, 0, one.counts.failed]);
        counts.unwrap_or_default()
    });
    let bars: Vec<_> = bars.collect();
    let sum: u64 = bars.iter().flatten().sum();
    words::stacked(&bars, &format!("{sum} ended today, by the hour"))
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<PartParams>,
) -> Result<Response, Problem> {
    Box::pin(show(&app, &reseller, frame, id, (params, Form::default()))).await
}

async fn ask(
    State(app): State<Arc<App>>,
    keeper: QuotaKeeper,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let text = |name| fields.get(name).unwrap_or_default().to_owned();
    let (daily_quota, reason) = (text("dailyQuota"), text("reason"));
    let requests_per_second = text("requestsPerSecond");
    let payload = QuotaRequestPayload {
        daily_quota: number(&daily_quota),
        requests_per_second: number(&requests_per_second),
        reason: Some(reason.clone()),
    };
    let draft = Draft(payload, Wrong::default());
    let asked = quotas::request(State(Arc::clone(&app)), keeper.clone(), Id(id), draft).await;
    match asked {
        Ok(_) => Ok(done(
            &place(id),
            "You have asked for a higher quota. An administrator decides, and this page shows what was decided.",
        )),
        Err(problem) => {
            let errors = confirm::mendable(problem)?;
            let form = Form {
                daily_quota,
                requests_per_second,
                reason,
                errors,
            };
            Box::pin(show(&app, &keeper, frame, id, (PartParams::default(), form))).await
        }
    }
}

/// What was typed; none of an empty field, and of what is no number one that is refused.
fn number(typed: &str) -> Option<i64> {
    // People write thousands apart.
    let digits = typed.replace([',', ' ', '\u{a0}', '\''], "");
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(-1))
}

fn withdrawal(frame: &Frame, id: Uuid, request: Uuid) -> Confirm {
    Confirm {
        id: "withdraw",
        title: "Withdraw the quota request".to_owned(),
        said: vec!["It is gone from the list then, and no administrator decides it; your activity tells of it. You can ask again.".to_owned()],
        action: format!("/app/s/{id}/quota-requests/{request}/withdraw"),
        back: place(id),
        button: "Withdraw",
        is_dangerous: false,
        expected: None,
        needs: "quota",
        may: frame.may(Capability::Quota),
        in_dialog: false,
        typed: None,
    }
}

async fn ask_to_withdraw(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Ids(id, request): Ids,
) -> Result<Response, Problem> {
    super::subscription(&app, &reseller, id).await?;
    Ok(withdrawal(&frame, id, request).page(frame))
}

async fn withdraw(
    State(app): State<Arc<App>>,
    keeper: QuotaKeeper,
    Ids(id, request): Ids,
) -> Result<Response, Problem> {
    quotas::withdraw(State(app), keeper, Ids(id, request)).await?;
    Ok(done(&place(id), "The quota request is withdrawn."))
}
