//! More pushes than the queue holds, while Swrve is slow.

use domain::push::PushStatus;
use testkit::{Installation, eventually};

use crate::rig::{Ended, Fleet, LONG_MILLIS, answers_after, count_with_status, pushes};

#[testkit::test]
async fn what_finds_the_queue_full_waits_as_pending_and_is_sent(it: Installation) {
    it.sim.script(answers_after(LONG_MILLIS)).expect("a script");
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__SWRVE__AVERAGE_PROCESSING_MILLIS", 40)
        .with("POSTRIDER__PUSH__QUEUE__CAPACITY", 20)
        .with("POSTRIDER__PUSH__JOB__SEND_SCHEDULED__PORTION_SIZE", 19)
        .with("POSTRIDER__PUSH__JOB__SEND_PENDING__PORTION_SIZE", 19)
        .with("POSTRIDER__PUSH__JOB__SEND_PENDING__REPEAT_INTERVAL", 100);
    let [ingest, _dispatcher, worker] = fleet.start_all().await;
    let answers = fleet.hand_in(pushes("all", 400)).finish().await;
    eventually("pushes to wait as PENDING", async || {
        (count_with_status(&it, "all", PushStatus::Pending).await >= 50).then_some(())
    })
    .await;
    it.sim.script(Vec::new()).expect("a script");
    let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
    ended.assert_no_duplicates();
    ingest.shows("postrider_push_went_pending_total", 50.0).await;
    worker
        .shows("postrider_push_promoted_total{job=\"send_pending\"}", 50.0)
        .await;
}
