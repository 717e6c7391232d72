//! The limit of open files, most of which are connections: raised at the start as far as the operating system lets it.
//!
//! Service managers start processes with a low limit out of respect for programs that use `select`, which this one does not.

use config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For what is open besides connections that the configuration bounds: callers, logs, listeners, connections that linger.
const ELSE: usize = 512;

/// Raises the limit of this process to the hard one.
pub(crate) fn raise(config: &Config) {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    let (from, to) = (told(before.current), told(before.maximum));
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::info!(from, to, "may open as many files as the hard limit allows"),
        Err(error) => tracing::warn!(from, to, %error, "cannot raise the limit of open files"),
    }
    if let Some(shortage) = descriptor_shortage(config) {
        tracing::warn!("{shortage}");
    }
}

/// Says so when this process may not open as many files as it can need with this configuration.
pub fn descriptor_shortage(config: &Config) -> Option<String> {
    shortage(needed(config), getrlimit(Resource::Nofile).maximum)
}

fn shortage(needed: usize, most: Option<u64>) -> Option<String> {
    let most = most?;
    (most < needed as u64).then(|| {
        format!(
            "a process may open {most} files, and can need {needed} with this configuration: raise the hard limit \
             (LimitNOFILE, ulimit -Hn), or lower reseller.delivery.maxInFlight, reseller.retry.maxInFlight or \
             swrve.averageProcessingMillis"
        )
    })
}

/// What one process with all services can have open. A connection to an endpoint is kept for a moment after its request.
fn needed(config: &Config) -> usize {
    let endpoints = config.reseller.delivery.max_in_flight + config.reseller.retry.max_in_flight;
    let database = &config.database;
    let connections = database.max_connections + database.push_connections + database.lease_connections;
    2 * endpoints + config.pool_size() + connections as usize + ELSE
}

fn told(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_below_what_can_be_needed_is_told() {
        assert!(shortage(1_000, Some(999)).is_some_and(|text| text.contains("may open 999 files")));
        assert_eq!(shortage(1_000, Some(1_000)), None);
        assert_eq!(shortage(1_000, None), None);
    }
}
