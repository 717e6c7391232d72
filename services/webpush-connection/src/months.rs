//! Makes the months of Web Push ahead and drops old ones, at the start and then every hour: an installation of these nodes alone has no
//! retry-worker, which does so as well. The functions of the schema take turns.

use std::sync::Arc;
use std::time::Duration;

use http_api::Outage;
use lifecycle::{Shutdown, error_chain};

use crate::node::Node;

const INTERVAL: Duration = Duration::from_secs(3600);
/// Until the next try when the database is away or has no schema yet.
const RETRY: Duration = Duration::from_secs(10);

/// Keeps `months_ahead` months ready until shutdown.
pub(crate) async fn keep(node: Arc<Node>, months_ahead: u32, shutdown: Shutdown) {
    let outage = Outage::of("make the months of Web Push");
    let keeping = async {
        loop {
            let pause = match make(&node, months_ahead).await {
                Ok(()) => {
                    outage.worked();
                    drop_old(&node).await;
                    INTERVAL
                }
                Err(error) => {
                    outage.failed(&error);
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = keeping => {}
    }
}

/// From the month before on, for a node whose clock is behind.
async fn make(node: &Node, months_ahead: u32) -> Result<(), store::Error> {
    let (first, months) = (node.month().minus(1), months_ahead + 2);
    let created = node.store.create_webpush_partitions(first, months).await?;
    if created > 0 {
        tracing::info!(tables = created, "made months of Web Push");
    }
    Ok(())
}

/// What cannot be dropped now, because it is being read, is dropped by a later try.
async fn drop_old(node: &Node) {
    let dropping = async {
        let present = node.store.cutoff(node.clock.now(), Duration::ZERO).await?;
        node.store.drop_webpush_partitions(present).await
    };
    match dropping.await {
        Ok(dropped) => {
            for month in dropped {
                tracing::info!(month, "dropped a month of Web Push that was past its retention");
            }
        }
        Err(error) => tracing::debug!(error = error_chain(&error), "old months of Web Push were left"),
    }
}
