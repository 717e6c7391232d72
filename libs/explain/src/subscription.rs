//! How it stands with a subscription: its state, whose pause holds it, what waits for it, and its limits. Pure.

mod story;

use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::quota::{Budget, day_of};
use domain::reason::NotificationReason;
use domain::subscription::{HeldBack, SubscriptionState};
use store::webhook::{StateEntry, SubscriptionView, WaitingSum};
use store::{AuditView, PauseView};

use crate::explanation::{Context, Explanation, Next, after_pause, held_back, resume, said_of_all, sentence};
use crate::reseller::{self, Sentence};
use crate::words::{number, of, waits};

pub use self::story::SAME_TIME;

/// What is read of a subscription.
#[derive(Debug, Clone)]
pub struct SubscriptionFacts {
    /// Itself.
    pub view: SubscriptionView,
    /// The states that it came to have, the newest first.
    pub states: Vec<StateEntry>,
    /// What the audit log says of its pauses, of those of its reseller, and of their ends, within [`SAME_TIME`] of one of these states; and the
    /// newest changes of its limits.
    pub acts: Vec<AuditView>,
    /// What waits for it.
    pub waiting: Vec<WaitingSum>,
    /// Up to how many were counted in each status.
    pub counted_up_to: u32,
    /// What was charged to a day, and the quota by which it was.
    pub budget: Option<(Budget, u32)>,
}

/// How it stands with a subscription.
pub fn describe(facts: &SubscriptionFacts, context: &Context) -> Explanation {
    let describer = Describer { facts, context };
    let view = &facts.view;
    let of = (view.id, "subscription", view.state.to_string());
    let headline = describer.with_limits(describer.with_waiting(describer.state()));
    Explanation {
        story: describer.lines(),
        commands: describer.commands(),
        ..Explanation::new(of, headline, describer.next())
    }
}

struct Describer<'a> {
    facts: &'a SubscriptionFacts,
    context: &'a Context,
}

impl Describer<'_> {
    /// The pauses by operators that hold it, the widest first.
    fn pauses(&self) -> Vec<&PauseView> {
        let view = &self.facts.view;
        self.context.pauses_of(&view.reseller, view.id)
    }

    fn is_paused(&self) -> bool {
        !self.pauses().is_empty() || self.facts.view.paused_at.is_some()
    }

    fn state(&self) -> Sentence {
        let view = &self.facts.view;
        if view.state == SubscriptionState::Deactivated {
            let text = format!(
                "Is deactivated since {}: {}. Nothing is sent to it.",
                self.context.when(view.state_changed_at),
                view.state_reason.said()
            );
            return Sentence::new("deactivated", text)
                .with("since", view.state_changed_at)
                .with("reason", view.state_reason.to_string());
        }
        let own = |at| format!("its reseller has paused it since {}", self.context.when(at));
        let pauses = self.pauses();
        match (held_back(&pauses), view.paused_at) {
            (Some(held), None) => held,
            (None, Some(at)) => {
                Sentence::new("paused-by-reseller", format!("Is held back: {}.", own(at))).with("since", at)
            }
            (Some(held), Some(at)) => {
                let text = format!(
                    "Is held back: {}, and {}",
                    own(at),
                    sentence(&said_of_all(&pauses))
                );
                let both = Sentence {
                    code: "paused-by-both",
                    text,
                    ..held
                };
                both.with("byResellerSince", at)
            }
            (None, None) => reseller::subscription(view, None, self.context.now),
        }
    }

    /// The same with how much waits for it, and for what.
    fn with_waiting(&self, mut said: Sentence) -> Sentence {
        let total: u64 = self.facts.waiting.iter().map(|sum| sum.count).sum();
        said.text.push(' ');
        said.text.push_str(&self.waiting(total));
        said.with("waiting", total)
    }

    fn waiting(&self, total: u64) -> String {
        let waiting = &self.facts.waiting;
        if total == 0 {
            return "Nothing waits for it.".to_owned();
        }
        let in_status = |status: NotificationStatus| {
            let sums = waiting.iter().filter(move |sum| sum.status == status);
            sums.map(|sum| sum.count).sum::<u64>()
        };
        let statuses = [
            NotificationStatus::Scheduled,
            NotificationStatus::Pending,
            NotificationStatus::Retry,
        ];
        let are_more = |status: NotificationStatus| in_status(status) >= u64::from(self.facts.counted_up_to);
        let least = if statuses.into_iter().any(are_more) {
            "At least "
        } else {
            ""
        };
        let count = of(total, "notification waits", "notifications wait");
        if self.is_paused() {
            return format!("{least}{count} for the end of that.");
        }
        let mut parts: Vec<(&str, u64)> = Vec::new();
        for sum in waiting {
            let held = HeldBack {
                paused_by: None,
                is_unverified: self.facts.view.state == SubscriptionState::PendingVerification,
            };
            let reason = NotificationReason::told(sum.reason.clone(), sum.status, held);
            let reason = reason.as_ref().map_or("", NotificationReason::as_str);
            let what = waits(sum.status.as_str(), reason);
            match parts.iter_mut().find(|(known, _)| *known == what) {
                Some((_, count)) => *count += sum.count,
                None => parts.push((what, sum.count)),
            }
        }
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(what, count)| format!("{} {what}", number(count)))
            .collect();
        format!("{least}{count}: {}.", parts.join(", "))
    }

    /// The same with its limits.
    fn with_limits(&self, mut said: Sentence) -> Sentence {
        let (view, rules) = (&self.facts.view, &self.context.rules);
        let (daily, used) = self.quota();
        let per_second = view.requests_per_second.or(rules.requests_per_second);
        let rate = per_second.map_or(String::new(), |rate| {
            format!("; at most {} a second", of(rate.into(), "attempt", "attempts"))
        });
        said.text.push_str(&format!(
            " Of its daily quota of {} it has used {} today{rate}.",
            number(daily.into()),
            number(used)
        ));
        said.with("dailyQuota", daily)
            .with("usedToday", used)
            .with("perSecond", per_second)
    }

    /// Its daily quota, and what it has used of it today.
    fn quota(&self) -> (u32, u64) {
        let rules = &self.context.rules;
        let daily = self.facts.view.daily_quota.unwrap_or(rules.daily_quota);
        let today = day_of(self.context.now, rules.quota_zone);
        let budget = self.facts.budget;
        let used = budget.map_or(0, |(budget, quota)| budget.used_on(today, quota, daily));
        (daily, used)
    }

    /// What follows for one that these pauses hold, with what keeps it from being sent to after their end.
    fn after(&self, pauses: &[&PauseView]) -> Next {
        let what = pauses.first();
        let what = what.map_or(String::new(), |pause| {
            format!("the {} {}", pause.scope, pause.key)
        });
        let mut next = after_pause(pauses, &what);
        if self.facts.view.paused_at.is_some() {
            next.at = None;
            next.text.push_str(" Its reseller has to resume it as well.");
        }
        let (daily, used) = self.quota();
        if used >= u64::from(daily) {
            let zone = self.context.rules.quota_zone;
            let today = day_of(self.context.now, zone);
            next.at = next.at.filter(|at| day_of(*at, zone) > today);
            next.text.push_str(" Its daily quota is used up for today.");
        }
        next
    }

    fn next(&self) -> Next {
        let view = &self.facts.view;
        if view.state == SubscriptionState::Deactivated {
            return Next::some_time("activated", "Nothing, until its reseller activates it.");
        }
        let pauses = self.pauses();
        if !pauses.is_empty() {
            return self.after(&pauses);
        }
        if view.paused_at.is_some() {
            return Next::some_time("resumed-by-reseller", "It goes on when its reseller resumes it.");
        }
        if view.state == SubscriptionState::PendingVerification {
            return match view.verification_due_at {
                Some(at) => Next::at(at, "challenged", "Its endpoint is challenged."),
                None => Next::some_time(
                    "challenged-on-request",
                    "Its endpoint is challenged when its reseller asks for it.",
                ),
            };
        }
        let ahead = self.facts.waiting.iter().filter_map(|sum| sum.first_at);
        let ahead: Option<DateTime<Utc>> = ahead.filter(|at| *at > self.context.now).min();
        match ahead {
            Some(at) => Next::at(
                at,
                "next-attempt",
                "The next attempt that waits for a time is made.",
            ),
            None if self.facts.waiting.is_empty() => {
                Next::some_time("next-event", "The next event that it matches is sent.")
            }
            None => Next::some_time("sent-in-turn", "What waits is sent in its turn."),
        }
    }

    fn commands(&self) -> Vec<String> {
        let view = &self.facts.view;
        let resume = self.pauses().into_iter().map(resume);
        let retries = self
            .facts
            .waiting
            .iter()
            .any(|sum| sum.status == NotificationStatus::Retry);
        let retry =
            (retries && !self.is_paused()).then(|| format!("postrider retry-now subscription {}", view.id));
        let list = format!(
            "postrider notifications list {} --reseller {}",
            view.id, view.reseller
        );
        resume.chain(retry).chain([list]).collect()
    }
}
