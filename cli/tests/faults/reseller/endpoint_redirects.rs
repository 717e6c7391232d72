//! An endpoint that sends its notifications elsewhere.

use std::collections::BTreeMap;

use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::{
    Delivered, Ends, Event, Fleet, RESELLERS, SENT, Service, Subscriber, Subscribers, events_of,
    the_only_mail,
};

/// What was claimed before the first answer failed with it; what was not has no endpoint to go to any more.
const FAILED_OR_LEFT: Ends = &[NotificationStatus::Failed, NotificationStatus::GivenUp];
const NOTHING: Ends = &[];

#[testkit::test]
async fn its_subscription_is_deactivated_and_one_mail_says_so(it: Installation) {
    let acme = RESELLERS[0];
    let all = vec![
        Subscriber::new("moved", acme, &["*"]),
        Subscriber::new("working", acme, &["*"]),
    ];
    let subscribers = Subscribers::of(&it, all).await;
    let elsewhere = subscribers.receiver.url("/elsewhere");
    subscribers.script(vec![Rule {
        headers: BTreeMap::from([("Location".to_owned(), elsewhere)]),
        ..Rule::answering(307).at("/moved")
    }]);
    let (fleet, mail_server) = Fleet::of(&it).await.with_mail_server().await;
    let _ingest = fleet.start(Service::IngestApi).await;
    let _worker = fleet.start(Service::RetryWorker).await;
    // All of them are fanned out before the first is sent.
    let mut events = events_of(acme, "before", 20);
    let mut answers = fleet.hand_in(events.clone()).finish().await;
    let _dispatcher = fleet.start(Service::Dispatcher).await;
    let moved = subscribers.all[0].id;
    eventually("the subscription to be deactivated", async || {
        let state: (String, String) =
            sqlx::query_as("SELECT state, state_reason FROM subscriptions WHERE id = $1")
                .bind(moved)
                .fetch_one(&it.pool)
                .await
                .expect("the row can be read");
        (state == ("DEACTIVATED".to_owned(), "REDIRECTED".to_owned())).then_some(())
    })
    .await;
    let afterwards = events_of(acme, "afterwards", 10);
    answers.extend(fleet.hand_in(afterwards.clone()).finish().await);
    events.extend(afterwards);

    let ends = |subscriber: &Subscriber, event: &Event| match subscriber.name {
        "moved" if event.id.starts_with("afterwards-") => NOTHING,
        "moved" => FAILED_OR_LEFT,
        _ => SENT,
    };
    let delivered = Delivered::of(&it, &subscribers, (&events, &answers), ends).await;
    delivered.assert_no_duplicates();
    assert!(delivered.count(&subscribers.all[0], NotificationStatus::Failed) > 0);
    the_only_mail(&mail_server).await;
    let mails: Vec<(String, String)> = sqlx::query_as("SELECT kind, data ->> 'reason' FROM emails")
        .fetch_all(&it.pool)
        .await
        .expect("the mails can be read");
    assert_eq!(mails, [("STATE_CHANGED".to_owned(), "REDIRECTED".to_owned())]);
}
