//! Publishing to a quorum queue with confirms, and nothing else.

use std::collections::VecDeque;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, PublisherConfirm};

use super::{MEASURED, WARM_UP};

/// Messages that may be unconfirmed, as `amqp.maxUnconfirmed` is by default.
const UNCONFIRMED: usize = 1_000;
/// About the size of an envelope of the product.
pub(super) const BODY: [u8; 160] = [b'x'; 160];
pub(super) const PERSISTENT: u8 = 2;

/// Confirmed publishes a second into the empty quorum queue `queue`, which is deleted again.
pub(crate) async fn confirmed_publishes(url: &str, queue: &str) -> Result<f64> {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .context("failed to connect to the broker")?;
    let channel = connection.create_channel().await?;
    declare(&channel, queue).await?;
    let measured = publish(&channel, queue).await;
    channel.queue_delete(queue.into(), Default::default()).await?;
    connection.close(200, "done".into()).await?;
    measured
}

/// Makes the quorum queue, and prepares the channel for publishing to it.
pub(super) async fn declare(channel: &Channel, queue: &str) -> Result<()> {
    channel.confirm_select(Default::default()).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    channel
        .queue_declare(queue.into(), QueueDeclareOptions::durable(), arguments)
        .await?;
    Ok(())
}

/// Confirmed publishes a second.
pub(super) async fn publish(channel: &Channel, queue: &str) -> Result<f64> {
    let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
    let mut unconfirmed: VecDeque<PublisherConfirm> = VecDeque::with_capacity(UNCONFIRMED);
    let (from, mut confirmed) = (Instant::now() + WARM_UP, 0_u64);
    let to = from + MEASURED;
    loop {
        if unconfirmed.len() == UNCONFIRMED
            && let Some(oldest) = unconfirmed.pop_front()
        {
            let answer = oldest.await?;
            ensure!(matches!(answer, Confirmation::Ack(None)), "a publish was refused");
            let now = Instant::now();
            if now >= to {
                break;
            }
            confirmed += u64::from(now >= from);
        }
        let published = channel.basic_publish(
            "".into(),
            queue.into(),
            Default::default(),
            &BODY,
            properties.clone(),
        );
        unconfirmed.push_back(published.await?);
    }
    for late in unconfirmed {
        late.await?;
    }
    Ok(confirmed as f64 / MEASURED.as_secs_f64())
}
