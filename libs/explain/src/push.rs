//! The story of a push. Pure.

use chrono::{DateTime, Utc};
use domain::dead_letter::FailureClass;
use domain::push::{AttemptStatus, ErrorType, PushStatus, SendingWindow};
use domain::reason::PushReason;
use store::DeadLetterState;
use store::push::{Ahead, AttemptView, HoldPeriod, HoldView};
use store::timeline::PushTimeline;

use crate::course::{Attempted, Course, Due, Stop};
use crate::delay::{Cause, Delay, concerned, delay, given_up};
use crate::explanation::{
    Context, Explanation, Line, Next, after_pause, held_back, of_acts, of_dead_letters, of_pauses, open,
    possibly_sent, said_of, sentence, stops_of,
};
use crate::item::{Item, after, is_lost, last_failure};
use crate::reseller::Sentence;
use crate::words::{answer, length, of, time};

/// What became of a push.
pub fn describe(history: &PushTimeline, context: &Context) -> Explanation {
    let describer = Describer { history, context };
    let (headline, next) = describer.state();
    let of = (
        history.push.id.uuid(),
        "push",
        history.push.status.as_str().to_owned(),
    );
    Explanation {
        story: describer.lines(),
        delay: describer.delay(),
        commands: describer.commands(),
        ..Explanation::new(of, headline, next)
    }
}

struct Describer<'a> {
    history: &'a PushTimeline,
    context: &'a Context,
}

impl Describer<'_> {
    fn lines(&self) -> Vec<Line> {
        let push = &self.history.push;
        let prototype = push.message_prototype_key.as_deref();
        let prototype = prototype.map_or("without a prototype".to_owned(), |key| {
            format!("with the prototype {key}")
        });
        // What repeats as an expression is sent once all the same.
        let window = push.cron_expression.as_deref().map_or(String::new(), |cron| {
            let first = self
                .window()
                .and_then(|window| window.opens_at_or_after(push.created_at).ok());
            let first = first.map_or(String::new(), |at| format!(": {}", time(at)));
            let zone = self.context.rules.push_zone;
            format!(", to be sent once, at the first time of `{cron}` ({zone}) that it gets to{first}")
        });
        let text = format!("Accepted for {} {prototype}{window}.", push.platform);
        let accepted = Sentence::new("accepted", text)
            .with("platform", push.platform.as_str())
            .with("prototype", &push.message_prototype_key)
            .with("cronExpression", &push.cron_expression);
        let mut lines = vec![Line::new(push.created_at, accepted)];
        lines.extend(
            push.history
                .iter()
                .map(|attempt| Line::new(attempt.started_at, said_of_attempt(attempt, self.prototype()))),
        );
        lines.extend(of_dead_letters(&self.history.dead_letters));
        lines.extend(of_acts(&self.history.acts));
        lines.extend(of_pauses(
            &self.history.pauses,
            push.created_at,
            &self.history.dead_letters,
        ));
        lines.extend(self.past_holds());
        if push.status == PushStatus::Scheduled || push.status == PushStatus::Pending {
            lines.push(self.waiting());
        }
        lines.sort_by_key(|line| line.at);
        lines
    }

    fn delay(&self) -> Option<Delay> {
        let push = &self.history.push;
        let letters = self.history.dead_letters.iter();
        let replayed = letters.filter(|letter| letter.state == DeadLetterState::Replayed);
        let again_at = replayed.filter_map(|letter| letter.resolved_at).max();
        // An outage gives attempts back as a replay does, and what is given back is due at once.
        let is_forgiven =
            again_at.is_none() && push.reason != Some(PushReason::Replayed) && !self.history.holds.is_empty();
        let course = Course {
            accepted_at: push.created_at,
            began_as: "accepted",
            finished_at: push.finished_at,
            now: self.context.now,
            first: match push.cron_expression {
                // When its window opened is not recorded.
                Some(_) => Due::NotBefore(push.created_at),
                None => Due::At(push.created_at),
            },
            due_at: push.next_attempt_at,
            again_after: if is_forgiven { 0 } else { push.replayed_after },
            again_at,
            was_delivered: false,
        };
        let waits = match push.status {
            _ if push.finished_at.is_some() => "",
            PushStatus::Scheduled if push.next_attempt_at > Some(self.context.now) => {
                "for its sending window"
            }
            // What kept it back since it was due is told as that.
            PushStatus::Retry => "for another attempt",
            _ if self.stopped().is_some() => "while the lane sends nothing",
            _ => "for its turn in the queue",
        };
        let attempts: Vec<_> = push
            .history
            .iter()
            .map(|attempt| self.attempted(attempt, is_forgiven && attempt.number == push.replayed_after))
            .collect();
        let holds = self.history.holds.iter().map(|hold| Stop {
            cause: Cause::Held,
            from: hold.since,
            until: end_of_hold(hold),
        });
        let stops: Vec<_> = stops_of(&self.history.pauses).chain(holds).collect();
        delay(&course, waits, &attempts, &stops, &self.history.dead_letters)
    }

    fn attempted(&self, attempt: &AttemptView, is_forgiven: bool) -> Attempted {
        let ended_at = Attempted::end(attempt.started_at, attempt.millis);
        let retried_at = self.context.rules.push_retry.next_attempt_at(ended_at);
        Attempted {
            number: attempt.number,
            started_at: attempt.started_at,
            millis: attempt.millis,
            goes_on: attempt.status == AttemptStatus::InProcess && attempt.millis.is_none(),
            next: Due::At(if is_forgiven || attempt.millis.is_none() {
                ended_at
            } else {
                retried_at
            }),
        }
    }

    /// The outages that are over; one that is in force is the headline's.
    fn past_holds(&self) -> impl Iterator<Item = Line> {
        let push = &self.history.push;
        let given_up = given_up(&self.history.dead_letters);
        self.history.holds.iter().filter_map(move |hold| {
            let until = end_of_hold(hold)?;
            if !concerned(&given_up, (hold.since, until)) {
                return None;
            }
            let probes = of(hold.probes.unsigned_abs(), "probe", "probes");
            let (from, to, answer) = (time(hold.since), time(until), &hold.last_answer);
            let held = format!("Swrve was out of order and the lane held from {from} to {to}, with {probes}");
            let text = sentence(&format!("{held}; the last failure was: {answer}"));
            let said = Sentence::new("held", text)
                .with("from", hold.since)
                .with("to", until)
                .with("probes", hold.probes)
                .with("lastAnswer", answer);
            Some(Line::new(hold.since.max(push.created_at), said))
        })
    }

    fn waiting(&self) -> Line {
        let push = &self.history.push;
        let at = push.updated_at.max(push.created_at);
        let is_held_back = || {
            let pause = self.context.pause("lane", "push");
            let mut pauses = self.history.pauses.iter();
            pause.is_some_and(|pause| pause.paused_at <= at)
                || pauses
                    .any(|pause| pause.paused_at <= at && pause.resumed_at.is_none_or(|ended| at < ended))
        };
        let (code, text) = match (push.status, push.history.last()) {
            (PushStatus::Scheduled, _) => ("waits-window", "Began to wait for its sending window."),
            _ if is_held_back() => ("waits-paused", "Was held back: the lane was paused."),
            (_, None) => (
                "waits-room",
                "Found no room in the queue and began to wait for it.",
            ),
            (_, Some(_)) => (
                "waits-room",
                "Began to wait for room in the queue, to be sent again.",
            ),
        };
        Line::new(at, Sentence::new(code, text))
    }

    /// The headline, and what happens next.
    fn state(&self) -> (Sentence, Next) {
        let push = &self.history.push;
        match push.status {
            PushStatus::Scheduled => self.scheduled(),
            PushStatus::Pending => self.pending(),
            PushStatus::InMemory => self.in_memory(),
            PushStatus::Retry => self.retry(),
            PushStatus::Sent => {
                let text = format!("Swrve accepted it at attempt {}.", push.attempts);
                let headline = Sentence::new("delivered", text).with("attempt", push.attempts);
                (headline, Next::some_time("done", "Nothing: it is done."))
            }
            PushStatus::Failed => {
                let begins = format!("Will not be sent: attempt {}", push.attempts);
                (self.failed("failed", &begins), self.after_the_end())
            }
            PushStatus::GivenUp => self.given_up(),
        }
    }

    fn scheduled(&self) -> (Sentence, Next) {
        let due = self.history.push.next_attempt_at;
        let is_ahead = due.is_some_and(|at| at > self.context.now);
        if !is_ahead && let Some(paused) = self.paused() {
            return paused;
        }
        match due {
            Some(at) if is_ahead => {
                let text = format!(
                    "Waits for its sending window, which opens at {}, and is sent once.{}",
                    self.context.when(at),
                    self.paused_besides(),
                );
                let next = "The retry-worker puts it into the queue, and it is sent if its window is still open then.";
                (
                    Sentence::new("waits-window", text).with("at", at),
                    Next::at(at, "queued-in-window", next),
                )
            }
            _ => (
                Sentence::new(
                    "window-open",
                    "Its sending window is open; it waits to be put into the queue.",
                ),
                Next::some_time(
                    "queued-soon",
                    "The retry-worker puts it into the queue within seconds, as soon as there is room.",
                ),
            ),
        }
    }

    fn pending(&self) -> (Sentence, Next) {
        if let Some(paused) = self.stopped() {
            return paused;
        }
        let push = &self.history.push;
        let why = if self.history.push.reason == Some(PushReason::Replayed)
            && push.replayed_after == push.attempts
        {
            Sentence::new("replayed", "It was replayed and waits for room in the queue")
        } else if push.history.is_empty() {
            Sentence::new("waits-room", "Waits for room in the queue")
        } else {
            let begins = format!(
                "Waits for room in the queue, to be sent again: attempt {}",
                push.attempts
            );
            self.failed("waits-room-again", &begins)
        };
        let mut headline = self.with_place(why);
        headline.text = sentence(&headline.text);
        let next = "The retry-worker puts it into the queue as soon as there is room, the oldest first.";
        (headline, self.within_window(Next::some_time("queued", next)))
    }

    /// The same with how many are before it, and how long that takes at the pace of the lane, which it never exceeds and does not always reach.
    fn with_place(&self, mut said: Sentence) -> Sentence {
        let Some(Ahead { pushes, are_all }) = self.history.ahead.filter(|ahead| ahead.pushes > 0) else {
            return said;
        };
        let pace = self.context.rules.push_pace;
        let takes = length(pace.saturating_mul(u32::try_from(pushes).unwrap_or(u32::MAX)));
        let (more, least) = if are_all {
            ("", "at least")
        } else {
            ("more than ", "more than")
        };
        let counted = of(pushes, "push is", "pushes are");
        said.text.push_str(&format!(
            "; {more}{counted} before it, which takes {least} {takes}"
        ));
        said.with("ahead", pushes).with("aheadAreAll", are_all)
    }

    fn item(&self) -> Item<'_> {
        let push = &self.history.push;
        Item {
            kind: "push",
            id: push.id.uuid(),
            attempts: push.attempts,
            claimed: push.claimed,
            leased_until: push.leased_until,
            is_terminal: push.status.is_terminal(),
            dead_letters: &self.history.dead_letters,
            acts: &self.history.acts,
            context: self.context,
        }
    }

    fn in_memory(&self) -> (Sentence, Next) {
        let push = &self.history.push;
        let is_sent = push.claimed && push.leased_until.is_none_or(|until| until >= self.context.now);
        if let (true, Some(hold)) = (is_sent, self.hold()) {
            let since = self.context.when(hold.since);
            let text =
                format!("Is being sent as a probe: Swrve is out of order, and the lane held, since {since}.");
            let headline = Sentence::new("probe", text)
                .with("attempt", push.attempts)
                .with("since", hold.since);
            let next = "Swrve's answer decides: when it accepts this push, all others follow; else this one waits again, and no attempt is used up.";
            return (headline, Next::some_time("probe-decides", next));
        }
        self.item().in_memory(("Swrve's answer", "attempts"), || {
            self.stopped().unwrap_or_else(|| {
                let since = push.updated_at;
                let text = format!("Is in the queue, since {}", self.context.when(since));
                let mut headline = self.with_place(Sentence::new("in-queue", text).with("since", since));
                headline.text.push('.');
                let next = "The dispatcher that leads sends it when its turn comes.";
                (
                    headline,
                    self.within_window(Next::some_time("sent-in-turn", next)),
                )
            })
        })
    }

    fn retry(&self) -> (Sentence, Next) {
        if let Some(paused) = self.stopped() {
            return paused;
        }
        let push = &self.history.push;
        let tried = push.attempts - push.replayed_after.min(push.attempts);
        let allowed = self.context.rules.push_retry.max_attempts.max(tried);
        let (headline, next) = match push.next_attempt_at.filter(|at| *at > self.context.now) {
            Some(at) => {
                let when = self.context.when(at);
                let begins = format!("Is tried again at {when}: attempt {tried} of {allowed}");
                let next = "The retry-worker puts it into the queue again.";
                (
                    self.failed("retry", &begins).with("at", at),
                    Next::at(at, "queued-again", next),
                )
            }
            None => {
                let begins = format!("Is due to be tried again: attempt {tried} of {allowed}");
                let next = "The retry-worker puts it into the queue as soon as there is room.";
                (
                    self.failed("retry-due", &begins),
                    Next::some_time("queued-again", next),
                )
            }
        };
        let headline = headline.with("attempt", tried).with("attempts", allowed);
        (headline, self.within_window(next))
    }

    fn given_up(&self) -> (Sentence, Next) {
        let push = &self.history.push;
        if self.history.push.reason == Some(PushReason::Cancelled) {
            return (self.item().cancelled(), not_sent());
        }
        let letter = self.history.dead_letters.last();
        if letter.is_some_and(|letter| FailureClass::of(&letter.fingerprint) == FailureClass::PossiblySent) {
            return (possibly_sent(), self.after_the_end());
        }
        let attempts = of(push.attempts.into(), "attempt", "attempts");
        let begins = format!("Given up: the last of {attempts}");
        (self.failed("given-up", &begins), self.after_the_end())
    }

    fn after_the_end(&self) -> Next {
        match open(&self.history.dead_letters) {
            Some(letter) => {
                let text = "Nothing, until an operator replays or discards its dead letter.";
                Next::some_time("dead-letter", text).with("deadLetter", letter.id)
            }
            None => not_sent(),
        }
    }

    /// What is so while the lane is paused.
    fn paused(&self) -> Option<(Sentence, Next)> {
        let pauses = [self.context.pause("lane", "push")?];
        let mut next = after_pause(&pauses, "the lane");
        if self.hold().is_some() {
            next.at = None;
            let also = " Swrve is out of order as well, and it is sent when Swrve works again.";
            next.text.push_str(also);
        }
        Some((held_back(&pauses)?, next))
    }

    /// A further sentence about what waits for something else first.
    fn paused_besides(&self) -> String {
        let pause = self.context.pause("lane", "push");
        pause.map_or(String::new(), |pause| {
            sentence(&format!(" Nothing is sent meanwhile: {}", said_of(pause)))
        })
    }

    /// What is so while the lane is paused, or held because Swrve is out of order.
    fn stopped(&self) -> Option<(Sentence, Next)> {
        self.paused().or_else(|| self.held())
    }

    fn hold(&self) -> Option<&HoldView> {
        let held = |hold: &&HoldView| hold.class == store::push::SWRVE && hold.answered_at.is_none();
        self.context.holds.iter().find(held)
    }

    fn held(&self) -> Option<(Sentence, Next)> {
        let hold = self.hold()?;
        let probes = of(hold.probes.unsigned_abs(), "probe has", "probes have");
        let text = sentence(&format!(
            "Is held back: Swrve is out of order since {}. {probes} failed; its last answer was: {}",
            self.context.when(hold.since),
            hold.last_answer
        ));
        let headline = Sentence::new("held", text)
            .with("since", hold.since)
            .with("probes", hold.probes)
            .with("lastAnswer", &hold.last_answer);
        let next = "It is sent by itself when Swrve works again, the oldest push first. No attempt is used up meanwhile.";
        Some((headline, self.within_window(Next::some_time("released", next))))
    }

    /// The same, if it may be sent now; else also when it may.
    fn within_window(&self, next: Next) -> Next {
        let Some(window) = self.window() else { return next };
        if window.is_open(self.context.now, self.context.rules.window_grace) {
            return next;
        }
        match window.opens_at_or_after(self.context.now) {
            Ok(opens) => Next {
                at: Some(opens),
                text: format!(
                    "{} Its sending window opens at {}.",
                    next.text,
                    self.context.when(opens)
                ),
                ..next.with("windowOpensAt", opens)
            },
            Err(_) => Next {
                at: None,
                text: format!("{} Its sending window never opens again.", next.text),
                ..next.with("windowOpensAt", None::<DateTime<Utc>>)
            },
        }
    }

    fn window(&self) -> Option<SendingWindow> {
        let cron = self.history.push.cron_expression.as_deref()?;
        SendingWindow::parse(cron, self.context.rules.push_zone).ok()
    }

    fn prototype(&self) -> Option<&str> {
        self.history.push.message_prototype_key.as_deref()
    }

    /// A headline that ends in what the last attempt failed for.
    fn failed(&self, code: &'static str, begins: &str) -> Sentence {
        let push = &self.history.push;
        let failure = last_failure(&push.history, |attempt| {
            attempt.error_type.map(|_| cause(attempt, self.prototype()))
        });
        let mut latest = push.history.iter().rev();
        let last = latest.find(|attempt| attempt.error_type.is_some());
        Sentence::new(code, format!("{begins} {failure}"))
            .with("attempt", push.attempts)
            .with("errorType", last.and_then(|attempt| attempt.error_type))
            .with("status", last.and_then(|attempt| attempt.response_status))
            .with(
                "swrveErrorCode",
                last.and_then(|attempt| attempt.swrve_error_code),
            )
    }

    fn commands(&self) -> Vec<String> {
        let paused = self.context.pause("lane", "push");
        let resume = paused.map(|_| "postrider resume lane push".to_owned());
        let push = &self.history.push;
        let waits = push.status == PushStatus::Retry
            && push.next_attempt_at > Some(self.context.now)
            // The end of a pause or of an outage is what sends it, whenever it is due.
            && self.stopped().is_none();
        let retry = waits.then(|| format!("postrider retry-now push {}", push.id));
        self.item().commands(resume.into_iter().chain(retry))
    }
}

/// What follows for what is over.
fn not_sent() -> Next {
    Next::some_time("not-sent", "Nothing: it will not be sent.")
}

/// When Swrve worked again, of an outage that is over or being caught up with.
fn end_of_hold(hold: &HoldPeriod) -> Option<DateTime<Utc>> {
    hold.answered_at.or(hold.ended_at)
}

fn said_of_attempt(attempt: &AttemptView, prototype: Option<&str>) -> Sentence {
    let number = attempt.number;
    let took = after(attempt.millis);
    let said = match attempt.status {
        AttemptStatus::InProcess => Sentence::new("attempt-began", format!("Attempt {number} began.")),
        AttemptStatus::Ok => {
            let status = attempt.response_status;
            let with = status.map_or(String::new(), |status| format!(" with {status}"));
            let text = format!("Attempt {number}: Swrve accepted it{with}{took}.");
            Sentence::new("attempt-delivered", text).with("status", status)
        }
        AttemptStatus::Error
            if attempt.error_type == Some(ErrorType::Other) && is_lost(attempt.other_error.as_deref()) =>
        {
            let text = format!(
                "Attempt {number} began, and its outcome was never recorded; it was rescued and may have been sent."
            );
            Sentence::new("attempt-lost", text)
        }
        AttemptStatus::Error => {
            let why = cause(attempt, prototype);
            let text = sentence(&format!("Attempt {number} failed{took}: {why}"));
            Sentence::new("attempt-failed", text)
                .with("errorType", attempt.error_type)
                .with("status", attempt.response_status)
                .with("swrveErrorCode", attempt.swrve_error_code)
                .with("swrveErrorMessage", &attempt.swrve_error_message)
                .with("otherError", &attempt.other_error)
        }
    };
    said.with("attempt", number).with("millis", attempt.millis)
}

fn cause(attempt: &AttemptView, prototype: Option<&str>) -> String {
    let message = attempt.swrve_error_message.as_deref();
    let why = message.map_or(String::new(), |message| format!(" ({message})"));
    match attempt.error_type {
        Some(ErrorType::MessagePrototypeKey) if prototype.is_none_or(|it| it.trim().is_empty()) => {
            "it names no message prototype, by which its Swrve push key would be found".to_owned()
        }
        Some(ErrorType::MessagePrototypeKey) => {
            "no Swrve push key is configured for its platform and prototype".to_owned()
        }
        Some(ErrorType::Swrve) => match answer(attempt.response_status, attempt.swrve_error_code, message) {
            Some(answer) => format!("Swrve answered {answer}"),
            None => format!("Swrve gave no answer{why}"),
        },
        Some(ErrorType::Other) | None => match &attempt.other_error {
            Some(error) => format!("on our side, {error}"),
            None => "on our side".to_owned(),
        },
    }
}
