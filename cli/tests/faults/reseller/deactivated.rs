//! A subscription that was deactivated catches up on what it missed, and the retry worker is killed in the middle of that.

use domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use testkit::{Installation, eventually};

use crate::rig::{
    Delivered, Ends, Event, Fleet, RESELLERS, SENT, Service, Subscriber, Subscribers, events_of,
    queue_leases_run_out, service_is_gone,
};

const MISSED: usize = 40;
const NOTHING: Ends = &[];

fn replayed(replay: &Value) -> u64 {
    replay["replayed"].as_u64().expect("a count")
}

#[testkit::test]
async fn what_a_deactivated_subscription_missed_arrives_once_when_it_is_replayed(it: Installation) {
    let acme = RESELLERS[0];
    let all = vec![
        Subscriber::new("active", acme, &["*"]),
        Subscriber::new("resting", acme, &["*"]).deactivated(),
    ];
    let subscribers = Subscribers::of(&it, all).await;
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__RESELLER__REPLAY__PER_SECOND", 1);
    let [_ingest, _dispatcher, worker] = fleet.start_all().await;
    let since = SystemClock.now();
    let mut events = events_of(acme, "missed", MISSED);
    let mut answers = fleet.hand_in(events.clone()).finish().await;
    let ends = |subscriber: &Subscriber, _: &Event| match subscriber.name {
        "resting" => NOTHING,
        _ => SENT,
    };
    let delivered = Delivered::of(&it, &subscribers, (&events, &answers), ends).await;
    delivered.assert_no_duplicates();

    let portal = fleet.portal(acme).await;
    let resting = format!("/subscriptions/{}", subscribers.all[1].id);
    let active = portal.post(&format!("{resting}/activate"), None).await;
    assert_eq!(active["state"], "ACTIVE");
    let afterwards = events_of(acme, "afterwards", 10);
    answers.extend(fleet.hand_in(afterwards.clone()).finish().await);
    events.extend(afterwards);

    let replays = format!("{resting}/replays");
    let replay = portal.post(&replays, Some(&json!({ "since": since }))).await;
    let replay = format!("{replays}/{}", replay["id"].as_str().expect("an identifier"));
    eventually("the replay to be in the middle", async || {
        (replayed(&portal.get(&replay).await) > 0).then_some(())
    })
    .await;
    worker.kill();
    service_is_gone(&it, Service::RetryWorker).await;
    let halfway = replayed(&portal.get(&replay).await);
    assert!(halfway < MISSED as u64, "it was killed too late");
    // Some are stored as queued and were never published.
    queue_leases_run_out(&it).await;
    // So slow that there was time to kill it; the rest may go faster.
    sqlx::query("UPDATE replays SET per_second = 50")
        .execute(&it.pool)
        .await
        .expect("the row can be changed");

    let _worker = fleet.start(Service::RetryWorker).await;
    let completed = eventually("the replay to be through", async || {
        let replay = portal.get(&replay).await;
        (replay["status"] == "COMPLETED").then_some(replay)
    })
    .await;
    assert_eq!(replayed(&completed), MISSED as u64);
    let delivered = Delivered::of(&it, &subscribers, (&events, &answers), |_, _| SENT).await;
    delivered.assert_no_duplicates();
}
