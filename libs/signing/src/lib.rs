#![doc = include_str!("../README.md")]
//!
//! # Responsibility
//!
//! This crate turns a secret, an identifier, a time and bytes into a signature and back into a verdict. It deliberately
//! does no I/O, reads no clock, knows no HTTP library and remembers nothing: refusing a notification that was seen before is
//! the receiver's part.

mod content;
mod headers;
mod idempotency;
mod notification;
mod receive;
mod secret;
mod sign;
mod verify;

pub use headers::{HEADER_ID, HEADER_SIGNATURE, HEADER_TIMESTAMP, SignedHeaders};
pub use idempotency::idempotency_key;
pub use notification::{BodyError, Notification};
pub use receive::{ReceiveError, receive};
pub use secret::{MAX_SECRET_BYTES, MIN_SECRET_BYTES, SECRET_PREFIX, Secret, SecretError};
pub use sign::{sign, signature_header};
pub use verify::{DEFAULT_TOLERANCE, VerifyError, verify};
