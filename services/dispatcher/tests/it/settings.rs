//! Settings that cannot be used.

use lifecycle::{Lifecycle, Readiness, Shutdown};
use sqlx::PgPool;
use testkit::with_installation;

async fn refusal(it: &testkit::Installation) -> dispatcher::Error {
    let lifecycle = Lifecycle {
        shutdown: Shutdown::new(),
        readiness: Readiness::default(),
    };
    let run = dispatcher::run(it.shared_config(), lifecycle);
    let ended = tokio::time::timeout(testkit::PATIENCE, run).await;
    ended.expect("it gives up at once").expect_err("it cannot run")
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_dispatcher_with_unusable_settings_does_not_start(pool: PgPool) {
    with_installation(pool, async |mut it| {
        let _broker = it.broker();
        let usable = it.config.database.url.clone();
        it.config.database.url = config::Secret::new("not a URL".to_owned());
        assert!(matches!(refusal(&it).await, dispatcher::Error::Store(_)));
        it.config.database.url = usable;
        "ftp://swrve.test".clone_into(&mut it.config.swrve.url);
        assert!(matches!(refusal(&it).await, dispatcher::Error::PushLane(_)));
    })
    .await;
}
