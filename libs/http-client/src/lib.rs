//! Everything that leaves the process over HTTP: the client of the Swrve push API, the pacing of its sends, and the
//! guarded client of the resellers' endpoints.
//!
//! An answer, a refusal and an unreachable receiver are all data here ([`domain::push::SendOutcome`],
//! [`domain::notification::DeliveryOutcome`]); an error of this crate means that it could not be set up. It keeps no
//! state of what it sends, decides nothing about retries, and does not know the database or the broker.

mod connection;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hand_over;
mod own_fault;
mod pacer;
mod sanitise;
mod swrve;
mod webhook;

pub use hand_over::HandOver;
pub use pacer::{Pacer, PacerError, SendStart, Turn};
pub use swrve::{PreparedPush, Reply, SwrveClient, SwrveError, SwrveSettings};
pub use webhook::{
    AddressKind, Addresses, EgressPolicy, Endpoint, EndpointError, LookupError, NO_PUBLIC_ADDRESS,
    NameResolver, Phase, Refusal, SystemResolver, WebhookClient, WebhookClientBuilder, WebhookError,
    WebhookReply, WebhookRequest, WebhookSettings, check_endpoint, is_of_name,
};
