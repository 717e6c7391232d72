//! The connections of all services to the broker are cut for a while, in the middle of the fan-out.

use config::Secret;
use domain::notification::NotificationStatus;
use testkit::{FaultProxy, Installation, eventually};

use crate::rig::{Delivered, Fleet, LONG_MILLIS, SENT, Subscribers, events, notifications_with_status};

#[testkit::test]
async fn events_are_fanned_out_as_pending_and_go_out_by_themselves_afterwards(mut it: Installation) {
    let subscribers = Subscribers::usual(&it).await;
    subscribers.answer_after(LONG_MILLIS);
    let (proxy, url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    it.config.amqp.url = Secret::new(url);
    let fleet = Fleet::of(&it).await;
    let [ingest, _dispatcher, _worker] = fleet.start_all().await;
    let (before, during) = (events("before", 200), events("during", 100));
    let callers = fleet.hand_in(before.clone());
    subscribers.in_mid_flight(10).await;
    proxy.cut();
    subscribers.answer_after(200);
    let mut answers = fleet.hand_in(during.clone()).finish().await;
    let fanned_out = subscribers.notifications_of(&during);
    eventually("what came meanwhile to be PENDING", async || {
        let pending = notifications_with_status(&it, "during", NotificationStatus::Pending).await;
        (pending == fanned_out).then_some(())
    })
    .await;
    proxy.heal();
    answers.extend(callers.finish().await);
    let all = [before, during].concat();
    let delivered = Delivered::of(&it, &subscribers, (&all, &answers), |_, _| SENT).await;
    delivered.assert_no_duplicates();
    ingest.shows("postrider_event_queue_gate_open", 1.0).await;
}
