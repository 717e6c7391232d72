//! The rules of Postrider, free of I/O: identifiers, the life cycle of a push, retry policy, sending windows,
//! partition arithmetic, API key roles.
//!
//! Nothing here reads a clock, talks to a server or is `async`; callers pass the time in. Every rule has its one
//! home here and is mirrored, never re-invented, by guarded SQL in `store`.

pub mod clock;
pub mod key;
pub mod month;
pub mod push;
