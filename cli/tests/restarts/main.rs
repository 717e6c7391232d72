//! The broker is stopped and the database server is killed, for real, under traffic. Since that disturbs everybody who
//! uses them, it has a binary of its own, which `cargo test` runs by itself, and in it one test.

#[path = "../faults/rig/mod.rs"]
mod rig;
#[allow(
    dead_code,
    reason = "two test binaries share it, and each leaves out something else"
)]
mod servers;

use domain::notification::NotificationStatus;
use domain::push::PushStatus;
use testkit::{Installation, eventually};

use rig::{
    Answers, Delivered, Ended, Event, Fleet, LONG_MILLIS, Process, SENT, Subscribers, answers_after,
    count_with_status, events, in_mid_flight, notifications_with_status, pushes, queue_leases_run_out,
};
use servers::Server;

const BEFORE: usize = 200;
const MEANWHILE: usize = 100;

/// What was handed in so far, in both lanes.
#[derive(Default)]
struct Traffic {
    pushes: Answers,
    events: Vec<Event>,
    events_answered: Answers,
}

/// What the faults happen to.
struct Scene {
    it: Installation,
    fleet: Fleet,
    subscribers: Subscribers,
}

#[testkit::test]
async fn traffic_survives_a_stopped_broker_and_a_killed_database(mut it: Installation) {
    let subscribers = Subscribers::usual(&it).await;
    let broker = Server::rabbitmq(&mut it.config).await;
    let database = Server::postgres(&mut it.config).await;
    // While the database is away, that is found out soon.
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__DATABASE__ACQUIRE_TIMEOUT_MILLIS", 3_000);
    let [ingest, _dispatcher, _worker] = fleet.start_all().await;
    let scene = Scene {
        it,
        fleet,
        subscribers,
    };
    let mut traffic = Traffic::default();
    scene.broker_stops(&broker, &mut traffic).await;
    let (pushes, notifications) = scene.audit(&traffic).await;
    pushes.assert_no_duplicates();
    notifications.assert_no_duplicates();

    scene.database_is_killed(&ingest, &database, &mut traffic).await;
    let (pushes, notifications) = scene.audit(&traffic).await;
    // The dispatcher holds what it could not record. A claim whose commit it never heard of runs out; what it was of
    // had not been sent.
    assert_eq!((pushes.duplicates(), notifications.duplicates()), (0, 0));
}

impl Scene {
    async fn broker_stops(&self, broker: &Server, traffic: &mut Traffic) {
        self.answer_after(LONG_MILLIS);
        let (it, fleet) = (&self.it, &self.fleet);
        let before = fleet.hand_in(pushes("broker-before", BEFORE));
        let events_before = fleet.hand_in(traffic.noting(events("broker-before", BEFORE)));
        self.in_mid_flight().await;
        let down = broker.take_down().await;
        self.answer_after(200);
        let meanwhile = fleet.hand_in(pushes("broker-away", MEANWHILE)).finish().await;
        let events_meanwhile = events("broker-away", MEANWHILE);
        let fanned_out = self.subscribers.notifications_of(&events_meanwhile);
        let answered = fleet.hand_in(traffic.noting(events_meanwhile)).finish().await;
        eventually("what came meanwhile to be PENDING", async || {
            let pending = count_with_status(it, "broker-away", PushStatus::Pending).await;
            let events = notifications_with_status(it, "broker-away", NotificationStatus::Pending).await;
            (pending == MEANWHILE as i64 && events == fanned_out).then_some(())
        })
        .await;
        down.start_again();
        traffic.pushes.extend(before.finish().await);
        traffic.pushes.extend(meanwhile);
        traffic.events_answered.extend(events_before.finish().await);
        traffic.events_answered.extend(answered);
    }

    async fn database_is_killed(&self, ingest: &Process, database: &Server, traffic: &mut Traffic) {
        self.answer_after(LONG_MILLIS);
        let fleet = &self.fleet;
        let before = fleet.hand_in(pushes("database-before", BEFORE));
        let events_before = fleet.hand_in(traffic.noting(events("database-before", BEFORE)));
        self.in_mid_flight().await;
        let down = database.take_down().await;
        self.answer_after(200);
        let meanwhile = fleet.hand_in(pushes("database-away", MEANWHILE));
        let events_meanwhile = fleet.hand_in(traffic.noting(events("database-away", MEANWHILE)));
        ingest
            .shows("postrider_store_errors_total{operation=\"receiving\"}", 1.0)
            .await;
        down.start_again();
        traffic.pushes.extend(before.finish().await);
        traffic.pushes.extend(meanwhile.finish().await);
        traffic.events_answered.extend(events_before.finish().await);
        traffic.events_answered.extend(events_meanwhile.finish().await);
        // Some may be stored as queued without having been published: the process that was to do it never heard of their commit.
        queue_leases_run_out(&self.it).await;
    }

    /// Both Swrve and the endpoints.
    fn answer_after(&self, millis: u64) {
        self.it.sim.script(answers_after(millis)).expect("a script");
        self.subscribers.answer_after(millis);
    }

    async fn in_mid_flight(&self) {
        in_mid_flight(&self.it, 10).await;
        self.subscribers.in_mid_flight(10).await;
    }

    async fn audit(&self, traffic: &Traffic) -> (Ended, Delivered) {
        let events = (&*traffic.events, &traffic.events_answered);
        (
            Ended::of(&self.it, &traffic.pushes, |_| PushStatus::Sent).await,
            Delivered::of(&self.it, &self.subscribers, events, |_, _| SENT).await,
        )
    }
}

impl Traffic {
    /// Notes events before they are handed in.
    fn noting(&mut self, events: Vec<Event>) -> Vec<Event> {
        self.events.extend(events.iter().cloned());
        events
    }
}
