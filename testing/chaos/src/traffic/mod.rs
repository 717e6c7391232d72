//! What flows through a run: pushes and events from callers that insist, and operators and resellers who pause, replay and ask again.

mod calls;
mod operators;
mod orders;
mod subscribers;

pub use calls::{Door, Traffic};
pub use operators::{Office, Operators};
pub use orders::{EventOrder, PushOrder, RESELLERS};
pub use subscribers::{Character, Subscriber, Subscribers};
