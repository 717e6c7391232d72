//! Killing the dispatcher that sends, and what can only be known at that moment.

use anyhow::{Context as _, Result};

use crate::exposition::Exposition;
use crate::http;
use crate::rig::{Rig, Service, Swrve};

/// The user of the one request that the harness itself sends: its arrival puts the kill on the simulator's clock.
pub(crate) const MARKER: &str = "bench-marker";
const MARKER_FORM: &str = "push_key=bench&user=bench-marker&message=marker";

/// What is known of the kill.
pub(crate) struct Takeover {
    /// The killed sender's last scrape.
    pub(crate) last_metrics: Exposition,
    /// Sends that waited for their answer at that scrape.
    pub(crate) in_flight: u64,
    /// Pushes that it had claimed when it died.
    pub(crate) claimed: usize,
    /// The dispatcher that is left.
    pub(crate) successor: Service,
}

/// Kills the one of two dispatchers that leads.
pub(crate) async fn kill_sender(rig: &Rig, mut dispatchers: Vec<Service>, swrve: &Swrve) -> Result<Takeover> {
    let mut scrapes = Vec::with_capacity(dispatchers.len());
    for dispatcher in &dispatchers {
        rig.expect_alive(&dispatcher.process).await?;
        scrapes.push(dispatcher.metrics().await?);
    }
    let leader = scrapes
        .iter()
        .position(|metrics| metrics.value("postrider_push_leader", None) == Some(1.0))
        .context("no dispatcher says that it leads")?;
    let sender = dispatchers.remove(leader);
    let last_metrics = sender.metrics().await?;
    sender.process.kill().await?;
    let address = swrve.address;
    // Its arrival counts, not its answer, which takes Swrve's time.
    tokio::spawn(async move { http::post_form(address, "/push", MARKER_FORM).await.ok() });
    let claimed: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM push_notifications WHERE status = 'IN_MEMORY' AND lease_token IS NOT NULL",
    )
    .fetch_one(&rig.pool)
    .await?;
    let in_flight = last_metrics.value("postrider_push_sends_in_flight", None);
    Ok(Takeover {
        last_metrics,
        in_flight: in_flight.unwrap_or_default() as u64,
        claimed: usize::try_from(claimed)?,
        successor: dispatchers.pop().context("there is no successor")?,
    })
}
