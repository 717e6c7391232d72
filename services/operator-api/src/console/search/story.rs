//! The page with the story of one push, event, notification or dead letter, and what can be done about it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDateTime, Utc};
use domain::notification::NotificationStatus;
use explain::{Explanation, Line, Next};
use http::StatusCode;
use http_api::{Name, Params, Problem, ProblemKind};
use serde::Deserialize;
use serde_json::{Map, Value};
use store::timeline::{NotificationTimeline, PushTimeline};
use store::webhook::EventView;
use store::webpush::Client;
use store::{DeadLetterReason, DeadLetterState, DeadLetterView};
use tokio::time::Instant;
use uuid::Uuid;

use super::{answer, look};
use crate::app::App;
use crate::console::act::ActForm;
use crate::console::dead_letters;
use crate::console::frame::{Frame, Page, see_other, segment};
use crate::console::markup::{Markup, escape, visible};
use crate::console::retries::one_form;
use crate::console::trace;
use crate::console::waiting::cancel_form;
use crate::dead_letters::trace_id;
use crate::explain::{Subject, tell};
use crate::request::Viewer;

/// How long an identifier is as text.
const ID_LENGTH: usize = 36;
/// How times are written in sentences.
const TIME: &str = "%Y-%m-%d %H:%M:%S UTC";
/// How long one is.
const TIME_LENGTH: usize = 23;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoryParams {
    reseller: Option<String>,
}

#[derive(Template)]
#[template(path = "explain.html")]
struct Story {
    frame: Frame,
    story: Explanation,
    facts: Vec<(&'static str, Markup)>,
    forms: Vec<ActForm>,
}

impl Story {
    fn kind(&self) -> &'static str {
        match self.story.kind {
            "deadLetter" => "dead letter",
            "userAgent" => "user agent",
            kind => kind,
        }
    }

    fn title(&self) -> String {
        let kind = self.kind();
        let first = kind.chars().next().map(|first| first.to_ascii_uppercase());
        format!("{}{}", first.unwrap_or_default(), &kind[1..])
    }

    /// Whether something can still happen by itself.
    fn is_live(&self) -> bool {
        !matches!(
            self.story.state.as_str(),
            "SENT" | "DELIVERED" | "REPLAYED" | "DISCARDED" | "UNMATCHED"
        )
    }

    fn next(&self) -> &Next {
        &self.story.next
    }

    /// A sentence with links on the identifiers in it, and its times as the viewer's.
    fn linked(&self, text: &str) -> Markup {
        linked(text, &self.frame)
    }

    fn tone(&self, line: &Line) -> &'static str {
        tone(line)
    }

    /// What a sentence of the story names, as the API has it: `status 503`.
    fn params(&self, params: &Map<String, Value>) -> Vec<String> {
        let named = params.iter().filter(|(_, value)| !value.is_null());
        let named = named.map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name} {text}"),
            None => format!("{name} {value}"),
        });
        named.collect()
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Name(id): Name,
    Params(params): Params<StoryParams>,
) -> Result<Response, Problem> {
    let reseller = params.reseller.as_deref();
    match tell(&app, viewer.deadline, &id, reseller).await {
        // It has another page.
        Ok((Subject::Subscription(it), _)) => {
            Ok(see_other(&format!("/console/subscriptions/{}", it.view.id)))
        }
        Ok((subject, story)) => {
            let mut facts = facts(&subject, &frame);
            let trace = traceparent(&app, viewer.deadline, (&subject, story.id)).await?;
            let trace = trace.as_deref().and_then(trace_id);
            facts.extend(trace.map(|trace| ("Trace", trace::shown(&app.config, &trace))));
            let forms = forms(&subject, &story, &frame);
            let page = Page(Story {
                frame,
                story,
                facts,
                forms,
            });
            Ok(page.into_response())
        }
        // It may be something else, which has another page.
        Err(problem) if problem.kind() == ProblemKind::NOT_FOUND => {
            let found = look(&app, viewer, &id, reseller).await?;
            Ok(answer(frame, &id, reseller, found, StatusCode::NOT_FOUND))
        }
        Err(problem) => Err(problem),
    }
}

/// The trace context of the request that brought it.
async fn traceparent(
    app: &App,
    deadline: Instant,
    (subject, id): (&Subject, Uuid),
) -> Result<Option<String>, Problem> {
    let reading = async {
        match subject {
            Subject::Push(_) => app.store.push_traceparent(id).await,
            Subject::Notification(history) => app.store.event_traceparent(history.event).await,
            Subject::Event(event) => app.store.event_traceparent(event.id).await,
            Subject::Subscription(_) | Subject::UserAgent { .. } | Subject::DeadLetter { .. } => Ok(None),
        }
    };
    http_api::by(deadline, ("the trace", "read"), reading).await
}

fn text(text: impl AsRef<str>) -> Markup {
    Markup(escape(&visible(text.as_ref())))
}

fn link(href: &str, name: &str) -> Markup {
    Markup(format!(
        r#"<a class="link" href="{}">{}</a>"#,
        escape(href),
        escape(&visible(name))
    ))
}

fn story_of(id: Uuid) -> Markup {
    link(&format!("/console/explain/{id}"), &id.to_string())
}

fn reseller(name: &str) -> Markup {
    link(&format!("/console/resellers/{}", segment(name)), name)
}

fn subscription(id: Uuid) -> Markup {
    link(&format!("/console/subscriptions/{id}"), &id.to_string())
}

/// What is known of it, besides its story.
fn facts(subject: &Subject, frame: &Frame) -> Vec<(&'static str, Markup)> {
    match subject {
        Subject::Push(history) => of_push(history, frame),
        Subject::Notification(history) => of_notification(history, frame),
        Subject::Event(event) => of_event(event, frame),
        Subject::Subscription(_) => Vec::new(),
        Subject::DeadLetter { letter, .. } => of_dead_letter(letter, frame),
        Subject::UserAgent { stored, .. } => of_user_agent(&stored.client, frame),
    }
}

fn of_user_agent(client: &Client, frame: &Frame) -> Vec<(&'static str, Markup)> {
    vec![
        ("Node", text(client.node.as_deref().unwrap_or("none"))),
        ("Connected", frame.at(client.connected_at)),
        (
            "Month",
            text(client.month.first_day().format("%Y-%m").to_string()),
        ),
        ("Channels", text(frame.number(client.channels.len()))),
    ]
}

fn of_push(history: &PushTimeline, frame: &Frame) -> Vec<(&'static str, Markup)> {
    let push = &history.push;
    let mut facts = vec![("Status", frame.state(push.status.as_str()))];
    facts.extend(push.reason.map(|reason| ("Reason", text(reason.as_str()))));
    facts.push(("Platform", text(push.platform.as_str())));
    facts.extend(
        push.message_prototype_key
            .as_ref()
            .map(|key| ("Prototype", text(key))),
    );
    facts.extend(
        push.cron_expression
            .as_ref()
            .map(|cron| ("Sending window", text(cron))),
    );
    facts.push(("Attempts", text(frame.number(push.attempts))));
    times(
        &mut facts,
        frame,
        [
            ("Accepted", Some(push.created_at)),
            ("Due", push.next_attempt_at),
            ("Lease until", push.leased_until),
            ("Changed", Some(push.updated_at)),
            ("Ended", push.finished_at),
        ],
    );
    letters(&mut facts, &history.dead_letters);
    facts
}

fn of_notification(history: &NotificationTimeline, frame: &Frame) -> Vec<(&'static str, Markup)> {
    let mut facts = vec![("Status", frame.state(history.status.as_str()))];
    facts.extend(
        history
            .reason
            .as_ref()
            .filter(|_| history.status != NotificationStatus::Sent)
            .map(|reason| ("Reason", text(reason.as_str()))),
    );
    facts.push(("Event", story_of(history.event)));
    facts.extend(history.event_id.as_ref().map(|id| ("eventId", text(id))));
    facts.push(("Event type", text(&history.event_type)));
    facts.push(("Reseller", reseller(&history.reseller)));
    facts.push(("Subscription", subscription(history.subscription.id)));
    facts.push((
        "Subscription's state",
        frame.state(history.subscription.state.as_str()),
    ));
    facts.push(("Endpoint", text(&history.subscription.url)));
    facts.push(("Attempts", text(frame.number(history.attempts))));
    let made = match history.replayed_event() {
        Some(_) => "Replayed",
        None => "Made",
    };
    times(
        &mut facts,
        frame,
        [
            ("Accepted", history.replayed_event()),
            (made, Some(history.created_at)),
            ("Due", history.next_attempt_at),
            ("Lease until", history.leased_until),
            ("Changed", Some(history.updated_at)),
            ("Ended", history.finished_at),
        ],
    );
    letters(&mut facts, &history.dead_letters);
    facts
}

fn of_event(event: &EventView, frame: &Frame) -> Vec<(&'static str, Markup)> {
    let mut facts = vec![
        ("Reseller", reseller(&event.reseller_id)),
        ("eventId", text(&event.event_id)),
        ("Event type", text(&event.event_type)),
        (
            "Length",
            text(format!("{} bytes", frame.number(event.body_bytes))),
        ),
    ];
    times(
        &mut facts,
        frame,
        [
            ("Happened", Some(event.occurred_at)),
            ("Accepted", Some(event.created_at)),
        ],
    );
    facts.extend(event.test_of.map(|id| ("Test for", subscription(id))));
    let count = event.notifications.len();
    let list = format!("/console/waiting?lane=reseller&status=ANY&eventId={}", event.id);
    facts.push(("Notifications", link(&list, &frame.number(count))));
    facts
}

fn of_dead_letter(letter: &DeadLetterView, frame: &Frame) -> Vec<(&'static str, Markup)> {
    let mut facts = vec![
        ("State", frame.state(letter.state.as_str())),
        ("Dead letter", dead_letter(letter.id)),
        ("Reason", text(letter.reason.as_str())),
        ("Kind", text(&letter.fingerprint)),
        ("Target", text(&letter.target)),
        ("Failure", text(&letter.detail)),
    ];
    facts.extend(letter.push.map(|id| ("Push", story_of(id))));
    facts.extend(letter.notification.map(|id| ("Notification", story_of(id))));
    facts.extend(letter.subscription.map(|id| ("Subscription", subscription(id))));
    facts.extend(letter.reseller.as_ref().map(|name| ("Reseller", reseller(name))));
    times(
        &mut facts,
        frame,
        [
            ("Made", Some(letter.created_at)),
            ("Resolved", letter.resolved_at),
        ],
    );
    facts.extend(
        letter
            .job
            .map(|id| ("Job", link(&format!("/console/jobs/{id}"), &id.to_string()))),
    );
    facts
}

fn dead_letter(id: Uuid) -> Markup {
    link(&format!("/console/dead-letters/{id}"), &id.to_string())
}

fn times<const N: usize>(
    facts: &mut Vec<(&'static str, Markup)>,
    frame: &Frame,
    times: [(&'static str, Option<DateTime<Utc>>); N],
) {
    facts.extend(
        times
            .into_iter()
            .filter_map(|(name, at)| Some((name, frame.at(at?)))),
    );
}

fn letters(facts: &mut Vec<(&'static str, Markup)>, letters: &[DeadLetterView]) {
    facts.extend(
        letters
            .iter()
            .map(|letter| ("Dead letter", dead_letter(letter.id))),
    );
}

/// What can be done about it, as far as is known: the acts themselves look again.
fn forms(subject: &Subject, story: &Explanation, frame: &Frame) -> Vec<ActForm> {
    let said = |kind: &str| format!("One {kind}: {}, {}. {}", story.id, story.state, story.headline);
    let back = format!("/console/explain/{}", story.id);
    let (kind, claimed, letters) = match subject {
        Subject::Push(history) => ("push", history.push.claimed, &history.dead_letters),
        Subject::Notification(history) => ("notification", history.claimed, &history.dead_letters),
        Subject::Event(_) | Subject::Subscription(_) | Subject::UserAgent { .. } => return Vec::new(),
        Subject::DeadLetter { letter, .. } => return replay_form(letter, back, frame).into_iter().collect(),
    };
    // Both lanes have the same statuses.
    let ended = story.state.parse().is_ok_and(NotificationStatus::is_terminal);
    if !ended {
        let waits = story.state == NotificationStatus::Retry.as_str();
        let retry = waits.then(|| one_form((kind, story.id), said(kind), frame).in_dialog());
        let cancel = (!claimed).then(|| cancel_form((kind, story.id), said(kind), back, true, frame));
        return retry.into_iter().chain(cancel).collect();
    }
    let open = letters
        .iter()
        .rev()
        .find(|letter| letter.state == DeadLetterState::Open);
    open.and_then(|letter| replay_form(letter, back, frame))
        .into_iter()
        .collect()
}

/// The form to replay a dead letter, which the page about it takes; none of one that cannot be.
fn replay_form(letter: &DeadLetterView, back: String, frame: &Frame) -> Option<ActForm> {
    if letter.state != DeadLetterState::Open || letter.reason == DeadLetterReason::Malformed {
        return None;
    }
    let form = dead_letters::replay_form(letter, back, frame);
    let id = format!("replay-{}", letter.id);
    Some(ActForm { id, ..form }.in_dialog())
}

/// The icon of a line of a story.
pub(in crate::console) fn tone(line: &Line) -> &'static str {
    match line.code {
        "attempt-delivered" => "ok",
        "attempt-failed" => "warn",
        "notification" if line.params["status"] == NotificationStatus::Sent.as_str() => "ok",
        code if code.starts_with("dead-letter") => "bad",
        _ => "wait",
    }
}

/// A sentence of ours with links on the identifiers in it, and its times as the viewer's. The rest is text.
pub(in crate::console) fn linked(text: &str, frame: &Frame) -> Markup {
    let mut markup = String::with_capacity(text.len() * 2);
    let (mut at, mut done) = (0, 0);
    while at < text.len() {
        let piece = identifier_at(text, at).or_else(|| time_at(text, at, frame));
        let Some((length, piece)) = piece else {
            at += 1;
            continue;
        };
        markup.push_str(&escape(&visible(&text[done..at])));
        markup.push_str(&piece);
        at += length;
        done = at;
    }
    markup.push_str(&escape(&visible(&text[done..])));
    Markup(markup)
}

/// A link on the identifier that begins there, to what the words before it say that it is of.
fn identifier_at(text: &str, at: usize) -> Option<(usize, String)> {
    let id = text.get(at..at + ID_LENGTH)?;
    let uuid: Uuid = id.parse().ok().filter(|_| id.as_bytes().get(8) == Some(&b'-'))?;
    let is_inside = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let bytes = text.as_bytes();
    if at > 0 && is_inside(bytes.get(at - 1)) || is_inside(bytes.get(at + ID_LENGTH)) {
        return None;
    }
    let before = text[..at].trim_end();
    let place = if before.ends_with("subscription") || before.ends_with("for") {
        "subscriptions"
    } else if before.ends_with("dead letter") || before.contains("postrider dead-letters") {
        "dead-letters"
    } else if before.ends_with("job") {
        "jobs"
    } else {
        "explain"
    };
    let link = link(&format!("/console/{place}/{uuid}"), id);
    Some((ID_LENGTH, link.0))
}

/// The time that begins there, in the viewer's zone.
fn time_at(text: &str, at: usize, frame: &Frame) -> Option<(usize, String)> {
    let written = text.get(at..at + TIME_LENGTH)?;
    if !written.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let time = NaiveDateTime::parse_from_str(written, TIME).ok()?;
    Some((TIME_LENGTH, frame.at(time.and_utc()).to_string()))
}
