//! The reckoning after a fault in the push lane: what was accepted, what the database says became of it, and what arrived at Swrve.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::push::{PushId, PushStatus};
use simulators::swrve::{Outcome, Received, Running};
use sqlx::PgPool;
use testkit::{Installation, eventually};
use uuid::Uuid;

use super::callers::Answers;
use super::fleet::Service;

/// A push as it ended.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
struct Row {
    user: String,
    id: Uuid,
    status: String,
    attempts: i64,
    /// Rows of attempts.
    recorded: i64,
    /// Attempts without an outcome.
    running: i64,
    /// Attempts whose claim ran out before an outcome was recorded.
    lost: i64,
    /// Attempts without an answer in time.
    unanswered: i64,
    dead_letters: i64,
}

const ROWS: &str = "
    SELECT p.push_key AS user, p.id, p.status, p.attempts::bigint AS attempts,
           count(a.id) AS recorded,
           count(a.id) FILTER (WHERE a.status = 'IN_PROCESS') AS running,
           count(a.id) FILTER (WHERE a.error_type = 'OTHER') AS lost,
           count(a.id) FILTER (WHERE a.error_type = 'SWRVE' AND a.swrve_error_code IS NULL) AS unanswered,
           (SELECT count(*) FROM dead_letters d WHERE d.push_id = p.id) AS dead_letters
    FROM push_notifications p LEFT JOIN send_attempts a ON a.push_notification_id = p.id
    GROUP BY p.id, p.push_key, p.status, p.attempts
    ORDER BY p.id";

/// Everything about pushes that have ended.
pub(crate) struct Ended {
    rows: Vec<Row>,
    /// By user.
    arrivals: BTreeMap<String, Vec<Received>>,
}

impl Ended {
    /// Waits until all pushes have ended, and checks what must hold whatever has happened: what was answered 202 is
    /// there, once for each Idempotency-Key, has ended as `status` says for its user, and has an explanation.
    pub(crate) async fn of(
        it: &Installation,
        answers: &Answers,
        status: impl Fn(&str) -> PushStatus,
    ) -> Self {
        Self::through(&[&it.sim], it, answers, status).await
    }

    /// [`Self::of`] where dispatchers send to different receivers.
    pub(crate) async fn through(
        receivers: &[&Running],
        it: &Installation,
        answers: &Answers,
        status: impl Fn(&str) -> PushStatus,
    ) -> Self {
        eventually("every push to end", async || {
            let unfinished = "SELECT count(*) FROM push_notifications WHERE finished_at IS NULL";
            let underway: u64 = receivers.iter().map(|receiver| receiver.report().in_flight).sum();
            (count(&it.pool, unfinished).await == 0 && underway == 0).then_some(())
        })
        .await;
        let ended = Self {
            rows: sqlx::query_as(ROWS)
                .fetch_all(&it.pool)
                .await
                .expect("the rows can be read"),
            arrivals: arrivals(receivers),
        };
        ended.assert_one_for_each(answers);
        let keys = count(&it.pool, "SELECT count(*) FROM idempotency_keys").await;
        assert_eq!(keys, answers.len() as i64);
        for row in &ended.rows {
            ended.assert_explained(row, status(&row.user));
        }
        ended
    }

    fn assert_one_for_each(&self, answers: &Answers) {
        let stored: Vec<(&str, Uuid)> = self.rows.iter().map(|row| (row.user.as_str(), row.id)).collect();
        let mut answered: Vec<(&str, Uuid)> = answers.iter().map(|(user, id)| (user.as_str(), *id)).collect();
        answered.sort_by_key(|(_, id)| *id);
        assert_eq!(
            stored, answered,
            "each push that was answered 202 is stored, once"
        );
        let unknown = self.arrivals.keys().find(|user| !answers.contains_key(*user));
        assert_eq!(unknown, None, "no other user got anything");
    }

    fn assert_explained(&self, row: &Row, status: PushStatus) {
        assert_eq!(row.status, status.as_str(), "{row:?}");
        assert_eq!((row.recorded, row.running), (row.attempts, 0), "{row:?}");
        assert_eq!(row.dead_letters, i64::from(status != PushStatus::Sent), "{row:?}");
        let arrived = self.arrivals.get(&row.user).map_or(0, Vec::len);
        assert!(
            arrived as i64 <= row.attempts,
            "it was sent {arrived} times: {row:?}"
        );
        assert_eq!(
            self.accepted(&row.user) > 0,
            status == PushStatus::Sent,
            "{row:?}"
        );
    }

    fn accepted(&self, user: &str) -> usize {
        let was_accepted = |arrival: &&Received| {
            arrival.outcome == Outcome::Answered && arrival.status.is_some_and(|status| status < 300)
        };
        let arrivals = self.arrivals.get(user).map_or(&[][..], Vec::as_slice);
        arrivals.iter().filter(was_accepted).count()
    }

    /// How often a push was accepted that had been accepted before.
    pub(crate) fn duplicates(&self) -> usize {
        self.arrivals
            .keys()
            .map(|user| self.accepted(user).saturating_sub(1))
            .sum()
    }

    fn sum(&self, column: impl Fn(&Row) -> i64) -> i64 {
        self.rows.iter().map(column).sum()
    }

    /// Nothing was sent twice but what a fault had left without a recorded outcome: at most `claims` pushes.
    pub(crate) fn assert_duplicates_within(&self, claims: i64) {
        let lost = self.sum(|row| row.lost);
        assert!(lost <= claims, "{lost} claims were lost, not {claims} at most");
        let unknown = lost + self.sum(|row| row.unanswered);
        let duplicates = self.duplicates();
        assert!(
            duplicates as i64 <= unknown,
            "{duplicates} duplicates, and only {unknown} unknown outcomes"
        );
    }

    /// Nothing was recorded of any push since.
    pub(crate) fn assert_same_ends_as(&self, before: &Self) {
        assert_eq!(self.rows, before.rows);
    }

    /// Each push arrived exactly as often as it was attempted, and was accepted once at most. An outcome that stayed
    /// unknown because the machine was too slow for it, of the database or of Swrve, excuses one deviation.
    pub(crate) fn assert_no_duplicates(&self) {
        let unknown = self.sum(|row| row.lost) + self.sum(|row| row.unanswered);
        let arrived: usize = self.arrivals.values().map(Vec::len).sum();
        let missing = self.sum(|row| row.attempts) - arrived as i64;
        let duplicates = self.duplicates() as i64;
        assert!(
            (0..=unknown).contains(&missing) && duplicates <= unknown,
            "{missing} attempts that never arrived, {duplicates} duplicates, {unknown} unknown outcomes"
        );
        assert!(
            2 * unknown <= self.rows.len() as i64,
            "{unknown} unknown outcomes"
        );
    }
}

fn arrivals(receivers: &[&Running]) -> BTreeMap<String, Vec<Received>> {
    let mut arrivals: BTreeMap<String, Vec<Received>> = BTreeMap::new();
    for receiver in receivers {
        let items = receiver.received(0, usize::MAX).items;
        // Of a request that was under way when its sender was killed the head may have come without the body, which names
        // no user and is refused.
        for arrival in items.into_iter().filter(|arrival| !arrival.user.is_empty()) {
            arrivals.entry(arrival.user.clone()).or_default().push(arrival);
        }
    }
    arrivals
}

/// When a dispatcher was killed or frozen.
#[derive(Clone, Copy)]
pub(crate) struct Halt {
    /// Later than the token of every claim that it has made, or asked for: they begin with their time.
    after: Uuid,
}

impl Halt {
    /// Just now.
    pub(crate) fn now() -> Self {
        Self {
            after: PushId::at(SystemClock.now() + TimeDelta::milliseconds(1)).uuid(),
        }
    }

    /// How many claims it has left behind, which is how many pushes may be sent again. To be asked when another dispatcher
    /// leads: before that the database may not have dealt yet with what the old leader had asked of it last, and from
    /// then on a claim under the old term takes nothing.
    pub(crate) async fn claims_left_behind(self, it: &Installation) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE lease_token < $1")
            .bind(self.after)
            .fetch_one(&it.pool)
            .await
            .expect("the rows can be counted")
    }

    /// [`Self::claims_left_behind`], which run out now instead of in a minute.
    pub(crate) async fn claims_run_out(self, it: &Installation) -> i64 {
        let expired = sqlx::query(
            "UPDATE push_notifications SET leased_until = now() - interval '1 second' WHERE lease_token < $1",
        )
        .bind(self.after)
        .execute(&it.pool)
        .await
        .expect("the rows can be changed");
        expired.rows_affected() as i64
    }
}

/// How many pushes are claimed.
pub(crate) async fn claimed_pushes(it: &Installation) -> i64 {
    let claimed = "SELECT count(*) FROM push_notifications WHERE lease_token IS NOT NULL";
    count(&it.pool, claimed).await
}

/// Waits until the database server knows of the death of the only process of a service, and has dealt with what that had
/// asked of it last: a statement may wait in a connection that looks idle.
pub(super) async fn connections_ended(it: &Installation, service: Service) {
    let application = format!("postrider-{}", service.name());
    eventually("the connections of a dead service to end", async || {
        let connections: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = $1",
        )
        .bind(&application)
        .fetch_one(&it.pool)
        .await
        .expect("the rows can be counted");
        (connections == 0).then_some(())
    })
    .await;
}

/// How many pushes of a group have this status.
pub(crate) async fn count_with_status(it: &Installation, group: &str, status: PushStatus) -> i64 {
    sqlx::query_scalar(
        "SELECT count(*) FROM push_notifications WHERE starts_with(push_key, $1) AND status = $2",
    )
    .bind(format!("{group}-"))
    .bind(status.as_str())
    .fetch_one(&it.pool)
    .await
    .expect("the rows can be counted")
}

pub(super) async fn count(pool: &PgPool, query: &'static str) -> i64 {
    sqlx::query_scalar(query)
        .fetch_one(pool)
        .await
        .expect("the rows can be counted")
}
