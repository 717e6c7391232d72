//! Subscriptions: which events a reseller gets, and how well its endpoint does.

mod challenge;
mod command;
mod email;
mod field;
mod filter;
mod health;
mod miss;
mod paused_by;
mod rate_budget;
mod recovery;
mod request;
mod request_status;
mod state;

pub use challenge::{FLOOR as CHALLENGE_FLOOR, FLOOR_MAX as CHALLENGE_FLOOR_MAX};
pub use command::{Command, CommandRefused, is_still_verified};
pub use field::FieldError;
pub use filter::{EventFilter, FilterError, is_event_type, patterns_of};
pub use health::{Health, HealthPolicy};
pub use miss::Miss;
pub use paused_by::{HeldBack, PausedBy};
pub use rate_budget::RateBudget;
pub use recovery::{
    Probe, RECOVERIES_MAX, RECOVERY_PARTS, RecoveryEnd, RecoveryGround, RecoveryStep, recovery_delay,
};
pub use request::{Bounds, ChangeDraft, SubscriptionChange, SubscriptionDraft, SubscriptionRequest};
pub use request_status::{QuotaRequestStatus, ReplayStatus};
pub use state::SubscriptionState;
