//! Services of this version on the schema of the previous one: the operator has forgotten to migrate, or has not yet.

use domain::push::PushStatus;
use sqlx::PgPool;
use testkit::{Installation, run};

use crate::rig::{Answers, Delivered, Ended, SENT, Service, Subscribers, events, pushes};
use crate::versions::Version::{Previous, This};
use crate::versions::{Versions, stop};

const MISSING: &str = "migrations are missing";

/// Even when they are the only ones: what is accepted waits, and nothing of it becomes a dead letter.
#[sqlx::test(migrations = false)]
async fn services_that_come_before_their_migrations_say_so_and_lose_nothing(pool: PgPool) {
    run(pool, async |it: Installation| {
        let versions = Versions::of(&it).await;
        let subscribers = Subscribers::usual(&it).await;
        let previous = versions.fleet(Previous);
        let ingest = previous.start(Service::IngestApi).await;
        let engines = [
            previous.start(Service::Dispatcher).await,
            previous.start(Service::RetryWorker).await,
        ];
        let mut early = Vec::new();
        for service in Service::ALL {
            let mut process = versions.fleet(This).start_unready(service, &[]).await;
            process.unready_for(MISSING).await;
            early.push(process);
        }
        let mut answers = Answers::new();
        let mut all = events("mixed", 40);
        let mut answered = previous.hand_in(all.clone()).finish().await;
        answers.extend(previous.hand_in(pushes("mixed", 40)).finish().await);
        for engine in engines {
            stop(engine).await;
        }
        let alone = events("alone", 40);
        answered.extend(previous.hand_in(alone.clone()).finish().await);
        all.extend(alone);
        answers.extend(previous.hand_in(pushes("alone", 40)).finish().await);

        versions.migrate().await;
        for process in &mut early {
            process.ready().await;
        }
        Ended::of(&it, &answers, |_| PushStatus::Sent).await;
        Delivered::of(&it, &subscribers, (&all, &answered), |_, _| SENT).await;
        let letters: i64 = sqlx::query_scalar("SELECT count(*) FROM dead_letters")
            .fetch_one(&it.pool)
            .await
            .expect("the dead letters can be counted");
        assert_eq!(letters, 0, "a message was given up");
        stop(ingest).await;
        for process in early {
            stop(process).await;
        }
    })
    .await;
}
