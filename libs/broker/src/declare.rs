//! Bringing the [`Topology`] to a server: idempotent, and able to replace a queue whose arguments have
//! changed.

use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Connection, ErrorKind, ExchangeKind};

use crate::Error;
use crate::link::{close_channel, open_channel, request};
use crate::topology::{Argument, OnMismatch, QueueDefinition, Topology};

/// Declares everything. Safe to repeat, and to be done by several processes at once.
pub(crate) async fn declare(connection: &Connection, topology: &Topology) -> Result<(), Error> {
    let channel = open_channel(connection).await?;
    for exchange in &topology.exchanges {
        let options = ExchangeDeclareOptions {
            durable: true,
            ..Default::default()
        };
        let declared = channel.exchange_declare(
            exchange.as_str().into(),
            ExchangeKind::Direct,
            options,
            Default::default(),
        );
        request("declare an exchange", declared).await?;
    }
    for queue in &topology.queues {
        declare_queue(connection, queue).await?;
        let bound = channel.queue_bind(
            queue.name.as_str().into(),
            queue.exchange.as_str().into(),
            queue.routing_key.into(),
            Default::default(),
            Default::default(),
        );
        request("bind a queue", bound).await?;
    }
    close_channel(&channel).await;
    Ok(())
}

async fn declare_queue(connection: &Connection, queue: &QueueDefinition) -> Result<(), Error> {
    match declare_once(connection, queue).await {
        Err(Error::Request { source, .. }) if is(&source, AMQPSoftError::PRECONDITIONFAILED) => {}
        outcome => return outcome,
    }
    if queue.on_mismatch == OnMismatch::Keep {
        tracing::warn!(
            queue = queue.name,
            "queue exists with other arguments and is used as it is"
        );
        return Ok(());
    }
    delete_unused(connection, queue).await?;
    declare_once(connection, queue).await
}

/// Declares on a channel of its own, because a refusal closes the channel.
async fn declare_once(connection: &Connection, queue: &QueueDefinition) -> Result<(), Error> {
    let channel = open_channel(connection).await?;
    let declared = channel.queue_declare(
        queue.name.as_str().into(),
        QueueDeclareOptions::durable(),
        arguments(&queue.arguments),
    );
    request("declare a queue", declared).await?;
    close_channel(&channel).await;
    Ok(())
}

/// Deletes a queue that no process consumes.
///
/// Quorum queues do not support deleting with `if_unused`, so the consumers are counted first. A consumer
/// that comes in between is cancelled by the server and reconnects, which is what it has to do anyway.
async fn delete_unused(connection: &Connection, queue: &QueueDefinition) -> Result<(), Error> {
    let found = match inspect(connection, &queue.name).await {
        Err(Error::QueueMissing { .. }) => return Ok(()),
        found => found?,
    };
    let (messages, consumers) = (found.message_count(), found.consumer_count());
    if consumers > 0 {
        return Err(Error::QueueInUse {
            queue: queue.name.clone(),
            consumers,
        });
    }
    tracing::warn!(
        queue = queue.name,
        messages,
        "queue exists with other arguments and is replaced"
    );
    let channel = open_channel(connection).await?;
    let deleted = channel.queue_delete(queue.name.as_str().into(), Default::default());
    request("delete a queue", deleted).await?;
    close_channel(&channel).await;
    Ok(())
}

/// Asks for a queue's length and consumers without declaring it.
pub(crate) async fn inspect(connection: &Connection, queue: &str) -> Result<lapin::Queue, Error> {
    let channel = open_channel(connection).await?;
    let asked = channel.queue_declare(
        queue.into(),
        QueueDeclareOptions::default().passive(),
        Default::default(),
    );
    match request("inspect a queue", asked).await {
        Ok(found) => {
            close_channel(&channel).await;
            Ok(found)
        }
        Err(Error::Request { source, .. }) if is(&source, AMQPSoftError::NOTFOUND) => {
            Err(Error::QueueMissing {
                queue: queue.to_owned(),
            })
        }
        Err(error) => Err(error),
    }
}

fn is(error: &lapin::Error, expected: AMQPSoftError) -> bool {
    match error.kind() {
        ErrorKind::ProtocolError(error) => *error.kind() == AMQPErrorKind::Soft(expected),
        _ => false,
    }
}

fn arguments(arguments: &[(&'static str, Argument)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in arguments {
        let value = match value {
            Argument::Integer(number) => AMQPValue::LongLongInt(*number),
            Argument::Text(text) => AMQPValue::LongString(text.as_str().into()),
        };
        table.insert((*name).into(), value);
    }
    table
}
