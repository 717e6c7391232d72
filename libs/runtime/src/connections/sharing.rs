//! Whether notifications may share messages: when all that read them have said that they can.

use broker::Broker;
use lifecycle::{Shutdown, error_chain};
use store::Store;
use tokio::time::MissedTickBehavior;

use super::BEAT_INTERVAL;

/// Tells brokers every few seconds, until shutdown, whether notifications may share messages. A reader of an earlier version that has come
/// meanwhile leaves some of them to their leases until then; while the database does not answer, nothing changes.
pub async fn share_messages(store: Store, brokers: Vec<Broker>, shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(BEAT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match store::within(BEAT_INTERVAL, store.shared_messages_are_read()).await {
            Ok(sharing) => brokers.iter().for_each(|broker| broker.share_messages(sharing)),
            Err(error) => tracing::debug!(error = error_chain(&error), "not known who reads shared messages"),
        }
    }
}
