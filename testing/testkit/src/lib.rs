//! What tests of several crates share. A dev-dependency only: no service may depend on it.

mod database;
mod descriptors;
mod fixture;
mod installation;
mod keys;
pub mod notification_factory;
pub mod openapi;
mod patience;
pub mod push_factory;
mod queues;
mod servers;
mod service;
pub mod subscription_factory;
mod wait;

pub use database::on_database;
pub use descriptors::NoDescriptors;
pub use fault_proxy::{FaultProxy, Toxic};
pub use fixture::{Fixture, Leftover, leaves, run, see_end};
pub use installation::{Installation, SWRVE_KEYS, push_request};
pub use keys::{act_of_a_reseller, key_of_the_house, key_of_the_reseller, key_stored_as};
pub use patience::PATIENT;
pub use servers::{amqp_url, database_url};
pub use service::Service;
pub use testkit_macros::{database_test, test};
pub use wait::{PATIENCE, eventually};
