//! Several replicas of each service at once, and a quota that none of them knows the others' part of.

use broker::Queue;
use chrono::Timelike as _;
use domain::clock::{Clock as _, SystemClock};
use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::{
    Delivered, Ends, Event, Fleet, PUSH_QUEUE_CAPACITY, Process, RESELLERS, SENT, Service, Subscriber,
    Subscribers, events,
};

const EVENTS: usize = 300;
const QUOTA: usize = 47;
const FAILURES: u64 = 30;

const SENT_OR_LEFT: Ends = &[NotificationStatus::Sent, NotificationStatus::Scheduled];

fn subscriptions() -> Vec<Subscriber> {
    let [acme, globex] = RESELLERS;
    vec![
        Subscriber::new("everything", acme, &["*"]),
        Subscriber::new("limited", acme, &["*"]).daily_quota(i32::try_from(QUOTA).expect("a quota")),
        Subscriber::new("flaky", acme, &["*"]),
        Subscriber::new("elsewhere", globex, &["*"]),
    ]
}

/// A time zone in which the day does not end before the test does.
fn where_it_is_noon() -> String {
    match i64::from(SystemClock.now().hour()) - 12 {
        0 => "UTC".to_owned(),
        // West of Greenwich the sign is a plus.
        ahead => format!("Etc/GMT{ahead:+}"),
    }
}

/// Each of them has counted something.
async fn assert_busy(processes: &[&Process], series: &str) {
    for process in processes {
        assert!(process.metrics().await.value(series) > 0.0, "one has no {series}");
    }
}

#[testkit::test]
async fn each_notification_arrives_once_and_no_quota_is_exceeded_by_one(mut it: Installation) {
    it.config.push.queue.capacity = PUSH_QUEUE_CAPACITY;
    let subscribers = Subscribers::of(&it, subscriptions()).await;
    let fail = Rule {
        times: Some(FAILURES),
        ..Rule::answering(503).at("/flaky")
    };
    let dawdle = Rule {
        delay_millis: Some(100),
        ..Rule::default()
    };
    subscribers.script(vec![fail, dawdle]);
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__RESELLER__RETRY__MAX_RETRIES", 50)
        .with("POSTRIDER__RESELLER__QUOTA__TIME_ZONE", where_it_is_noon());
    let ([ingest, dispatcher, _one], [other_ingest, other_dispatcher, _other], third, _worker) = tokio::join!(
        fleet.start_all(),
        fleet.start_all(),
        fleet.start(Service::Dispatcher),
        fleet.start(Service::RetryWorker),
    );
    // One that is ready may not have begun to take messages.
    let broker = it.broker();
    eventually("every dispatcher to take messages", async || {
        let depth = broker.depth(Queue::ResellerReady).await.ok()?;
        (depth.consumers == 3).then_some(())
    })
    .await;
    let all = events("all", EVENTS);
    let answers = fleet.hand_in(all.clone()).finish().await;
    let ends = |subscriber: &Subscriber, _: &Event| match subscriber.name {
        "limited" => SENT_OR_LEFT,
        _ => SENT,
    };
    let delivered = Delivered::of(&it, &subscribers, (&all, &answers), ends).await;
    delivered.assert_no_duplicates();

    let limited = &subscribers.all[1];
    assert_eq!(delivered.count(limited, NotificationStatus::Sent), QUOTA);
    let of_acme = EVENTS / RESELLERS.len();
    assert_eq!(
        delivered.count(limited, NotificationStatus::Scheduled),
        of_acme - QUOTA
    );

    assert_busy(&[&ingest, &other_ingest], "postrider_events_accepted_total").await;
    let dispatchers = [&dispatcher, &other_dispatcher, &third];
    assert_busy(&dispatchers, "postrider_notifications_claimed_total").await;
}
