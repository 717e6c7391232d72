//! Claims that their callers give up, at whichever point of their way into the database.

use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use store::Store;
use store::push::Claim;
use testkit::eventually;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{row, terms};
use crate::scene::{LONG, count, everything, lead};

/// The lock that the deferred trigger of these tests wants, which holds up commits.
const COMMITS: i64 = 170;

/// A connection of the test's own that holds commits of changes of `table` up.
async fn hold_commits_up(pool: &PgPool, table: &str) -> PgConnection {
    for statement in [
        format!(
            "CREATE FUNCTION wait_to_commit() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_advisory_xact_lock_shared({COMMITS}); RETURN NULL; END $$"
        ),
        format!(
            "CREATE CONSTRAINT TRIGGER slow_commit AFTER UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION wait_to_commit()"
        ),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(pool).await.unwrap();
    }
    let mut other = PgConnection::connect_with(&pool.connect_options()).await.unwrap();
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(COMMITS)
        .execute(&mut other)
        .await
        .unwrap();
    other
}

/// Waits until something waits for a lock.
async fn something_waits(observer: &mut PgConnection) {
    loop {
        let waits: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                            WHERE NOT l.granted AND a.datname = current_database())",
        )
        .fetch_one(&mut *observer)
        .await
        .unwrap();
        if waits {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Waits until nothing is being done by others in this database any more.
async fn all_is_quiet(observer: &mut PgConnection) {
    loop {
        let busy: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
               AND backend_type = 'client backend'",
        )
        .fetch_one(&mut *observer)
        .await
        .unwrap();
        if busy == 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[testkit::database_test]
async fn a_claim_that_is_given_up_before_its_commit_takes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let lease = lead(&store).await;
    let push = PushRow::in_state(PushState::Queued).make(&pool).await;
    let subscription = SubscriptionRow::active().make(&pool).await;
    let notification = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let mut observer = PgConnection::connect_with(&pool.connect_options()).await.unwrap();
    for what in ["push_notifications", "notifications"] {
        let before = everything(&pool).await;
        let mut holder = pool.begin().await.unwrap();
        sqlx::query(AssertSqlSafe(format!("SELECT FROM {what} FOR UPDATE")))
            .execute(&mut *holder)
            .await
            .unwrap();
        let claiming = {
            let (store, lease) = (store.clone(), lease.clone());
            tokio::spawn(async move {
                if what == "notifications" {
                    let claims = store
                        .claim_notifications(&[notification.id], &terms(SystemClock.now()))
                        .await;
                    claims.map(|claims| claims.claimed.len())
                } else {
                    let claim = Claim {
                        leader: &lease,
                        lease: LONG,
                    };
                    store
                        .claim_pushes(&[push.id], claim)
                        .await
                        .map(|claimed| claimed.len())
                }
            })
        };
        something_waits(&mut observer).await;
        claiming.abort();
        assert!(claiming.await.unwrap_err().is_cancelled());
        holder.rollback().await.unwrap();
        all_is_quiet(&mut observer).await;
        assert_eq!(everything(&pool).await, before, "{what}");
    }
}

#[testkit::database_test]
async fn a_notification_whose_claim_is_given_up_during_its_commit_is_handed_back(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let mut other = hold_commits_up(&pool, "notifications").await;
    let claiming = {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .claim_notifications(&[made.id], &terms(SystemClock.now()))
                .await
        })
    };
    something_waits(&mut other).await;
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    other.close().await.unwrap();
    eventually("the notification to wait again", async || {
        let after = row(&pool, made.id).await;
        (after.state() == NotificationState::Pending).then_some(())
    })
    .await;
    assert_eq!(row(&pool, made.id).await.attempts, 0);
    assert_eq!(count(&pool, "delivery_attempts").await, 0);
    let again = store
        .claim_notifications(&[made.id], &terms(SystemClock.now()))
        .await
        .unwrap();
    assert_eq!(again.claimed[0].attempts.total, 1);
}

#[testkit::database_test]
async fn a_push_whose_claim_is_given_up_during_its_commit_is_handed_back(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let lease = lead(&store).await;
    let made = PushRow::in_state(PushState::Queued).make(&pool).await;
    let before = store.find_push(made.id).await.unwrap().unwrap();
    let mut other = hold_commits_up(&pool, "push_notifications").await;
    let claiming = {
        let (store, lease) = (store.clone(), lease.clone());
        tokio::spawn(async move {
            let claim = Claim {
                leader: &lease,
                lease: LONG,
            };
            store.claim_pushes(&[made.id], claim).await
        })
    };
    something_waits(&mut other).await;
    claiming.abort();
    assert!(claiming.await.unwrap_err().is_cancelled());
    other.close().await.unwrap();
    let after = eventually("the push to be handed back", async || {
        let push = store.find_push(made.id).await.ok()??;
        (!push.claimed && push.leased_until != before.leased_until).then_some(push)
    })
    .await;
    assert_eq!((after.attempts, after.history.len()), (0, 0));
    // Its message may be gone: the rescuer finds it soon.
    assert!(after.leased_until < before.leased_until, "{after:?}");
    let claim = Claim {
        leader: &lease,
        lease: LONG,
    };
    assert_eq!(
        store.claim_pushes(&[made.id], claim).await.unwrap()[0].attempts,
        1
    );
}
