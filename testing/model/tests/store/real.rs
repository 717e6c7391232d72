//! One push in a database, led through what the model's push goes through.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::lifecycle::{Attempts, transition};
use domain::push::{AttemptStatus, PushState, RetryPolicy, SendOutcome};
use domain::reason::PushReason;
use model::delivery::{Action, Claim, Outcome, Release, Row, State, Step, Term};
use serde_json::json;
use sqlx::PgPool;
use store::push::{ClaimedPush, Completion, PromotionQueue};
use store::{Act, BrokerDeadLetter, Cancellation, DeadLetterLane, Lease, Resolved, Store};
use testkit::push_factory::{MadePush, PushRow};
use uuid::Uuid;

/// Longer than the test runs.
const LONG: Duration = Duration::from_secs(3_600);

pub(crate) struct Real {
    pool: PgPool,
    store: Store,
    push: MadePush,
    policy: RetryPolicy,
    /// Every lease that was ever taken; the last is the present one.
    leases: Vec<Lease>,
    /// What the model's tokens stand for.
    claims: HashMap<u8, ClaimedPush>,
}

fn act() -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: Some("for the model"),
        at: SystemClock.now(),
    }
}

impl Real {
    pub(crate) async fn begin(pool: &PgPool, state: PushState, max_attempts: u8) -> Self {
        Self {
            pool: pool.clone(),
            store: Store::from_pool(pool.clone()),
            push: PushRow::in_state(state).make(pool).await,
            policy: RetryPolicy {
                delay: Duration::from_secs(60),
                max_attempts: max_attempts.into(),
            },
            leases: Vec::new(),
            claims: HashMap::new(),
        }
    }

    /// Takes the push out of the way of the next one.
    pub(crate) async fn end(self) {
        for table in ["dead_letters", "send_attempts", "push_notifications"] {
            sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table}")))
                .execute(&self.pool)
                .await
                .unwrap();
        }
    }

    /// Does to the row what the action does; tells what that was.
    pub(crate) async fn follow(
        &mut self,
        before: &State,
        after: &State,
        action: Action,
    ) -> Option<&'static str> {
        match action {
            Action::Lapse { .. } => self.lapse().await,
            Action::TakeLead { .. } => self.lead().await,
            Action::Claim { worker, .. } | Action::ClaimUnanswered { worker, .. } => {
                return self.claim(before, after, worker).await;
            }
            Action::Record { worker, item } | Action::RecordUnanswered { worker, item } => {
                return self.record(before.workers[worker].items[item].step).await;
            }
            _ => return self.change(action).await,
        }
        None
    }

    async fn lapse(&self) {
        sqlx::query("UPDATE push_notifications SET leased_until = now() - interval '1 s' WHERE id = $1")
            .bind(self.push.id.uuid())
            .execute(&self.pool)
            .await
            .unwrap();
    }

    async fn lead(&mut self) {
        let seen = self.store.view_lease("push").await.unwrap();
        let lease = self.store.take_lease("push", seen, Uuid::now_v7()).await;
        self.leases
            .push(lease.unwrap().expect("no other process is after the lease"));
    }

    async fn claim(&mut self, before: &State, after: &State, worker: usize) -> Option<&'static str> {
        let stale = before.workers[worker].term != Term::Current;
        let place = self.leases.len() - 1 - usize::from(stale);
        let claim = store::push::Claim {
            leader: &self.leases[place],
            lease: LONG,
        };
        let claimed = self.store.claim_pushes(&[self.push.id], claim).await.unwrap();
        let refused = stale && self.store.any_push_waits(&[self.push.id]).await.unwrap();
        match (claimed.into_iter().next(), after.rows[0].token) {
            (Some(claimed), Some(token)) => {
                self.claims.insert(token, claimed);
                Some("claimed")
            }
            // What is to be seen of it is compared afterwards.
            _ => refused.then_some("claim refused by epoch"),
        }
    }

    /// As `libs/engine/src/push/ending.rs` and `completer.rs` do.
    async fn record(&self, step: Step) -> Option<&'static str> {
        match step {
            Step::Answered(claim, outcome) => Some(self.complete(claim, outcome).await),
            Step::Released(claim, release) => {
                let deferred_to =
                    (release == Release::Defer).then(|| SystemClock.now() + TimeDelta::hours(1));
                let release = store::push::Release {
                    id: self.push.id,
                    lease_token: self.claims[&claim.token].lease_token,
                    deferred_to,
                };
                let released = self.store.release_pushes(&[release], LONG).await.unwrap();
                let how = if deferred_to.is_some() {
                    "deferred"
                } else {
                    "handed back"
                };
                (!released.is_empty()).then_some(how)
            }
            _ => None,
        }
    }

    async fn complete(&self, claim: Claim, outcome: Outcome) -> &'static str {
        let push = &self.claims[&claim.token];
        let classification = outcome_of(outcome).classification();
        let attempts = Attempts {
            total: push.attempts,
            before_resend: push.replayed_after,
        };
        let next = transition(
            PushState::Sending,
            classification.event,
            attempts,
            &self.policy.rules(),
        )
        .unwrap();
        let completion = Completion {
            id: push.id,
            lease_token: push.lease_token,
            status: next.status(),
            next_attempt_at: (next == PushState::Retry).then(|| SystemClock.now()),
            millis: 983,
            response_status: None,
            classification,
        };
        let completed = self.store.complete_pushes(&[completion]).await.unwrap();
        if completed.is_empty() {
            "completed with a stale token"
        } else {
            "completed"
        }
    }

    async fn change(&self, action: Action) -> Option<&'static str> {
        let (store, id) = (&self.store, self.push.id);
        match action {
            Action::Rescue { .. } => {
                let rescued = store.rescue_pushes(9, self.policy.max_attempts).await.unwrap();
                assert_eq!(rescued.pending + rescued.given_up, 1);
                Some(if rescued.given_up == 1 {
                    "given up by a rescue"
                } else {
                    "rescued"
                })
            }
            Action::Promote { .. } => {
                let due = PromotionQueue::Due(SystemClock.now() + TimeDelta::days(1));
                for queue in [PromotionQueue::Pending, due] {
                    store.promote_pushes(queue, 9, LONG).await.unwrap();
                }
                Some("promoted")
            }
            Action::MarkBack { .. } => {
                let marked = store.mark_not_enqueued(&[id]).await.unwrap();
                (marked == 1).then_some("marked back")
            }
            Action::Archive { .. } => {
                let requeued = store.archive_dead_letter(&rejected(id.uuid())).await.unwrap();
                requeued.then_some("archived")
            }
            Action::Requeue { .. } => {
                let requeued = store.requeue_everything(act()).await.unwrap();
                (requeued.pushes == 1).then_some("requeued")
            }
            Action::Cancel { .. } => {
                let cancelled = store.cancel_push(id, act()).await.unwrap();
                assert!(matches!(cancelled, Cancellation::Done(_)), "{cancelled:?}");
                Some("cancelled")
            }
            Action::Replay { .. } => {
                let letter = self.open_dead_letters().await[0];
                let resolved = store.replay_dead_letter(letter, &act()).await.unwrap();
                assert_eq!(resolved, Resolved::Done);
                Some("replayed")
            }
            _ => None,
        }
    }

    /// Those that tell of a failure, not of a message.
    async fn open_dead_letters(&self) -> Vec<Uuid> {
        sqlx::query_scalar(
            "SELECT id FROM dead_letters WHERE push_id = $1 AND state = 'OPEN' AND reason IN ('FAILED', 'GIVEN_UP')",
        )
        .bind(self.push.id.uuid())
        .fetch_all(&self.pool)
        .await
        .unwrap()
    }

    /// What the row shows otherwise than the model's.
    pub(crate) async fn difference(&self, expected: &Row) -> Option<String> {
        let push = self.store.find_push(self.push.id).await.unwrap().unwrap();
        let (token, lapsed): (Option<Uuid>, bool) = sqlx::query_as(
            "SELECT lease_token, coalesce(leased_until < now(), false) FROM push_notifications WHERE id = $1",
        )
        .bind(self.push.id.uuid())
        .fetch_one(&self.pool)
        .await
        .unwrap();
        let bits = |wanted: fn(AttemptStatus) -> bool| {
            let attempts = push.history.iter().filter(|attempt| wanted(attempt.status));
            attempts.fold(0_u16, |bits, attempt| bits | 1 << attempt.number)
        };
        let found = (
            PushState::of(
                push.status,
                push.claimed,
                push.reason == Some(PushReason::Cancelled),
            ),
            token,
            lapsed,
            (push.attempts, push.replayed_after),
            (bits(|_| true), bits(|status| status == AttemptStatus::InProcess)),
            self.open_dead_letters().await.len(),
        );
        let wanted = (
            expected.state,
            expected.token.map(|token| self.claims[&token].lease_token),
            expected.lapsed,
            (u32::from(expected.attempts), u32::from(expected.before)),
            (expected.attempt_rows, expected.in_process),
            usize::from(expected.dead_letters),
        );
        (found != wanted).then(|| format!("found {found:?}, the model has {wanted:?}"))
    }
}

fn outcome_of(outcome: Outcome) -> SendOutcome {
    let refused = |status| SendOutcome::Refused {
        status,
        code: None,
        message: format!("{status} of the test"),
    };
    match outcome {
        Outcome::Accepted => SendOutcome::Delivered,
        Outcome::AcceptedUnheard => SendOutcome::Unreachable {
            message: "no answer".to_owned(),
        },
        Outcome::Unavailable => refused(503),
        Outcome::Refused => refused(400),
    }
}

fn rejected(id: Uuid) -> BrokerDeadLetter {
    BrokerDeadLetter {
        lane: DeadLetterLane::Push,
        id: Some(id),
        detail: "the broker gave the message up".to_owned(),
        fingerprint: "broker/delivery_limit".to_owned(),
        message: json!({}),
    }
}
