//! The push lane: pushes and the attempts to send them.

mod backlog;
mod cancel;
mod claim;
mod complete;
mod defer;
mod holds;
mod idempotency;
mod insert;
mod listing;
mod promote;
mod release;
mod rescue;
mod view;

pub use claim::{Claim, ClaimedPush};
pub use complete::Completion;
pub use defer::{Deferral, DuePush};
pub use holds::{HoldPeriod, HoldView, SWRVE, SwrveHold};
pub use insert::{IdempotencyKey, Inserted, NewPush};
pub use listing::{PushFilter, PushRow};
pub use promote::{Promoted, PromotionQueue};
pub use release::Release;
pub(crate) use release::release_pushes;
pub use view::{Ahead, AttemptView, PushView};
