//! Everything Postrider says in AMQP: the topology, one supervised connection, a confirming publisher,
//! consumers that survive reconnects, and queue depths.
//!
//! A [`Broker`] owns one connection and looks after it for as long as it lives. Starting one never fails
//! because the server is away: publishing then answers [`Published::NotSent`], consumers wait, and
//! [`Broker::state`] says why. Of a cluster it knows several nodes, and goes to another one when one is lost.
//!
//! What this crate deliberately does not do:
//! * It keeps no messages. Whatever is not [`Published::Confirmed`] stays the caller's, whose database is the
//!   truth.
//! * It never retries a publish and never redelivers: both are decided by who knows the row behind the
//!   message.
//! * It uses no automatic recovery of the AMQP library. A new connection is a new *generation*; what belongs
//!   to an old one (outstanding confirms, receipts) is ended, not carried over.
//!
//! RabbitMQ stops reading from a connection that publishes while it is short of memory or disk, acknowledgements
//! included; and, after a few hundred messages, from one that publishes to a queue that does not take them, whatever the
//! channel. A process that publishes a lot and consumes a lot should therefore start two brokers, and one that publishes to
//! several queues one for each.

mod addresses;
mod broker;
mod connect;
mod consumer;
mod dead;
mod declare;
pub mod envelope;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod inflight;
mod ledger;
mod link;
mod message;
mod part;
mod pipeline;
mod publisher;
mod queue;
mod receipt;
mod settings;
mod subscription;
mod supervisor;
pub mod topology;
mod traceparent;

pub use broker::{Broker, QueueDepth};
pub use consumer::{Consumer, Delivery};
pub use dead::{DeadConsumer, DeadLetter};
pub use envelope::{Envelope, Kind};
pub use error::Error;
pub use link::ConnectionState;
pub use publisher::{Published, Publisher};
pub use queue::Queue;
pub use receipt::{Receipt, Settlement};
pub use settings::Settings;
