//! What a receiver can be told before it starts.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::{Clock, SystemClock};

use crate::receiver::keyring::SecretFor;
use crate::receiver::script::Rule;

/// How the receiver behaves. Every field has a useful default.
#[derive(Clone)]
pub struct Options {
    /// Which secrets it knows. Default: none; then nothing is checked.
    pub secrets: Vec<SecretFor>,
    /// How far a timestamp may be away. Default: five minutes.
    pub tolerance: Duration,
    /// The clock that timestamps are compared with. Default: the system's.
    pub clock: Arc<dyn Clock>,
    /// The rules in force from the start. Default: none; then everything is accepted.
    pub script: Vec<Rule>,
    /// Turns it into an HTTPS server, with what [`load_tls`](crate::receiver::load_tls) read. Default: none.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// How many of the latest requests can be listed. Default: 10,000.
    pub received_capacity: usize,
    /// How many bytes of their headers and bodies are kept. Default: 64 MiB.
    pub received_bytes: usize,
    /// How many distinct identifiers can be told apart. About 40 bytes each. Default: 3,000,000.
    pub distinct_capacity: usize,
    /// The largest body that is read; for a larger one the answer is 413. Default: 16 MiB.
    pub max_body_bytes: usize,
    /// Threads of the receiver's own runtime, at least one. Default: 2.
    pub worker_threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            secrets: Vec::new(),
            tolerance: signing::DEFAULT_TOLERANCE,
            clock: Arc::new(SystemClock),
            script: Vec::new(),
            tls: None,
            received_capacity: 10_000,
            received_bytes: 64 << 20,
            distinct_capacity: 3_000_000,
            max_body_bytes: 16 << 20,
            worker_threads: 2,
        }
    }
}
