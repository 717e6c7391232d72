//! R5, R7 and R15 as files: what a list has, as it is filtered, as comma-separated values, or as the list of the API.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use http::header;
use http_api::paging::List;
use http_api::{Id, Params, Problem};
use serde::Serialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::Route;
use super::activity::ActsAsked;
use super::deliveries::DeliveryParams;
use super::frame::Frame;
use crate::activity::{self, ActivityDocument, ActivityParams, MailDocument};
use crate::app::App;
use crate::notifications::all::{AllParams, ListedDocument, PartDocument};
use crate::notifications::list::ScheduledParams;
use crate::notifications::{self, RowDocument};
use crate::request::{PartParams, Reseller};

/// Most rows of a file.
const ROWS_MAX: usize = 10_000;
/// Rows asked for at once.
const PART: u32 = 200;
/// Most parts that are asked for: a filter that little matches goes through many without a row.
const PARTS_MAX: usize = 100;

/// What the files of a list are called and made of.
struct Kind<const COLUMNS: usize> {
    name: &'static str,
    columns: [&'static str; COLUMNS],
    /// The last row of a file that is not all.
    not_all: &'static str,
}

const DELIVERIES: Kind<14> = Kind {
    name: "deliveries",
    columns: [
        "acceptedAt",
        "notificationId",
        "eventId",
        "eventType",
        "subscriptionId",
        "status",
        "reason",
        "attempts",
        "lastStatus",
        "lastMillis",
        "lastError",
        "payloadBytes",
        "nextAttemptAt",
        "finishedAt",
    ],
    not_all: "This is not all: older notifications are missing. Narrow the time or the filter, or list them with GET /notifications and its until.",
};

const SCHEDULED: Kind<10> = Kind {
    name: "scheduled",
    columns: [
        "acceptedAt",
        "notificationId",
        "eventId",
        "eventType",
        "status",
        "reason",
        "pausedBy",
        "attempts",
        "payloadBytes",
        "nextAttemptAt",
    ],
    not_all: "This is not all: later notifications are missing. Narrow the filter, or list them with GET /subscriptions/{id}/scheduled.",
};

const ACTIVITY: Kind<9> = Kind {
    name: "activity",
    columns: [
        "at",
        "id",
        "by",
        "name",
        "action",
        "subscriptionId",
        "notificationId",
        "note",
        "details",
    ],
    not_all: "This is not all: older acts are missing. Narrow the time or the filter, or list them with GET /activity and its until.",
};

const MAILS: Kind<8> = Kind {
    name: "mails",
    columns: [
        "createdAt",
        "id",
        "kind",
        "status",
        "subscriptionId",
        "recipient",
        "occurrences",
        "finishedAt",
    ],
    not_all: "This is not all: older mails are missing. List them with GET /mails.",
};

pub(super) fn routes() -> Vec<Route> {
    use super::page;
    vec![
        page("/app/deliveries.csv", csv_of_all),
        page("/app/deliveries.json", json_of_all),
        page("/app/s/{id}/deliveries.csv", csv_of_one),
        page("/app/s/{id}/deliveries.json", json_of_one),
        page("/app/s/{id}/scheduled.csv", csv_of_scheduled),
        page("/app/s/{id}/scheduled.json", json_of_scheduled),
        page("/app/activity.csv", csv_of_activity),
        page("/app/activity.json", json_of_activity),
        page("/app/activity/mails.csv", csv_of_mails),
        page("/app/activity/mails.json", json_of_mails),
    ]
}

async fn csv_of_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    let list = deliveries(&app, &reseller, &frame, (&params, None)).await?;
    Ok(csv(&DELIVERIES, (&list.items, list.next.is_some()), delivery))
}

async fn json_of_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    let list = deliveries(&app, &reseller, &frame, (&params, None)).await?;
    Ok(json(&DELIVERIES, list))
}

async fn csv_of_one(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    super::subscription(&app, &reseller, id).await?;
    let list = deliveries(&app, &reseller, &frame, (&params, Some(id))).await?;
    Ok(csv(&DELIVERIES, (&list.items, list.next.is_some()), delivery))
}

async fn json_of_one(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    super::subscription(&app, &reseller, id).await?;
    let list = deliveries(&app, &reseller, &frame, (&params, Some(id))).await?;
    Ok(json(&DELIVERIES, list))
}

async fn csv_of_scheduled(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    Params(params): Params<ScheduledParams>,
) -> Result<Response, Problem> {
    let list = scheduled(&app, &reseller, (&params, id)).await?;
    Ok(csv(&SCHEDULED, (&list.items, list.next.is_some()), in_line))
}

async fn json_of_scheduled(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    Params(params): Params<ScheduledParams>,
) -> Result<Response, Problem> {
    let list = scheduled(&app, &reseller, (&params, id)).await?;
    Ok(json(&SCHEDULED, list))
}

async fn csv_of_activity(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<ActsAsked>,
) -> Result<Response, Problem> {
    let list = acts(&app, &reseller, &frame, &params).await?;
    Ok(csv(&ACTIVITY, (&list.items, list.next.is_some()), act))
}

async fn json_of_activity(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<ActsAsked>,
) -> Result<Response, Problem> {
    let list = acts(&app, &reseller, &frame, &params).await?;
    Ok(json(&ACTIVITY, list))
}

async fn csv_of_mails(State(app): State<Arc<App>>, reseller: Reseller) -> Result<Response, Problem> {
    let list = mails(&app, &reseller).await?;
    Ok(csv(&MAILS, (&list.items, list.next.is_some()), mail))
}

async fn json_of_mails(State(app): State<Arc<App>>, reseller: Reseller) -> Result<Response, Problem> {
    let list = mails(&app, &reseller).await?;
    Ok(json(&MAILS, list))
}

/// What is read part by part for a file, until it is all or as many as a file holds. Where there are more, `next` leads on.
struct Reading<T> {
    list: List<T>,
    parts: usize,
    latest: Instant,
}

impl<T> Reading<T> {
    fn new(app: &App, reseller: &Reseller) -> Self {
        Self {
            list: List::new(Vec::new(), None),
            parts: 0,
            // What there is by then is sent: the part that is under way at the deadline would lose all those before it.
            latest: reseller.deadline - app.config.portal.request_timeout / 4,
        }
    }

    /// How many are asked for next, and from where on; nothing when it is over.
    fn ask(&self) -> Option<(Option<u32>, Option<String>)> {
        let room = ROWS_MAX.saturating_sub(self.list.items.len());
        let is_over =
            room == 0 || self.list.next.is_none() || self.parts >= PARTS_MAX || Instant::now() >= self.latest;
        if self.parts > 0 && is_over {
            return None;
        }
        let limit = PART.min(u32::try_from(room).unwrap_or(PART));
        Some((Some(limit), self.list.next.clone()))
    }

    fn take(&mut self, items: Vec<T>, next: Option<String>) {
        self.list.items.extend(items);
        self.list.next = next;
        self.parts += 1;
    }
}

async fn deliveries(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: &Frame,
    (params, subscription): (&DeliveryParams, Option<Uuid>),
) -> Result<PartDocument, Problem> {
    let (mut reading, mut looked_back_to) = (Reading::new(app, reseller), frame.now);
    while let Some((limit, cursor)) = reading.ask() {
        let part = AllParams {
            limit,
            cursor,
            ..params.filter(frame, subscription)?
        };
        let list = notifications::list_all(State(Arc::clone(app)), reseller.clone(), Params(part))
            .await?
            .0;
        looked_back_to = list.looked_back_to;
        reading.take(list.items, list.next);
    }
    Ok(PartDocument {
        items: reading.list.items,
        next: reading.list.next,
        looked_back_to,
    })
}

async fn scheduled(
    app: &Arc<App>,
    reseller: &Reseller,
    (params, id): (&ScheduledParams, Uuid),
) -> Result<List<RowDocument>, Problem> {
    let mut reading = Reading::new(app, reseller);
    while let Some((limit, cursor)) = reading.ask() {
        let part = Params(ScheduledParams {
            reason: params.reason.clone(),
            event_type: params.event_type.clone(),
            day: params.day,
            limit,
            cursor,
        });
        let list = notifications::scheduled(State(Arc::clone(app)), reseller.clone(), Id(id), part)
            .await?
            .0;
        reading.take(list.items, list.next);
    }
    Ok(reading.list)
}

async fn acts(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: &Frame,
    params: &ActsAsked,
) -> Result<List<ActivityDocument>, Problem> {
    let mut reading = Reading::new(app, reseller);
    while let Some((limit, cursor)) = reading.ask() {
        let part = Params(ActivityParams {
            limit,
            cursor,
            ..params.filter(frame)?
        });
        let list = activity::list(State(Arc::clone(app)), reseller.clone(), part)
            .await?
            .0;
        reading.take(list.items, list.next);
    }
    Ok(reading.list)
}

async fn mails(app: &Arc<App>, reseller: &Reseller) -> Result<List<MailDocument>, Problem> {
    let mut reading = Reading::new(app, reseller);
    while let Some((limit, cursor)) = reading.ask() {
        let part = Params(PartParams { limit, cursor });
        let list = activity::mails(State(Arc::clone(app)), reseller.clone(), part)
            .await?
            .0;
        reading.take(list.items, list.next);
    }
    Ok(reading.list)
}

fn csv<T, const COLUMNS: usize>(
    kind: &Kind<COLUMNS>,
    (items, has_more): (&[T], bool),
    cells: impl Fn(&T) -> [String; COLUMNS],
) -> Response {
    let mut text = kind.columns.join(",");
    text.push_str("\r\n");
    for item in items {
        let cells = cells(item);
        let cells: Vec<Cow<'_, str>> = cells.iter().map(|text| cell(text)).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    if has_more {
        // As many values as every row has.
        text.push_str(&cell(kind.not_all));
        text.push_str(&",".repeat(COLUMNS - 1));
        text.push_str("\r\n");
    }
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}.csv\"", kind.name),
        ),
    ];
    (headers, text).into_response()
}

/// As the API answers the list: a file that is not all has a `next`.
fn json<const COLUMNS: usize>(kind: &Kind<COLUMNS>, list: impl Serialize) -> Response {
    let name = format!("attachment; filename=\"{}.json\"", kind.name);
    ([(header::CONTENT_DISPOSITION, name)], Json(list)).into_response()
}

fn delivery(listed: &ListedDocument) -> [String; 14] {
    let (n, last) = (&listed.row, listed.last.as_ref());
    let number = |number: Option<String>| number.unwrap_or_default();
    [
        time(Some(n.accepted_at)),
        n.id.to_string(),
        n.event_id.clone(),
        n.event_type.clone(),
        listed.subscription_id.to_string(),
        n.status.to_string(),
        n.reason.clone().unwrap_or_default(),
        n.attempts.to_string(),
        number(last.and_then(|last| last.status).map(|status| status.to_string())),
        number(last.and_then(|last| last.millis).map(|millis| millis.to_string())),
        last.and_then(|last| last.error.clone()).unwrap_or_default(),
        n.payload_bytes.to_string(),
        time(n.next_attempt_at),
        time(n.finished_at),
    ]
}

fn in_line(n: &RowDocument) -> [String; 10] {
    [
        time(Some(n.accepted_at)),
        n.id.to_string(),
        n.event_id.clone(),
        n.event_type.clone(),
        n.status.to_string(),
        n.reason.clone().unwrap_or_default(),
        n.paused_by.unwrap_or_default().to_owned(),
        n.attempts.to_string(),
        n.payload_bytes.to_string(),
        time(n.next_attempt_at),
    ]
}

fn act(act: &ActivityDocument) -> [String; 9] {
    let id = |id: Option<Uuid>| id.map_or_else(String::new, |id| id.to_string());
    let details = act.details.as_ref().filter(|details| !details.is_null());
    [
        time(Some(act.at)),
        act.id.to_string(),
        act.by.to_owned(),
        act.name.clone().unwrap_or_default(),
        act.action.clone(),
        id(act.subscription_id),
        id(act.notification_id),
        act.note.clone().unwrap_or_default(),
        details.map_or_else(String::new, ToString::to_string),
    ]
}

fn mail(mail: &MailDocument) -> [String; 8] {
    [
        time(Some(mail.created_at)),
        mail.id.to_string(),
        mail.kind.to_owned(),
        mail.status.to_owned(),
        mail.subscription_id.to_string(),
        mail.recipient.clone(),
        mail.occurrences.to_string(),
        time(mail.finished_at),
    ]
}

fn time(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(String::new, |at| at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// A value as RFC 4180 has it. One that a spreadsheet takes for a formula begins with an apostrophe: what events are called is the affair of
/// strangers.
fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !is_formula && !text.contains(['"', ',', '\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let quoted = text.replace('"', "\"\"");
    Cow::Owned(format!("\"{}{quoted}\"", if is_formula { "'" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_they_have_to_be_and_are_no_formulas() {
        assert_eq!(cell("domain.created"), "domain.created");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("say \"a\""), "\"say \"\"a\"\"\"");
        assert_eq!(cell("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
    }
}
