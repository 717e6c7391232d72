//! The scenarios of `docs/runbook.md` that take a server away from everybody. They have a binary of their own, which
//! `cargo test` runs by itself, and in it one test.
//!
//! Only servers that `scripts/servers` has started for this checkout are touched.

#[allow(dead_code, reason = "the binary of the other scenarios shares it")]
#[path = "../runbook/console.rs"]
mod console;
#[allow(dead_code, reason = "the binary of the other scenarios shares it")]
#[path = "../runbook/page.rs"]
mod page;
#[path = "../faults/rig/mod.rs"]
mod rig;
#[allow(dead_code, reason = "the binary of the other scenarios shares it")]
#[path = "../runbook/scene.rs"]
mod scene;
#[allow(
    dead_code,
    reason = "two test binaries share it, and each leaves out something else"
)]
#[path = "../restarts/servers.rs"]
mod servers;

use domain::push::PushStatus;
use sqlx::PgPool;
use testkit::{Installation, eventually, run};

use page::Page;
use rig::{answers_after, count_with_status, in_mid_flight, pushes};
use scene::{Scene, all_sent};
use servers::{Full, Server};

const PUSHES: usize = 100;

#[testkit::database_test]
async fn the_database_was_restarted_and_the_broker_was_blocked(pool: PgPool) {
    Box::pin(run(pool, async |mut it: Installation| {
        it.sim.script(answers_after(200)).expect("a script");
        let database = Server::postgres(&mut it.config).await;
        let disk = Full::disk_of_the_broker().await;
        let mut scene = Scene::of(it, "The database was restarted").await;
        database_restarted(&mut scene, &database).await;
        let next = Page::section("The broker is blocked: its disk is full");
        scene.turn_to(next).end();
        broker_blocked(&mut scene, disk).await;
        scene.page.end();
    }))
    .await;
}

async fn database_restarted(scene: &mut Scene, database: &Server) {
    let callers = scene.fleet.hand_in(pushes("database", PUSHES));
    in_mid_flight(&scene.it, 2).await;
    let down = database.take_down().await;
    let status = scene.page.follow().await;
    assert!(matches!(status.code, 1 | 3), "it is away: {status:#?}");
    down.start_again();
    let answers = callers.finish().await;
    scene.page.follow_until_well().await;
    all_sent(&scene.it, &answers).await;
}

/// The alarm is real: the broker is told that a disk is only good enough with more room than this one has.
async fn broker_blocked(scene: &mut Scene, disk: Option<Full>) {
    let Some(disk) = disk else {
        // Only the checkout's own broker is blocked for a test; the page is followed all the same.
        scene.page.follow_well().await;
        scene.page.follow_until_well().await;
        return;
    };
    let filled = disk.fill().await;
    let answers = scene.fleet.hand_in(pushes("blocked", PUSHES)).finish().await;
    eventually("what came meanwhile to be PENDING", async || {
        let pending = count_with_status(&scene.it, "blocked", PushStatus::Pending).await;
        (pending > 0).then_some(())
    })
    .await;
    scene.page.follow_until_wrong("blocked").await;
    filled.make_room();
    scene.page.follow_until_well().await;
    all_sent(&scene.it, &answers).await;
}
