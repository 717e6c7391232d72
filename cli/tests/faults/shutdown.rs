//! SIGTERM of all services under traffic, and a new start.

use std::time::{Duration, Instant};

use domain::push::PushStatus;
use testkit::{Installation, eventually};

use crate::rig::{Ended, Fleet, LONG_MILLIS, Process, answers_after, claimed_pushes, in_mid_flight, pushes};

const PUSHES: usize = 300;
const GRACE_MILLIS: u64 = 60_000;

#[testkit::test]
async fn work_in_flight_is_finished_or_handed_back_and_a_new_start_does_the_rest(it: Installation) {
    it.sim.script(answers_after(LONG_MILLIS)).expect("a script");
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__SHUTDOWN__GRACE_PERIOD_MILLIS", GRACE_MILLIS);
    let processes = fleet.start_all().await;
    let callers = fleet.hand_in(pushes("all", PUSHES));
    in_mid_flight(&it, 20).await;

    let asked = Instant::now();
    processes.iter().for_each(Process::ask_to_stop);
    for process in processes {
        assert_eq!(process.ended().await.code(), Some(0));
    }
    assert!(
        asked.elapsed() < Duration::from_millis(GRACE_MILLIS),
        "it took {:?}",
        asked.elapsed()
    );
    fleet.forget_addresses();

    assert_eq!(claimed_pushes(&it).await, 0);
    // The simulator may learn only now that its last answers were read.
    let report = eventually("the simulator to be done", async || {
        let report = it.sim.report();
        (report.in_flight == 0).then_some(report)
    })
    .await;
    assert_eq!(report.abandoned, 0);
    assert!(
        report.accepted < PUSHES as u64,
        "there is something left to go on with"
    );
    it.sim.script(answers_after(300)).expect("a script");

    let _processes = fleet.start_all().await;
    let answers = callers.finish().await;
    let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
    ended.assert_no_duplicates();
}
