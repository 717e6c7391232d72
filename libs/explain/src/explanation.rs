//! What is told of one thing, and what describing needs to know besides its rows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use config::Config;
use domain::notification::{RetryPlan, RetryPolicy};
use serde::Serialize;
use serde_json::{Map, Value};
use store::push::HoldView;
use store::{AuditView, DeadLetterState, DeadLetterView, PausePeriod, PauseView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::course::Stop;
use crate::delay::{Cause, Delay, concerned, given_up};
use crate::reseller::{Sentence, named};
use crate::words::{length, time, when};

/// What became of one thing, in sentences. The shape is documented in docs/cli.md and stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Story)]
pub struct Explanation {
    /// Its identifier.
    pub id: Uuid,
    /// `push`, `event`, `notification`, `deadLetter`, `subscription` or `userAgent`.
    #[schema(value_type = String, example = "push")]
    pub kind: &'static str,
    /// Where it stands: its status, as it is stored.
    #[schema(example = "RETRY")]
    pub state: String,
    /// The most important thing, in a sentence.
    #[schema(
        example = "Is tried again at 2026-11-21 12:01:30 UTC (in 30 s): attempt 2 of 5 failed with 503."
    )]
    pub headline: String,
    /// Which headline it is; stable.
    #[schema(value_type = String, example = "retry")]
    pub headline_code: &'static str,
    /// What the headline names, by the name of each part; times are RFC 3339.
    #[schema(value_type = Object)]
    pub headline_params: Map<String, Value>,
    /// What happened, in the order in which it did.
    pub story: Vec<Line>,
    /// What happens next.
    pub next: Next,
    /// Where the time of a push or a notification went; null when it took less than ten seconds.
    pub delay: Option<Delay>,
    /// Commands that help, or show more.
    pub commands: Vec<String>,
}

impl Explanation {
    /// How it stands with what has this identifier, kind and state; what happened, the delay and the commands are still to be added.
    pub(crate) fn new(
        (id, kind, state): (Uuid, &'static str, String),
        headline: Sentence,
        next: Next,
    ) -> Self {
        let Sentence { code, params, text } = headline;
        Self {
            id,
            kind,
            state,
            headline: text,
            headline_code: code,
            headline_params: params,
            story: Vec::new(),
            next,
            delay: None,
            commands: Vec::new(),
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = StoryLine)]
pub struct Line {
    /// When.
    pub at: DateTime<Utc>,
    /// Which sentence it is; stable.
    #[schema(value_type = String, example = "attempt-failed")]
    pub code: &'static str,
    /// What it names, by the name of each part; times are RFC 3339.
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// What.
    #[schema(example = "Attempt 2 failed after 31 ms: Swrve answered 503 Service Unavailable.")]
    pub text: String,
}

impl Line {
    pub(crate) fn new(at: DateTime<Utc>, said: Sentence) -> Self {
        let Sentence { code, params, text } = said;
        Self {
            at,
            code,
            params,
            text,
        }
    }
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = StoryNext)]
pub struct Next {
    /// When; null when that depends on something else than time.
    pub at: Option<DateTime<Utc>>,
    /// Which sentence it is; stable.
    #[schema(value_type = String, example = "queued")]
    pub code: &'static str,
    /// What it names, by the name of each part; times are RFC 3339.
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// What.
    #[schema(example = "The retry-worker puts it into the queue again.")]
    pub text: String,
}

impl Next {
    /// Something that is not a matter of time.
    pub(crate) fn some_time(code: &'static str, text: impl Into<String>) -> Self {
        Self {
            at: None,
            code,
            params: Map::new(),
            text: text.into(),
        }
    }

    pub(crate) fn at(at: DateTime<Utc>, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            ..Self::some_time(code, text)
        }
    }

    /// The same, which names this.
    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        named(&mut self.params, name, value);
        self
    }
}

/// What describing needs to know besides the rows.
#[derive(Debug, Clone)]
pub struct Context {
    /// The present time.
    pub now: DateTime<Utc>,
    /// Everything that operators have paused.
    pub pauses: Vec<PauseView>,
    /// What is held because what it goes to is out of order.
    pub holds: Vec<HoldView>,
    /// What is configured.
    pub rules: Rules,
}

/// What is configured and decides what comes next.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(crate) push_retry: domain::push::RetryPolicy,
    /// The least time between two pushes.
    pub(crate) push_pace: Duration,
    pub(crate) push_zone: Tz,
    /// For how long a push may still be sent after its window.
    pub(crate) window_grace: Duration,
    /// Further attempts of a notification after its first, by the short plan.
    pub(crate) delivery_retry: RetryPolicy,
    /// For how long a notification may wait until it is given up.
    pub(crate) delivery_max_age: Duration,
    pub(crate) daily_quota: u32,
    /// Whether what an outage gave up is sent again by itself, where the subscription does not say.
    pub(crate) after_outage: bool,
    pub(crate) requests_per_second: Option<u32>,
    pub(crate) quota_zone: Tz,
}

impl From<&Config> for Rules {
    fn from(config: &Config) -> Self {
        let (push, reseller) = (&config.push, &config.reseller);
        Self {
            push_retry: domain::push::RetryPolicy {
                delay: push.retry.delay,
                max_attempts: push.retry.max_attempts,
            },
            push_pace: config.swrve.delay,
            push_zone: push.time_zone,
            window_grace: push.cron.grace,
            delivery_retry: RetryPolicy {
                max_retries: reseller.retry.max_retries,
                initial_delay: reseller.retry.initial_delay,
                max_delay: reseller.retry.max_delay,
                max_retry_after: reseller.retry.max_retry_after,
            },
            delivery_max_age: reseller.delivery.max_age,
            daily_quota: reseller.subscription.daily_quota,
            after_outage: reseller.replay.after_outage,
            requests_per_second: reseller.subscription.requests_per_second,
            quota_zone: reseller.quota.time_zone,
        }
    }
}

impl Rules {
    /// After how long each retry of this plan is made, in words and without the chance in it: `30 s, 2 min and 8 min`. Nothing where there is none.
    pub fn retry_waits(&self, plan: RetryPlan) -> String {
        let waits: Vec<Duration> = self.delivery_retry.with(plan).delays().collect();
        let said = |same: &[Duration]| match same {
            [] => String::new(),
            [one] => length(*one),
            [one, ..] => format!("{} times {}", same.len(), length(*one)),
        };
        let mut parts: Vec<String> = waits.chunk_by(|one, next| one == next).map(said).collect();
        let last = parts.pop().unwrap_or_default();
        if parts.is_empty() {
            last
        } else {
            format!("{} and {last}", parts.join(", "))
        }
    }
}

impl Context {
    /// A time, absolute and relative.
    pub(crate) fn when(&self, at: DateTime<Utc>) -> String {
        when(at, self.now)
    }

    pub(crate) fn pause(&self, scope: &str, key: &str) -> Option<&PauseView> {
        let mut pauses = self.pauses.iter();
        pauses.find(|pause| pause.scope == scope && pause.key == key)
    }

    /// The pauses that hold this subscription of a reseller, the widest first.
    pub(crate) fn pauses_of(&self, reseller: &str, subscription: Uuid) -> Vec<&PauseView> {
        let pauses = [
            self.pause("lane", "reseller"),
            self.pause("reseller", reseller),
            self.pause("subscription", &subscription.to_string()),
        ];
        pauses.into_iter().flatten().collect()
    }
}

/// What `pause` means, as the end of a sentence. One whose note is not for the reader has none.
pub(crate) fn said_of(pause: &PauseView) -> String {
    let until = pause
        .until
        .map_or(String::new(), |until| format!(" until {}", time(until)));
    let said = format!(
        "the {} {} is paused by {} since {}{until}",
        pause.scope,
        pause.key,
        pause.paused_by,
        time(pause.paused_at)
    );
    if pause.note.is_empty() {
        said
    } else {
        format!("{said}: {}", pause.note)
    }
}

/// The same of all that hold one thing.
pub(crate) fn said_of_all(pauses: &[&PauseView]) -> String {
    let said: Vec<String> = pauses.iter().map(|pause| said_of(pause)).collect();
    // A note may be a sentence.
    said.join("; ").replace(".; ", "; ")
}

/// When what these pauses hold back goes on, as the end of a sentence: once the last of them has ended. `what` is what the only one is of.
pub(crate) fn end_of(pauses: &[&PauseView], what: &str) -> String {
    if let [pause] = pauses {
        let by_itself = pause.until.map_or(String::new(), |until| {
            format!(", or by itself at {}", time(until))
        });
        return format!("when {what} is resumed{by_itself}");
    }
    let ends = pauses.iter().map(|pause| {
        let how = pause.until.map_or("when it is resumed".to_owned(), |until| {
            format!("by itself at {}", time(until))
        });
        format!("that of the {} {} {how}", pause.scope, pause.key)
    });
    let ends: Vec<String> = ends.collect();
    format!("when all these pauses have ended: {}", ends.join(", "))
}

/// When the last of these pauses ends by itself; nothing where one of them does not.
pub(crate) fn ends_at(pauses: &[&PauseView]) -> Option<DateTime<Utc>> {
    let ends: Option<Vec<_>> = pauses.iter().map(|pause| pause.until).collect();
    ends?.into_iter().max()
}

/// What lets a pause end.
pub(crate) fn resume(pause: &PauseView) -> String {
    format!("postrider resume {} {}", pause.scope, pause.key)
}

/// The headline of what these pauses hold back, the widest first; nothing without one. It names the parts of the widest.
pub(crate) fn held_back(pauses: &[&PauseView]) -> Option<Sentence> {
    let pause = pauses.first()?;
    let text = sentence(&format!("Is held back: {}", said_of_all(pauses)));
    let said = Sentence::new("paused", text)
        .with("scope", &pause.scope)
        .with("key", &pause.key)
        .with("by", &pause.paused_by)
        .with("since", pause.paused_at)
        .with("until", pause.until)
        .with("note", &pause.note);
    Some(said)
}

/// What follows for what these pauses hold back, the widest first; `what` is what the only one is of.
pub(crate) fn after_pause(pauses: &[&PauseView], what: &str) -> Next {
    let text = format!("It goes on {}.", end_of(pauses, what));
    let widest = pauses.first();
    let next = Next::some_time("resumed", text)
        .with("scope", widest.map(|pause| &pause.scope))
        .with("key", widest.map(|pause| &pause.key));
    Next {
        at: ends_at(pauses),
        ..next
    }
}

/// What pauses kept from being sent meanwhile.
pub(crate) fn stops_of(pauses: &[PausePeriod]) -> impl Iterator<Item = Stop<Cause>> {
    pauses.iter().map(|pause| Stop {
        cause: Cause::Paused,
        from: pause.paused_at,
        until: pause.resumed_at,
    })
}

/// The pauses that are over, of what began at `since` and has these dead letters; one that is in force is the headline's.
pub(crate) fn of_pauses(
    pauses: &[PausePeriod],
    since: DateTime<Utc>,
    letters: &[DeadLetterView],
) -> impl Iterator<Item = Line> {
    let given_up = given_up(letters);
    pauses.iter().filter_map(move |pause| {
        let resumed_at = pause.resumed_at?;
        if !concerned(&given_up, (pause.paused_at, resumed_at)) {
            return None;
        }
        let note = match pause.note.as_str() {
            "" => String::new(),
            note => format!(": {note}"),
        };
        let text = sentence(&format!(
            "The {} was paused from {} to {} by {}{note}",
            pause.scope,
            time(pause.paused_at),
            time(resumed_at),
            pause.paused_by
        ));
        let said = Sentence::new("paused", text)
            .with("scope", &pause.scope)
            .with("from", pause.paused_at)
            .with("to", resumed_at)
            .with("by", &pause.paused_by)
            .with("note", &pause.note);
        Some(Line::new(pause.paused_at.max(since), said))
    })
}

/// What the dead letters of a thing tell of it.
pub(crate) fn of_dead_letters(letters: &[DeadLetterView]) -> Vec<Line> {
    let mut lines = Vec::new();
    for letter in letters {
        let text = format!(
            "It got the dead letter {} ({}, {}).",
            letter.id, letter.reason, letter.fingerprint
        );
        let said = Sentence::new("dead-letter", text)
            .with("deadLetter", letter.id)
            .with("reason", letter.reason.to_string())
            .with("fingerprint", &letter.fingerprint);
        lines.push(Line::new(letter.created_at, said));
        lines.extend(resolution(letter));
    }
    lines
}

/// How a dead letter was resolved, if it was. What makes one that is resolved from the beginning has the time of the act, which may be a little
/// before that of the letter: it got the letter first.
pub(crate) fn resolution(letter: &DeadLetterView) -> Option<Line> {
    let (at, by) = letter.resolved_at.zip(letter.resolved_by.as_deref())?;
    let (did, code) = if letter.state == DeadLetterState::Replayed {
        ("replayed", "dead-letter-replayed")
    } else {
        ("discarded", "dead-letter-discarded")
    };
    let job = letter
        .job
        .map_or(String::new(), |job| format!(" with the job {job}"));
    let note = letter
        .note
        .as_deref()
        .map_or(String::new(), |note| format!(": {note}"));
    let text = format!("{by} {did} the dead letter{job}{}", sentence(&note));
    let said = Sentence::new(code, text)
        .with("deadLetter", letter.id)
        .with("by", by)
        .with("job", letter.job)
        .with("note", &letter.note);
    Some(Line::new(at.max(letter.created_at), said))
}

/// What was done to it by hand, as the audit log has it.
pub(crate) fn of_acts<'a>(acts: impl IntoIterator<Item = &'a AuditView>) -> impl Iterator<Item = Line> {
    acts.into_iter().map(|act| {
        let note = act
            .note
            .as_deref()
            .map_or(String::new(), |note| format!(": {note}"));
        let text = format!("{} did {}{}", act.actor, act.action, sentence(&note));
        let said = Sentence::new("act", text)
            .with("by", &act.actor)
            .with("action", &act.action)
            .with("note", &act.note);
        Line::new(act.at, said)
    })
}

/// Of what a recovery after a restore has ended, and what is held or was discarded since.
pub(crate) const POSSIBLY_SENT: &str =
    "May have been sent: the database was restored to a moment at which it had not ended.";

/// The same as a headline.
pub(crate) fn possibly_sent() -> Sentence {
    Sentence::new("possibly-sent", POSSIBLY_SENT)
}

/// Text with a full stop, unless it has one.
pub(crate) fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// The open dead letter among those of a thing; the last one when there are several.
pub(crate) fn open(letters: &[DeadLetterView]) -> Option<&DeadLetterView> {
    letters
        .iter()
        .rev()
        .find(|letter| letter.state == DeadLetterState::Open)
}

/// The commands for an open dead letter.
pub(crate) fn resolve(letter: Uuid) -> [String; 3] {
    [
        format!("postrider dead-letters show {letter}"),
        format!("postrider dead-letters replay {letter}"),
        format!("postrider dead-letters discard {letter} --note '…'"),
    ]
}
