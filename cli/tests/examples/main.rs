//! The examples of `sdks/examples` as resellers would run them: each as a process, behind a subscription that the real services
//! deliver to, through a rotation of its secret and a replay.
//!
//! `scripts/sdks` runs this; `cargo test` leaves it out unless it is asked for by name, since it needs Flask and Go.

mod example;
mod lane;
#[path = "../it/postrider.rs"]
#[expect(dead_code, reason = "these tests need only a part of it")]
mod postrider;
mod scenario;

use sqlx::PgPool;

use crate::example::Kind;
use crate::scenario::an_endpoint_lives_through_rotation_and_replay;

#[testkit::database_test]
async fn the_flask_example_lives_through_rotation_and_replay_and_keeps_the_newest_state(pool: PgPool) {
    an_endpoint_lives_through_rotation_and_replay(pool, Kind::Flask).await;
}

#[testkit::database_test]
async fn the_smallest_python_example_lives_through_rotation_and_replay(pool: PgPool) {
    an_endpoint_lives_through_rotation_and_replay(pool, Kind::SmallestPython).await;
}

#[testkit::database_test]
async fn the_go_example_lives_through_rotation_and_replay(pool: PgPool) {
    an_endpoint_lives_through_rotation_and_replay(pool, Kind::Go).await;
}
