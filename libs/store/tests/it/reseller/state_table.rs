//! Every state × every event, driven through the store, must come out as `domain::lifecycle::transition` says: the
//! same next state, or a refusal that leaves every byte as it was.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::lifecycle::{Attempts, Event, transition};
use domain::notification::{ClientErrors, DeliveryOutcome, NotificationState, NotificationStatus};
use serde_json::json;
use sqlx::PgPool;
use store::webhook::{
    ClaimTerms, DeliveryCompletion, NotificationRelease, NotificationSearch, NotificationsOf, Resent,
    SpillReason,
};
use store::{Act, Cancellation, Store};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;

use crate::after_restore::quarantine;
use crate::reseller::scene::{
    POLICY, answered, clear, everything, promote_due_ids, row, set, terms, timed_out,
};
use crate::scene::{LONG, act, count, open_dead_letters};

/// How the subscription is when the event happens, where one event can have several causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Plain,
    Quota,
    Rate,
    Paused,
    HeldByAnOperator,
    Unverified,
    Deactivated,
    Deleted,
}

fn causes(event: Event) -> &'static [Cause] {
    match event {
        Event::Defer => &[Cause::Quota, Cause::Rate],
        Event::Hold => &[Cause::Paused, Cause::HeldByAnOperator, Cause::Unverified],
        Event::Abandon => &[Cause::Deactivated, Cause::Deleted],
        // Plain: it is cancelled.
        Event::EndResend => &[Cause::Plain, Cause::Deactivated, Cause::Deleted],
        _ => &[Cause::Plain],
    }
}

async fn bring_about(pool: &PgPool, cause: Cause, made: &MadeNotification) {
    let statement = match cause {
        Cause::Plain => return,
        Cause::Quota => {
            "INSERT INTO subscription_budgets (subscription_id, day, used, quota)
             VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 1000000, 1000000)"
        }
        Cause::Rate => {
            "INSERT INTO subscription_paces (subscription_id, next_slot_at, asked_at, span)
             VALUES ($1, now() + interval '5 seconds', now(), '1 second')"
        }
        Cause::Paused => "UPDATE subscriptions SET paused_at = now() WHERE id = $1",
        Cause::HeldByAnOperator => "UPDATE subscriptions SET held_at = now() WHERE id = $1",
        Cause::Unverified => "UPDATE subscriptions SET state = 'PENDING_VERIFICATION' WHERE id = $1",
        Cause::Deactivated => "UPDATE subscriptions SET state = 'DEACTIVATED' WHERE id = $1",
        Cause::Deleted => "UPDATE subscriptions SET deleted_at = now() WHERE id = $1",
    };
    set(pool, statement, made.subscription).await;
}

/// Drives `event`; tells whether the store says that it happened.
async fn drive(
    store: &Store,
    pool: &PgPool,
    (event, cause): (Event, Cause),
    made: MadeNotification,
    next: Option<NotificationState>,
) -> bool {
    let now = SystemClock.now();
    let terms = ClaimTerms {
        requests_per_second: (event == Event::Defer).then_some(1),
        ..terms(now)
    };
    match event {
        Event::Enqueue => {
            let first = store
                .promote_first_attempts(now, None, &[], 9, 9, LONG)
                .await
                .unwrap();
            first
                .notifications
                .iter()
                .any(|promoted| promoted.id == made.id.uuid())
                || promote_due_ids(store, pool, now).await.contains(&made.id)
        }
        Event::Spill => {
            let why = SpillReason::NotEnqueued;
            store.spill_notifications(&[made.id], why, now).await.unwrap() == 1
        }
        Event::Claim | Event::Defer | Event::Hold => {
            let claims = store.claim_notifications(&[made.id], &terms).await.unwrap();
            match event {
                Event::Claim => claims.claimed.len() == 1,
                Event::Defer => claims.over_quota + claims.over_rate == 1,
                _ => claims.held == 1,
            }
        }
        Event::HandBack | Event::Postpone => {
            let release = NotificationRelease {
                id: made.id,
                lease_token: made.lease_token,
                postponed_to: (event == Event::Postpone).then(|| now + TimeDelta::seconds(5)),
            };
            let released = store.release_notifications(&[release], now).await.unwrap();
            released.contains(&made.id)
        }
        Event::Abandon => abandon(store, made, &terms).await,
        Event::EndResend if cause != Cause::Plain => abandon(store, made, &terms).await,
        Event::Succeed => complete(store, made, answered(204), next, NotificationStatus::Sent).await,
        Event::FailRetryable => complete(store, made, timed_out(), next, NotificationStatus::Retry).await,
        Event::FailPermanently => {
            complete(store, made, answered(404), next, NotificationStatus::Failed).await
        }
        Event::Rescue => {
            let rescued = store
                .rescue_notifications(now, 9, POLICY.max_retries)
                .await
                .unwrap();
            rescued.pending + rescued.retry + rescued.given_up == 1
        }
        Event::Resend => {
            store
                .resend_notification("acme", made.id, act(now))
                .await
                .unwrap()
                == Resent::Done
        }
        Event::Cancel | Event::EndResend => {
            let act = Act {
                by: "Anna (1)",
                note: Some("not wanted any more"),
                at: now,
            };
            let cancelled = store.cancel_notification(made.id, act).await.unwrap();
            match event {
                Event::Cancel => matches!(cancelled, Cancellation::Done(_)),
                _ => matches!(cancelled, Cancellation::StaysDelivered(_)),
            }
        }
        Event::Quarantine => quarantine(store).await == 1,
    }
}

/// Its subscription gets nothing any more: found at a claim, or by the job.
async fn abandon(store: &Store, made: MadeNotification, terms: &ClaimTerms) -> bool {
    let claims = store.claim_notifications(&[made.id], terms).await.unwrap();
    let now = SystemClock.now();
    let ended = store.end_inactive(made.subscription, 9, now).await.unwrap();
    claims.abandoned + claims.stay_delivered + ended.count == 1
}

async fn complete(
    store: &Store,
    made: MadeNotification,
    outcome: DeliveryOutcome,
    next: Option<NotificationState>,
    otherwise: NotificationStatus,
) -> bool {
    let status = next.map_or(otherwise, NotificationState::status);
    let now = SystemClock.now();
    let completion = DeliveryCompletion {
        id: made.id,
        lease_token: made.lease_token,
        status,
        next_attempt_at: (status == NotificationStatus::Retry).then_some(now),
        started_at: now,
        millis: 983,
        classification: outcome.classification(ClientErrors::Usual),
    };
    let completed = store.complete_deliveries(&[completion], now).await.unwrap();
    completed.contains(&made.id)
}

/// How the last attempt stands after `event`.
fn expected_last(event: Event, before: Option<String>) -> Option<String> {
    match event {
        Event::Claim => Some("IN_PROCESS".to_owned()),
        Event::Succeed => Some("OK".to_owned()),
        Event::FailRetryable | Event::FailPermanently => Some("ERROR".to_owned()),
        Event::Rescue | Event::Quarantine => before.map(|_| "ERROR".to_owned()),
        _ => before,
    }
}

async fn attempt_rows(pool: &PgPool, made: &MadeNotification) -> Vec<(i32, String)> {
    sqlx::query_as("SELECT number, status FROM delivery_attempts WHERE notification_id = $1 ORDER BY number")
        .bind(made.id.uuid())
        .fetch_all(pool)
        .await
        .unwrap()
}

/// The attempts that a notification may have had in a state, in all and before it was resent.
fn histories(event: Event, state: NotificationState) -> Vec<Attempts> {
    let histories: &[(u32, u32)] = match state {
        // What was not sent again ends by `Abandon` or `Cancel`.
        NotificationState::Scheduled | NotificationState::Pending if event == Event::EndResend => &[],
        NotificationState::Queued if event == Event::EndResend => &[(4, 4), (6, 4)],
        _ if event == Event::EndResend => &[(4, 4), (7, 4)],
        NotificationState::Scheduled | NotificationState::Pending => &[(0, 0)],
        NotificationState::Queued => &[(0, 0), (1, 0), (4, 4)],
        _ => &[(1, 0), (3, 0), (4, 0), (7, 4), (8, 4)],
    };
    let attempts = |&(total, before_resend)| Attempts { total, before_resend };
    histories.iter().map(attempts).collect()
}

async fn check(pool: &PgPool, event: Event, cause: Cause, state: NotificationState, attempts: Attempts) {
    let case = format!("{event:?} ({cause:?}) of a notification that is {state:?} after {attempts:?}");
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(pool).await;
    let mut made = NotificationRow::in_state(state, subscription).attempts(attempts.total);
    if event == Event::Rescue {
        made = made.leased_for(TimeDelta::seconds(-1));
    }
    let made = made.make(pool).await;
    sqlx::query("UPDATE notifications SET resent_after = $1 WHERE id = $2")
        .bind(i32::try_from(attempts.before_resend).unwrap())
        .bind(made.id.uuid())
        .execute(pool)
        .await
        .unwrap();
    if event == Event::EndResend {
        let accepted = "UPDATE delivery_attempts SET status = 'OK', error_type = NULL WHERE notification_id = $1 AND number = 2";
        set(pool, accepted, made.id.uuid()).await;
    }
    bring_about(pool, cause, &made).await;
    let before = everything(pool).await;
    let (letters, last) = (
        count(pool, "dead_letters").await,
        attempt_rows(pool, &made).await.pop().map(|(_, status)| status),
    );
    let expected = transition(state, event, attempts, &POLICY.rules());

    let happened = drive(&store, pool, (event, cause), made, expected.ok()).await;

    assert_eq!(happened, expected.is_ok(), "{case}");
    let Ok(next) = expected else {
        assert_eq!(everything(pool).await, before, "changed by a refused {case}");
        return;
    };
    let after = row(pool, made.id).await;
    assert_eq!(after.state(), next, "{case}");
    let taken_back = matches!(event, Event::HandBack | Event::Postpone);
    let total = attempts.total + u32::from(event == Event::Claim) - u32::from(taken_back);
    assert_eq!(after.attempts.unsigned_abs(), total, "attempts: {case}");
    let before_resend = if event == Event::Resend {
        total
    } else {
        attempts.before_resend
    };
    assert_eq!(after.resent_after.unsigned_abs(), before_resend, "{case}");
    let rows = attempt_rows(pool, &made).await;
    assert_eq!(
        rows.len(),
        usize::try_from(total).unwrap(),
        "attempt rows: {case}"
    );
    let last = if taken_back {
        // The one before it, which has ended.
        (total > 0).then(|| "ERROR".to_owned())
    } else {
        expected_last(event, last)
    };
    assert_eq!(
        rows.last().map(|(_, status)| status.clone()),
        last,
        "last attempt: {case}"
    );
    use NotificationState as S;
    let new_dead_letters = i64::from(matches!(next, S::Failed | S::GivenUp | S::Cancelled));
    assert_eq!(
        count(pool, "dead_letters").await - letters,
        new_dead_letters,
        "dead letters: {case}"
    );
    // What is given up because an operator wants it so, or because its subscription gets nothing any more, is nothing that
    // an operator has to mend.
    if matches!(event, Event::Abandon | Event::Cancel) {
        assert_eq!(open_dead_letters(pool).await, 0, "open dead letters: {case}");
    }
}

async fn mirrors_the_domain(pool: &PgPool, event: Event) {
    for cause in causes(event) {
        for state in NotificationState::ALL {
            for attempts in histories(event, state) {
                check(pool, event, *cause, state, attempts).await;
                clear(pool).await;
            }
        }
    }
}

macro_rules! mirror {
    ($($name:ident: $event:ident,)*) => {$(
        #[testkit::database_test]
        async fn $name(pool: PgPool) {
            mirrors_the_domain(&pool, Event::$event).await;
        }
    )*};
}

mirror! {
    enqueue_mirrors_the_domain: Enqueue,
    spill_mirrors_the_domain: Spill,
    claim_mirrors_the_domain: Claim,
    defer_mirrors_the_domain: Defer,
    hold_mirrors_the_domain: Hold,
    hand_back_mirrors_the_domain: HandBack,
    postpone_mirrors_the_domain: Postpone,
    succeed_mirrors_the_domain: Succeed,
    fail_retryable_mirrors_the_domain: FailRetryable,
    fail_permanently_mirrors_the_domain: FailPermanently,
    rescue_mirrors_the_domain: Rescue,
    abandon_mirrors_the_domain: Abandon,
    resend_mirrors_the_domain: Resend,
    cancel_mirrors_the_domain: Cancel,
    end_resend_mirrors_the_domain: EndResend,
    quarantine_mirrors_the_domain: Quarantine,
}

/// What is found to be cancelled at once, and what is cancelled of all, is what may be.
#[testkit::database_test]
async fn cancelling_many_mirrors_the_domain(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let (mut all, mut wanted) = (Vec::new(), Vec::new());
    for state in NotificationState::ALL {
        let made = NotificationRow::in_state(state, subscription).make(&pool).await;
        let attempts = Attempts {
            total: 1,
            before_resend: 0,
        };
        all.push(made.id.uuid());
        if transition(state, Event::Cancel, attempts, &POLICY.rules()).is_ok() {
            wanted.push(made.id.uuid());
        }
    }
    let search = NotificationSearch {
        of: NotificationsOf::Subscription(subscription),
        ..NotificationSearch::default()
    };
    let mut found = store.notifications_to_cancel(&search, None).await.unwrap().ids;
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    let cancel = async || {
        let act = act(SystemClock.now());
        store
            .cancel_notifications(&all, (&search.of, None), json!({}), act)
            .await
            .unwrap()
    };
    assert_eq!(cancel().await.cancelled, wanted.len() as u64);
    assert_eq!(cancel().await.cancelled, 0, "a second time");
}
