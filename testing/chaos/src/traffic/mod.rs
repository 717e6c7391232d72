//! What flows through a run: pushes and events from callers that insist, operators and resellers who pause, replay and ask again, and
//! messages of Web Push from senders to user agents.

mod calls;
mod operators;
mod orders;
mod senders;
mod subscribers;
mod user_agents;

pub use calls::{Door, Traffic};
pub use operators::{Office, Operators};
pub use orders::{EventOrder, PushOrder, RESELLERS};
pub use senders::Post;
pub use subscribers::{Character, Subscriber, Subscribers};
pub use user_agents::{Channel, UserAgents};
