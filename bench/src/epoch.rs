//! Moments of this process as numbers, so that a request can carry the one at which it was due.

use std::sync::LazyLock;
use std::time::Instant;

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Fixes the beginning. Moments before it count as zero.
pub(crate) fn begin() {
    LazyLock::force(&EPOCH);
}

/// Nanoseconds from the beginning to `at`.
pub(crate) fn nanos(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*EPOCH).as_nanos()).unwrap_or(u64::MAX)
}
