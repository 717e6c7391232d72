//! How it stands with a subscription: its state, whose pause holds it, what waits for it, and its limits. Pure.

use std::iter;

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationStatus;
use domain::quota::{Budget, day_of};
use domain::reason::NotificationReason;
use domain::subscription::{HeldBack, SubscriptionState};
use serde_json::Value;
use store::webhook::{StateEntry, SubscriptionView, WaitingSum};
use store::{AuditView, PauseView};

use crate::explanation::{Context, Explanation, Line, Next, after_pause, held_back, said_of, sentence};
use crate::reseller::{self, Sentence};
use crate::words::{number, of, waits};

/// How far apart the times of an act and of the state that it led to may be.
const SAME_TIME: TimeDelta = TimeDelta::seconds(1);

/// What is read of a subscription.
#[derive(Debug, Clone)]
pub struct SubscriptionFacts {
    /// Itself.
    pub view: SubscriptionView,
    /// The states that it came to have, the newest first.
    pub states: Vec<StateEntry>,
    /// What the audit log says of its pauses, of those of its reseller, of their ends, and of its limits: the newest of each.
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
    /// The pause by an operator that holds it, the widest first.
    fn pause(&self) -> Option<&PauseView> {
        let view = &self.facts.view;
        self.context.pause_of(&view.reseller, view.id)
    }

    fn is_paused(&self) -> bool {
        self.pause().is_some() || self.facts.view.paused_at.is_some()
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
        match (self.pause(), view.paused_at) {
            (Some(pause), None) => held_back(pause),
            (None, Some(at)) => {
                Sentence::new("paused-by-reseller", format!("Is held back: {}.", own(at))).with("since", at)
            }
            (Some(pause), Some(at)) => {
                let text = format!("Is held back: {}, and {}", own(at), sentence(&said_of(pause)));
                let both = Sentence {
                    code: "paused-by-both",
                    text,
                    ..held_back(pause)
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
        let daily = view.daily_quota.unwrap_or(rules.daily_quota);
        let today = day_of(self.context.now, rules.quota_zone);
        let used = self
            .facts
            .budget
            .map_or(0, |(budget, quota)| budget.used_on(today, quota, daily));
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

    fn lines(&self) -> Vec<Line> {
        let view = &self.facts.view;
        let text = format!(
            "Made by {}; it sends {} to {}.",
            view.reseller,
            view.event_types.join(", "),
            view.url
        );
        let made = Sentence::new("made", text)
            .with("reseller", &view.reseller)
            .with("eventTypes", &view.event_types)
            .with("url", &view.url);
        let mut lines = vec![Line::new(view.created_at, made)];
        let mut states: Vec<&StateEntry> = self.facts.states.iter().collect();
        states.sort_by_key(|entry| (entry.at, entry.id));
        let before = iter::once(None).chain(states.iter().map(|entry| Some(*entry)));
        lines.extend(states.iter().zip(before).map(|(entry, before)| {
            let act = self.act_of(entry, before);
            let text = sentence(&format!("{}: {}", entry.state, why(entry, before, act)));
            let said = Sentence::new("state", text)
                .with("state", entry.state.to_string())
                .with("paused", entry.paused)
                .with("held", entry.held)
                .with("by", act.map(|act| &act.actor))
                .with("subject", act.map(|act| &act.subject))
                .with("note", act.and_then(|act| act.note.as_ref()));
            Line::new(entry.at, said)
        }));
        let limits = self.facts.acts.iter();
        lines.extend(limits.filter_map(|act| Some(Line::new(act.at, self.limits_set(act)?))));
        let failing = |at| Line::new(at, Sentence::new("failing", "Every attempt has failed since."));
        lines.extend(view.failing_since.map(failing));
        lines.sort_by_key(|line| line.at);
        lines
    }

    /// What an operator did by which a pause of it began or ended, if that is still in the audit log.
    fn act_of(&self, entry: &StateEntry, before: Option<&StateEntry>) -> Option<&AuditView> {
        let before = before.filter(|before| before.held != entry.held)?;
        let did = if before.held { ".resume" } else { ".pause" };
        let apart = |act: &AuditView| (act.at - entry.at).abs();
        let acts = self.facts.acts.iter();
        acts.filter(|act| act.action.ends_with(did) && apart(act) <= SAME_TIME)
            .min_by_key(|act| apart(act))
    }

    /// What an act changed in its limits; nothing of another act.
    fn limits_set(&self, act: &AuditView) -> Option<Sentence> {
        let rules = &self.context.rules;
        // What stayed as it was may be there as null.
        let change_of = |name: &str| act.details.get(name).filter(|change| change.is_object());
        let changed = |name: &str, what: &str, default: Option<u32>| {
            let change = change_of(name)?;
            // Where there was, or is, none of its own, the default holds.
            let limit = |side: &str| {
                let own = change.get(side).and_then(Value::as_u64);
                own.or(default.map(u64::from))
                    .map_or_else(|| "no limit".to_owned(), number)
            };
            Some(format!("{what} from {} to {}", limit("from"), limit("to")))
        };
        let changes = [
            changed("dailyQuota", "its daily quota", Some(rules.daily_quota)),
            changed(
                "requestsPerSecond",
                "its attempts a second",
                rules.requests_per_second,
            ),
        ];
        let changes: Vec<String> = changes.into_iter().flatten().collect();
        if changes.is_empty() {
            return None;
        }
        let text = format!("{} changed {}{}", act.actor, changes.join(" and "), noted(act));
        let said = Sentence::new("limits", sentence(&text))
            .with("by", &act.actor)
            .with("note", &act.note)
            .with("dailyQuota", change_of("dailyQuota"))
            .with("requestsPerSecond", change_of("requestsPerSecond"));
        Some(said)
    }

    fn next(&self) -> Next {
        let view = &self.facts.view;
        if view.state == SubscriptionState::Deactivated {
            return Next::some_time("activated", "Nothing, until its reseller activates it.");
        }
        if let Some(pause) = self.pause() {
            return after_pause(pause, &format!("the {} {}", pause.scope, pause.key));
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
        let pause = self.pause();
        let resume = pause.map(|pause| format!("postrider resume {} {}", pause.scope, pause.key));
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
        resume.into_iter().chain(retry).chain([list]).collect()
    }
}

/// Why a subscription came to have a state, and what holds it back besides. What has only begun or ended a pause keeps the reason that the
/// state had before it, which is told already. `act` is what an operator did by which a pause began or ended.
fn why(entry: &StateEntry, before: Option<&StateEntry>, act: Option<&AuditView>) -> String {
    let is_same = |before: &&StateEntry| (before.state, before.reason) == (entry.state, entry.reason);
    let own = if entry.paused {
        "; paused by its reseller"
    } else {
        ""
    };
    let held = if entry.held { "; paused by an operator" } else { "" };
    let operator = act.map_or("an operator", |act| act.actor.as_str());
    let of_reseller = act.is_some_and(|act| act.subject.starts_with("reseller/"));
    let what = if of_reseller { "all of its reseller" } else { "it" };
    let note = act.map_or_else(String::new, noted);
    match before.filter(is_same) {
        Some(before) if before.paused && !entry.paused => format!("its reseller let it go on{held}"),
        Some(before) if before.held && !entry.held => format!("{operator} let {what} go on{note}{own}"),
        Some(before) if !before.paused && entry.paused => format!("its reseller paused it{held}"),
        Some(before) if !before.held && entry.held => format!("{operator} paused {what}{note}{own}"),
        _ => format!("{}{own}{held}", entry.reason.said()),
    }
}

/// Why an act was done, as the end of a sentence.
fn noted(act: &AuditView) -> String {
    let note = act.note.as_deref().unwrap_or_default().trim_end_matches('.');
    if note.is_empty() {
        String::new()
    } else {
        format!(": {note}")
    }
}

#[cfg(test)]
mod tests {
    use domain::notification::RetryPlan;
    use domain::reason::StateReason;
    use uuid::Uuid;

    use super::*;
    use crate::tests::{act, context, now, paused};

    fn facts() -> SubscriptionFacts {
        let made = now() - TimeDelta::days(9);
        SubscriptionFacts {
            view: SubscriptionView {
                id: Uuid::from_u128(5),
                reseller: "acme".to_owned(),
                description: String::new(),
                url: "https://acme.example/hook".to_owned(),
                event_types: vec!["domain.*".to_owned()],
                email: "ops@acme.example".to_owned(),
                email_confirmed_at: None,
                state: SubscriptionState::Active,
                state_reason: StateReason::Verified,
                state_changed_at: made,
                paused_at: None,
                held_at: None,
                timeout_millis: None,
                daily_quota: Some(100),
                requests_per_second: Some(5),
                resend_after_outage: None,
                retry_plan: RetryPlan::Short,
                retry_client_errors: false,
                failing_since: None,
                verification_due_at: None,
                verification_attempts: 0,
                verification_error: None,
                verified_at: Some(made),
                created_at: made,
                updated_at: made,
            },
            states: vec![StateEntry {
                id: Uuid::from_u128(6),
                at: made,
                state: SubscriptionState::Active,
                reason: StateReason::Verified,
                paused: false,
                held: false,
            }],
            acts: Vec::new(),
            waiting: Vec::new(),
            counted_up_to: 1_000,
            budget: None,
        }
    }

    fn sum(status: NotificationStatus, reason: Option<NotificationReason>, count: u64) -> WaitingSum {
        WaitingSum {
            status,
            reason,
            day: None,
            first_at: None,
            last_at: None,
            count,
        }
    }

    #[test]
    fn one_with_nothing_to_do_says_its_state_and_its_limits() {
        let told = describe(&facts(), &context());
        assert_eq!((told.kind, told.state.as_str()), ("subscription", "ACTIVE"));
        assert_eq!(
            told.headline,
            "Active since 2026-11-12 12:00:00 UTC (9 days ago). Nothing waits for it. Of its daily quota of 100 it has used 0 today; at \
             most 5 attempts a second."
        );
        let lines: Vec<&str> = told.story.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            lines,
            [
                "Made by acme; it sends domain.* to https://acme.example/hook.",
                "ACTIVE: its endpoint answered its challenge."
            ]
        );
        assert_eq!(told.next.text, "The next event that it matches is sent.");
        assert_eq!((told.headline_code, told.next.code), ("active", "next-event"));
    }

    #[test]
    fn a_pause_and_its_end_are_no_new_challenge() {
        let mut facts = facts();
        for (minute, paused, held) in [
            (1, false, true),
            (2, true, true),
            (3, true, false),
            (4, false, false),
            (5, true, false),
        ] {
            let mut entry = facts.states[0].clone();
            entry.at += TimeDelta::minutes(minute);
            (entry.paused, entry.held) = (paused, held);
            facts.states.push(entry);
        }
        let mut failing = facts.states[5].clone();
        failing.at += TimeDelta::minutes(1);
        failing.reason = StateReason::Failing;
        facts.states.push(failing);
        // The newest come first.
        facts.states.reverse();
        let told = describe(&facts, &context());
        let lines: Vec<&str> = told.story.iter().skip(1).map(|line| line.text.as_str()).collect();
        assert_eq!(
            lines,
            [
                "ACTIVE: its endpoint answered its challenge.",
                "ACTIVE: an operator paused it.",
                "ACTIVE: its reseller paused it; paused by an operator.",
                "ACTIVE: an operator let it go on; paused by its reseller.",
                "ACTIVE: its reseller let it go on.",
                "ACTIVE: its reseller paused it.",
                "ACTIVE: every attempt has failed for days; paused by its reseller.",
            ]
        );
    }

    #[test]
    fn a_pause_by_an_operator_is_told_with_whose_it_is_and_a_change_of_limits_too() {
        let mut facts = facts();
        let made = facts.states[0].at;
        for (minute, held) in [(1, true), (2, false), (3, true)] {
            let mut entry = facts.states[0].clone();
            entry.at += TimeDelta::minutes(minute);
            entry.held = held;
            facts.states.push(entry);
        }
        facts.acts = [
            ("reseller.pause", "reseller/acme", 1, "they asked us to."),
            ("reseller.resume", "reseller/acme", 2, ""),
            ("quota-request.approve", "subscription/5", 4, "a merger"),
            ("quota-request.approve", "subscription/5", 5, ""),
        ]
        .map(|(action, subject, minute, note)| AuditView {
            at: made + TimeDelta::minutes(minute),
            subject: subject.to_owned(),
            note: Some(note.to_owned()),
            ..act(action)
        })
        .to_vec();
        facts.acts[2].details = serde_json::json!({
            "dailyQuota": {"from": null, "to": 20_000},
            "requestsPerSecond": {"from": 5, "to": null},
        });
        // What it had already was approved with what it had not.
        facts.acts[3].details = serde_json::json!({
            "dailyQuota": null,
            "requestsPerSecond": {"from": null, "to": 10},
        });
        let told = describe(&facts, &context());
        let lines: Vec<&str> = told.story.iter().skip(2).map(|line| line.text.as_str()).collect();
        assert_eq!(
            lines,
            [
                "ACTIVE: ann (1) paused all of its reseller: they asked us to.",
                "ACTIVE: ann (1) let all of its reseller go on.",
                // Which is not in the audit log any more.
                "ACTIVE: an operator paused it.",
                "ann (1) changed its daily quota from 10,000 to 20,000 and its attempts a second from 5 to no limit: a merger.",
                "ann (1) changed its attempts a second from no limit to 10.",
            ]
        );
        assert_eq!(told.story[2].params["subject"], "reseller/acme");
    }

    #[test]
    fn what_waits_is_told_with_what_it_waits_for() {
        let mut facts = facts();
        facts.waiting = vec![
            sum(
                NotificationStatus::Scheduled,
                Some(NotificationReason::Quota),
                1_000,
            ),
            WaitingSum {
                first_at: Some(now() + TimeDelta::minutes(2)),
                ..sum(NotificationStatus::Retry, None, 2)
            },
        ];
        let today = day_of(now(), chrono_tz::Tz::UTC);
        facts.budget = Some((
            Budget {
                day: today,
                used: 120,
            },
            // The quota was lowered since.
            120,
        ));
        let told = describe(&facts, &context());
        assert!(
            told.headline.contains(
                "At least 1,002 notifications wait: 1,000 for the daily quota, 2 for another attempt after a failed one. Of its daily \
                 quota of 100 it has used 120 today"
            ),
            "{}",
            told.headline
        );
        assert_eq!(told.next.at, Some(now() + TimeDelta::minutes(2)));
        assert_eq!(told.next.code, "next-attempt");
        assert_eq!(
            (
                &told.headline_params["waiting"],
                &told.headline_params["usedToday"]
            ),
            (&1_002.into(), &120.into())
        );
        assert_eq!(
            told.commands[0],
            format!("postrider retry-now subscription {}", facts.view.id)
        );
    }

    #[test]
    fn a_pause_is_told_with_whose_it_is_and_what_waits_for_it() {
        let mut facts = facts();
        facts.waiting = vec![sum(NotificationStatus::Pending, None, 1)];
        let told = describe(&facts, &paused("reseller", "acme"));
        assert!(
            told.headline
                .starts_with("Is held back: the reseller acme is paused by ann (1) since ")
                && told
                    .headline
                    .contains(": incident 17. 1 notification waits for the end of that."),
            "{}",
            told.headline
        );
        assert_eq!(told.commands[0], "postrider resume reseller acme");
        facts.view.paused_at = Some(now() - TimeDelta::hours(1));
        let told = describe(&facts, &context());
        assert!(
            told.headline
                .starts_with("Is held back: its reseller has paused it since 2026-11-21 11:00:00 UTC"),
            "{}",
            told.headline
        );
        assert_eq!(told.next.text, "It goes on when its reseller resumes it.");
        assert_eq!(told.headline_code, "paused-by-reseller");
        let both = describe(&facts, &paused("lane", "reseller"));
        assert_eq!(
            (both.headline_code, both.next.code),
            ("paused-by-both", "resumed")
        );
        let both = both.headline;
        assert!(
            both.contains("(1 h ago), and the lane reseller is paused by "),
            "{both}"
        );
    }

    #[test]
    fn one_that_is_deactivated_says_why() {
        let mut facts = facts();
        (facts.view.state, facts.view.state_reason) = (SubscriptionState::Deactivated, StateReason::Gone);
        let told = describe(&facts, &paused("reseller", "acme"));
        assert!(
            told.headline
                .contains(": its endpoint says that it is gone. Nothing is sent to it."),
            "{}",
            told.headline
        );
        assert_eq!(told.next.text, "Nothing, until its reseller activates it.");
        assert_eq!((told.headline_code, told.next.code), ("deactivated", "activated"));
    }
}
