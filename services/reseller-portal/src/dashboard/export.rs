//! R5 as a file: the notifications of a list, as it is filtered, as comma-separated values, or as the list of the API.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use http::header;
use http_api::{Id, Params, Problem};
use tokio::time::Instant;
use uuid::Uuid;

use super::Route;
use super::deliveries::DeliveryParams;
use super::frame::Frame;
use crate::app::App;
use crate::notifications;
use crate::notifications::all::{AllParams, ListedDocument, PartDocument};
use crate::request::Reseller;

/// Most rows of a file.
const ROWS_MAX: usize = 10_000;
/// Rows asked for at once.
const PART: u32 = 200;
/// Most parts that are asked for: a filter that little matches goes through many without a row.
const PARTS_MAX: usize = 100;
/// The last row of a file that is not all.
const NOT_ALL: &str = "This is not all: older notifications are missing. Narrow the time or the filter, or list them with GET /notifications and its until.";

const COLUMNS: &str = "acceptedAt,notificationId,eventId,eventType,subscriptionId,status,reason,attempts,lastStatus,lastMillis,\
                       lastError,payloadBytes,nextAttemptAt,finishedAt\r\n";

pub(super) fn routes() -> Vec<Route> {
    use super::page;
    vec![
        page("/app/deliveries.csv", csv_of_all),
        page("/app/deliveries.json", json_of_all),
        page("/app/s/{id}/deliveries.csv", csv_of_one),
        page("/app/s/{id}/deliveries.json", json_of_one),
    ]
}

async fn csv_of_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    Ok(csv(&read(&app, &reseller, &frame, (&params, None)).await?))
}

async fn json_of_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    Ok(json(read(&app, &reseller, &frame, (&params, None)).await?))
}

async fn csv_of_one(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    super::subscription(&app, &reseller, id).await?;
    Ok(csv(&read(&app, &reseller, &frame, (&params, Some(id))).await?))
}

async fn json_of_one(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    super::subscription(&app, &reseller, id).await?;
    Ok(json(read(&app, &reseller, &frame, (&params, Some(id))).await?))
}

/// As many as a file holds. Where there are more, `next` leads on.
async fn read(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: &Frame,
    (params, subscription): (&DeliveryParams, Option<Uuid>),
) -> Result<PartDocument, Problem> {
    let (mut items, mut cursor, mut looked_back_to) = (Vec::new(), None, frame.now);
    // What there is by then is sent: the part that is under way at the deadline would lose all those before it.
    let latest = reseller.deadline - app.config.portal.request_timeout / 4;
    for _ in 0..PARTS_MAX {
        let room = u32::try_from(ROWS_MAX - items.len()).unwrap_or(PART);
        let part = AllParams {
            limit: Some(PART.min(room)),
            cursor,
            ..params.filter(frame, subscription)?
        };
        let list = notifications::list_all(State(Arc::clone(app)), reseller.clone(), Params(part))
            .await?
            .0;
        items.extend(list.items);
        (cursor, looked_back_to) = (list.next, list.looked_back_to);
        if cursor.is_none() || items.len() >= ROWS_MAX || Instant::now() >= latest {
            break;
        }
    }
    Ok(PartDocument {
        items,
        next: cursor,
        looked_back_to,
    })
}

fn csv(list: &PartDocument) -> Response {
    let mut text = COLUMNS.to_owned();
    for listed in &list.items {
        line(&mut text, listed);
    }
    if list.next.is_some() {
        // As many values as every row has.
        text.push_str(&cell(NOT_ALL));
        text.push_str(&",".repeat(COLUMNS.matches(',').count()));
        text.push_str("\r\n");
    }
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"deliveries.csv\"",
        ),
    ];
    (headers, text).into_response()
}

/// As `GET /notifications` answers: a file that is not all has a `next`.
fn json(list: PartDocument) -> Response {
    let name = "attachment; filename=\"deliveries.json\"";
    ([(header::CONTENT_DISPOSITION, name)], Json(list)).into_response()
}

fn line(text: &mut String, listed: &ListedDocument) {
    let (n, last) = (&listed.row, listed.last.as_ref());
    let number = |number: Option<String>| number.unwrap_or_default();
    let cells = [
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
    ];
    let cells: Vec<Cow<'_, str>> = cells.iter().map(|text| cell(text)).collect();
    text.push_str(&cells.join(","));
    text.push_str("\r\n");
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
