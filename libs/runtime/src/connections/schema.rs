//! Makes the schema where a program has to, since nothing else does: see [`with_schema`].

use domain::clock::{Clock as _, SystemClock};
use domain::month::Month;
use lifecycle::{Shutdown, error_chain};
use store::{Error, Store};

use super::{PROBE_INTERVAL, close, open_store};
use crate::Service;

/// The same service, which makes the schema and the months of an empty database before it begins.
///
/// For programs that stand in for others that do so. It listens meanwhile, so that callers wait instead of being refused; several at once
/// take turns. `postrider serve` deliberately leaves the schema to `postrider migrate`.
pub fn with_schema(service: Service) -> Service {
    let Service {
        name,
        listen,
        awaits,
        start,
    } = service;
    Service {
        name,
        listen,
        awaits,
        start: Box::new(move |config, listener, lifecycle| {
            Box::pin(async move {
                let store = open_store(&config, name)?;
                let (making, months) = (store.clone(), config.push.partitions.months_ahead + 2);
                // Migrating is not `Send`, as sqlx has it.
                let runtime = tokio::runtime::Handle::current();
                let made = tokio::task::spawn_blocking(move || {
                    runtime.block_on(make(&making, months, lifecycle.shutdown.clone()));
                    lifecycle
                });
                let lifecycle = made.await?;
                close([], store).await;
                start(config, listener, lifecycle).await
            })
        }),
    }
}

/// Tries until it is done, since the database may not be there yet, or until shutdown.
async fn make(store: &Store, months: u32, shutdown: Shutdown) {
    let making = async {
        while let Err(error) = attempt(store, months).await {
            tracing::warn!(
                error = error_chain(&error),
                "the schema could not be made; it is tried again"
            );
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
    };
    tokio::select! {
        () = making => {}
        () = shutdown.cancelled() => {}
    }
}

async fn attempt(store: &Store, months: u32) -> Result<(), Error> {
    if !store.is_migrated().await? {
        store.migrate().await?;
    }
    let last = Month::containing(SystemClock.now()).minus(1);
    store.create_partitions(last, months).await?;
    store.create_webpush_partitions(last, months).await.map(drop)
}
