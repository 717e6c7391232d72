//! The push lane: what a push is, the states it goes through and the rules that move it.

mod attempt;
mod hold;
mod id;
mod jobs;
mod month_end;
mod outcome;
mod quartz;
mod request;
mod retry;
mod state;
mod window;

pub use attempt::{AttemptStatus, ErrorType};
pub use hold::{Ruling, Sign, SwrveWatch};
pub use id::{Platform, PushId};
pub use jobs::{JobRuleViolation, check_job, queue_lease};
pub use outcome::{SendOutcome, StatusClass, Verdict, classify};
pub use quartz::CronError;
pub use request::{FieldError, Limits, PushRequest};
pub use retry::RetryPolicy;
pub use state::{Event, PushState, PushStatus, Refused, transition};
pub use window::{NoSuchWindow, SendingWindow};
