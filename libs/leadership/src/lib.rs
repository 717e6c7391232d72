//! One at a time: which replica may do what must not be done twice, such as pacing sends or promoting.
//!
//! A [`Candidate`] watches a lease row in PostgreSQL and, when no holder renews it, takes it over; a [`Term`] is the time
//! for which it holds. All waiting is by each process's own monotonic clock: a watcher waits for one time-to-live from
//! when it *saw* the last renewal, a holder counts from when it *asked* for it, and a little less, so the holder always stops
//! first, whatever wall clocks do and although no two monotonic clocks run equally fast. What a paused holder might still
//! write is refused by the term's epoch.
//!
//! A [`LaneWatch`] tells when operators have paused what would be done.
//!
//! It does not do the work and knows nothing of what it is for.

mod candidate;
mod deadline;
mod lane_watch;
mod term;

pub use candidate::{Candidate, Settings};
pub use lane_watch::LaneWatch;
pub use term::{Term, Validity};
