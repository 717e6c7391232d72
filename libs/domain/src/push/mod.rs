//! The push lane: what a push is; how it is tried, and when it may be sent.

mod attempt;
mod hold;
mod id;
mod jobs;
mod month_end;
mod outcome;
mod quartz;
mod request;
mod retry;
mod window;

pub use attempt::{AttemptStatus, ErrorType};
pub use hold::{HoldDecision, Sign, SwrveWatch};
pub use id::{Platform, PushId};
pub use jobs::{JobRuleViolation, check_job, queue_lease};
pub use outcome::{Classification, SendOutcome, StatusClass, classify};
pub use quartz::CronError;
pub use request::{FieldError, Limits, PushRequest};
pub use retry::RetryPolicy;
pub use window::{NoSuchWindow, SendingWindow};

/// Both lanes have one life cycle.
pub use crate::lifecycle::{State as PushState, Status as PushStatus};
