//! The same in the words of a reseller, who is told of its endpoint, its limits and its own acts, and of nothing inside the house: no
//! processes, no dead letters, no names and notes of operators.
//!
//! Each sentence has a code and what it was made of beside it, so that programs need not read it and other languages can say it.

mod acts;
mod answer;
mod late;
mod notification;
mod sentence;
mod subscription;
#[cfg(test)]
mod tests;

pub use answer::{answered, failing_on_our_side, unanswered};
pub use notification::{Step, Story, Teller, describe as notification};
pub use sentence::Sentence;
pub(crate) use sentence::named;
pub use subscription::describe as subscription;
