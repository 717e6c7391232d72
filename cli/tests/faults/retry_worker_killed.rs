//! `kill -9` of the retry worker while pushes wait for their retry or for their window.

use domain::push::PushStatus;
use simulators::swrve::{Match, Pattern, Rule};
use testkit::{Installation, eventually};

use crate::rig::{Ended, Fleet, Push, Service, answer_to, count_with_status, pushes, windowed_pushes};

const FLAKY: usize = 60;

fn unavailable_at_first(push: &Push) -> Rule {
    Rule {
        matching: Match {
            user: Some(Pattern::Exact(push.user.clone())),
            ..Match::default()
        },
        status: Some(503),
        times: Some(1),
        ..Rule::default()
    }
}

#[testkit::test]
async fn retries_and_scheduled_pushes_go_on_after_a_restart(it: Installation) {
    let mut script = vec![answer_to("hopeless", 500, None), answer_to("refused", 400, None)];
    // Each of them once, in whichever order attempts and retries come.
    script.extend(pushes("flaky", FLAKY).iter().map(unavailable_at_first));
    it.sim.script(script).expect("a script");
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__PUSH__RETRY__MAX_ATTEMPTS", 3)
        .with("POSTRIDER__PUSH__RETRY__DELAY_IN_SECONDS", 3);
    let [_ingest, _dispatcher, worker] = fleet.start_all().await;
    let mut all = pushes("flaky", FLAKY);
    all.extend(pushes("hopeless", 10));
    all.extend(pushes("refused", 10));
    all.extend(windowed_pushes("windowed", 60, "0/5 * * * * ?"));
    let callers = fleet.hand_in(all);
    eventually("pushes to wait for their retry", async || {
        (count_with_status(&it, "flaky", PushStatus::Retry).await >= 10).then_some(())
    })
    .await;
    worker.kill();

    // The second one dies as soon as it has begun to deal with what the first one left.
    let worker = fleet.start(Service::RetryWorker).await;
    worker
        .shows("postrider_push_promoted_total{job=\"send_scheduled\"}", 1.0)
        .await;
    worker.kill();

    let _worker = fleet.start(Service::RetryWorker).await;
    let answers = callers.finish().await;
    let ended = Ended::of(&it, &answers, |user| match user.split('-').next() {
        Some("hopeless") => PushStatus::GivenUp,
        Some("refused") => PushStatus::Failed,
        _ => PushStatus::Sent,
    })
    .await;
    ended.assert_no_duplicates();
}
