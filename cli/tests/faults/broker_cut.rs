//! The connections of all services to the broker are cut for a while.

use config::Secret;
use domain::push::PushStatus;
use testkit::{FaultProxy, Installation, eventually};

use crate::rig::{Ended, Fleet, LONG_MILLIS, answers_after, count_with_status, in_mid_flight, pushes};

const DURING: usize = 100;

#[testkit::test]
async fn pushes_are_accepted_as_pending_and_go_out_by_themselves_afterwards(mut it: Installation) {
    it.sim.script(answers_after(LONG_MILLIS)).expect("a script");
    let (proxy, url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    it.config.amqp.url = Secret::new(url);
    let fleet = Fleet::of(&it).await;
    let [ingest, _dispatcher, _worker] = fleet.start_all().await;
    let before = fleet.hand_in(pushes("before", 200));
    in_mid_flight(&it, 10).await;
    proxy.cut();
    it.sim.script(answers_after(200)).expect("a script");
    let during = fleet.hand_in(pushes("during", DURING)).finish().await;
    eventually("what came meanwhile to be PENDING", async || {
        let pending = count_with_status(&it, "during", PushStatus::Pending).await;
        (pending == DURING as i64).then_some(())
    })
    .await;
    proxy.heal();
    let mut answers = before.finish().await;
    answers.extend(during);
    let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
    ended.assert_no_duplicates();
    ingest.shows("postrider_ingest_queue_gate_open", 1.0).await;
}
