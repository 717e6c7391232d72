//! Two replicas of each service at once.

use domain::push::PushStatus;
use testkit::{Installation, eventually};

use crate::rig::{Ended, Fleet, answer_to, answers_after, pushes, windowed_pushes};

#[testkit::test]
async fn each_push_is_sent_once_whichever_replica_took_it(it: Installation) {
    let mut script = vec![answer_to("flaky", 503, Some(20))];
    script.extend(answers_after(50));
    it.sim.script(script).expect("a script");
    let fleet = Fleet::of(&it).await;
    let (one, other) = tokio::join!(fleet.start_all(), fleet.start_all());
    let mut all = pushes("plain", 300);
    all.extend(pushes("flaky", 50));
    all.extend(windowed_pushes("windowed", 50, "* * * * * ?"));
    let answers = fleet.hand_in(all).finish().await;
    let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
    ended.assert_no_duplicates();

    for [ingest, ..] in [&one, &other] {
        let received = ingest
            .metrics()
            .await
            .value("postrider_push_received_total{kind=\"immediate\"}");
        assert!(received > 0.0, "one replica of ingest-api was never asked");
    }
    // Between two terms there is no leader for a moment.
    eventually("one of them to lead", async || {
        let mut leaders = 0.0;
        for [_, dispatcher, _] in [&one, &other] {
            leaders += dispatcher.metrics().await.value("postrider_push_leader");
        }
        (leaders == 1.0).then_some(())
    })
    .await;
}
