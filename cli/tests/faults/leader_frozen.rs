//! SIGSTOP of the dispatcher that sends, until the standby does, and SIGCONT: it wakes up believing that it leads.

use std::time::Duration;

use domain::push::PushStatus;
use simulators::swrve::{Options, ResponseTime, Running, SwrveSim};
use testkit::{Installation, eventually};
use tokio::net::TcpListener;

use crate::rig::{Ended, Fleet, Halt, LONG_MILLIS, Process, Service, answers_after, in_mid_flight, pushes};

const CLAIMED: &str = "postrider_push_claimed_total";
const EPOCH: &str = "postrider_push_leader_epoch";
/// The sending thread may be frozen between its last look at the term and the socket, and nothing on this side can call
/// back what it has in its hands then: one send at most.
const CANNOT_BE_CALLED_BACK: u64 = 1;

/// A leader that was frozen in mid-flight, and its standby, which leads now.
struct Frozen {
    leader: Process,
    standby: Process,
    /// Where the standby sends to; the leader sends to the simulator of the installation.
    receiver: Running,
    /// When.
    halt: Halt,
    claims: i64,
    /// The greatest epoch in which it had led.
    epoch: f64,
    /// What had arrived from the leader when it was frozen.
    arrived: u64,
}

async fn freeze(it: &Installation, fleet: &Fleet) -> Frozen {
    it.sim.script(answers_after(LONG_MILLIS)).expect("a script");
    let receiver = another_receiver().await;
    let leader = fleet.start(Service::Dispatcher).await;
    leader.leads().await;
    in_mid_flight(it, 20).await;
    leader.freeze();
    let halt = Halt::now();
    let epoch: i64 = sqlx::query_scalar("SELECT epoch FROM leases WHERE name = 'push'")
        .fetch_one(&it.pool)
        .await
        .expect("a dispatcher has led");
    let url = format!("http://{}", receiver.addr());
    let standby = fleet
        .start_with(Service::Dispatcher, &[("POSTRIDER__SWRVE__URL", url)])
        .await;
    standby.leads().await;
    let claims = halt.claims_left_behind(it).await;
    assert!(claims > 0, "it was not in mid-flight");
    eventually("Swrve to have answered the frozen leader", async || {
        (it.sim.report().in_flight == 0).then_some(())
    })
    .await;
    Frozen {
        leader,
        standby,
        receiver,
        halt,
        claims,
        epoch: epoch as f64,
        arrived: it.sim.report().received,
    }
}

async fn another_receiver() -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let options = Options {
        response_time: ResponseTime::Fixed(Duration::ZERO),
        requests_per_second: None,
        worker_threads: 1,
        ..Options::default()
    };
    SwrveSim::start(listener, options).expect("a simulator starts")
}

impl Frozen {
    async fn thaw(&self) {
        self.leader.thaw();
        self.leader
            .shows("postrider_lease_losses_total{kind=\"leader\"}", 1.0)
            .await;
        // Then everything that it had begun is recorded, or refused.
        eventually("the old leader to end its term", async || {
            let leads = self.leader.metrics().await.value("postrider_push_leader") == 1.0;
            (!leads || self.has_led_again().await).then_some(())
        })
        .await;
    }

    /// Which is its right when the standby gets no processor time for as long as a lease holds.
    async fn has_led_again(&self) -> bool {
        self.leader.metrics().await.value(EPOCH) > self.epoch
    }

    /// Neither claims nor sends, compared with `claimed` claims after it had ended its term.
    async fn assert_idle_since(&self, it: &Installation, claimed: f64) {
        let sent = it.sim.report().received - self.arrived;
        let claims = self.leader.metrics().await.value(CLAIMED);
        if self.has_led_again().await {
            return;
        }
        assert!(sent <= CANNOT_BE_CALLED_BACK, "{sent} sends under an old term");
        assert_eq!(claims, claimed, "claims under an old term");
    }
}

#[testkit::test]
async fn a_leader_that_wakes_up_after_the_takeover_claims_and_sends_nothing_more(it: Installation) {
    let fleet = Fleet::of(&it).await;
    let _ingest = fleet.start(Service::IngestApi).await;
    let _worker = fleet.start(Service::RetryWorker).await;
    let callers = fleet.hand_in(pushes("early", 300));
    let frozen = freeze(&it, &fleet).await;
    frozen.thaw().await;
    let claimed = frozen.leader.metrics().await.value(CLAIMED);
    let mut answers = callers.finish().await;
    answers.extend(fleet.hand_in(pushes("late", 100)).finish().await);
    // Those whose outcome it could not learn any more.
    frozen.halt.claims_run_out(&it).await;
    let ended = Ended::through(&[&it.sim, &frozen.receiver], &it, &answers, |_| PushStatus::Sent).await;
    ended.assert_duplicates_within(frozen.claims);
    frozen.assert_idle_since(&it, claimed).await;
    let standby = frozen.standby.metrics().await;
    assert!(standby.value(EPOCH) > frozen.epoch);
    assert!(standby.value("postrider_push_leader_takeovers_total") >= 1.0);
}

#[testkit::test]
async fn a_leader_that_wakes_up_after_its_claims_ran_out_changes_nothing(it: Installation) {
    // Its claims hold for 20 seconds and twice the time limit of a request, and here they run out by themselves.
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__SWRVE__TIMEOUT_MILLIS", 2 * LONG_MILLIS);
    let _ingest = fleet.start(Service::IngestApi).await;
    let _worker = fleet.start(Service::RetryWorker).await;
    let callers = fleet.hand_in(pushes("all", 300));
    let frozen = freeze(&it, &fleet).await;
    let answers = callers.finish().await;
    let receivers = [&it.sim, &frozen.receiver];
    let before = Ended::through(&receivers, &it, &answers, |_| PushStatus::Sent).await;
    frozen.thaw().await;
    let claimed = frozen.leader.metrics().await.value(CLAIMED);
    // What it had claimed and sent turns out to be another's by now.
    frozen
        .leader
        .shows("postrider_lease_losses_total{kind=\"claim\"}", 1.0)
        .await;
    let after = Ended::through(&receivers, &it, &answers, |_| PushStatus::Sent).await;
    frozen.assert_idle_since(&it, claimed).await;
    after.assert_duplicates_within(frozen.claims);
    after.assert_same_ends_as(&before);
}
