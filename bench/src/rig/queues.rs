//! Removing the queues and exchanges of one run. Declaring them is the services' own business.

use anyhow::{Context as _, Result};
use lapin::{Connection, ConnectionProperties};

/// Deletes what services with this prefix have declared; what is not there is no error.
pub(crate) async fn delete(url: &str, prefix: &str) -> Result<()> {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .context("failed to connect to the broker")?;
    let channel = connection.create_channel().await?;
    for queue in [
        "push.ready",
        "push.dead",
        "reseller.ready",
        "reseller.retry",
        "reseller.dead",
    ] {
        let name = format!("{prefix}{queue}");
        channel
            .queue_delete(name.as_str().into(), Default::default())
            .await
            .context("failed to delete a queue")?;
    }
    for exchange in ["postrider", "postrider.dead"] {
        let name = format!("{prefix}{exchange}");
        channel
            .exchange_delete(name.as_str().into(), Default::default())
            .await
            .context("failed to delete an exchange")?;
    }
    connection.close(200, "done".into()).await?;
    Ok(())
}
