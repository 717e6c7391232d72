//! How often endpoints are challenged. A challenge is a request to a host of a reseller's choice, who need not own it.

use std::time::Duration;

/// The least time between two challenges of a subscription that commands bring about. It doubles with each command in vain.
pub const FLOOR: Duration = Duration::from_secs(10);

/// As long as [`FLOOR`] gets.
pub const FLOOR_MAX: Duration = Duration::from_secs(600);
