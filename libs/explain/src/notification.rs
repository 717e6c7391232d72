//! The story of a notification. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationStatus;
use domain::push::AttemptStatus;
use domain::quota::day_of;
use domain::reason::NotificationReason;
use domain::subscription::SubscriptionState;
use store::timeline::NotificationTimeline;

use crate::afterwards::Afterwards;
use crate::attempt::{attempted, cause_of, retried_at, said_of_attempt};
use crate::course::{Course, Due, Stop};
use crate::delay::{Cause, Delay, delay};
use crate::explanation::{
    Context, Explanation, Line, Next, after_pause, held_back, of_acts, of_dead_letters, of_pauses, open,
    possibly_sent, resume, sentence, stops_of,
};
use crate::item::{Item, last_failure};
use crate::quota_wait::QuotaWait;
use crate::reseller::Sentence;
use crate::words::{endpoint, number, of, waits};

/// What became of a notification.
pub fn describe(history: &NotificationTimeline, context: &Context) -> Explanation {
    let describer = Describer { history, context };
    let (headline, next) = describer.state();
    let of = (
        history.id.uuid(),
        "notification",
        history.status.as_str().to_owned(),
    );
    Explanation {
        story: describer.lines(),
        delay: describer.delay(),
        commands: describer.commands(),
        ..Explanation::new(of, headline, next)
    }
}

/// What is said of one that has to wait for the quota.
const DEFERRED: &str = "Was deferred: its subscription's daily quota was used up.";

/// That it has to wait, and for what.
fn waits_for(text: &'static str, reason: Option<&NotificationReason>) -> Sentence {
    Sentence::new("waits", text).with("reason", reason.map(ToString::to_string))
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
        if let Some(wait) = QuotaWait::of(it, &self.context.rules) {
            // When it was put in line is not kept: it is at once when what was accepted is first looked at.
            lines.push(Line::new(it.created_at, waits_for(DEFERRED, it.reason.as_ref())));
            lines.push(Line::new(wait.until, wait.said(true)));
        }
        lines.extend(
            it.history
                .iter()
                .map(|attempt| Line::new(attempt.started_at, said_of_attempt(attempt))),
        );
        lines.extend(of_dead_letters(&it.dead_letters));
        lines.extend(of_acts(&it.acts));
        lines.extend(of_pauses(&it.pauses, it.created_at, &it.dead_letters));
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
        let is_paused = !self.pauses().is_empty() || it.subscription.paused_at.is_some();
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
            was_delivered: it
                .history
                .iter()
                .any(|attempt| attempt.number <= it.resent_after && attempt.status == AttemptStatus::Ok),
        };
        let waits = match it.status {
            _ if it.finished_at.is_some() => self.had_waited(),
            _ if is_paused => "for the end of a pause",
            NotificationStatus::InMemory => "for its turn in the queue",
            status => waits(status.as_str(), reason),
        };
        let attempts: Vec<_> = attempted(it, &self.context.rules).collect();
        let quota = QuotaWait::of(it, &self.context.rules).map(|wait| Stop {
            cause: Cause::Quota,
            from: it.created_at,
            until: Some(wait.until),
        });
        let stops: Vec<_> = stops_of(&it.pauses).chain(quota).collect();
        delay(&course, waits, &attempts, &stops, &it.dead_letters)
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
            (NotificationStatus::Scheduled, Some(NotificationReason::Quota)) => DEFERRED,
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
        let waits = waits_for(text, it.reason.as_ref());
        Some(Line::new(it.updated_at.max(it.created_at), waits))
    }

    /// The headline, and what happens next.
    fn state(&self) -> (Sentence, Next) {
        let it = self.history;
        match it.status {
            NotificationStatus::Sent => (self.delivered(), Next::some_time("done", "Nothing: it is done.")),
            NotificationStatus::Failed => {
                let begins = format!("Will not be sent again: attempt {}", it.attempts);
                (self.failed("failed", &begins), self.after_the_end())
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
    fn delivered(&self) -> Sentence {
        let it = self.history;
        if it.resend_ended_at().is_none() {
            let text = format!("The endpoint accepted it at attempt {}.", it.attempts);
            return Sentence::new("delivered", text).with("attempt", it.attempts);
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
        let attempt = it.accepted_at_attempt().unwrap_or(it.resent_after);
        let text = format!("It stays delivered: the endpoint accepted it at attempt {attempt}{when}. {why}");
        Sentence::new("stays-delivered", text)
            .with("attempt", attempt)
            .with("at", it.finished_at)
            .with("isCancelled", it.resend_cancellation().is_some())
    }

    /// What keeps everything of its subscription, or all of the lane, from being sent.
    fn obstacle(&self) -> Option<(Sentence, Next)> {
        let it = self.history;
        let subscription = &it.subscription;
        if subscription.deleted_at.is_some() || subscription.state == SubscriptionState::Deactivated {
            let how = if subscription.deleted_at.is_some() {
                "deleted"
            } else {
                "deactivated"
            };
            let text = format!(
                "Will not be sent: its subscription is {how} ({}).",
                subscription.reason
            );
            let next = "A retry-worker gives it up within a minute. A replay sends it when the subscription is active again.";
            return Some((
                Sentence::new(how, text).with("reason", subscription.reason.to_string()),
                Next::some_time("given-up", next),
            ));
        }
        let pauses = self.pauses();
        if let Some(mut headline) = held_back(&pauses) {
            let mut next = after_pause(&pauses, "that");
            if let Some(at) = subscription.paused_at {
                let when = self.context.when(at);
                let also = format!(" Its reseller has paused the subscription as well, {when}.");
                headline.text.push_str(&also);
                headline = headline.with("byResellerSince", at);
                next.at = None;
                next.text
                    .push_str(" Its reseller has to resume the subscription as well.");
            }
            return Some(self.also_in_line(headline, next));
        }
        if let Some(at) = subscription.paused_at {
            let text = format!(
                "Is held back: its reseller has paused the subscription, {}.",
                self.context.when(at)
            );
            let next = "It goes on when the reseller resumes the subscription, unless it is too old by then.";
            let headline = Sentence::new("paused-by-reseller", text).with("since", at);
            return Some(self.also_in_line(headline, Next::some_time("resumed-by-reseller", next)));
        }
        if subscription.state == SubscriptionState::PendingVerification {
            return Some((
                Sentence::new(
                    "unverified",
                    "Is held back: the endpoint of its subscription is not verified.",
                ),
                Next::some_time(
                    "verified",
                    "It goes on when the endpoint has answered its challenge.",
                ),
            ));
        }
        self.outage()
    }

    /// What is so of one that is paused, with the turn that it has to wait for besides where it is out of quota.
    fn also_in_line(&self, mut headline: Sentence, mut next: Next) -> (Sentence, Next) {
        let it = self.history;
        let is_out =
            it.status == NotificationStatus::Scheduled && it.reason == Some(NotificationReason::Quota);
        let due = it.next_attempt_at.filter(|at| is_out && *at > self.context.now);
        if let Some(due) = due {
            headline.text = format!("{} {}", headline.text, self.over_quota(due).text);
            let turn = format!(
                " It is not sent before its turn comes, at {}.",
                self.context.when(due)
            );
            next.text.push_str(&turn);
            next.at = next.at.map(|at| at.max(due));
        }
        (headline, next)
    }

    /// What is so while its subscription is sent nothing but probes.
    fn outage(&self) -> Option<(Sentence, Next)> {
        let class = self.history.subscription.withheld_for?;
        let next = Next::some_time(
            "released",
            "It is sent by itself when endpoints answer again, the oldest of each subscription first. No attempt is used up \
             meanwhile, and nothing is given up.",
        );
        let Some(hold) = self
            .context
            .holds
            .iter()
            .find(|hold| hold.class == class.as_str())
        else {
            let text =
                format!("Was held back because most endpoints failed in the class {class}; that is over.");
            let headline = Sentence::new("outage-over", text).with("class", class.as_str());
            return Some((headline, next));
        };
        let probes = of(hold.probes.unsigned_abs(), "probe has", "probes have");
        let text = sentence(&format!(
            "Is held back: most endpoints fail in the class {class} since {}, its own among them. {probes} been sent; the last \
             answer was: {}",
            self.context.when(hold.since),
            hold.last_answer
        ));
        let headline = Sentence::new("withheld", text)
            .with("class", class.as_str())
            .with("since", hold.since)
            .with("probes", hold.probes)
            .with("lastAnswer", &hold.last_answer);
        Some((headline, next))
    }

    /// The pauses by operators that concern it, the widest first.
    fn pauses(&self) -> Vec<&store::PauseView> {
        let it = self.history;
        self.context.pauses_of(&it.reseller, it.subscription.id)
    }

    fn scheduled(&self) -> (Sentence, Next) {
        let it = self.history;
        let due = it.next_attempt_at.unwrap_or(it.updated_at);
        let next = if due > self.context.now {
            Next::at(due, "queued", "The retry-worker puts it into the queue.")
        } else {
            Next::some_time(
                "queued-soon",
                "It is due: the retry-worker puts it into the queue within seconds, as soon as there is room.",
            )
        };
        if it.reason == Some(NotificationReason::Quota) {
            return (self.over_quota(due), next);
        }
        if it.reason == Some(NotificationReason::Postponed) {
            let text = format!(
                "Was put off for want of something of our own, without an attempt: {}.",
                self.context.when(due)
            );
            return (Sentence::new("postponed", text).with("at", due), next);
        }
        let rate = it
            .subscription
            .requests_per_second
            .or(self.context.rules.requests_per_second);
        let said = rate.map_or(String::new(), |rate| format!(", {}", number(rate.into())));
        let text = format!(
            "Waits in line for its subscription's requests per second{said}: its turn comes at {}.",
            self.context.when(due)
        );
        let headline = Sentence::new("rate", text)
            .with("perSecond", rate)
            .with("at", due);
        (headline, next)
    }

    /// When the day that was charged last lies ahead, by a clock that was wrong, today has nothing left.
    fn over_quota(&self, due: DateTime<Utc>) -> Sentence {
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
        let text = format!(
            "Waits in line until {day}: quota {} of {} used today. By the quota as it is now, its turn comes at {}.",
            number(used.into()),
            number(quota.into()),
            self.context.when(due)
        );
        Sentence::new("quota", text)
            .with("used", used)
            .with("quota", quota)
            .with("at", due)
    }

    fn pending(&self) -> (Sentence, Next) {
        let next = "The retry-worker puts it into the queue in the turn of its subscription.";
        let (code, text) = match &self.history.reason {
            Some(NotificationReason::Busy) => (
                "busy",
                "Waits because as many notifications of its subscription are being sent as may be at once.",
            ),
            Some(NotificationReason::Paused) => (
                "pause-over",
                "Was held back by a pause that has ended; it waits for room in the queue.",
            ),
            Some(NotificationReason::Unverified) => (
                "verified",
                "Was held back until its endpoint was verified; it waits for room in the queue.",
            ),
            _ => ("waits-room", "Waits for room in the queue."),
        };
        (Sentence::new(code, text), Next::some_time("queued-in-turn", next))
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

    fn in_memory(&self) -> (Sentence, Next) {
        self.item().in_memory(("The endpoint's answer", "retries"), || {
            self.obstacle().unwrap_or_else(|| {
                let since = self.history.updated_at;
                let text = format!("Is in the queue, since {}.", self.context.when(since));
                (
                    Sentence::new("in-queue", text).with("since", since),
                    Next::some_time("sent-in-turn", "It is sent in the turn of its subscription."),
                )
            })
        })
    }

    fn retry(&self) -> (Sentence, Next) {
        let it = self.history;
        let ahead = it.next_attempt_at.filter(|at| *at > self.context.now);
        if it.attempts == it.resent_after {
            let text = match ahead {
                Some(at) => format!(
                    "It was asked to be sent again, and is due at {}.",
                    self.context.when(at)
                ),
                None => "It was asked to be sent again, and is due.".to_owned(),
            };
            return (
                Sentence::new("resent", text).with("at", ahead),
                Next::some_time(
                    "queued-soon",
                    "The retry-worker puts it into the queue within seconds.",
                ),
            );
        }
        let retry = it.attempts - it.resent_after.min(it.attempts);
        let retries = it
            .subscription
            .retry_plan
            .retries(self.context.rules.delivery_retry.max_retries);
        let retries = retries.max(retry);
        let attempt = it.attempts;
        let (headline, next) = match ahead {
            Some(at) => {
                let when = self.context.when(at);
                let begins = format!("Retry {retry} of {retries} is at {when}: attempt {attempt}");
                (
                    self.failed("retry", &begins).with("at", at),
                    Next::at(at, "retried", "The retry-worker sends it again."),
                )
            }
            None => {
                let begins = format!("Retry {retry} of {retries} is due: attempt {attempt}");
                let next = "The retry-worker sends it again in the turn of its subscription.";
                (
                    self.failed("retry-due", &begins),
                    Next::some_time("retried-in-turn", next),
                )
            }
        };
        (headline.with("retry", retry).with("retries", retries), next)
    }

    fn given_up(&self) -> (Sentence, Next) {
        let it = self.history;
        let headline = match &it.reason {
            Some(NotificationReason::SubscriptionDeleted) => {
                Sentence::new("given-up-deleted", "Given up: its subscription was deleted.")
            }
            Some(NotificationReason::SubscriptionDeactivated) => Sentence::new(
                "given-up-deactivated",
                "Given up: its subscription was deactivated. A replay of the subscription sends it.",
            ),
            Some(NotificationReason::Expired) => {
                Sentence::new("given-up-expired", "Given up: it had waited for too long.")
            }
            Some(NotificationReason::Cancelled) => self.item().cancelled(),
            Some(reason) if reason.is_possibly_sent() => possibly_sent(),
            _ => {
                let attempts = of(it.attempts.into(), "attempt", "attempts");
                self.failed("given-up", &format!("Given up: the last of {attempts}"))
            }
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

    /// A headline that ends in what the last attempt failed for.
    fn failed(&self, code: &'static str, begins: &str) -> Sentence {
        let it = self.history;
        let failure = last_failure(&it.history, |attempt| {
            attempt.error_type.as_ref().map(|_| cause_of(attempt))
        });
        let mut latest = it.history.iter().rev();
        let last = latest.find(|attempt| attempt.error_type.is_some());
        Sentence::new(code, format!("{begins} {failure}"))
            .with("attempt", it.attempts)
            .with(
                "errorType",
                last.and_then(|attempt| attempt.error_type.as_deref()),
            )
            .with("status", last.and_then(|attempt| attempt.response_status))
    }

    fn commands(&self) -> Vec<String> {
        let it = self.history;
        let resume = self.pauses().into_iter().map(resume);
        let raise = (it.reason == Some(NotificationReason::Quota))
            .then(|| format!("postrider quotas set {} --daily-quota …", it.subscription.id));
        let waits = it.status == NotificationStatus::Retry && it.next_attempt_at > Some(self.context.now);
        let retry = waits.then(|| format!("postrider retry-now notification {}", it.id.uuid()));
        self.item().commands(resume.chain(raise).chain(retry))
    }
}
