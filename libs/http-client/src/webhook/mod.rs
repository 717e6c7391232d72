//! The client of the resellers' endpoints: one call is one attempt to deliver one signed notification.
//!
//! The endpoint is chosen by a reseller, whom we do not trust, so everything about it is bounded and guarded: which addresses
//! may be dialled ([`EgressPolicy`]), how long all of it may take, and how much of the answer is read. It follows no
//! redirect, uses no proxy from the environment and never sends twice. It signs nothing, and it does not judge what an
//! answer means for a notification (see `domain::notification::DeliveryOutcome`).

mod address;
pub(crate) mod answer;
mod client;
mod connecting;
mod endpoint;
mod failure;
mod guard;
mod policy;
mod resolver;
mod retry_after;

pub use address::AddressKind;
pub use client::{
    WebhookClient, WebhookClientBuilder, WebhookError, WebhookReply, WebhookRequest, WebhookSettings,
};
pub use connecting::Phase;
pub use endpoint::{Endpoint, EndpointError, check_endpoint, is_of_name};
pub use policy::{EgressPolicy, NO_PUBLIC_ADDRESS, Refusal};
pub use resolver::{Addresses, LookupError, NameResolver, SystemResolver};
