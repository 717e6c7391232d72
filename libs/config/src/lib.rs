//! The configuration of every Postrider process: defaults, one YAML file over them, the environment over that.
//!
//! [`load`] finds all errors in one go, so that an operator mends them in one go. It deliberately reads the process environment
//! in one place only ([`Sources::of_process`]), and neither prints nor exits.
//!
//! A key is declared in `model`, where it gets its name, type, unit and range, and explained with its default in
//! `config/default.yaml`. What is read, shown and listed as the reference of all keys follows from these two.

mod environment;
mod error;
mod form;
mod layers;
mod model;
mod push_keys;
mod read;
mod reader;
mod render;
mod rules;
mod secret;
mod section;
mod sources;
mod unit;
mod urls;
mod yaml;

pub use error::{Errors, Fault, Origin, Problem};
pub use model::{
    Admin, Amqp, Brand, Config, Cron, Database, Egress, Embed, Health, Idempotency, Ingest, Job, Jobs,
    KeyLogin, Leader, LogFormat, Mail, Oidc, OidcRoles, Operator, Partitions, Portal, Push, Queue, Quota,
    Replay, Rescue, Reseller, ResellerDelivery, ResellerEvent, ResellerRetry, Retention, Retry, Secrets,
    ShutdownConfig, SubscriptionDefaults, Swrve, Telemetry, Verification, Webpush, WebpushConnection,
    WebpushEndpoint,
};
pub use push_keys::PushKeys;
pub use read::{given_average_processing, load, load_for_production};
pub use render::reference;
pub use secret::Secret;
pub use sources::Sources;

/// The base layer: every key with its default and its explanation.
pub const DEFAULT_YAML: &str = include_str!("../../../config/default.yaml");
