//! The week itself: how much happened when, and what came of it. The same draw each time, so that two runs tell the same story.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Timelike as _, Utc};
use domain::notification::{ClientErrors, DeliveryOutcome, FailureKind, NotificationStatus};
use domain::reason::{NotificationReason, StateReason};
use domain::subscription::{SubscriptionState, patterns_of};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use store::demo::{EVENT_PREFIX, Past, PastAttempt, PastDay, PastNotification, PastState, PastSubscription};
use store::webhook::NewEvent;
use uuid::{NoContext, Timestamp, Uuid};

/// How long the endpoints may take to answer.
pub(super) const TIMEOUT_MILLIS: u64 = 5_000;
/// No attempt takes longer, so that none ends after the present.
const LONGEST: TimeDelta = TimeDelta::seconds(6);
/// How far back it goes.
const DAYS: i64 = 7;
/// When the subscriptions were made.
const AGE: TimeDelta = TimeDelta::days(40);
/// The daily quota of the one that has too little.
const QUOTA: u32 = 120;
/// Over which part of a day what waited for it is sent. On the present day it is half of what there was of it, so that all of its places are
/// used whatever the hour, and what failed at first has been tried again.
const WINDOW: TimeDelta = TimeDelta::hours(6);
/// What is charged to a day of a subscription that has no quota of its own is told against this one.
const DEFAULT_QUOTA: u32 = 1_000_000;
/// Since when the failing one fails, and how long ago it came to be degraded.
const FAILING: TimeDelta = TimeDelta::hours(50);
const DEGRADED: TimeDelta = TimeDelta::hours(2);
/// How long ago the endpoint that is gone said so.
const GONE: TimeDelta = TimeDelta::hours(76);
/// From the first attempt to the second; each further delay is four times as long.
const FIRST_DELAY: TimeDelta = TimeDelta::seconds(30);
/// Attempts until a notification is given up.
const ATTEMPTS: usize = 4;

/// How a subscription fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nearly all arrives.
    Well,
    /// More comes than its quota allows.
    OverQuota,
    /// Its endpoint answers nothing in time.
    Failing,
    /// Its endpoint was taken down.
    Gone,
}

/// A subscription of the week.
pub(super) struct Kind {
    /// By which it is found again.
    pub(super) description: &'static str,
    /// Where its endpoint is.
    pub(super) path: &'static str,
    /// Its filter.
    pub(super) events: &'static str,
    /// Events in an hour at noon of a working day.
    busy: f64,
    fate: Fate,
}

pub(super) const KINDS: [Kind; 4] = [
    Kind {
        description: "Web shop",
        path: "/shop/webhooks",
        events: "domain.*",
        busy: 14.0,
        fate: Fate::Well,
    },
    Kind {
        description: "Customer records",
        path: "/crm/contacts",
        events: "contact.*",
        // So much more than the quota on working days that the line never ends on the others.
        busy: 16.0,
        fate: Fate::OverQuota,
    },
    Kind {
        description: "Billing",
        path: "/billing/orders",
        events: "order.*",
        busy: 4.0,
        fate: Fate::Failing,
    },
    Kind {
        description: "Old name servers",
        path: "/dns/hosts",
        events: "host.*",
        busy: 2.0,
        fate: Fate::Gone,
    },
];

/// A subscription that exists.
pub(super) struct Made {
    pub(super) id: Uuid,
    pub(super) url: String,
    pub(super) kind: &'static Kind,
}

/// The days that quotas are counted by.
pub(super) struct Days<'a> {
    /// The day that an instant is on.
    pub(super) of: &'a dyn Fn(DateTime<Utc>) -> NaiveDate,
    /// When a day begins.
    pub(super) start: &'a dyn Fn(NaiveDate) -> DateTime<Utc>,
}

/// The past of these, up to `now`. `examples` has the data of each event type.
pub(super) fn past(
    reseller: &str,
    now: DateTime<Utc>,
    days: &Days<'_>,
    made: &[Made],
    examples: &BTreeMap<String, String>,
) -> Past {
    let mut past = Past::default();
    for (one, seed) in made.iter().zip(1..) {
        let mut week = Week {
            reseller,
            now,
            days,
            made: one,
            random: StdRng::seed_from_u64(seed),
            used: BTreeMap::new(),
        };
        past.notifications.extend(week.notifications(examples));
        past.subscriptions.push(week.subscription());
    }
    past
}

struct Week<'a> {
    reseller: &'a str,
    now: DateTime<Utc>,
    days: &'a Days<'a>,
    made: &'a Made,
    random: StdRng,
    /// What was charged to each day.
    used: BTreeMap<NaiveDate, u32>,
}

/// How much of the busiest hour there is at this time: little at night and on Saturdays and Sundays.
fn share(at: DateTime<Utc>) -> f64 {
    let by_hour = match at.hour() {
        0..=4 => 0.08,
        5..=6 => 0.3,
        7..=8 => 0.7,
        9..=15 => 1.0,
        16..=18 => 0.6,
        _ => 0.25,
    };
    if at.weekday().number_from_monday() > 5 {
        by_hour * 0.4
    } else {
        by_hour
    }
}

impl Week<'_> {
    fn notifications(&mut self, examples: &BTreeMap<String, String>) -> Vec<PastNotification> {
        let filter = self.made.kind.events;
        let is_for_it = |name: &&String| patterns_of(name).iter().any(|pattern| pattern == filter);
        let types: Vec<&String> = examples.keys().filter(is_for_it).collect();
        let mut all = Vec::new();
        if types.is_empty() {
            return all;
        }
        let end = match self.made.kind.fate {
            Fate::Gone => self.now - GONE,
            _ => self.now - LONGEST * 2,
        };
        let mut hour = self.now - TimeDelta::days(DAYS);
        while hour < end {
            let mean = self.made.kind.busy * share(hour);
            let mut at = hour;
            let next = (hour + TimeDelta::hours(1)).min(end);
            // Times between events that know nothing of each other.
            loop {
                let wait = -(1.0 - self.random.random::<f64>()).ln() / mean * 3_600_000.0;
                at += TimeDelta::milliseconds(wait.min(3.6e6) as i64 + 1);
                if at >= next {
                    break;
                }
                let event_type = types[self.random.random_range(0..types.len())];
                let event = self.event(at, event_type, &examples[event_type]);
                all.push(self.notification(event));
            }
            hour += TimeDelta::hours(1);
        }
        if self.made.kind.fate == Fate::Gone
            && let Some(last) = all.last_mut()
        {
            let attempt = self.answered(
                last.event.created_at,
                410,
                r#"{"error":"this endpoint was taken down"}"#,
            );
            last.status = NotificationStatus::Failed;
            last.reason.clone_from(&attempt.classification.fingerprint);
            last.attempts = vec![attempt];
        }
        all
    }

    fn event(&mut self, at: DateTime<Utc>, event_type: &str, data: &str) -> NewEvent {
        let seconds = u64::try_from(at.timestamp()).unwrap_or(0);
        let id = Uuid::new_v7(Timestamp::from_unix(
            NoContext,
            seconds,
            at.timestamp_subsec_nanos(),
        ));
        let event_id = format!("{EVENT_PREFIX}{}", id.simple());
        NewEvent {
            id,
            body: domain::event::body(&event_id, event_type, at, data),
            event_id,
            reseller_id: self.reseller.to_owned(),
            event_type: event_type.to_owned(),
            occurred_at: at - TimeDelta::milliseconds(self.random.random_range(40..900)),
            created_at: at,
            traceparent: None,
            keys: Vec::new(),
        }
    }

    fn notification(&mut self, event: NewEvent) -> PastNotification {
        let at = event.created_at;
        let Some((day, turn)) = self.turn(at) else {
            return PastNotification {
                subscription: self.made.id,
                status: NotificationStatus::Scheduled,
                reason: Some(NotificationReason::Quota.to_string()),
                next_attempt_at: Some(at),
                charged_on: None,
                attempts: Vec::new(),
                event,
            };
        };
        *self.used.entry(day).or_default() += 1;
        let (status, next_attempt_at, attempts) = self.tried(turn);
        let fingerprint = attempts
            .last()
            .and_then(|last| last.classification.fingerprint.clone());
        let waited = (turn > at).then(|| NotificationReason::Quota.to_string());
        PastNotification {
            subscription: self.made.id,
            status,
            reason: fingerprint.or(waited),
            next_attempt_at,
            charged_on: Some(day),
            attempts,
            event,
        }
    }

    /// To which day what came `at` this time is charged, and when it is sent; none of what waits still. What exceeds the quota goes on the days
    /// that follow, the oldest first.
    fn turn(&self, at: DateTime<Utc>) -> Option<(NaiveDate, DateTime<Utc>)> {
        let arrived = (self.days.of)(at);
        if self.made.kind.fate != Fate::OverQuota {
            return Some((arrived, at));
        }
        let (day, place) = match self.used.last_key_value() {
            Some((day, used)) if *day >= arrived && *used >= QUOTA => (day.succ_opt()?, 0),
            Some((day, used)) if *day >= arrived => (*day, *used),
            _ => (arrived, 0),
        };
        let (start, today) = ((self.days.start)(day), (self.days.of)(self.now));
        let window = if day == today {
            (self.now - start) / 2
        } else {
            WINDOW
        };
        let opens = start + window * i32::try_from(place).ok()? / i32::try_from(QUOTA).ok()?;
        let turn = at.max(opens);
        (day <= today && turn + LONGEST * 2 <= self.now).then_some((day, turn))
    }

    /// Attempts until one succeeds, none may follow, or the next one lies ahead.
    fn tried(&mut self, at: DateTime<Utc>) -> (NotificationStatus, Option<DateTime<Utc>>, Vec<PastAttempt>) {
        let mut attempts = Vec::new();
        let mut start = at + TimeDelta::milliseconds(self.random.random_range(15..180));
        let mut delay = FIRST_DELAY;
        loop {
            let attempt = self.attempt(start, attempts.len());
            let (ended, status) = (
                attempt.started_at + attempt.took,
                attempt.classification.response_status,
            );
            let failed = attempt.classification.error.is_some();
            attempts.push(attempt);
            if !failed {
                return (NotificationStatus::Sent, None, attempts);
            }
            if status.is_some_and(|status| (400..500).contains(&status)) {
                return (NotificationStatus::Failed, None, attempts);
            }
            if attempts.len() == ATTEMPTS {
                return (NotificationStatus::GivenUp, None, attempts);
            }
            start = ended + delay * self.random.random_range(90..110) / 100;
            delay = delay * 4;
            if start >= self.now - LONGEST {
                return (NotificationStatus::Retry, Some(start), attempts);
            }
        }
    }

    fn attempt(&mut self, at: DateTime<Utc>, earlier: usize) -> PastAttempt {
        let chance: f64 = self.random.random();
        let fails_now = self.made.kind.fate == Fate::Failing && at >= self.now - FAILING;
        if fails_now && chance < 0.7 {
            return self.failed(at, FailureKind::Timeout, "the endpoint did not answer within 5 s");
        }
        if fails_now {
            return self.answered(
                at,
                503,
                r#"{"error":"the database of orders is being moved","retry":"later"}"#,
            );
        }
        // A second attempt mostly succeeds.
        let luck = if earlier > 0 { 0.2 } else { 1.0 };
        if chance < 0.03 * luck {
            return self.answered(
                at,
                502,
                "<html><head><title>502 Bad Gateway</title></head></html>",
            );
        }
        if chance < 0.04 * luck {
            return self.failed(
                at,
                FailureKind::Connect,
                "the connection was refused (ECONNREFUSED)",
            );
        }
        if chance < 0.047 * luck {
            return self.answered(
                at,
                422,
                r#"{"error":"unknown field \"registrant\"","pointer":"/data"}"#,
            );
        }
        self.answered(at, if chance < 0.6 { 200 } else { 204 }, "")
    }

    fn answered(&mut self, at: DateTime<Utc>, status: u16, body: &str) -> PastAttempt {
        let millis = 25.0 + 60.0 * (-(1.0 - self.random.random::<f64>()).ln());
        let outcome = DeliveryOutcome::Answered {
            status,
            retry_after: None,
            body: body.to_owned(),
        };
        self.over(at, Duration::from_secs_f64(millis / 1_000.0), outcome)
    }

    fn failed(&self, at: DateTime<Utc>, kind: FailureKind, message: &str) -> PastAttempt {
        let took = match kind {
            FailureKind::Timeout => Duration::from_millis(TIMEOUT_MILLIS),
            _ => Duration::from_millis(3),
        };
        let message = message.to_owned();
        self.over(at, took, DeliveryOutcome::Failed { kind, message })
    }

    fn over(&self, started_at: DateTime<Utc>, took: Duration, outcome: DeliveryOutcome) -> PastAttempt {
        PastAttempt {
            started_at,
            took,
            url: self.made.url.clone(),
            classification: outcome.classification(ClientErrors::Usual),
        }
    }

    fn subscription(self) -> PastSubscription {
        let (now, fate) = (self.now, self.made.kind.fate);
        let state = |ago: TimeDelta, state, reason| PastState {
            at: now - ago,
            state,
            reason,
        };
        let mut states = vec![
            state(AGE, SubscriptionState::PendingVerification, StateReason::Created),
            state(
                AGE - TimeDelta::minutes(2),
                SubscriptionState::Active,
                StateReason::Verified,
            ),
        ];
        match fate {
            Fate::Failing => states.push(state(DEGRADED, SubscriptionState::Degraded, StateReason::Failing)),
            Fate::Gone => states.push(state(GONE, SubscriptionState::Deactivated, StateReason::Gone)),
            Fate::Well | Fate::OverQuota => {}
        }
        let daily_quota = (fate == Fate::OverQuota).then_some(QUOTA);
        let quota = daily_quota.unwrap_or(DEFAULT_QUOTA);
        let mut used = self.used;
        used.entry((self.days.of)(now)).or_default();
        PastSubscription {
            id: self.made.id,
            states,
            failing_since: (fate == Fate::Failing).then(|| now - FAILING),
            daily_quota,
            days: used
                .into_iter()
                .map(|(day, used)| PastDay { day, used, quota })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveTime;

    use super::*;

    fn of(now: &str) -> Past {
        let now = now.parse().unwrap();
        let made = KINDS.each_ref().map(|kind| Made {
            id: Uuid::now_v7(),
            url: format!("https://shop.example{}", kind.path),
            kind,
        });
        let names = [
            "domain.created",
            "contact.updated",
            "order.completed",
            "host.deleted",
        ];
        let examples = names.map(|name| (name.to_owned(), "{}".to_owned())).into();
        let days = Days {
            of: &|at| at.date_naive(),
            start: &|day| day.and_time(NaiveTime::MIN).and_utc(),
        };
        past("demo", now, &days, &made, &examples)
    }

    #[test]
    fn a_week_has_something_of_everything_at_any_hour() {
        for now in [
            "2026-03-04T01:10:00Z",
            "2026-03-04T12:00:00Z",
            "2026-03-08T20:30:00Z",
        ] {
            let past = of(now);
            let now: DateTime<Utc> = now.parse().unwrap();
            for status in [
                NotificationStatus::Sent,
                NotificationStatus::Failed,
                NotificationStatus::GivenUp,
                NotificationStatus::Scheduled,
            ] {
                assert!(
                    past.notifications.iter().any(|one| one.status == status),
                    "{now}: {status}"
                );
            }
            for one in &past.notifications {
                assert!(one.event.created_at < now && one.event.created_at >= now - TimeDelta::days(DAYS));
                assert!(one.attempts.iter().all(|attempt| attempt.started_at < now));
            }
            assert_eq!(past.subscriptions.len(), KINDS.len());
        }
    }

    /// The page of the quota has both beside each other: how much of a day is used, and what ended in each hour of it.
    #[test]
    fn what_is_used_of_the_day_is_what_ended_on_it_where_the_quota_is_too_small() {
        for now in [
            "2026-03-01T18:00:00Z",
            "2026-03-02T00:40:00Z",
            "2026-03-04T01:10:00Z",
            "2026-03-04T12:00:00Z",
            "2026-03-06T23:59:00Z",
            "2026-03-07T09:00:00Z",
            "2026-03-08T20:30:00Z",
        ] {
            let past = of(now);
            let today = now.parse::<DateTime<Utc>>().unwrap().date_naive();
            let subscription = past
                .subscriptions
                .iter()
                .find(|one| one.daily_quota.is_some())
                .unwrap();
            let its = past
                .notifications
                .iter()
                .filter(|one| one.subscription == subscription.id);
            let its: Vec<_> = its.collect();
            let used = subscription.days.last().unwrap();
            assert_eq!((used.day, used.used), (today, QUOTA), "{now}");
            let over = [
                NotificationStatus::Sent,
                NotificationStatus::Failed,
                NotificationStatus::GivenUp,
            ];
            let ended = its.iter().filter(|one| over.contains(&one.status));
            let ended = ended.filter(|one| one.attempts.last().unwrap().started_at.date_naive() == today);
            assert_eq!(ended.count(), QUOTA as usize, "{now}");
            assert!(
                its.iter().any(|one| one.status == NotificationStatus::Scheduled),
                "{now}: nothing waits"
            );
            // None overtakes another, and no day has more than its quota.
            assert!(
                its.is_sorted_by_key(|one| (one.charged_on.is_none(), one.charged_on)),
                "{now}"
            );
            assert!(subscription.days.iter().all(|day| day.used <= QUOTA), "{now}");
        }
    }

    /// None of the line is sent before there was time for it, and then it is not told as used either.
    #[test]
    fn a_day_that_has_just_begun_has_used_nothing_of_a_quota() {
        let past = of("2026-03-04T00:00:05Z");
        let subscription = past
            .subscriptions
            .iter()
            .find(|one| one.daily_quota.is_some())
            .unwrap();
        assert_eq!(subscription.days.last().unwrap().used, 0);
    }

    #[test]
    fn two_runs_tell_the_same_story() {
        let told = |past: Past| -> Vec<_> {
            let of_each = past.notifications.iter();
            of_each
                .map(|one| (one.event.created_at, one.event.event_type.clone(), one.status))
                .collect()
        };
        assert_eq!(told(of("2026-03-04T12:00:00Z")), told(of("2026-03-04T12:00:00Z")));
    }
}
