//! R7: what waits for its day, its second, another attempt, or the end of a pause.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;
use domain::capability::Capability;
use domain::notification::NotificationStatus;
use http_api::paging::List;
use http_api::{Id, Params, Problem, ReadParams};
use pages::{Filter, LeavingOut, Markup, Page, Without, done};
use url::form_urlencoded;
use uuid::Uuid;

use super::confirm::Confirm;
use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::notifications::list::{self, ScheduledParams};
use crate::notifications::waiting::{self, SumDocument, SummaryDocument};
use crate::notifications::{self, RowDocument, WaitsFor};
use crate::request::{Manager, Reseller};
use crate::subscriptions::SubscriptionDocument;

/// Most that are counted in each status: the page asks for itself again every few seconds.
pub(super) const COUNTED_MAX: u32 = 10_000;
/// Most notifications in RETRY that are listed.
const RETRIES_MAX: u32 = 20;

const FILTERS: [Filter; 3] = [
    Filter::new("Why", &["reason"]),
    Filter::new("Day", &["day"]),
    Filter::new("Event type", &["eventType"]),
];
/// What the fields of the form hold.
const FIELDS: [&str; 3] = ["reason", "day", "eventType"];

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/s/{id}/scheduled", page),
        super::page("/app/n/{id}/cancel", ask_to_cancel),
        super::act("/app/n/{id}/cancel", cancel),
    ]
}

#[derive(Template)]
#[template(path = "scheduled.html")]
struct Scheduled {
    frame: Frame,
    subscription: SubscriptionDocument,
    summary: SummaryDocument,
    /// The day that is asked for.
    day: Option<NaiveDate>,
    rows: List<RowDocument>,
    leaving_out: LeavingOut,
    /// Soonest first.
    retries: Vec<RowDocument>,
    has_more_retries: bool,
}

impl Scheduled {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn wrong_filters(&self) -> Markup {
        self.frame.wrong_filters(&FILTERS)
    }

    fn why(&self, row: &RowDocument) -> String {
        row.reason.as_deref().map_or_else(String::new, words::reason)
    }

    fn is_nothing(&self) -> bool {
        self.summary.total == 0
    }

    /// Whether more may wait than are counted.
    fn is_more(&self) -> bool {
        self.summary.total >= u64::from(self.summary.counted_up_to)
    }

    /// Whether it is a sum of what is in line, which the list below has.
    fn is_in_line(&self, sum: &SumDocument) -> bool {
        matches!(sum.reason, WaitsFor::Quota | WaitsFor::Rate | WaitsFor::Postponed)
    }

    /// The days on which the turns of the line come, and the one that is asked for.
    fn days(&self) -> Vec<NaiveDate> {
        let in_line = self.summary.waiting.iter().filter(|sum| self.is_in_line(sum));
        let mut days: Vec<_> = in_line.filter_map(|sum| sum.day).chain(self.day).collect();
        days.sort_unstable();
        days.dedup();
        days
    }

    fn is_asked_for(&self, day: &NaiveDate) -> bool {
        self.day.as_ref() == Some(day)
    }

    /// Where all that are in line are cancelled; none where the list is of a reason, of a day or of several event types, which only the list knows.
    fn cancel_all(&self) -> Option<String> {
        let event_type = self.frame.asked("eventType");
        let is_of_all =
            self.frame.asked("reason").is_empty() && self.day.is_none() && !event_type.contains(',');
        let is_possible = is_of_all && !self.rows.items.is_empty();
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("status", NotificationStatus::Scheduled.as_str());
        if !event_type.is_empty() {
            query.append_pair("eventType", &event_type);
        }
        let id = self.subscription.id;
        is_possible.then(|| format!("/app/s/{id}/cancel?{}", query.finish()))
    }

    fn is_filtered(&self) -> bool {
        ["reason", "eventType", "day"]
            .iter()
            .any(|name| !self.frame.asked(name).is_empty())
    }

    fn said(&self, sum: &SumDocument) -> &'static str {
        match sum.reason {
            WaitsFor::Quota => "wait for a day whose quota has room",
            WaitsFor::Rate => "wait for their second",
            WaitsFor::Postponed => "wait because we could not try",
            WaitsFor::Retry => "wait for their next attempt",
            WaitsFor::Paused => "wait because the subscription is paused",
            WaitsFor::Unverified => "wait for the endpoint to answer its challenge",
            WaitsFor::Turn => "wait for their turn among the others",
        }
    }
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    mut frame: Frame,
    Id(id): Id,
    asked: Result<Params<ScheduledParams>, Problem>,
) -> Result<impl IntoResponse, Problem> {
    // One after the other: a page takes one connection at a time, as an operation does.
    let subscription = super::subscription(&app, &reseller, id).await?;
    let summary = waiting::sums(&app, &reseller, id, COUNTED_MAX).await?;
    let day = asked.as_ref().ok().and_then(|Params(params)| params.day);
    let found = match asked {
        Ok(Params(params)) => line(&app, &reseller, id, params).await,
        Err(problem) => Err(problem),
    };
    let found = frame.filtered(found, &FIELDS)?;
    let rows = found.unwrap_or_else(|| List::new(Vec::new(), None));
    let mut leaving_out = LeavingOut::of(&frame, &FILTERS);
    let is_first = frame.asked("cursor").is_empty() && frame.is_readable();
    if summary.total > 0 && rows.items.is_empty() && rows.next.is_none() && is_first {
        for one in leaving_out.to_try() {
            let Some(others) = one.params::<ScheduledParams>() else {
                break;
            };
            let asked = ScheduledParams {
                limit: Some(Without::LOOKED_FOR),
                ..others
            };
            // The list itself was read: its page is shown without this.
            let Ok(found) = line(&app, &reseller, id, asked).await else {
                break;
            };
            one.found(found.items.len(), found.next.is_some());
        }
    }
    let mut retries = list::retries(&app, &reseller, id, RETRIES_MAX + 1).await?;
    let has_more_retries = retries.len() > RETRIES_MAX as usize;
    retries.truncate(RETRIES_MAX as usize);
    let status = frame.list_status();
    let page = Page(Scheduled {
        frame,
        subscription,
        summary,
        day,
        rows,
        leaving_out,
        retries,
        has_more_retries,
    });
    Ok((status, page))
}

async fn line(
    app: &Arc<App>,
    reseller: &Reseller,
    id: Uuid,
    params: ScheduledParams,
) -> Result<List<RowDocument>, Problem> {
    let list = notifications::scheduled(
        State(Arc::clone(app)),
        reseller.clone(),
        Id(id),
        ReadParams::of(params),
    );
    Ok(list.await?.0)
}

async fn ask_to_cancel(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let found = notifications::find(State(app), reseller, Id(id)).await?.0;
    let form = Confirm {
        id: "cancel",
        title: "Cancel the notification".to_owned(),
        said: vec![
            format!("{}, event {}.", found.row.event_type, found.row.event_id),
            "It is not sent any more, neither by a resend nor by a replay. If it had been delivered and waits to be sent again, it stays delivered."
                .to_owned(),
        ],
        action: format!("/app/n/{id}/cancel"),
        back: format!("/app/n/{id}"),
        button: "Cancel it",
        is_dangerous: true,
        expected: None,
        needs: "manage",
        may: frame.may(Capability::Manage),
        in_dialog: false,
        typed: None,
    };
    Ok(form.page(frame))
}

async fn cancel(State(app): State<Arc<App>>, manager: Manager, Id(id): Id) -> Result<Response, Problem> {
    let found = notifications::cancel(State(app), manager, Id(id)).await?.0;
    let said = if found.row.status == NotificationStatus::Sent {
        "The notification is not sent again. It stays delivered."
    } else {
        "The notification is cancelled and is not sent any more."
    };
    Ok(done(&format!("/app/n/{id}"), said))
}
