//! R5: notifications of the last seven days, of one subscription or of all.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Days, DurationRound as _, MappedLocalTime, NaiveDate, SecondsFormat, TimeDelta, Utc};
use domain::notification::{ERROR_TYPES, NotificationStatus};
use domain::quota::{day_of, start_of};
use http_api::{Id, Params, Problem, ReadParams};
use pages::{LeavingOut, Markup, Page, Without, see_other};
use store::webhook::EndedInHour;
use tokio::time::Instant;
use uuid::Uuid;

use super::delivery_filter::{DeliveryParams, FIELDS, FILTERS, typed};
use super::event::{self, EventShown};
use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::metrics;
use crate::notifications::all::{AllParams, LastDocument, ListedDocument};
use crate::notifications::{self, RowDocument};
use crate::request::Reseller;
use crate::resends;
use crate::subscriptions::SubscriptionDocument;

/// Rows of a page, unless others are chosen.
pub(super) const ROWS: u32 = 50;
/// For how long a page goes on looking for what few are like.
const PATIENCE: Duration = Duration::from_millis(300);
/// How far back notifications are listed, in hours.
pub(super) const WEEK: u32 = 168;

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/deliveries", of_all),
        super::page("/app/s/{id}/deliveries", of_one),
    ]
}

/// A notification with where it goes.
struct Row {
    notification: RowDocument,
    subscription: Uuid,
    host: String,
    last: Option<LastDocument>,
}

impl Row {
    /// From its event to its end, or until now, in seconds.
    fn waited(&self, now: DateTime<Utc>) -> u64 {
        let end = self.notification.finished_at.unwrap_or(now);
        (end - self.notification.accepted_at)
            .num_seconds()
            .max(0)
            .unsigned_abs()
    }

    /// What came of the last attempt.
    fn answer(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        let said = match (last.status, last.error_type.as_deref()) {
            (Some(status), _) => status.to_string(),
            (None, Some(error)) => error.to_lowercase(),
            (None, None) => return None,
        };
        let took = last.millis.and_then(|millis| i32::try_from(millis.max(0)).ok());
        Some(took.map_or_else(
            || said.clone(),
            |took| format!("{said}, {}", words::millis(took.into())),
        ))
    }

    /// Why it is where it is.
    fn why(&self) -> Option<String> {
        let n = &self.notification;
        if let Some(end) = &n.end {
            return Some(end.clone());
        }
        if let Some(whose) = n.paused_by {
            let said = if whose == "OPERATOR" {
                "It waits: the operators of the platform have paused the subscription."
            } else {
                "It waits: you have paused the subscription."
            };
            return Some(said.to_owned());
        }
        let reason = n.reason.as_deref()?;
        let said = words::reason(reason);
        Some(if reason.starts_with("delivery/") {
            format!("The last attempt failed: {said}.")
        } else {
            format!("It waits: {said}.")
        })
    }
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct Deliveries {
    frame: Frame,
    /// All of them, on the page of all.
    subscriptions: Vec<SubscriptionDocument>,
    is_of_one: bool,
    /// When the bars begin, and what ended in each hour.
    ended: (DateTime<Utc>, Vec<EndedInHour>),
    found: Found,
    leaving_out: LeavingOut,
    /// The event that is looked for and of which no notification was found.
    event: Option<EventShown>,
}

/// What was found, and how far back was looked where that took too long.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    next: Option<String>,
    searched: Option<DateTime<Utc>>,
}

/// What stands in the list.
struct Listed {
    found: Found,
    leaving_out: LeavingOut,
    event: Option<EventShown>,
}

#[derive(Template)]
#[template(path = "subscription_deliveries.html")]
struct OfOne {
    frame: Frame,
    subscription: SubscriptionDocument,
    list: Deliveries,
}

impl askama::filters::HtmlSafe for Deliveries {}

impl OfOne {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }
}

#[derive(Template)]
#[template(path = "all_deliveries.html")]
struct OfAll {
    frame: Frame,
    list: Deliveries,
}

impl Deliveries {
    /// Of all of these subscriptions, or of one.
    fn new(
        frame: Frame,
        all: Option<Vec<SubscriptionDocument>>,
        ended: (DateTime<Utc>, Vec<EndedInHour>),
        listed: Listed,
    ) -> Self {
        Self {
            frame,
            is_of_one: all.is_none(),
            subscriptions: all.unwrap_or_default(),
            ended,
            found: listed.found,
            leaving_out: listed.leaving_out,
            event: listed.event,
        }
    }

    fn chart(&self) -> Markup {
        let (since, hours) = &self.ended;
        let ended = hours.iter().map(|hour| (hour.hour, hour.delivered, hour.failed));
        words::week_of(ended, *since, self.frame.now)
    }

    /// How many were delivered and failed in all hours.
    fn sums(&self) -> (u64, u64) {
        let (_, hours) = &self.ended;
        let sum = |count: fn(&EndedInHour) -> u64| hours.iter().map(count).sum();
        (sum(|hour| hour.delivered), sum(|hour| hour.failed))
    }

    /// When the first bar begins, how many seconds one is, and how many there are.
    fn bars(&self) -> (String, i64, usize) {
        let (since, _) = self.ended;
        (
            since.to_rfc3339_opts(SecondsFormat::Secs, true),
            TimeDelta::hours(words::BAR_HOURS).num_seconds(),
            words::bars_of(since, self.frame.now),
        )
    }

    /// The days of the chart in the viewer's zone, the first one first: what each is called, and the same list restricted to it.
    fn days(&self) -> Vec<(String, String)> {
        let zone = self.frame.preferences.zone;
        let today = day_of(self.frame.now, zone);
        let days = (0..7_u64)
            .rev()
            .filter_map(|ago| today.checked_sub_days(Days::new(ago)));
        let link = |day: NaiveDate| {
            let (since, until) = (start_of(day, zone), start_of(day.succ_opt()?, zone));
            let name = day.format("%a %-d %b").to_string();
            Some((name, self.of_time(since, until)))
        };
        days.filter_map(link).collect()
    }

    /// The same list from one time until another, from its beginning.
    fn of_time(&self, since: DateTime<Utc>, until: DateTime<Utc>) -> String {
        let mut around = pages::Frame::clone(&self.frame);
        let text = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
        for (name, value) in [
            ("hours", String::new()),
            ("since", text(since)),
            ("until", text(until)),
        ] {
            around.address = around.with(name, value);
        }
        around.address
    }

    /// Since when a list of the last `hours` goes back, to the minute, for a link that shows the same later; `since` may restrict it further.
    fn pinned(&self, hours: &str, since: &str) -> Option<String> {
        let asked: u32 = self.frame.asked(hours).parse().ok()?;
        // What the list does not take is told at its field, and may lie before all that has a date.
        if !(1..=WEEK).contains(&asked) {
            return None;
        }
        let zone = self.frame.preferences.zone;
        let since = words::time(&self.frame.asked(since), zone, MappedLocalTime::earliest);
        let within = self.frame.now - TimeDelta::hours(asked.into());
        let pinned = within.max(since.unwrap_or(within));
        let minute = pinned.duration_trunc(TimeDelta::minutes(1)).ok()?;
        Some(minute.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    /// How many rows a page has.
    fn limit(&self) -> u32 {
        self.frame.asked("limit").parse().unwrap_or(ROWS)
    }

    /// How many it can have, and the number that the address asks for besides: as the address says it, the number, and whether that is chosen.
    fn limits(&self) -> Vec<(String, u32, bool)> {
        let (mut counts, asked) = (vec![25, 50, 100, 200], self.limit());
        if !counts.contains(&asked) {
            counts.push(asked);
            counts.sort_unstable();
        }
        let choice = |count: u32| {
            let said = if count == ROWS {
                String::new()
            } else {
                count.to_string()
            };
            (said, count, count == asked)
        };
        counts.into_iter().map(choice).collect()
    }

    /// Statuses to choose from.
    fn statuses(&self) -> Vec<(String, String)> {
        let offered = [
            ("SENT", "Delivered"),
            ("FAILED,GIVEN_UP", "Not delivered"),
            ("RETRY", "Tried again"),
            ("SCHEDULED", "Waits for quota or rate"),
            ("PENDING,IN_MEMORY,RETRY,SCHEDULED", "Not ended"),
        ];
        self.with_asked("status", &offered, |asked| {
            let words: Vec<_> = asked.split(',').map(|status| self.frame.word(status)).collect();
            words.join(", ")
        })
    }

    /// Times to choose from for a field of hours.
    fn spans(&self, name: &str) -> Vec<(String, String)> {
        let offered = [("1", "The last hour"), ("24", "24 hours"), ("72", "3 days")];
        self.with_asked(name, &offered, |asked| format!("{asked} hours"))
    }

    /// What is offered, and what the address asks for besides, as links of other pages do: a choice must not show what is not so.
    fn with_asked(
        &self,
        name: &str,
        offered: &[(&str, &str)],
        said: impl Fn(&str) -> String,
    ) -> Vec<(String, String)> {
        let own = |(value, word): &(&str, &str)| ((*value).to_owned(), (*word).to_owned());
        let mut choices: Vec<_> = offered.iter().map(own).collect();
        let asked = self.frame.asked(name);
        if !asked.is_empty() && choices.iter().all(|(value, _)| *value != asked) {
            let word = said(&asked);
            choices.push((asked, word));
        }
        choices
    }

    fn is_asked(&self, names: &[&str]) -> bool {
        names.iter().any(|name| !self.frame.asked(name).is_empty())
    }

    fn is_filtered(&self) -> bool {
        self.is_asked(&[
            "subscription",
            "status",
            "eventType",
            "code",
            "hours",
            "since",
            "until",
            "endedHours",
            "endedSince",
            "endedUntil",
        ]) || self.is_filtered_more()
    }

    /// Whether it is filtered by what sending all again is not.
    fn is_filtered_more(&self) -> bool {
        self.is_asked(&["value", "error", "q"])
    }

    /// Where all that match are sent again: of the subscription that is chosen, or of all. Nowhere where the list is filtered by what that is not,
    /// or is of what has not ended.
    fn resend(&self) -> Option<String> {
        if self.is_filtered_more() || self.is_of_waiting() {
            return None;
        }
        if !self.is_of_one && self.frame.asked("subscription").is_empty() {
            return Some(self.frame.beside("resend"));
        }
        self.of_chosen("resend")
    }

    /// Where all retries are made at once: of the one subscription whose retries are listed, and all of them.
    fn retry_now(&self) -> Option<String> {
        let is_other = |name: &&str| !matches!(*name, "status" | "subscription");
        let others: Vec<_> = FIELDS.into_iter().chain(["q"]).filter(is_other).collect();
        let is_of_retries = self.frame.asked("status") == NotificationStatus::Retry.as_str();
        (is_of_retries && !self.is_asked(&others))
            .then(|| self.of_chosen("retry-now"))
            .flatten()
    }

    /// A page of the subscription whose list it is, or that is chosen, with the same filter.
    fn of_chosen(&self, part: &str) -> Option<String> {
        if self.is_of_one {
            return Some(self.frame.beside(part));
        }
        let chosen: Uuid = self.frame.asked("subscription").parse().ok()?;
        let is_known = self.subscriptions.iter().any(|known| known.id == chosen);
        is_known.then(|| self.frame.of_one(chosen, part))
    }

    /// Whether it is of what has not ended, which sending all again leaves alone.
    fn is_of_waiting(&self) -> bool {
        !resends::resendable(&self.frame.asked("status")).1.is_empty()
    }

    /// The same list of what has in its data what was looked for as an id.
    fn by_value(&self) -> String {
        let mut around = pages::Frame::clone(&self.frame);
        around.address = around.with("value", around.asked("q"));
        around.without(&["q"])
    }

    fn errors(&self) -> [&'static str; 8] {
        ERROR_TYPES
    }

    /// A time of the address as the field for it takes it; what is none as it is.
    fn field_of(&self, name: &str) -> String {
        let asked = self.frame.asked(name);
        match self.frame.time_type(name) {
            "text" => asked,
            _ => words::field(&asked, self.frame.preferences.zone),
        }
    }

    fn wrong_filters(&self) -> Markup {
        self.frame.wrong_filters(&FILTERS)
    }

    fn place_of(&self, subscription: &SubscriptionDocument) -> String {
        words::place(&subscription.url)
    }

    fn path(&self) -> &str {
        self.frame.address.split('?').next().unwrap_or_default()
    }
}

/// A part that a filter has thinned out is followed by others, until there are as many rows as a page has.
async fn rows_of(
    app: &Arc<App>,
    reseller: &Reseller,
    subscriptions: &[SubscriptionDocument],
    mut filter: AllParams,
) -> Result<Found, Problem> {
    let wanted = filter.limit.unwrap_or(ROWS) as usize;
    let row = |listed: ListedDocument| {
        let to = subscriptions.iter().find(|it| it.id == listed.subscription_id);
        Row {
            host: to.map_or_else(|| "a deleted subscription".to_owned(), |it| words::place(&it.url)),
            subscription: listed.subscription_id,
            last: listed.last,
            notification: listed.row,
        }
    };
    let (mut rows, patience) = (Vec::new(), Instant::now() + PATIENCE);
    loop {
        let asked = ReadParams::of(filter.clone());
        let part = notifications::list_all(State(Arc::clone(app)), reseller.clone(), asked)
            .await?
            .0;
        rows.extend(part.items.into_iter().map(row));
        let is_short = part.next.is_some() && rows.len() < wanted;
        if !is_short || Instant::now() > patience {
            return Ok(Found {
                rows,
                next: part.next,
                searched: is_short.then_some(part.looked_back_to),
            });
        }
        filter.limit = u32::try_from(wanted - rows.len()).ok();
        filter.cursor = part.next;
    }
}

/// Asks for an empty list without each of its filters, for as long as a page goes on looking.
async fn leaving_out(
    app: &Arc<App>,
    reseller: &Reseller,
    (frame, found): (&Frame, &Found),
    subscription: Option<Uuid>,
) -> Result<LeavingOut, Problem> {
    let mut filters = LeavingOut::of(frame, &FILTERS);
    if !found.rows.is_empty() || found.next.is_some() || !frame.asked("cursor").is_empty() {
        return Ok(filters);
    }
    let patience = Instant::now() + PATIENCE;
    for one in filters.to_try() {
        let Some(params) = one
            .params::<DeliveryParams>()
            .filter(|_| Instant::now() < patience)
        else {
            break;
        };
        let asked = AllParams {
            limit: Some(Without::LOOKED_FOR),
            ..params.filter(frame, subscription)?
        };
        let list = notifications::list_all(State(Arc::clone(app)), reseller.clone(), ReadParams::of(asked));
        // The list itself was read: its page is shown without this.
        let Ok(part) = list.await else { break };
        one.found(part.items.len(), part.next.is_some());
    }
    Ok(filters)
}

/// What became of the event that is looked for, where no notification of it was found.
async fn event_of(
    app: &Arc<App>,
    reseller: &Reseller,
    found: &Found,
    wanted: Option<&str>,
) -> Result<Option<EventShown>, Problem> {
    match typed(wanted) {
        Some(id) if found.rows.is_empty() => event::looked_for(app, reseller, &id).await,
        _ => Ok(None),
    }
}

/// The page of the notification that is looked for by its identifier, if there is one.
async fn named(app: &Arc<App>, reseller: &Reseller, wanted: &str) -> Option<Response> {
    let id: Uuid = wanted.trim().parse().ok()?;
    let find = notifications::find(State(Arc::clone(app)), reseller.clone(), Id(id));
    find.await.ok().map(|_| see_other(&format!("/app/n/{id}")))
}

/// What the list has of these subscriptions, or of `only` one; nothing where its filter cannot be read, which its frame then says.
async fn listed(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: &mut Frame,
    (subscriptions, only): (&[SubscriptionDocument], Option<Uuid>),
    asked: Result<DeliveryParams, Problem>,
) -> Result<Listed, Problem> {
    let found = match asked.and_then(|params| Ok((params.filter(frame, only)?, params.q))) {
        Ok((filter, q)) => {
            let rows = rows_of(app, reseller, subscriptions, filter).await;
            rows.map(|found| (found, q))
        }
        Err(problem) => Err(problem),
    };
    let Some((found, q)) = frame.filtered(found, &FIELDS)? else {
        return Ok(Listed {
            found: Found::default(),
            leaving_out: LeavingOut::of(frame, &FILTERS),
            event: None,
        });
    };
    Ok(Listed {
        leaving_out: leaving_out(app, reseller, (frame, &found), only).await?,
        event: event_of(app, reseller, &found, q.as_deref()).await?,
        found,
    })
}

async fn of_one(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    mut frame: Frame,
    Id(id): Id,
    asked: Result<Params<DeliveryParams>, Problem>,
) -> Result<Response, Problem> {
    if let Some(page) = named(&app, &reseller, &frame.asked("q")).await {
        return Ok(page);
    }
    let subscription = super::subscription(&app, &reseller, id).await?;
    let of = (std::slice::from_ref(&subscription), Some(id));
    let asked = asked.map(|Params(params)| params);
    let listed = listed(&app, &reseller, &mut frame, of, asked).await?;
    let ended = metrics::ended_of(&app, &reseller, &[id], WEEK).await?;
    let status = frame.list_status();
    let page = Page(OfOne {
        list: Deliveries::new(frame.clone(), None, ended, listed),
        frame,
        subscription,
    });
    Ok((status, page).into_response())
}

async fn of_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    mut frame: Frame,
    asked: Result<Params<DeliveryParams>, Problem>,
) -> Result<Response, Problem> {
    if let Some(page) = named(&app, &reseller, &frame.asked("q")).await {
        return Ok(page);
    }
    let all = super::subscriptions_of(&app, &reseller).await?;
    let asked = asked.map(|Params(params)| params);
    let only = asked.as_ref().ok().and_then(|params| params.subscription);
    let listed = listed(&app, &reseller, &mut frame, (&all, None), asked).await?;
    let chosen = |subscription: &&SubscriptionDocument| only.is_none_or(|only| only == subscription.id);
    let ids: Vec<_> = all
        .iter()
        .filter(chosen)
        .map(|subscription| subscription.id)
        .collect();
    let ended = metrics::ended_of(&app, &reseller, &ids, WEEK).await?;
    let status = frame.list_status();
    let list = Deliveries::new(frame.clone(), Some(all), ended, listed);
    Ok((status, Page(OfAll { frame, list })).into_response())
}
