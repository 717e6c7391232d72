//! What a rescue did, in either lane.

use std::ops::AddAssign;

/// What one pass of the rescuer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rescued {
    /// What waits for the queue again. In the reseller lane, for its first attempt.
    pub pending: u64,
    /// What waits for another attempt. In the push lane that is `pending`.
    pub retry: u64,
    /// What had used up its attempts.
    pub given_up: u64,
}

impl Rescued {
    /// Everything.
    pub fn count(&self) -> u64 {
        self.pending + self.retry + self.given_up
    }
}

impl AddAssign for Rescued {
    fn add_assign(&mut self, other: Self) {
        self.pending += other.pending;
        self.retry += other.retry;
        self.given_up += other.given_up;
    }
}
