//! What a simulator can be told before it starts.

use std::time::Duration;

use crate::swrve::response_time::ResponseTime;
use crate::swrve::script::Rule;

/// How the simulator behaves. Every field has a useful default.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long an accepted push takes to be answered. Default: [`ResponseTime::Seed`].
    pub response_time: ResponseTime,
    /// Makes the drawn response times repeatable; `None` draws others at each start.
    pub random_seed: Option<u64>,
    /// How many requests may arrive within any second before the rest get a 429; `None` for no limit. Default: 300.
    pub requests_per_second: Option<u32>,
    /// Gaps between arrivals below this are counted in the report. Default: 4 ms.
    pub shortest_allowed_gap: Duration,
    /// The rules in force from the start. Default: none.
    pub script: Vec<Rule>,
    /// How many of the latest requests can be listed. About 300 bytes each. Default: 200,000.
    pub received_capacity: usize,
    /// How many distinct users and pushes can be told apart. About 40 bytes each. Default: 3,000,000.
    pub distinct_capacity: usize,
    /// Threads of the simulator's own runtime, at least one. Default: 2.
    pub worker_threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            response_time: ResponseTime::Seed,
            random_seed: None,
            requests_per_second: Some(300),
            shortest_allowed_gap: Duration::from_millis(4),
            script: Vec::new(),
            received_capacity: 200_000,
            distinct_capacity: 3_000_000,
            worker_threads: 2,
        }
    }
}
