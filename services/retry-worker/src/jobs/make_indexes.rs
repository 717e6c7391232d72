//! Makes the indexes that an upgrade has left to be made, because the tables that they are of are large and written to.

use std::time::Duration;

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// How long an execution watches, which holds up a stop. The database goes on by itself with what it is at, and a later execution finds it
/// made.
const WATCHED: Duration = Duration::from_secs(5);

pub(crate) struct MakeIndexes;

impl Job for MakeIndexes {
    const NAME: &'static str = "indexes";
    const INTERVAL: Duration = Duration::from_secs(60);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        match tokio::time::timeout(WATCHED, context.store.make_indexes()).await {
            Ok(made) => {
                for index in made? {
                    tracing::info!(index, "made an index");
                }
            }
            Err(_) => tracing::info!("an index is still being made"),
        }
        Ok(())
    }
}
