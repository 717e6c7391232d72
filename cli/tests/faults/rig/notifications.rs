//! Looks at notifications on their way, and what time would do to those that a dead process left behind.

use domain::notification::NotificationStatus;
use testkit::{Installation, eventually};

use super::audit::{connections_ended, count};
use super::fleet::Service;

/// Brings about now what time would after the kill of the only process of a service: the claims that it left behind run
/// out. Returns how many there were, which is how many may be sent again.
pub(crate) async fn claims_run_out(it: &Installation, service: Service) -> u64 {
    connections_ended(it, service).await;
    // First attempts are the dispatcher's, further ones the retry worker's.
    let expired = sqlx::query(
        "UPDATE notifications SET leased_until = now() - interval '1 second'
         WHERE lease_token IS NOT NULL AND (attempts = 1) = $1",
    )
    .bind(service == Service::Dispatcher)
    .execute(&it.pool)
    .await
    .expect("the rows can be changed");
    expired.rows_affected()
}

/// Brings about now what two minutes would: what is in the queue, or only seems to be because the process that was to
/// publish it is dead, is taken for lost. It is safe at any time, since a claim asks the row; but the database server must
/// have seen that the killed process is gone, see [`service_is_gone`].
pub(crate) async fn queue_leases_run_out(it: &Installation) {
    sqlx::query(
        "UPDATE notifications SET leased_until = now() - interval '1 second'
         WHERE status = 'IN_MEMORY' AND lease_token IS NULL",
    )
    .execute(&it.pool)
    .await
    .expect("the rows can be changed");
}

/// Waits until nothing comes of what the killed only process of a service had asked of the database last.
pub(crate) async fn service_is_gone(it: &Installation, service: Service) {
    connections_ended(it, service).await;
}

/// How many notifications of the events of a group have this status.
pub(crate) async fn notifications_with_status(
    it: &Installation,
    group: &str,
    status: NotificationStatus,
) -> usize {
    let count: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM notifications n JOIN events e ON e.id = n.event
         WHERE starts_with(e.event_id, $1) AND n.status = $2",
    )
    .bind(format!("{group}-"))
    .bind(status.as_str())
    .fetch_one(&it.pool)
    .await
    .expect("the rows can be counted");
    usize::try_from(count).expect("a count")
}

/// Waits until everything has been tried.
pub(crate) async fn first_attempts_are_over(it: &Installation) {
    let ahead = "SELECT count(*) FROM notifications
                 WHERE attempts = 0 OR (attempts = 1 AND lease_token IS NOT NULL)";
    eventually("first attempts to be over", async || {
        (count(&it.pool, ahead).await == 0).then_some(())
    })
    .await;
}
