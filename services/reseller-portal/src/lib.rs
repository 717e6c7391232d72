//! The service that resellers talk to: their subscriptions, secrets, quotas, notifications, replays and numbers.
//!
//! Every operation takes the reseller from the API key, every page from the visit, and from nowhere else; what belongs to another one does not exist.
//! Keys of the house are of no use here but to make links to dashboards (`embedder`): this is the service that strangers can reach.
//!
//! What it deliberately does not do: deliver anything. It changes rows; the dispatcher and the retry worker find them. The one request that it
//! sends itself is the challenge that checks an endpoint before there is a subscription. It has no broker, and its answers never hold a secret, save the one that made it.

mod activity;
mod app;
mod bounds;
mod cancellations;
mod changes;
mod dashboard;
mod endpoint_checks;
mod event_types;
mod events;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod limits;
mod links;
mod metrics;
mod notifications;
mod openapi;
mod opened;
mod overview;
mod problems;
mod quotas;
mod replays;
mod request;
mod resends;
mod retry_now;
mod router;
mod secrets;
mod sending_ips;
mod service;
mod signature_checks;
mod site;
mod subscriptions;

pub use openapi::document as openapi;
pub use runtime::connections::OpenError as Error;
/// Method and path of every page of the dashboard, and of every form.
pub fn pages() -> Vec<(&'static str, &'static str)> {
    dashboard::paths()
}

pub use service::{run, run_with_clock};
