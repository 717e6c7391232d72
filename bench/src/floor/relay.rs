//! Publishing to a quorum queue with confirms while the same messages are consumed and acknowledged, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use lapin::options::{BasicAckOptions, BasicQosOptions};
use lapin::{Channel, Connection, ConnectionProperties};

use super::amqp::{declare, publish};
use super::{MEASURED, WARM_UP};

/// As many as an engine of the reseller lane may have.
const PREFETCH: u16 = 3_000;

/// Messages a second that go through the empty quorum queue `queue`, which is deleted again.
pub(crate) async fn relayed(url: &str, queue: &str) -> Result<f64> {
    let connect = || Connection::connect(url, ConnectionProperties::default());
    let (publishing, consuming) = (connect().await?, connect().await?);
    let channel = publishing.create_channel().await?;
    declare(&channel, queue).await?;
    let consumed = Arc::new(AtomicU64::new(0));
    let consumer = tokio::spawn(consume(
        consuming.create_channel().await?,
        queue.to_owned(),
        Arc::clone(&consumed),
    ));
    let published = publish(&channel, queue).await;
    consumer.abort();
    channel.queue_delete(queue.into(), Default::default()).await?;
    publishing.close(200, "done".into()).await?;
    // Its consumer has just lost its queue, which is an error of its own.
    let _ = consuming.close(200, "done".into()).await;
    published?;
    Ok(consumed.load(Ordering::Relaxed) as f64 / MEASURED.as_secs_f64())
}

async fn consume(channel: Channel, queue: String, consumed: Arc<AtomicU64>) -> Result<()> {
    let from = Instant::now() + WARM_UP;
    channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
    let mut deliveries = channel
        .basic_consume(
            queue.as_str().into(),
            "bench".into(),
            Default::default(),
            Default::default(),
        )
        .await
        .context("failed to consume")?;
    while let Some(delivery) = deliveries.next().await {
        delivery?.acker.ack(BasicAckOptions::default()).await?;
        if (from..from + MEASURED).contains(&Instant::now()) {
            consumed.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}
