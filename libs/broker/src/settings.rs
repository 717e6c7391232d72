//! What a [`crate::Broker`] needs to know to start. Reading it from files and the environment is not done
//! here.

use std::fmt;
use std::time::Duration;

/// Settings of one [`crate::Broker`].
#[derive(Clone)]
pub struct Settings {
    /// `amqp://` or `amqps://` URL with credentials and virtual host; or several, separated by commas, of nodes of one
    /// cluster. A `heartbeat` parameter (seconds) overrides the built-in one.
    pub url: String,
    /// Put before the name of every exchange and queue, so that several installations can share a virtual
    /// host.
    pub queue_prefix: String,
    /// Shown in RabbitMQ's management pages and logs.
    pub connection_name: String,
    /// Length of `push.ready` in messages; past it the server refuses publishes.
    pub push_queue_capacity: u32,
    /// Length of `reseller.ready` and of `reseller.retry`, each, in messages.
    pub reseller_queue_capacity: u32,
    /// How long a published message may go unanswered before it counts as [`crate::Published::Unconfirmed`].
    pub confirm_timeout: Duration,
    /// Published messages that may be unanswered at the same time, over all clones of the publisher.
    pub max_unconfirmed: u32,
}

impl fmt::Debug for Settings {
    /// Leaves the URL out, which carries the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("queue_prefix", &self.queue_prefix)
            .field("connection_name", &self.connection_name)
            .field("push_queue_capacity", &self.push_queue_capacity)
            .field("reseller_queue_capacity", &self.reseller_queue_capacity)
            .field("confirm_timeout", &self.confirm_timeout)
            .field("max_unconfirmed", &self.max_unconfirmed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_password() {
        let settings = Settings {
            url: "amqp://postrider:hunter2@localhost".to_owned(),
            queue_prefix: String::new(),
            connection_name: "test".to_owned(),
            push_queue_capacity: 1,
            reseller_queue_capacity: 1,
            confirm_timeout: Duration::from_secs(1),
            max_unconfirmed: 1,
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("test"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
