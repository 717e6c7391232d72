//! `/console/dead-letters`: what went wrong where, how often, and whether it goes on.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http_api::{Params, Problem, ReadParams, TakesBodies as _};
use sha2::{Digest as _, Sha256};
use store::DeadLetterView;
use uuid::Uuid;

use super::written::Written;
use super::{AGES, Chosen, FIELDS, cause, noted};
use crate::app::App;
use crate::console::export::{self, Column, Rows};
use crate::console::frame::{Frame, Page};
use crate::dead_letters::{self, GroupDocument, GroupTimeline, GroupsDocument, NoteDocument};
use crate::request::Viewer;

/// How many groups are asked for, and of how many rows the reader chooses; the first one unless another is asked for.
const ASKED: usize = 1_000;
const SHOWN: [usize; 3] = [50, 100, 200];
/// Words of the address that are this page's own.
const OWN: [&str; 3] = ["by", "order", "limit"];

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct Groups {
    frame: Frame,
    chosen: Chosen,
    ages: [(&'static str, &'static str, i64); 4],
    by_endpoint: bool,
    total: u64,
    /// Whether there are more than that.
    at_least: bool,
    /// How many groups there are, or the most that are asked for.
    groups: usize,
    /// How many rows there are to show: groups, or places.
    all_rows: usize,
    rows: Vec<Row>,
    /// Whether the earlier of the hours may have had more.
    hours_at_least: bool,
    /// The newest dead letter of all, if nothing matches.
    last: Option<DeadLetterView>,
}

/// Dead letters of one kind and place, or of one place.
struct Row {
    /// Names the row, the same for as long as it is there.
    id: String,
    lane: &'static str,
    target: String,
    /// The kinds of failure, and how many there are of each.
    kinds: Vec<(String, u64)>,
    count: u64,
    first: DateTime<Utc>,
    last: DateTime<Utc>,
    sample: Uuid,
    detail: String,
    /// What the sample is about.
    reseller: Option<String>,
    subscription: Option<Uuid>,
    /// The only subscription of that reseller at the endpoint, which no operator has paused.
    pausable: Option<Uuid>,
    /// How many were written in each of the last 24 hours.
    hours: Option<Written>,
    /// What operators have noted of the group.
    note: Option<NoteDocument>,
    chosen: Chosen,
    /// Whether the filter is about this row alone, so that a job can be.
    is_exact: bool,
}

impl Row {
    fn of(group: GroupDocument, hours: Option<Written>, chosen: &Chosen, is_exact: bool) -> Self {
        let key = format!("{}\n{}\n{}", group.lane, group.fingerprint, group.target);
        let chosen = chosen
            .with("lane", group.lane)
            .with("fingerprint", &group.fingerprint);
        Self {
            id: named(&key),
            lane: group.lane,
            chosen: chosen.with("target", &group.target),
            target: group.target,
            kinds: vec![(group.fingerprint, group.count)],
            count: group.count,
            first: group.first_seen,
            last: group.last_seen,
            sample: group.sample.id,
            detail: group.sample.detail,
            reseller: None,
            subscription: None,
            pausable: None,
            hours,
            note: group.note,
            is_exact,
        }
    }

    /// Whose endpoint the failures were at, and which.
    fn endpoint(&self) -> Option<(String, String)> {
        let reseller = self.reseller.clone().filter(|_| !self.target.is_empty())?;
        Some((reseller, self.target.clone()))
    }

    /// Where the note on it is changed; none of what is no single group.
    fn note_place(&self) -> Option<String> {
        match &self.kinds[..] {
            [(fingerprint, _)] => Some(noted::place(self.lane, fingerprint, &self.target)),
            _ => None,
        }
    }

    /// Takes over another group of the same place.
    fn add(&mut self, other: Self) {
        self.kinds.extend(other.kinds);
        // A note is on one group.
        self.note = None;
        self.count += other.count;
        self.first = self.first.min(other.first);
        if other.last > self.last {
            (self.last, self.sample, self.detail) = (other.last, other.sample, other.detail);
        }
        if let (Some(sum), Some(more)) = (&mut self.hours, &other.hours) {
            sum.add(more);
        }
    }

    /// What went wrong most often.
    fn cause(&self) -> String {
        self.kinds
            .first()
            .map_or(String::new(), |(fingerprint, _)| cause(fingerprint))
    }

    fn fingerprint(&self) -> &str {
        self.kinds.first().map_or("", |(fingerprint, _)| fingerprint)
    }

    /// How many were written in this hour and the one before.
    fn lately(&self) -> u64 {
        self.hours.as_ref().map_or(0, Written::lately)
    }

    fn is_growing(&self, now: &DateTime<Utc>) -> bool {
        let written = self.hours.as_ref();
        written.is_some_and(|written| written.is_growing(&self.last, now))
    }
}

/// The name of a row, from what tells it from others.
pub(super) fn named(key: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(key).into();
    let short: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("group-{short}")
}

/// The places of each kind, by lane and fingerprint: a filter cannot ask for dead letters without a place, so of a kind that has several
/// it takes all. Nothing is known when not every group was read.
fn places(groups: &[GroupDocument], is_whole: bool) -> HashMap<(&'static str, String), usize> {
    let mut places = HashMap::new();
    for group in groups.iter().filter(|_| is_whole) {
        *places.entry((group.lane, group.fingerprint.clone())).or_default() += 1;
    }
    places
}

/// Whether a filter can be about this group alone.
fn is_exact(group: &GroupDocument, places: &HashMap<(&'static str, String), usize>) -> bool {
    // At its end an asterisk stands for anything.
    let has_name = !group.fingerprint.is_empty() && !group.fingerprint.ends_with('*');
    let is_alone = || places.get(&(group.lane, group.fingerprint.clone())) == Some(&1);
    has_name && (!group.target.is_empty() || is_alone())
}

/// One row for each place. What nothing answered for has none, and stays by its kind.
fn by_endpoint(rows: Vec<Row>, chosen: &Chosen) -> Vec<Row> {
    let mut places: BTreeMap<(&'static str, String, String), Row> = BTreeMap::new();
    for mut row in rows {
        let kind = if row.target.is_empty() {
            row.fingerprint().to_owned()
        } else {
            String::new()
        };
        match places.get_mut(&(row.lane, row.target.clone(), kind.clone())) {
            Some(place) => place.add(row),
            None => {
                if !row.target.is_empty() {
                    row.id = named(&format!("{}\n{}", row.lane, row.target));
                    row.chosen = chosen.with("lane", row.lane).with("target", &row.target);
                    row.is_exact = true;
                }
                places.insert((row.lane, row.target.clone(), kind), row);
            }
        }
    }
    places.into_values().collect()
}

impl Groups {
    /// Where the groups are as a file.
    fn file(&self, format: &str) -> String {
        self.chosen
            .link("/console/dead-letters/groups/export", &[("format", format)])
    }

    fn order(&self) -> String {
        self.frame.asked("order")
    }

    /// How many rows there may be at once, more than there are.
    fn more(&self) -> impl Iterator<Item = usize> {
        let least = SHOWN.iter().position(|rows| *rows >= self.all_rows);
        let last = least.unwrap_or(SHOWN.len() - 1);
        let shown = self.rows.len();
        SHOWN.into_iter().take(last + 1).filter(move |rows| *rows > shown)
    }

    fn tabs(&self) -> [(String, &'static str, bool); 4] {
        super::tabs(&self.chosen, if self.by_endpoint { "endpoint" } else { "cause" })
    }

    /// Whether the hours are known.
    fn has_hours(&self) -> bool {
        self.rows.iter().any(|row| row.hours.is_some())
    }
}

/// What a file of groups has.
const COLUMNS: [Column; 13] = [
    ("lane", "/lane"),
    ("fingerprint", "/fingerprint"),
    ("kind", "/kind"),
    ("target", "/target"),
    ("count", "/count"),
    ("firstSeen", "/firstSeen"),
    ("lastSeen", "/lastSeen"),
    ("sample", "/sample/id"),
    ("detail", "/sample/detail"),
    ("note", "/note/note"),
    ("owner", "/note/owner"),
    ("notedBy", "/note/by"),
    ("noteUntil", "/note/until"),
];

/// The groups as a file, the largest first, however the page orders or sums them.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    let (chosen, now) = (Chosen::asked(&frame, &export::OWN), frame.now);
    let part = move |_: Option<String>| {
        let (app, chosen) = (Arc::clone(&app), chosen.clone());
        async move {
            let params = chosen.params(now, &[("limit", &ASKED.to_string())]).await?;
            let deadline = app.deadline();
            let found = dead_letters::groups(State(app), Viewer { deadline }, params).await?;
            // They come at once: the list has no parts.
            Ok(Rows::of(&found.0.items, None))
        }
    };
    export::file(&frame, "dead-letter-groups", &COLUMNS, part).await
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    mut frame: Frame,
) -> Result<impl IntoResponse, Problem> {
    let by_endpoint_asked = match &*frame.asked("by") {
        "" | "cause" => false,
        "endpoint" => true,
        _ => return Err(Problem::query("by", "must be cause or endpoint")),
    };
    let order = order(&frame)?;
    let shown = shown(&frame)?;
    let chosen = Chosen::asked(&frame, &OWN);
    let found = found(&app, viewer, &chosen, frame.now).await;
    let (found, hours) = frame.filtered(found, &FIELDS)?.unwrap_or_default();
    let groups = found.items.len();
    let places = places(&found.items, groups < ASKED);
    let rows = found.items.into_iter().map(|group| {
        let key = (group.lane, group.fingerprint.clone(), group.target.clone());
        let counts = hours
            .as_ref()
            .map(|hours| Written::of(hours.of.get(&key).cloned().unwrap_or_else(|| vec![0; 24])));
        let is_exact = is_exact(&group, &places);
        Row::of(group, counts, &chosen, is_exact)
    });
    let mut rows: Vec<_> = rows.collect();
    if by_endpoint_asked {
        rows = by_endpoint(rows, &chosen);
    }
    match order {
        Order::Largest => rows.sort_by_key(|row| std::cmp::Reverse(row.count)),
        Order::Latest => rows.sort_by_key(|row| std::cmp::Reverse(row.last)),
        Order::Growing => rows.sort_by_key(|row| std::cmp::Reverse(row.lately())),
    }
    let all_rows = rows.len();
    rows.truncate(shown);
    about(&app, viewer.deadline, &mut rows).await?;
    let last = if rows.is_empty() && frame.is_readable() {
        let Params(params) = Chosen::default()
            .params(frame.now, &[("state", "ALL"), ("limit", "1")])
            .await?;
        let newest = dead_letters::list(State(app), viewer, ReadParams::of(params))
            .await?
            .0;
        newest.items.into_iter().next()
    } else {
        None
    };
    let status = frame.list_status();
    let page = Page(Groups {
        chosen,
        ages: AGES,
        by_endpoint: by_endpoint_asked,
        total: found.total,
        at_least: found.at_least,
        groups,
        all_rows,
        rows,
        hours_at_least: hours.is_some_and(|hours| hours.at_least),
        last,
        frame,
    });
    Ok((status, page))
}

/// The groups, and the hours of each.
async fn found(
    app: &Arc<App>,
    viewer: Viewer,
    chosen: &Chosen,
    now: DateTime<Utc>,
) -> Result<(GroupsDocument, Option<Hours>), Problem> {
    let params = chosen.params(now, &[("limit", &ASKED.to_string())]).await?;
    let groups = dead_letters::groups(State(Arc::clone(app)), viewer, params);
    let (found, hours) = tokio::try_join!(groups, hours(app, viewer, chosen, now))?;
    Ok((found.0, hours))
}

fn shown(frame: &Frame) -> Result<usize, Problem> {
    let asked = frame.asked("limit");
    if asked.is_empty() {
        return Ok(SHOWN[0]);
    }
    let known = SHOWN.into_iter().find(|rows| rows.to_string() == asked);
    known.ok_or_else(|| Problem::query("limit", "must be 50, 100 or 200"))
}

/// Which groups or resellers come first.
pub(super) enum Order {
    Largest,
    Latest,
    Growing,
}

pub(super) fn order(frame: &Frame) -> Result<Order, Problem> {
    match &*frame.asked("order") {
        "" => Ok(Order::Largest),
        "latest" => Ok(Order::Latest),
        "growing" => Ok(Order::Growing),
        _ => Err(Problem::query(
            "order",
            "must be latest or growing; leave it out for the largest first",
        )),
    }
}

/// The hours of each group, by lane, kind and place.
struct Hours {
    of: HashMap<(&'static str, String, String), Vec<u64>>,
    /// Whether the earlier ones may have had more.
    at_least: bool,
}

async fn hours(
    app: &Arc<App>,
    viewer: Viewer,
    chosen: &Chosen,
    now: DateTime<Utc>,
) -> Result<Option<Hours>, Problem> {
    // By what has resolved them nothing is counted by the hour.
    if !chosen.word("job").is_empty() {
        return Ok(None);
    }
    // A time says which groups are shown: what was written in an hour is the same.
    let counted = chosen.whenever().with("state", "ALL");
    let params = counted.params(now, &[("limit", "300")]).await?;
    let found = dead_letters::timeline(State(Arc::clone(app)), viewer, params)
        .await?
        .0;
    let hours = found.items.into_iter().filter_map(|group: GroupTimeline| {
        let key = (group.lane, group.fingerprint?, group.target?);
        Some((key, group.counts))
    });
    Ok(Some(Hours {
        of: hours.collect(),
        at_least: found.at_least,
    }))
}

/// Finds out whose the samples are, as of an endpoint all are of the same reseller, and which subscription is there alone.
async fn about(app: &App, deadline: tokio::time::Instant, rows: &mut [Row]) -> Result<(), Problem> {
    let samples: Vec<_> = rows
        .iter()
        .filter(|row| row.lane == "reseller")
        .map(|row| row.sample)
        .collect();
    if samples.is_empty() {
        return Ok(());
    }
    let finding = app.store.find_dead_letters(&samples);
    let found = http_api::by(deadline, ("the dead letters", "read"), finding).await?;
    let mut found: HashMap<_, _> = found.into_iter().map(|letter| (letter.id, letter)).collect();
    for row in &mut *rows {
        if let Some(letter) = found.remove(&row.sample) {
            (row.reseller, row.subscription) = (letter.reseller, letter.subscription);
        }
    }
    let pairs: Vec<_> = rows.iter().filter_map(Row::endpoint).collect();
    let finding = app.store.only_subscriptions_at(&pairs);
    let there = http_api::by(deadline, ("the subscriptions", "read"), finding).await?;
    for row in rows {
        row.pausable = row.endpoint().and_then(|pair| there.get(&pair).copied());
    }
    Ok(())
}
