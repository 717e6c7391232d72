//! SIGSTOP of the dispatcher that sends, until somebody else does, and SIGCONT: it wakes up believing that it leads.

use std::time::Duration;

use domain::push::PushStatus;
use sqlx::PgPool;
use swrve_sim::{Options, ResponseTime, Running, SwrveSim};
use testkit::{Installation, eventually, with_installation};
use tokio::net::TcpListener;

use crate::rig::{
    Ended, Fleet, Process, Service, answers_after, claims_left_behind, in_mid_flight, pushes, pushes_ended,
};

const CLAIMED: &str = "postrider_push_claimed_total";
/// The sending thread may be frozen between its last look at the term and the socket, and nothing on this side can call
/// back what it has in its hands then: one send at most.
const CANNOT_BE_CALLED_BACK: u64 = 1;

/// A leader that was frozen in mid-flight, and its standby, which leads now.
struct Frozen {
    leader: Process,
    standby: Process,
    /// Where the standby sends to; the leader sends to the simulator of the installation.
    receiver: Running,
    claims: i64,
    /// What it had seen through.
    ended: i64,
    /// What had arrived from the leader when it was frozen.
    arrived: u64,
}

async fn freeze(it: &Installation, fleet: &Fleet) -> Frozen {
    it.sim.script(answers_after(300)).expect("a script");
    let receiver = another_receiver().await;
    let leader = fleet.start(Service::Dispatcher).await;
    leader.leads().await;
    let url = format!("http://{}", receiver.addr());
    let standby = fleet
        .start_with(Service::Dispatcher, &[("POSTRIDER__SWRVE__URL", url)])
        .await;
    in_mid_flight(it, 20).await;
    leader.freeze();
    let claims = claims_left_behind(it).await;
    assert!(claims > 0, "it was not in mid-flight");
    let ended = pushes_ended(it).await;
    standby.leads().await;
    eventually("Swrve to have answered the frozen leader", async || {
        (it.sim.report().in_flight == 0).then_some(())
    })
    .await;
    Frozen {
        leader,
        standby,
        receiver,
        claims,
        ended,
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

/// A standby that is starved of processor time for longer than this would lose the lease again.
async fn fleet(it: &Installation) -> Fleet {
    Fleet::of(it)
        .await
        .with("POSTRIDER__PUSH__LEADER__TTL_MILLIS", 4_000)
        .with("POSTRIDER__SWRVE__TIMEOUT_MILLIS", 1_000)
}

impl Frozen {
    async fn thaw(&self) {
        self.leader.thaw();
        self.leader
            .shows("postrider_lease_losses_total{kind=\"leader\"}", 1.0)
            .await;
        eventually("the old leader to end its term", async || {
            (self.leader.metrics().await.value("postrider_push_leader") == 0.0).then_some(())
        })
        .await;
    }

    /// How many of its claims it knows of: it may have been frozen while it waited for the answer to one, whose time is
    /// over when it wakes up.
    async fn claims_that_it_knows(&self) -> f64 {
        self.leader.metrics().await.value(CLAIMED) - self.ended as f64
    }

    fn assert_nothing_sent_since(&self, it: &Installation) {
        let sent = it.sim.report().received - self.arrived;
        assert!(sent <= CANNOT_BE_CALLED_BACK, "{sent} sends under an old term");
    }
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_leader_that_wakes_up_after_the_takeover_claims_and_sends_nothing_more(pool: PgPool) {
    with_installation(pool, async |it| {
        let fleet = fleet(&it).await;
        let _ingest = fleet.start(Service::IngestApi).await;
        let _worker = fleet.start(Service::RetryWorker).await;
        let callers = fleet.hand_in(pushes("early", 300));
        let frozen = freeze(&it, &fleet).await;
        frozen.thaw().await;
        let claimed = frozen.leader.metrics().await.value(CLAIMED);
        let mut answers = callers.finish().await;
        answers.extend(fleet.hand_in(pushes("late", 100)).finish().await);
        let ended = Ended::through(&[&it.sim, &frozen.receiver], &it, &answers, |_| PushStatus::Sent).await;
        ended.assert_duplicates_within(frozen.claims);
        frozen.assert_nothing_sent_since(&it);
        assert_eq!(frozen.leader.metrics().await.value(CLAIMED), claimed);
        assert_eq!(frozen.standby.metrics().await.value("postrider_push_leader"), 1.0);
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_leader_that_wakes_up_after_its_claims_ran_out_changes_nothing(pool: PgPool) {
    with_installation(pool, async |it| {
        let fleet = fleet(&it).await;
        let _ingest = fleet.start(Service::IngestApi).await;
        let _worker = fleet.start(Service::RetryWorker).await;
        let callers = fleet.hand_in(pushes("all", 300));
        let frozen = freeze(&it, &fleet).await;
        let answers = callers.finish().await;
        let receivers = [&it.sim, &frozen.receiver];
        let before = Ended::through(&receivers, &it, &answers, |_| PushStatus::Sent).await;
        frozen.thaw().await;
        // All that it had claimed, whether sent or not, turns out to be another's by now.
        let claims = frozen.claims_that_it_knows().await;
        frozen
            .leader
            .shows("postrider_lease_losses_total{kind=\"claim\"}", claims)
            .await;
        let after = Ended::through(&receivers, &it, &answers, |_| PushStatus::Sent).await;
        frozen.assert_nothing_sent_since(&it);
        after.assert_duplicates_within(frozen.claims);
        after.assert_same_ends_as(&before);
    })
    .await;
}
