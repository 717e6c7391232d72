//! The rules of Postrider, free of I/O: identifiers, the life cycle of pushes and notifications, retry policies, sending
//! windows, quotas, the health of subscriptions, reasons, partition arithmetic, API key roles, dead letters,
//! the pace of batches.
//!
//! Nothing here reads a clock, talks to a server or is `async`; callers pass the time in. Every rule has its one
//! home here and is mirrored, never re-invented, by guarded SQL in `store`.

pub mod audit;
pub mod capability;
pub mod clock;
pub mod counted;
pub mod dead_letter;
pub mod dead_letter_job;
pub mod email;
pub mod event;
pub mod foreign_text;
pub mod key;
pub mod lane;
pub mod latency;
pub mod lifecycle;
pub mod linger;
pub mod month;
pub mod names;
pub mod nearest;
pub mod notification;
pub mod origin;
pub mod push;
pub mod quota;
pub mod reason;
pub mod reseller;
pub mod scope;
pub mod subscription;
