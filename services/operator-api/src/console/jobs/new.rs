//! `/console/jobs/new`: what a job would be about, counted before anything is done, and the form that starts it.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use http::header::LOCATION;
use http_api::{FieldProblem, Payload, Problem, ProblemKind};
use pages::TYPED_ABOVE;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::draft::{Draft, NUMBERS};
use super::endpoint_pace::{Took, took};
use super::shown::skipped;
use crate::console::dead_letters::{Chosen, cause, moment};
use crate::console::frame::{Frame, Page, done};
use crate::console::guard::FormAt;
use crate::console::markup::Markup;
use crate::console::visit::Fields;
use crate::dead_letter_jobs;
use crate::dead_letters::{self, GroupDocument};
use crate::request::{AUTHENTICATION_TOO_OLD, Operator};

/// Most identifiers in a command; more come from a file.
const IDS_IN_COMMAND: usize = 20;
/// How many groups are shown.
const GROUPS: usize = 20;
/// Longest answer of a dry run, in bytes.
const PREVIEW_MAX_BYTES: usize = 8 * 1024 * 1024;
/// What goes with a replay alone.
const CAREFUL: [&str; 2] = ["canary", "pauseAbove"];
/// From how many dead letters on care is suggested, and which: so many first, and so many percent.
const CARE_FROM: u64 = 100;
const CANARY: &str = "10";
const PAUSE_ABOVE: &str = "20";
/// What it is when nothing is typed.
const PER_SECOND: u64 = 100;

/// What a dry run answers.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Preview {
    matching: u64,
    by_fingerprint: Vec<Kind>,
    oldest: Option<DateTime<Utc>>,
    newest: Option<DateTime<Utc>>,
    sampled: u64,
    skipped: BTreeMap<String, u64>,
    by_event_type: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize)]
struct Kind {
    lane: String,
    fingerprint: String,
    count: u64,
}

impl Kind {
    fn cause(&self) -> String {
        cause(&self.fingerprint)
    }
}

#[derive(Template)]
#[template(path = "job_new.html")]
pub(super) struct NewJob {
    frame: Frame,
    draft: Draft,
    preview: Preview,
    /// The largest groups of what matches.
    groups: Vec<GroupDocument>,
    /// The filter with moments for times, up to the newest that was counted: what comes later is not meant.
    pinned: Chosen,
    /// Of a replay to one endpoint: what that took of late.
    took: Option<Took>,
    /// The identifier of the job that is begun here.
    job: Uuid,
    errors: Vec<FieldProblem>,
}

impl NewJob {
    fn is_replay(&self) -> bool {
        self.draft.action == "replay"
    }

    fn verb(&self) -> &'static str {
        if self.is_replay() { "Replay" } else { "Discard" }
    }

    /// Whether the number has to be typed.
    fn is_large(&self) -> bool {
        self.about() > TYPED_ABOVE
    }

    /// The same page about fewer, whose number need not be typed.
    fn fewer(&self) -> String {
        format!("{}&limit={TYPED_ABOVE}", self.draft.address())
    }

    /// How many the job looks at.
    fn about(&self) -> u64 {
        self.draft.about(self.preview.matching)
    }

    /// How many of those that were looked at would be skipped.
    fn skipped_in_all(&self) -> u64 {
        self.preview.skipped.values().sum()
    }

    /// What a field holds: what was typed, or what is suggested for so many.
    fn value(&self, name: &str) -> &str {
        let typed = self.draft.number(name);
        if self.draft.is_typed || !typed.is_empty() || self.preview.matching < CARE_FROM {
            return typed;
        }
        match name {
            "canary" => CANARY,
            "pauseAbove" => PAUSE_ABOVE,
            _ => typed,
        }
    }

    /// What is wrong with a field.
    fn error(&self, name: &str) -> Option<&str> {
        let found = self.errors.iter().find(|error| error.field == name);
        found.map(|error| &*error.detail)
    }

    /// The field of the form that an error is about; the heading for what the form does not have.
    fn place(&self, field: &str) -> String {
        match field {
            "note" | "number" | "order" => field.to_owned(),
            other if NUMBERS.contains(&other) => other.to_owned(),
            _ => "main".to_owned(),
        }
    }

    /// How a field is called in the form.
    fn called(&self, field: &str) -> String {
        let called = match field {
            "perSecond" => "Most a second:",
            "limit" => "Most in all:",
            "canary" => "First ones:",
            "pauseAbove" => "Percent:",
            "order" => "Order:",
            "note" => "The note",
            "number" => "The number",
            other => other,
        };
        called.to_owned()
    }

    fn per_second(&self) -> String {
        match self.draft.number("perSecond") {
            "" => PER_SECOND.to_string(),
            typed => typed.to_owned(),
        }
    }

    /// How long it takes at rates that are usual, and at the one that was typed.
    fn durations(&self) -> Vec<(u64, u64)> {
        let typed = self.per_second().parse().unwrap_or_default();
        let mut rates = vec![1, 10, PER_SECOND, 1_000, typed];
        rates.retain(|rate| *rate > 0);
        rates.sort_unstable();
        let about = self.about();
        let durations = rates.into_iter().map(|rate| (rate, about.div_ceil(rate)));
        let mut durations: Vec<_> = durations.collect();
        durations.dedup_by_key(|(_, seconds)| *seconds);
        durations
    }

    /// What the one endpoint has borne of late, when the job may send more.
    fn bears(&self) -> Option<String> {
        self.took.as_ref()?.bears(self.per_second().parse().ok()?)
    }

    /// The attributes of a field: what describes it, and that it is wrong.
    fn described(&self, name: &str) -> Markup {
        let wrong = self.error(name).is_some();
        let error = if wrong {
            format!(" {name}-error")
        } else {
            String::new()
        };
        let invalid = if wrong { r#" aria-invalid="true""# } else { "" };
        Markup(format!(r#"aria-describedby="{name}-hint{error}"{invalid}"#))
    }

    fn cause_of(&self, group: &GroupDocument) -> String {
        cause(&group.fingerprint)
    }

    /// What groups that are not shown have.
    fn others(&self) -> u64 {
        let shown: u64 = self.groups.iter().map(|group| group.count).sum();
        self.preview.matching.saturating_sub(shown)
    }

    /// Whether the command reads the identifiers from a file.
    fn takes_file(&self) -> bool {
        self.draft.ids.len() > IDS_IN_COMMAND
    }

    /// The command that does what the form holds; what is no number in it is left out.
    fn command(&self) -> String {
        let mut command = if self.draft.ids.is_empty() {
            self.pinned.command(&self.draft.action, self.frame.now)
        } else {
            let ids = match self.takes_file() {
                true => "$(cat ids.txt)".to_owned(),
                false => self.draft.ids.join(" "),
            };
            format!("postrider dead-letters {} {ids}", self.draft.action)
        };
        let per_second = self.per_second();
        let options = [
            ("rate", per_second.as_str()),
            ("limit", self.value("limit")),
            ("canary", self.value("canary")),
            ("pause-above", self.value("pauseAbove")),
        ];
        // What goes with a replay alone comes last.
        let taken = if self.is_replay() { 4 } else { 2 };
        for (option, value) in options.into_iter().take(taken) {
            if let Ok(number) = value.parse::<u64>() {
                command.push_str(&format!(" --{option} {number}"));
            }
        }
        if self.draft.order == "newest" {
            command.push_str(" --order newest");
        }
        if !self.is_replay() {
            command.push_str(" --note '…'");
        }
        command
    }
}

/// Counts what a body is about, by the operation that makes jobs: that refuses wrong fields before it counts.
async fn preview(operator: Operator, mut body: Value) -> Result<Preview, Problem> {
    body["dryRun"] = json!(true);
    let answer = Box::pin(create(operator, body)).await?;
    let body = to_bytes(answer.into_body(), PREVIEW_MAX_BYTES)
        .await
        .unwrap_or_default();
    serde_json::from_slice(&body)
        .map_err(|_| Problem::new(ProblemKind::INTERNAL, "what was counted could not be read"))
}

async fn create(operator: Operator, body: Value) -> Result<Response, Problem> {
    let payload = serde_json::from_value(body).map_err(|error| {
        Problem::new(
            ProblemKind::INVALID_QUERY,
            format!("the filter is not acceptable: {error}"),
        )
    })?;
    dead_letter_jobs::create(operator, Payload(payload)).await
}

/// The page of a draft; what matches is counted unless that was done before.
pub(super) async fn counted(
    operator: Operator,
    frame: Frame,
    draft: Draft,
    before: Option<Preview>,
) -> Result<NewJob, Problem> {
    let groups = if draft.ids.is_empty() {
        // First, since it names the words of a filter that mean nothing.
        let params = draft
            .chosen
            .with("state", "")
            .params(frame.now, &[("limit", GROUPS.to_string().as_str())])
            .await?;
        let app = State(Arc::clone(&operator.app));
        let Json(found) = dead_letters::groups(app, operator.viewer(), params).await?;
        found.items
    } else {
        Vec::new()
    };
    let took = match draft.action == "replay" && draft.ids.is_empty() {
        true => {
            let of = (&*groups, groups.len() < GROUPS);
            took(&operator, &draft.chosen, of, frame.now).await?
        }
        false => None,
    };
    let preview = match before {
        Some(preview) => preview,
        None => preview(operator, draft.body(frame.now)?).await?,
    };
    let mut pinned = draft.chosen.at(frame.now).with("state", "");
    if let Some(newest) = preview.newest {
        let end = newest + TimeDelta::microseconds(1);
        let until: Option<DateTime<Utc>> = pinned.word("until").parse().ok();
        if until.is_none_or(|until| until > end) {
            pinned = pinned.with("until", moment(end));
        }
    }
    Ok(NewJob {
        frame,
        draft,
        preview,
        groups,
        pinned,
        took,
        job: Uuid::now_v7(),
        errors: Vec::new(),
    })
}

/// The page that counts.
pub(super) async fn page(operator: Operator, frame: Frame) -> Result<impl IntoResponse, Problem> {
    let draft = Draft::asked(&frame);
    draft.checked_action()?;
    draft.meant()?;
    Ok(Page(Box::pin(counted(operator, frame, draft, None)).await?))
}

/// Starts the job that was counted.
pub(super) async fn start(operator: Operator, frame: Frame, fields: Fields) -> Result<Response, Problem> {
    let draft = Draft::written(&fields);
    draft.meant()?;
    let mut before = None;
    let started = Box::pin(started(operator.clone(), &draft, &fields, frame.now, &mut before)).await;
    match started {
        Ok((to, said)) => Ok(done(&to, &said)),
        Err(problem) if problem.kind() == ProblemKind::VALIDATION => {
            let was_agreed_on = before.is_some();
            let mut page = Box::pin(counted(operator, frame, draft, before)).await?;
            let problem = match agreed(&page.draft, page.preview.matching, &fields) {
                Err(other) if !was_agreed_on => problem.and(other),
                _ => problem,
            };
            page.errors = problem.errors().to_vec();
            Ok((StatusCode::UNPROCESSABLE_ENTITY, Page(page)).into_response())
        }
        Err(problem) if problem.kind() == ProblemKind::CONFLICT && draft.job.is_some() => {
            // The page gets another identifier for what is sent next.
            let mut page = Box::pin(counted(operator, frame, draft, before)).await?;
            page.errors = vec![FieldProblem::new("", problem.detail().to_owned())];
            Ok((StatusCode::CONFLICT, Page(page)).into_response())
        }
        Err(problem) if problem.kind() == AUTHENTICATION_TOO_OLD => {
            let mut response = problem.into_response();
            response.extensions_mut().insert(FormAt(draft.place()));
            Ok(response)
        }
        Err(problem) => Err(problem),
    }
}

/// Leaves what it has counted, for the page that says what was wrong.
async fn started(
    operator: Operator,
    draft: &Draft,
    fields: &Fields,
    now: DateTime<Utc>,
    counted: &mut Option<Preview>,
) -> Result<(String, String), Problem> {
    let body = draft.whole_body(now)?;
    if let Some(job) = draft.job {
        let finding = operator.app.store.find_dead_letter_job(job);
        if http_api::by(operator.deadline, ("the job", "read"), finding)
            .await?
            .is_some()
        {
            // What it was about may have been done since: nothing is counted again.
            create(operator, body).await?;
            let said = "The job was started before, and only once. This page follows it.";
            return Ok((format!("/console/jobs/{job}"), said.to_owned()));
        }
    }
    let preview = counted.insert(preview(operator.clone(), body.clone()).await?);
    let matching = preview.matching;
    agreed(draft, matching, fields)?;
    let answer = create(operator, body).await?;
    let location = answer
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok());
    let job = location
        .and_then(|location| location.rsplit('/').next())
        .unwrap_or_default();
    let what = if draft.action == "replay" {
        "replayed"
    } else {
        "discarded"
    };
    let said = format!(
        "The job runs: {} {what}. This page follows it.",
        domain::counted::of(draft.about(matching), "dead letter is", "dead letters are")
    );
    Ok((format!("/console/jobs/{job}"), said))
}

/// Whether the operator has seen how many there are, and typed it where there are many.
fn agreed(draft: &Draft, matching: u64, fields: &Fields) -> Result<(), Problem> {
    let wrong = |detail: String| Err(Problem::fields(vec![FieldProblem::new("number", detail)]));
    let counted: u64 = fields.parse("counted", "a number")?.unwrap_or_default();
    if matching > counted {
        return wrong(format!(
            "more match now than the {counted} that were counted before: look again"
        ));
    }
    let typed: String = fields
        .get("number")
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    if draft.about(matching) > TYPED_ABOVE && typed.parse() != Ok(counted) && typed.parse() != Ok(matching) {
        return wrong(format!(
            "must be {matching}: type it to say that so many are meant"
        ));
    }
    Ok(())
}
