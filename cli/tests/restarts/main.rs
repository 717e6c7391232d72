//! The broker is stopped and the database server is killed, for real, under traffic. Since that disturbs everybody who
//! uses them, it has a binary of its own, which `cargo test` runs by itself, and in it one test.

#[path = "../faults/rig/mod.rs"]
mod rig;
mod servers;

use domain::push::PushStatus;
use sqlx::PgPool;
use testkit::{Installation, eventually, with_installation};

use rig::{Ended, Fleet, Process, answers_after, count_with_status, in_mid_flight, pushes};
use servers::Server;

const BEFORE: usize = 200;
const MEANWHILE: usize = 100;

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn traffic_survives_a_stopped_broker_and_a_killed_database(pool: PgPool) {
    with_installation(pool, async |mut it| {
        it.sim.script(answers_after(200)).expect("a script");
        let broker = Server::rabbitmq(&mut it.config).await;
        let database = Server::postgres(&mut it.config).await;
        let fleet = Fleet::of(&it).await;
        let [ingest, _dispatcher, _worker] = fleet.start_all().await;
        let mut answers = broker_stops(&it, &fleet, &broker).await;
        let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
        ended.assert_no_duplicates();

        answers.extend(database_is_killed(&it, &fleet, &ingest, &database).await);
        let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
        // The dispatcher holds what it could not record. A claim whose commit it never heard of runs out; that push had
        // not been sent.
        assert_eq!(ended.duplicates(), 0);
    })
    .await;
}

async fn broker_stops(it: &Installation, fleet: &Fleet, broker: &Server) -> rig::Answers {
    let before = fleet.hand_in(pushes("broker-before", BEFORE));
    in_mid_flight(it, 10).await;
    let down = broker.take_down().await;
    let meanwhile = fleet.hand_in(pushes("broker-away", MEANWHILE)).finish().await;
    eventually("what came meanwhile to be PENDING", async || {
        let pending = count_with_status(it, "broker-away", PushStatus::Pending).await;
        (pending == MEANWHILE as i64).then_some(())
    })
    .await;
    down.start_again();
    let mut answers = before.finish().await;
    answers.extend(meanwhile);
    answers
}

async fn database_is_killed(
    it: &Installation,
    fleet: &Fleet,
    ingest: &Process,
    database: &Server,
) -> rig::Answers {
    let before = fleet.hand_in(pushes("database-before", BEFORE));
    in_mid_flight(it, 10).await;
    let down = database.take_down().await;
    let meanwhile = fleet.hand_in(pushes("database-away", MEANWHILE));
    ingest
        .shows("postrider_store_errors_total{operation=\"receiving\"}", 1.0)
        .await;
    down.start_again();
    let mut answers = before.finish().await;
    answers.extend(meanwhile.finish().await);
    answers
}
