//! Settings that cannot be used.

use lifecycle::{Lifecycle, Readiness, Shutdown};
use testkit::Installation;

async fn refusal(it: &Installation) -> dispatcher::Error {
    let lifecycle = Lifecycle {
        shutdown: Shutdown::new(),
        readiness: Readiness::default(),
    };
    let run = dispatcher::run(it.shared_config(), lifecycle);
    let ended = tokio::time::timeout(testkit::PATIENCE, run).await;
    ended.expect("it gives up at once").expect_err("it cannot run")
}

#[testkit::test]
async fn a_dispatcher_with_unusable_settings_does_not_start(mut it: Installation) {
    let _broker = it.broker();
    let usable = it.config.database.url.clone();
    it.config.database.url = config::Secret::new("not a URL".to_owned());
    assert!(matches!(refusal(&it).await, dispatcher::Error::Store(_)));
    it.config.database.url = usable;
    it.config.swrve.url = config::Secret::new("ftp://swrve.test");
    assert!(matches!(refusal(&it).await, dispatcher::Error::PushLane(_)));
}
