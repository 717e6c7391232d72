//! `kill -9` of the retry worker: while notifications wait for their retry, and while retries are in flight.

use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::{
    Delivered, Fleet, SENT, Service, Subscribers, claims_run_out, events, first_attempts_are_over,
    notifications_with_status, queue_leases_run_out,
};

#[testkit::test]
async fn retries_go_on_after_a_restart_and_stay_the_same(it: Installation) {
    let subscribers = Subscribers::usual(&it).await;
    subscribers.script(vec![Rule::answering(503).at("/everything")]);
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__RESELLER__RETRY__MAX_RETRIES", 50);
    let [_ingest, _dispatcher, worker] = fleet.start_all().await;
    let all = events("all", 120);
    let callers = fleet.hand_in(all.clone());
    eventually("notifications to wait for their retry", async || {
        let waiting = notifications_with_status(&it, "all", NotificationStatus::Retry).await;
        (waiting >= 10).then_some(())
    })
    .await;
    worker.kill();
    let mut claims = claims_run_out(&it, Service::RetryWorker).await;
    let answers = callers.finish().await;
    first_attempts_are_over(&it).await;

    let hang = Rule {
        hang: true,
        ..Rule::default()
    };
    subscribers.script(vec![hang.at("/everything")]);
    let worker = fleet.start(Service::RetryWorker).await;
    subscribers.in_mid_flight(5).await;
    worker.kill();
    let in_flight = claims_run_out(&it, Service::RetryWorker).await;
    assert!(in_flight > 0, "it was not in mid-flight");
    claims += in_flight;
    subscribers.script(Vec::new());
    // Some are stored as queued and were never published.
    queue_leases_run_out(&it).await;

    let _worker = fleet.start(Service::RetryWorker).await;
    let delivered = Delivered::of(&it, &subscribers, (&all, &answers), |_, _| SENT).await;
    delivered.assert_duplicates_within(claims);
    assert!(delivered.duplicates() > 0, "the fault has brought nothing about");
}
