//! `kill -9` of a leader of one version, with a standby of the other one.

use domain::push::PushStatus;
use sqlx::PgPool;
use testkit::{Installation, run};

use crate::rig::{Answers, Ended, Halt, LONG_MILLIS, Process, Service, answers_after, in_mid_flight, pushes};
use crate::versions::Version::{Previous, This};
use crate::versions::Versions;

#[sqlx::test(migrations = false)]
async fn each_version_takes_over_from_a_killed_leader_of_the_other(pool: PgPool) {
    run(pool, async |it: Installation| {
        let versions = Versions::of(&it).await;
        versions.migrate().await;
        let _at_work = [
            versions.start(Previous, Service::IngestApi).await,
            versions.start(This, Service::IngestApi).await,
            versions.start(Previous, Service::RetryWorker).await,
            versions.start(This, Service::RetryWorker).await,
        ];
        let mut answers = Answers::new();
        let leader = versions.start(Previous, Service::Dispatcher).await;
        leader.leads().await;
        let standby = versions.start(This, Service::Dispatcher).await;
        let mut claims = takeover((&it, &versions), leader, &standby, &mut answers).await;
        let leader = standby;
        let standby = versions.start(Previous, Service::Dispatcher).await;
        claims += takeover((&it, &versions), leader, &standby, &mut answers).await;
        let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
        ended.assert_duplicates_within(claims);
    })
    .await;
}

/// Returns how many claims the leader left behind, which run out now.
async fn takeover(
    (it, versions): (&Installation, &Versions),
    leader: Process,
    standby: &Process,
    answers: &mut Answers,
) -> i64 {
    it.sim.script(answers_after(LONG_MILLIS)).expect("a script");
    let group = format!("killed-{}", answers.len());
    let callers = versions.fleet(This).hand_in(pushes(&group, 150));
    in_mid_flight(it, 20).await;
    leader.kill();
    let halt = Halt::now();
    it.sim.script(answers_after(100)).expect("a script");
    standby.leads().await;
    let claims = halt.claims_run_out(it).await;
    assert!(claims > 0, "it was not in mid-flight");
    answers.extend(callers.finish().await);
    claims
}
