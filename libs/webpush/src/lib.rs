//! What Web Push (RFC 8030, 8291, 8292) means by its tokens, headers and numbers: opaque endpoints, message ids, who may send (VAPID), how a
//! body is encrypted, TTL and topic, what a request is refused with, and the messages between endpoint and connection nodes.
//!
//! Everything here is a pure function of what it is given; the one thing it takes from outside is randomness for what it encrypts.
//! It knows no store, no HTTP and no clock, and it deliberately never decrypts the body of a message: nothing here could.

#![forbid(unsafe_code)]

mod auth;
mod base64url;
mod delivery;
mod encryption;
mod fernet;
mod message_id;
mod parameters;
mod refusal;
mod token;
mod vapid;
mod wire;

pub use auth::AuthKeys;
pub use delivery::{MAX_TTL, Topic, ttl};
pub use encryption::{Encryption, EncryptionHeaders};
pub use fernet::{KeyError, Keys};
pub use message_id::MessageId;
pub use refusal::Refusal;
pub use token::{Subscription, TokenVersion, endpoint_url};
pub use vapid::{Vapid, VapidError, VapidKey};
pub use wire::{Push, PushHeaders};
