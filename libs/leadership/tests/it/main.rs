//! Leadership against a real database.

use std::time::{Duration, Instant};

use leadership::{Candidate, Settings, Term};
use lifecycle::Shutdown;
use sqlx::PgPool;
use store::Store;

/// So long that no holder of a lease goes without processor time for it.
const TTL: Duration = Duration::from_secs(6);

fn candidate(pool: &PgPool) -> Candidate {
    candidate_with(pool, TTL)
}

fn candidate_with(pool: &PgPool, ttl: Duration) -> Candidate {
    let settings = Settings {
        name: "lane".to_owned(),
        ttl,
        poll: Duration::from_millis(20),
    };
    Candidate::new(Store::from_pool(pool.clone()), settings)
}

async fn elect(pool: &PgPool) -> Term {
    candidate(pool)
        .next_term(&Shutdown::new())
        .await
        .expect("no shutdown was requested")
}

#[testkit::database_test]
async fn a_resigned_term_is_followed_at_once_by_one_with_a_greater_epoch(pool: PgPool) {
    let first = elect(&pool).await;
    assert!(!first.is_takeover());
    let epoch = first.lease().epoch;
    first.resign().await;
    let second = elect(&pool).await;
    assert_eq!((second.lease().epoch, second.is_takeover()), (epoch + 1, false));
}

#[testkit::database_test]
async fn a_term_holds_beyond_its_ttl_while_it_is_renewed_and_no_other_leads(pool: PgPool) {
    let term = elect(&pool).await;
    let rival = candidate(&pool);
    let rival_leads = tokio::time::timeout(TTL * 2, rival.next_term(&Shutdown::new()))
        .await
        .is_ok();
    assert!(!rival_leads && term.validity().holds());
}

#[testkit::database_test]
async fn a_successor_leads_only_after_the_old_term_has_ended(pool: PgPool) {
    let old = elect(&pool).await;
    let validity = old.validity();
    // The holder's row stops being renewed while the holder itself believes in it until its deadline.
    std::mem::forget(old);
    sqlx::query("UPDATE leases SET holder = gen_random_uuid(), renewals = renewals + 1")
        .execute(&pool)
        .await
        .unwrap();
    let started = Instant::now();
    let successor = elect(&pool).await;
    assert!(started.elapsed() >= TTL);
    assert!(!validity.holds() && successor.validity().holds());
    assert!(successor.is_takeover());
}

#[testkit::database_test]
async fn a_term_ends_by_itself_when_the_database_is_gone(pool: PgPool) {
    let term = elect(&pool).await;
    let validity = term.validity();
    pool.close().await;
    tokio::time::timeout(testkit::PATIENCE, validity.ended())
        .await
        .unwrap();
    assert!(!validity.holds());
}

#[testkit::database_test]
async fn a_shutdown_ends_the_wait(pool: PgPool) {
    let _term = elect(&pool).await;
    let shutdown = Shutdown::new();
    shutdown.trigger();
    assert!(candidate(&pool).next_term(&shutdown).await.is_none());
}

#[testkit::database_test]
async fn a_free_lease_is_not_taken_after_the_shutdown(pool: PgPool) {
    elect(&pool).await.resign().await;
    let shutdown = Shutdown::new();
    shutdown.trigger();
    assert!(candidate(&pool).next_term(&shutdown).await.is_none());
}

#[testkit::database_test]
async fn a_lease_that_is_granted_during_the_shutdown_is_resigned(pool: PgPool) {
    elect(&pool).await.resign().await;
    let mut slow = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM leases FOR UPDATE")
        .execute(&mut *slow)
        .await
        .unwrap();
    let shutdown = Shutdown::new();
    let waiting = tokio::spawn({
        let (candidate, shutdown) = (candidate_with(&pool, testkit::PATIENCE), shutdown.clone());
        async move { candidate.next_term(&shutdown).await }
    });
    testkit::eventually("the lease to be asked for", async || {
        let blocked: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .fetch_one(&pool)
        .await
        .unwrap();
        (blocked == 1).then_some(())
    })
    .await;
    shutdown.trigger();
    slow.rollback().await.unwrap();
    assert!(waiting.await.unwrap().is_none());
    let holder: Option<uuid::Uuid> = sqlx::query_scalar("SELECT holder FROM leases")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(holder, None);
}
