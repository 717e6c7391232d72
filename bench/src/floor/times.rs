//! How long one thing takes when nothing else is done: a request, a commit, a message.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use lapin::options::BasicAckOptions;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use sqlx::{Connection as _, Executor as _, PgConnection};
use uuid::Uuid;

use super::MEASURED;
use super::amqp::{BODY, PERSISTENT, declare};
use crate::load::{self, Load};
use crate::report::stats::quantile;
use crate::rig::Rig;

/// Requests a second, few enough that none waits for another.
const RATE: u32 = 1_000;
const CONNECTIONS: usize = 64;
const TIMES: usize = 2_000;
const WARM_UP: usize = 100;

/// The median of a request to a bare server, in milliseconds.
pub(crate) async fn echo_time(rig: &Rig) -> Result<f64> {
    let (process, target) = rig.echo().await?;
    let tally = load::put(Load::evenly(CONNECTIONS, RATE, MEASURED), &target).await?;
    process.stop().await;
    Ok(tally.quantile_millis(0.5))
}

/// The median of a commit of one row, in milliseconds.
pub(crate) async fn commit_time(url: &str) -> Result<f64> {
    let mut connection = PgConnection::connect(url).await?;
    connection
        .execute("CREATE TABLE bench_commit (id uuid PRIMARY KEY)")
        .await?;
    let mut times = Vec::with_capacity(TIMES);
    let give_up = Instant::now() + MEASURED;
    for number in 0..WARM_UP + TIMES {
        let start = Instant::now();
        sqlx::query("INSERT INTO bench_commit VALUES ($1)")
            .bind(Uuid::now_v7())
            .execute(&mut connection)
            .await?;
        if number >= WARM_UP {
            times.push(millis(start.elapsed()));
        }
        if Instant::now() > give_up {
            break;
        }
    }
    connection.execute("DROP TABLE bench_commit").await?;
    connection.close().await?;
    Ok(quantile(&times, 0.5))
}

/// The median from publishing a message to a quorum queue until a consumer has it, in milliseconds.
pub(crate) async fn relay_time(url: &str, queue: &str) -> Result<f64> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    declare(&channel, queue).await?;
    let mut deliveries = channel
        .basic_consume(
            queue.into(),
            "bench".into(),
            Default::default(),
            Default::default(),
        )
        .await?;
    let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
    let mut times = Vec::with_capacity(TIMES);
    let give_up = Instant::now() + MEASURED;
    for number in 0..WARM_UP + TIMES {
        let start = Instant::now();
        let confirm = channel
            .basic_publish(
                "".into(),
                queue.into(),
                Default::default(),
                &BODY,
                properties.clone(),
            )
            .await?;
        let delivery = deliveries.next().await.context("the queue is gone")??;
        if number >= WARM_UP {
            times.push(millis(start.elapsed()));
        }
        delivery.acker.ack(BasicAckOptions::default()).await?;
        confirm.await?;
        if Instant::now() > give_up {
            break;
        }
    }
    channel.queue_delete(queue.into(), Default::default()).await?;
    // Its consumer has just lost its queue, which is an error of its own.
    let _ = connection.close(200, "done".into()).await;
    Ok(quantile(&times, 0.5))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
