//! Everything that is recorded of one push, notification, event or dead letter, for the operator who asks what became of it.
//!
//! Bounded like all that people read: of what was replayed hundreds of times, the last dead letters and acts are told.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::notification::{NotificationId, NotificationStatus, OutageClass, RetryPlan};
use domain::push::{AttemptStatus, PushId};
use domain::reason::{NotificationReason, StateReason};
use domain::subscription::SubscriptionState;
use uuid::Uuid;

use crate::push::{Ahead, HoldPeriod, PushView};
use crate::webhook::{DeliveryAttemptView, WITHHELD_FOR};
use crate::{
    AuditFilter, AuditView, DeadLetterView, Error, Lane, Pausable, PausePeriod, Store, interval, stored,
    stored_if,
};

/// Most pushes that are counted before one.
const AHEAD_MAX: u32 = 100_000;
/// Most dead letters and audit entries that are told of.
const TOLD_MAX: u32 = 100;
/// A push with all that happened to it.
#[derive(Debug, Clone)]
pub struct PushTimeline {
    /// The push and its attempts.
    pub push: PushView,
    /// How many are sent before it, of one that waits for room in the queue or is in it; counted up to a bound.
    pub ahead: Option<Ahead>,
    /// Its dead letters, the first one first.
    pub dead_letters: Vec<DeadLetterView>,
    /// What was done to it by hand, the first act first.
    pub acts: Vec<AuditView>,
    /// The pauses of its lane since it was accepted, the first one first.
    pub pauses: Vec<PausePeriod>,
    /// The outages of Swrve since then, the first one first.
    pub holds: Vec<HoldPeriod>,
}

/// A notification with all that happened to it.
#[derive(Debug, Clone)]
pub struct NotificationTimeline {
    /// Its identifier.
    pub id: NotificationId,
    /// The event that it tells of.
    pub event: Uuid,
    /// What receivers know the event by.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: String,
    /// Whose it is.
    pub reseller: String,
    /// To whom it goes.
    pub subscription: Recipient,
    /// Where it stands.
    pub status: NotificationStatus,
    /// Whether an engine has claimed it.
    pub claimed: bool,
    /// Why it waits or has ended.
    pub reason: Option<NotificationReason>,
    /// Attempts so far.
    pub attempts: u32,
    /// Of them, before a resend or a replay made it due again.
    pub resent_after: u32,
    /// When that was.
    pub resent_at: Option<DateTime<Utc>>,
    /// When it is due, for `SCHEDULED` and `RETRY`.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it is taken for lost, for `IN_MEMORY`.
    pub leased_until: Option<DateTime<Utc>>,
    /// When its event was accepted; none when that is not stored any more.
    pub accepted_at: Option<DateTime<Utc>>,
    /// When it was made: with its event, or later by a replay.
    pub created_at: DateTime<Utc>,
    /// When its status last changed.
    pub updated_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The size of its body.
    pub payload_bytes: u32,
    /// Whether an outage of its endpoint that is not recovered from has given it up.
    pub outage: bool,
    /// Its attempts, the first one first.
    pub history: Vec<DeliveryAttemptView>,
    /// Its dead letters, the first one first.
    pub dead_letters: Vec<DeadLetterView>,
    /// What was done to it by hand, the first act first.
    pub acts: Vec<AuditView>,
    /// What operators had paused since it was made, of its lane, its reseller and its subscription, the first pause first.
    pub pauses: Vec<PausePeriod>,
    /// How the limits of its subscription were changed between its making and its first attempt, the latest change first; of one that has waited for
    /// the daily quota.
    pub limit_changes: Vec<AuditView>,
}

impl NotificationTimeline {
    /// When it was no more to be sent again, of one that has stayed delivered since: no attempt after that it was to be sent again was accepted.
    pub fn resend_ended_at(&self) -> Option<DateTime<Utc>> {
        let last = self.history.last()?;
        let is_sent = self.status == NotificationStatus::Sent && self.resent_at.is_some();
        let is_accepted_again = last.number > self.resent_after && last.status == AttemptStatus::Ok;
        (is_sent && !is_accepted_again).then_some(self.updated_at)
    }

    /// What cancelled sending it again then. Without such an act it had waited for too long, or its subscription got nothing any more.
    pub fn resend_cancellation(&self) -> Option<&AuditView> {
        let at = self.resend_ended_at()?;
        let cancels = ["notification.cancel", "notification.cancel-many"];
        let mut acts = self.acts.iter();
        acts.find(|act| act.at == at && cancels.contains(&act.action.as_str()))
    }

    /// The last attempt that was accepted.
    pub fn accepted_at_attempt(&self) -> Option<u32> {
        let mut latest = self.history.iter().rev();
        let accepted = latest.find(|attempt| attempt.status == AttemptStatus::Ok);
        accepted.map(|attempt| attempt.number)
    }

    /// When its event was accepted, of one that was made later than that, which only a replay does.
    pub fn replayed_event(&self) -> Option<DateTime<Utc>> {
        self.accepted_at.filter(|at| *at < self.created_at)
    }
}

/// The subscription of a notification, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// Which.
    pub id: Uuid,
    /// Its endpoint.
    pub url: String,
    /// Its state.
    pub state: SubscriptionState,
    /// Why it has the state.
    pub reason: StateReason,
    /// Since when it has the state.
    pub since: DateTime<Utc>,
    /// Since when its reseller has it paused.
    pub paused_at: Option<DateTime<Utc>>,
    /// Since when an operator has it paused.
    pub held_at: Option<DateTime<Utc>>,
    /// When it was deleted.
    pub deleted_at: Option<DateTime<Utc>>,
    /// Notifications a day; the default when `None`.
    pub daily_quota: Option<u32>,
    /// Attempts a second; the default when `None`.
    pub requests_per_second: Option<u32>,
    /// The class of failures for whose sake it is sent nothing but probes.
    pub withheld_for: Option<OutageClass>,
    /// Whether what an outage gives up is sent again by itself; the default when `None`.
    pub resend_after_outage: Option<bool>,
    /// For how long what failed is tried again.
    pub retry_plan: RetryPlan,
    /// The day that was charged last.
    pub budget_day: Option<NaiveDate>,
    /// With how many notifications.
    pub budget_used: Option<u32>,
}

impl Store {
    /// All that happened to the push with this identifier.
    pub async fn push_timeline(&self, id: Uuid) -> Result<Option<PushTimeline>, Error> {
        let Some(push) = self.find_push(PushId::from(id)).await? else {
            return Ok(None);
        };
        Ok(Some(PushTimeline {
            ahead: self.pushes_ahead(&push, AHEAD_MAX).await?,
            dead_letters: self.dead_letters_about(Some(id), None).await?,
            acts: self.acts_on(format!("push/{id}")).await?,
            pauses: self
                .pauses_since(&[Pausable::Lane(Lane::Push)], push.created_at, push.finished_at)
                .await?,
            holds: self
                .holds_since(Lane::Push, push.created_at, push.finished_at)
                .await?,
            push,
        }))
    }

    /// The W3C trace context of the request that brought a push.
    pub async fn push_traceparent(&self, id: Uuid) -> Result<Option<String>, Error> {
        let found = sqlx::query_scalar!("SELECT traceparent FROM push_notifications WHERE id = $1", id)
            .fetch_optional(&self.pool)
            .await?;
        Ok(found.flatten())
    }

    /// The same of an event, and so of its notifications.
    pub async fn event_traceparent(&self, id: Uuid) -> Result<Option<String>, Error> {
        let found = sqlx::query_scalar!("SELECT traceparent FROM events WHERE id = $1", id)
            .fetch_optional(&self.pool)
            .await?;
        Ok(found.flatten())
    }

    /// All that happened to the notification with this identifier.
    pub async fn notification_timeline(&self, id: Uuid) -> Result<Option<NotificationTimeline>, Error> {
        let row = sqlx::query!(
            r#"
            SELECT n.event, e.event_id AS "event_id?", n.event_type, n.reseller_id, n.status,
                   n.lease_token IS NOT NULL AS "claimed!", n.reason, n.attempts, n.resent_after, n.resent_at,
                   n.next_attempt_at, n.leased_until, n.created_at, n.updated_at, n.finished_at, n.payload_bytes,
                   s.id AS subscription, s.url, s.state, s.state_reason, s.state_changed_at, s.paused_at, s.held_at,
                   s.deleted_at, s.daily_quota, s.requests_per_second, s.resend_after_outage, s.retry_plan,
                   b.day AS "day?", b.used AS "used?",
                   (SELECT l.outage_class FROM subscription_sidelines l
                    WHERE l.subscription_id = s.id AND l.lane = CASE WHEN n.attempts > 0 THEN 'retry' ELSE 'first' END
                      AND l.outage_until BETWEEN now() AND now() + $2::interval) AS withheld_for,
                   EXISTS (SELECT FROM dead_letters d
                           WHERE d.notification_id = n.id AND d.state = 'OPEN' AND d.reason = 'GIVEN_UP'
                             AND d.error_type <> 'OTHER' AND d.created_at >= s.outage_since) AS "outage!",
                   e.created_at AS "accepted_at?"
            FROM notifications n
            JOIN subscriptions s ON s.id = n.subscription_id
            LEFT JOIN events e ON e.id = n.event
            LEFT JOIN subscription_budgets b ON b.subscription_id = s.id
            WHERE n.id = $1
            "#,
            id,
            interval(WITHHELD_FOR),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let status = stored("notification status", &row.status)?;
        let due = self
            .turn_of(row.subscription, id, status, row.next_attempt_at)
            .await?;
        let pausable = [
            Pausable::Lane(Lane::Reseller),
            Pausable::Reseller(row.reseller_id.clone()),
            Pausable::Subscription(row.subscription),
        ];
        let pauses = self
            .pauses_since(&pausable, row.created_at, row.finished_at)
            .await?;
        let mut timeline = NotificationTimeline {
            id: id.into(),
            event: row.event,
            event_id: row.event_id,
            event_type: row.event_type,
            reseller: row.reseller_id,
            subscription: Recipient {
                id: row.subscription,
                url: row.url,
                state: stored("subscription state", &row.state)?,
                reason: stored("reason of a state", &row.state_reason)?,
                since: row.state_changed_at,
                paused_at: row.paused_at,
                held_at: row.held_at,
                deleted_at: row.deleted_at,
                daily_quota: row.daily_quota.map(i32::unsigned_abs),
                requests_per_second: row.requests_per_second.map(i32::unsigned_abs),
                withheld_for: row.withheld_for.and_then(|class| class.parse().ok()),
                resend_after_outage: row.resend_after_outage,
                retry_plan: stored("retry plan", &row.retry_plan)?,
                budget_day: row.day,
                budget_used: row.used.map(|used| u32::try_from(used).unwrap_or(0)),
            },
            status,
            claimed: row.claimed,
            reason: stored_if("reason of a notification", row.reason.as_deref())?,
            attempts: row.attempts.unsigned_abs(),
            resent_after: row.resent_after.unsigned_abs(),
            resent_at: row.resent_at,
            next_attempt_at: due,
            leased_until: row.leased_until,
            accepted_at: row.accepted_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
            finished_at: row.finished_at,
            payload_bytes: row.payload_bytes.unsigned_abs(),
            outage: row.outage,
            history: self.delivery_attempts(id.into()).await?,
            dead_letters: self.dead_letters_about(None, Some(id)).await?,
            acts: self.acts_on(format!("notification/{id}")).await?,
            pauses,
            limit_changes: Vec::new(),
        };
        timeline.limit_changes = self.limit_changes(&timeline).await?;
        for (at, of_one, of_many) in [
            (
                timeline.resend_ended_at(),
                "notification.cancel",
                "notification.cancel-many",
            ),
            (timeline.resent_at, "notification.resend", "subscription.resend"),
        ] {
            let is_its_own = |act: &AuditView| Some(act.at) == at && act.action == of_one;
            if let Some(at) = at
                && !timeline.acts.iter().any(is_its_own)
                && let Some(act) = self.done_to_many(&timeline, of_many, at).await?
            {
                timeline.acts.push(act);
            }
        }
        Ok(Some(timeline))
    }

    /// How the limits were changed for which it waited before its first attempt.
    async fn limit_changes(&self, it: &NotificationTimeline) -> Result<Vec<AuditView>, Error> {
        let has_waited = it.reason == Some(NotificationReason::Quota);
        let Some(first) = it.history.first().filter(|_| has_waited) else {
            return Ok(Vec::new());
        };
        let filter = AuditFilter {
            actions: Some(vec![
                "subscription.limits".to_owned(),
                "quota-request.approve".to_owned(),
            ]),
            subject: Some(format!("subscription/{}", it.subscription.id)),
            since: Some(it.created_at),
            until: Some(first.started_at),
            ..AuditFilter::default()
        };
        self.list_audit(&filter, TOLD_MAX).await
    }

    /// The act that was done to many at this time, this one among them. It is about what they were of; those that stay delivered have no dead letter
    /// that would tell who did it.
    async fn done_to_many(
        &self,
        it: &NotificationTimeline,
        action: &str,
        at: DateTime<Utc>,
    ) -> Result<Option<AuditView>, Error> {
        let subjects = [
            format!("subscription/{}", it.subscription.id),
            format!("reseller/{}", it.reseller),
            "lane/reseller".to_owned(),
        ];
        for subject in subjects {
            let filter = AuditFilter {
                actions: Some(vec![action.to_owned()]),
                subject: Some(subject),
                since: Some(at),
                until: Some(at + TimeDelta::microseconds(1)),
                ..AuditFilter::default()
            };
            if let Some(act) = self.list_audit(&filter, 1).await?.pop() {
                return Ok(Some(act));
            }
        }
        Ok(None)
    }

    /// The dead letter with this identifier, and what was done to it by hand.
    pub async fn dead_letter_timeline(
        &self,
        id: Uuid,
    ) -> Result<Option<(DeadLetterView, Vec<AuditView>)>, Error> {
        match self.find_dead_letters(&[id]).await?.pop() {
            Some(letter) => Ok(Some((letter, self.acts_on(format!("dead-letter/{id}")).await?))),
            None => Ok(None),
        }
    }

    /// The event that a reseller's own identifier of it stands for, for as long as such identifiers are remembered.
    pub async fn event_of_key(&self, reseller: &str, key: &str) -> Result<Option<Uuid>, Error> {
        // No text of the database holds U+0000, so nothing is called like that.
        if reseller.contains('\0') || key.contains('\0') {
            return Ok(None);
        }
        Ok(sqlx::query_scalar!(
            "SELECT event FROM event_keys WHERE scope = $1 AND key = $2",
            format!("reseller/{reseller}"),
            key,
        )
        .fetch_optional(&self.pool)
        .await?)
    }

    async fn dead_letters_about(
        &self,
        push: Option<Uuid>,
        notification: Option<Uuid>,
    ) -> Result<Vec<DeadLetterView>, Error> {
        let ids = sqlx::query_scalar!(
            r#"
            SELECT id AS "id!" FROM dead_letters WHERE push_id = $1
            UNION ALL SELECT id FROM dead_letters WHERE notification_id = $2
            "#,
            push,
            notification,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut letters = self.find_dead_letters(&ids).await?;
        letters.sort_by_key(|letter| (letter.created_at, letter.id));
        letters.drain(..letters.len().saturating_sub(TOLD_MAX as usize));
        Ok(letters)
    }

    pub(crate) async fn acts_on(&self, subject: String) -> Result<Vec<AuditView>, Error> {
        let filter = AuditFilter {
            subject: Some(subject),
            ..AuditFilter::default()
        };
        let mut acts = self.list_audit(&filter, TOLD_MAX).await?;
        acts.reverse();
        Ok(acts)
    }
}
