//! The crate against a real RabbitMQ, named by `AMQP_URL`. Every test has exchanges and queues of its own,
//! and removes them.

mod coalesce;
mod connection;
mod consuming;
mod proxy;
mod publishing;
mod receipts;
mod reseller;
mod rig;
mod topology;
mod unanswered;
