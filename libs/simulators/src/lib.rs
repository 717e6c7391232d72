//! What stands in for the systems that Postrider talks to, for development, tests and measurements: the Swrve push API, a
//! reseller's endpoint and a mail server. Each fails on demand and reports exactly what arrived.

mod received;
pub mod receiver;
mod script;
mod server;
pub mod smtp;
pub mod swrve;

pub use server::ServerError;
