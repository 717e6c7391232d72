//! What became of a push, an event, a notification or a dead letter, and how it stands with a subscription, in sentences: what happened, why it is where it is, what comes
//! next, and what helps. Pure: who asks reads the rows, and everything that people see says it in the same words.

mod afterwards;
mod attempt;
mod course;
mod dead_letter;
mod delay;
mod event;
mod event_notification;
mod explanation;
mod item;
mod notification;
mod push;
mod quota_wait;
pub mod reseller;
mod subscription;
#[cfg(test)]
mod tests;
mod user_agent;
pub mod words;

pub use dead_letter::describe as dead_letter;
pub use delay::{Delay, DelayPart};
pub use event::describe as event;
pub use event_notification::describe as event_notification;
pub use explanation::{Context, Explanation, Line, Next, Rules};
pub use notification::describe as notification;
pub use push::describe as push;
pub use subscription::{SAME_TIME, SubscriptionFacts, describe as subscription};
pub use user_agent::describe as user_agent;
