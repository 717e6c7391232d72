//! `kill -9` of the dispatcher that sends, with another one standing by.

use domain::push::PushStatus;
use testkit::Installation;

use crate::rig::{Ended, Fleet, Halt, LONG_MILLIS, Service, answers_after, in_mid_flight, pushes};

#[testkit::test]
async fn a_standby_takes_over_and_sends_what_the_leader_left_behind(it: Installation) {
    it.sim.script(answers_after(LONG_MILLIS)).expect("a script");
    let fleet = Fleet::of(&it).await;
    let [_ingest, leader, _worker] = fleet.start_all().await;
    leader.leads().await;
    let standby = fleet.start(Service::Dispatcher).await;
    let callers = fleet.hand_in(pushes("all", 300));
    in_mid_flight(&it, 20).await;
    leader.kill();
    let halt = Halt::now();
    it.sim.script(answers_after(300)).expect("a script");
    standby.leads().await;
    let claims = halt.claims_run_out(&it).await;
    assert!(claims > 0, "it was not in mid-flight");
    let answers = callers.finish().await;
    let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
    ended.assert_duplicates_within(claims);
}
