//! The story of a notification. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationStatus;
use domain::push::AttemptStatus;
use domain::quota::day_of;
use domain::reason::NotificationReason;
use domain::subscription::SubscriptionState;
use store::timeline::NotificationTimeline;

use crate::attempt::{cause_of, said_of_attempt};
use crate::course::{Attempted, Course, Due};
use crate::delay::{Delay, delay};
use crate::explanation::{
    Context, Explanation, Line, Next, POSSIBLY_SENT, Rules, after_pause, of_acts, of_dead_letters, of_pauses,
    open, said_of, sentence, stops_of,
};
use crate::item::{Item, last_failure};
use crate::reseller::Sentence;
use crate::words::{endpoint, number, of, waits};

/// What may still become of a notification that was not delivered and has ended, by how much that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Afterwards {
    /// Nothing: an operator has cancelled it.
    Cancelled,
    /// Its reseller may ask for it.
    Resend,
    /// The same, or an operator resolves its dead letter.
    DeadLetter,
    /// It is sent again when its endpoint works.
    ByItself,
}

impl Afterwards {
    /// `by_itself` says whether an outage gave it up and what that gives up is sent again.
    pub(crate) fn of(reason: Option<&NotificationReason>, by_itself: bool, has_dead_letter: bool) -> Self {
        match reason {
            Some(NotificationReason::Cancelled) => Self::Cancelled,
            _ if by_itself => Self::ByItself,
            _ if has_dead_letter => Self::DeadLetter,
            _ => Self::Resend,
        }
    }

    pub(crate) fn next(self) -> Next {
        Next::some_time(match self {
            Self::Cancelled => "Nothing: what was cancelled is not sent any more.",
            Self::Resend => "Nothing, unless its reseller asks for it again.",
            Self::DeadLetter => {
                "Nothing, until an operator replays or discards its dead letter, or its reseller asks for it."
            }
            Self::ByItself => {
                "Is sent again by itself within minutes after the endpoint has taken another one, three times at most."
            }
        })
    }
}

/// What became of a notification.
pub fn describe(history: &NotificationTimeline, context: &Context) -> Explanation {
    let describer = Describer { history, context };
    let (headline, next) = describer.state();
    Explanation {
        id: history.id.uuid(),
        kind: "notification",
        state: history.status.as_str().to_owned(),
        headline,
        story: describer.lines(),
        next,
        delay: describer.delay(),
        commands: describer.commands(),
    }
}

struct Describer<'a> {
    history: &'a NotificationTimeline,
    context: &'a Context,
}

impl Describer<'_> {
    fn lines(&self) -> Vec<Line> {
        let it = self.history;
        let event = it
            .event_id
            .as_deref()
            .map_or(String::new(), |id| format!(" {id}"));
        let replayed = it.replayed_event();
        let accepted = replayed.map(|at| {
            let text = "Its event was accepted, and nothing was made of it for this subscription.";
            Line::new(at, Sentence::new("accepted", text))
        });
        let mut lines: Vec<Line> = accepted.into_iter().collect();
        let (code, made) = match replayed {
            Some(_) => ("replayed", "Replayed: made"),
            None => ("made", "Made"),
        };
        let text = format!(
            "{made} of the event{event} ({}, {}) for the subscription {} of {} at {}.",
            it.event_type,
            it.event,
            it.subscription.id,
            it.reseller,
            endpoint(&it.subscription.url)
        );
        let made = Sentence::new(code, text)
            .with("eventId", &it.event_id)
            .with("event", it.event)
            .with("eventType", &it.event_type)
            .with("subscription", it.subscription.id)
            .with("reseller", &it.reseller);
        lines.push(Line::new(it.created_at, made));
        lines.extend(
            it.history
                .iter()
                .map(|attempt| Line::new(attempt.started_at, said_of_attempt(attempt))),
        );
        lines.extend(of_dead_letters(&it.dead_letters));
        lines.extend(of_acts(&it.acts));
        lines.extend(of_pauses(&it.pauses, it.created_at));
        if let Some(at) = it.resent_at {
            let text = "Sending it again was asked for; its attempts count from the beginning.";
            lines.push(Line::new(at, Sentence::new("resent", text)));
        }
        if let Some(at) = it.resend_ended_at() {
            let (code, text) = match it.resend_cancellation() {
                Some(_) => (
                    "resend-cancelled",
                    "Sending it again was cancelled; it stays delivered.",
                ),
                None => (
                    "resend-ended",
                    "It was not sent again after all; it stays delivered.",
                ),
            };
            lines.push(Line::new(at, Sentence::new(code, text)));
        }
        lines.extend(self.waiting());
        lines.sort_by_key(|line| line.at);
        lines
    }

    fn delay(&self) -> Option<Delay> {
        let it = self.history;
        let is_paused = self.pause().is_some() || it.subscription.paused_at.is_some();
        let reason = it.reason.as_ref().map_or("", NotificationReason::as_str);
        let course = Course {
            accepted_at: it.created_at,
            began_as: match it.replayed_event() {
                Some(_) => "replayed",
                None => "accepted",
            },
            finished_at: it.finished_at,
            now: self.context.now,
            first: Due::At(it.created_at),
            due_at: retried_at(it),
            again_after: it.resent_after,
            again_at: it.resent_at,
        };
        let waits = match it.status {
            _ if it.finished_at.is_some() => self.had_waited(),
            _ if is_paused => "for the end of a pause",
            NotificationStatus::InMemory => "for its turn in the queue",
            status => waits(status.as_str(), reason),
        };
        let attempts: Vec<_> = attempted(it, &self.context.rules).collect();
        let stops: Vec<_> = stops_of(&it.pauses).collect();
        delay(&course, waits, &attempts, &stops)
    }

    /// What it had waited for when it ended, as far as that is known: its end has taken the place of the reason.
    fn had_waited(&self) -> &'static str {
        let (it, rules) = (self.history, &self.context.rules);
        let mut acts = it.acts.iter().rev();
        let cancel = acts.find(|act| act.action == "notification.cancel");
        let in_line =
            cancel.is_some_and(|act| act.details["status"] == NotificationStatus::Scheduled.as_str());
        let quota = it.subscription.daily_quota.unwrap_or(rules.daily_quota);
        let used_up = it.finished_at.is_some_and(|at| {
            let day = day_of(at, rules.quota_zone);
            it.subscription.budget_day == Some(day) && it.subscription.budget_used >= Some(quota)
        });
        match (in_line, used_up) {
            (true, true) => "in line, on a day whose quota is used up",
            (true, false) => "in line",
            (false, true) => "on a day whose quota is used up",
            (false, false) => "",
        }
    }

    /// Since when it waits, for what is not told by an attempt.
    fn waiting(&self) -> Option<Line> {
        let it = self.history;
        let text = match (it.status, &it.reason) {
            (NotificationStatus::Scheduled, Some(NotificationReason::Quota)) => {
                "Was deferred: its subscription's daily quota was used up."
            }
            (NotificationStatus::Scheduled, Some(NotificationReason::Postponed)) => {
                "Was put off: a process of ours had no descriptor, port, memory, route or resolver for it."
            }
            (NotificationStatus::Scheduled, _) => "Waits for the requests per second.",
            (NotificationStatus::Pending, Some(NotificationReason::Busy)) => {
                "Gave way: its subscription had its share of the engine."
            }
            (NotificationStatus::Pending | NotificationStatus::Retry, Some(NotificationReason::Withheld)) => {
                "Was held back: most endpoints failed in one way at once, its own among them."
            }
            (NotificationStatus::Pending, Some(NotificationReason::Paused)) => {
                "Was held back: its subscription was paused."
            }
            (NotificationStatus::Pending, Some(NotificationReason::Unverified)) => {
                "Was held back: its endpoint is not verified."
            }
            (NotificationStatus::Pending, _) => "Began to wait for room in the queue.",
            _ => return None,
        };
        let waits = Sentence::new("waits", text).with("reason", it.reason.as_ref().map(ToString::to_string));
        Some(Line::new(it.updated_at.max(it.created_at), waits))
    }

    /// The headline, and what happens next.
    fn state(&self) -> (String, Next) {
        let it = self.history;
        match it.status {
            NotificationStatus::Sent => (self.delivered(), Next::some_time("Nothing: it is done.")),
            NotificationStatus::Failed => {
                let headline = format!(
                    "Will not be sent again: attempt {} {}",
                    it.attempts,
                    self.last_failure()
                );
                (headline, self.after_the_end())
            }
            NotificationStatus::GivenUp => self.given_up(),
            NotificationStatus::InMemory => self.in_memory(),
            NotificationStatus::Scheduled | NotificationStatus::Pending | NotificationStatus::Retry => {
                self.obstacle().unwrap_or_else(|| match it.status {
                    NotificationStatus::Scheduled => self.scheduled(),
                    NotificationStatus::Pending => self.pending(),
                    _ => self.retry(),
                })
            }
        }
    }

    /// That it was delivered, and why it was not sent again.
    fn delivered(&self) -> String {
        let it = self.history;
        if it.resend_ended_at().is_none() {
            return format!("The endpoint accepted it at attempt {}.", it.attempts);
        }
        let why = match it.resend_cancellation() {
            Some(_) => sentence(&format!(
                "Sending it again was cancelled{}",
                self.item().cancelled_by()
            )),
            None => "It was not sent again after all: it had waited for too long, or its subscription got nothing any more."
                .to_owned(),
        };
        let when = it
            .finished_at
            .map_or(String::new(), |at| format!(", {}", self.context.when(at)));
        format!(
            "It stays delivered: the endpoint accepted it at attempt {}{when}. {why}",
            it.accepted_at_attempt().unwrap_or(it.resent_after)
        )
    }

    /// What keeps everything of its subscription, or all of the lane, from being sent.
    fn obstacle(&self) -> Option<(String, Next)> {
        let it = self.history;
        let subscription = &it.subscription;
        if subscription.deleted_at.is_some() || subscription.state == SubscriptionState::Deactivated {
            let how = if subscription.deleted_at.is_some() {
                "deleted"
            } else {
                "deactivated"
            };
            return Some((
                format!(
                    "Will not be sent: its subscription is {how} ({}).",
                    subscription.reason
                ),
                Next::some_time(
                    "A retry-worker gives it up within a minute. A replay sends it when the subscription is active again.",
                ),
            ));
        }
        if let Some(pause) = self.pause() {
            return Some((
                sentence(&format!("Is held back: {}", said_of(pause))),
                after_pause(pause, "that"),
            ));
        }
        if let Some(at) = subscription.paused_at {
            return Some((
                format!(
                    "Is held back: its reseller has paused the subscription, {}.",
                    self.context.when(at)
                ),
                Next::some_time(
                    "It goes on when the reseller resumes the subscription, unless it is too old by then.",
                ),
            ));
        }
        if subscription.state == SubscriptionState::PendingVerification {
            return Some((
                "Is held back: the endpoint of its subscription is not verified.".to_owned(),
                Next::some_time("It goes on when the endpoint has answered its challenge."),
            ));
        }
        self.outage()
    }

    /// What is so while its subscription is sent nothing but probes.
    fn outage(&self) -> Option<(String, Next)> {
        let class = self.history.subscription.withheld_for?;
        let next = Next::some_time(
            "It is sent by itself when endpoints answer again, the oldest of each subscription first. No attempt is used up \
             meanwhile, and nothing is given up.",
        );
        let Some(hold) = self
            .context
            .holds
            .iter()
            .find(|hold| hold.class == class.as_str())
        else {
            let headline =
                format!("Was held back because most endpoints failed in the class {class}; that is over.");
            return Some((headline, next));
        };
        let probes = of(hold.probes.unsigned_abs(), "probe has", "probes have");
        let headline = sentence(&format!(
            "Is held back: most endpoints fail in the class {class} since {}, its own among them. {probes} been sent; the last \
             answer was: {}",
            self.context.when(hold.since),
            hold.last_answer
        ));
        Some((headline, next))
    }

    /// The widest pause that concerns it.
    fn pause(&self) -> Option<&store::PauseView> {
        let it = self.history;
        self.context.pause_of(&it.reseller, it.subscription.id)
    }

    fn scheduled(&self) -> (String, Next) {
        let it = self.history;
        let due = it.next_attempt_at.unwrap_or(it.updated_at);
        let next = if due > self.context.now {
            Next::at(due, "The retry-worker puts it into the queue.")
        } else {
            Next::some_time(
                "It is due: the retry-worker puts it into the queue within seconds, as soon as there is room.",
            )
        };
        if it.reason == Some(NotificationReason::Quota) {
            return (self.over_quota(due), next);
        }
        if it.reason == Some(NotificationReason::Postponed) {
            let headline = format!(
                "Was put off for want of something of our own, without an attempt: {}.",
                self.context.when(due)
            );
            return (headline, next);
        }
        let rate = it
            .subscription
            .requests_per_second
            .or(self.context.rules.requests_per_second);
        let rate = rate.map_or(String::new(), |rate| format!(", {}", number(rate.into())));
        let headline = format!(
            "Waits in line for its subscription's requests per second{rate}: its turn comes at {}.",
            self.context.when(due)
        );
        (headline, next)
    }

    /// When the day that was charged last lies ahead, by a clock that was wrong, today has nothing left.
    fn over_quota(&self, due: DateTime<Utc>) -> String {
        let subscription = &self.history.subscription;
        let today = day_of(self.context.now, self.context.rules.quota_zone);
        let quota = subscription.daily_quota.unwrap_or(self.context.rules.daily_quota);
        let used = match (subscription.budget_day, subscription.budget_used) {
            (Some(day), Some(used)) if day == today => used,
            (Some(day), _) if day < today => 0,
            _ => quota,
        };
        let day = match day_of(due, self.context.rules.quota_zone) {
            day if day <= today => "later today".to_owned(),
            day if day == today + TimeDelta::days(1) => "tomorrow".to_owned(),
            day => day.to_string(),
        };
        format!(
            "Waits in line until {day}: quota {} of {} used today. By the quota as it is now, its turn comes at {}.",
            number(used.into()),
            number(quota.into()),
            self.context.when(due)
        )
    }

    fn pending(&self) -> (String, Next) {
        let next = "The retry-worker puts it into the queue in the turn of its subscription.";
        let headline = match &self.history.reason {
            Some(NotificationReason::Busy) => {
                "Waits because as many notifications of its subscription are being sent as may be at once."
            }
            Some(NotificationReason::Paused) => {
                "Was held back by a pause that has ended; it waits for room in the queue."
            }
            Some(NotificationReason::Unverified) => {
                "Was held back until its endpoint was verified; it waits for room in the queue."
            }
            _ => "Waits for room in the queue.",
        };
        (headline.to_owned(), Next::some_time(next))
    }

    fn item(&self) -> Item<'_> {
        let it = self.history;
        Item {
            kind: "notification",
            id: it.id.uuid(),
            attempts: it.attempts,
            claimed: it.claimed,
            leased_until: it.leased_until,
            is_terminal: it.status.is_terminal(),
            dead_letters: &it.dead_letters,
            acts: &it.acts,
            context: self.context,
        }
    }

    fn in_memory(&self) -> (String, Next) {
        self.item().in_memory(("The endpoint's answer", "retries"), || {
            self.obstacle().unwrap_or_else(|| {
                let since = self.context.when(self.history.updated_at);
                (
                    format!("Is in the queue, since {since}."),
                    Next::some_time("It is sent in the turn of its subscription."),
                )
            })
        })
    }

    fn retry(&self) -> (String, Next) {
        let it = self.history;
        if it.attempts == it.resent_after {
            let headline = match it.next_attempt_at.filter(|at| *at > self.context.now) {
                Some(at) => format!(
                    "It was asked to be sent again, and is due at {}.",
                    self.context.when(at)
                ),
                None => "It was asked to be sent again, and is due.".to_owned(),
            };
            return (
                headline,
                Next::some_time("The retry-worker puts it into the queue within seconds."),
            );
        }
        let retry = it.attempts - it.resent_after.min(it.attempts);
        let retries = it
            .subscription
            .retry_plan
            .retries(self.context.rules.delivery_retry.max_retries);
        let retries = retries.max(retry);
        let failure = self.last_failure();
        match it.next_attempt_at.filter(|at| *at > self.context.now) {
            Some(at) => (
                format!(
                    "Retry {retry} of {retries} is at {}: attempt {} {failure}",
                    self.context.when(at),
                    it.attempts
                ),
                Next::at(at, "The retry-worker sends it again."),
            ),
            None => (
                format!(
                    "Retry {retry} of {retries} is due: attempt {} {failure}",
                    it.attempts
                ),
                Next::some_time("The retry-worker sends it again in the turn of its subscription."),
            ),
        }
    }

    fn given_up(&self) -> (String, Next) {
        let it = self.history;
        let headline = match &it.reason {
            Some(NotificationReason::SubscriptionDeleted) => {
                "Given up: its subscription was deleted.".to_owned()
            }
            Some(NotificationReason::SubscriptionDeactivated) => {
                "Given up: its subscription was deactivated. A replay of the subscription sends it."
                    .to_owned()
            }
            Some(NotificationReason::Expired) => "Given up: it had waited for too long.".to_owned(),
            Some(NotificationReason::Cancelled) => self.item().cancelled(),
            Some(reason) if reason.is_possibly_sent() => POSSIBLY_SENT.to_owned(),
            _ => format!(
                "Given up: the last of {} {}",
                of(it.attempts.into(), "attempt", "attempts"),
                self.last_failure()
            ),
        };
        (headline, self.after_the_end())
    }

    fn after_the_end(&self) -> Next {
        let it = self.history;
        let switch = it.subscription.resend_after_outage;
        let by_itself = it.outage && switch.unwrap_or(self.context.rules.after_outage);
        let has_dead_letter = open(&it.dead_letters).is_some();
        Afterwards::of(it.reason.as_ref(), by_itself, has_dead_letter).next()
    }

    fn last_failure(&self) -> String {
        last_failure(&self.history.history, |attempt| {
            attempt.error_type.as_ref().map(|_| cause_of(attempt))
        })
    }

    fn commands(&self) -> Vec<String> {
        let it = self.history;
        let resume = self
            .pause()
            .map(|pause| format!("postrider resume {} {}", pause.scope, pause.key));
        let raise = (it.reason == Some(NotificationReason::Quota))
            .then(|| format!("postrider quotas set {} --daily-quota …", it.subscription.id));
        let waits = it.status == NotificationStatus::Retry && it.next_attempt_at > Some(self.context.now);
        let retry = waits.then(|| format!("postrider retry-now notification {}", it.id.uuid()));
        self.item().commands(resume.into_iter().chain(raise).chain(retry))
    }
}

/// When it is tried again, as it is recorded.
pub(crate) fn retried_at(it: &NotificationTimeline) -> Option<DateTime<Utc>> {
    it.next_attempt_at
        .filter(|_| it.status == NotificationStatus::Retry)
}

/// The attempts of a notification as far as they took time. By chance a retry is due somewhat earlier than is said here, so that no pause before
/// it is taken for the cause; how far an answer put it off is not recorded.
pub(crate) fn attempted(it: &NotificationTimeline, rules: &Rules) -> impl Iterator<Item = Attempted> {
    let policy = rules.delivery_retry.with(it.subscription.retry_plan);
    it.history.iter().map(move |attempt| {
        let ended_at = Attempted::end(attempt.started_at, attempt.millis);
        let before = if attempt.number > it.resent_after {
            it.resent_after
        } else {
            0
        };
        let retried_at = policy.next_attempt_at(ended_at, attempt.number - before, None, 1.0);
        Attempted {
            number: attempt.number,
            started_at: attempt.started_at,
            millis: attempt.millis,
            goes_on: attempt.status == AttemptStatus::InProcess && attempt.millis.is_none(),
            next: match (attempt.millis, attempt.response_status) {
                (None, _) => Due::At(ended_at),
                (Some(_), None) => Due::At(retried_at),
                (Some(_), Some(_)) => Due::NotBefore(retried_at),
            },
        }
    })
}
