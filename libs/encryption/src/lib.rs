//! Secrets at rest: sealed with a key that is not in the database, opened only by who has it.
//!
//! It encrypts and authenticates small values, binds each to the row that it belongs to, and lets keys be replaced. It
//! deliberately keeps no key, knows no store, and does not know what it seals; what a signing secret is stands in `signing`.
//! Why it is made like this: `docs/adr/0012-signing-and-sealing.md`.

mod key;
mod sealer;

pub use key::{KeyError, SealingKey};
pub use sealer::{OVERHEAD, SealError, Sealer};
