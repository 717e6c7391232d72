//! A queue that takes messages from nobody and confirms none, on a broker that is well otherwise.

use std::process::Command;

use broker::Queue;

use crate::Installation;

/// The process of a queue, asleep until this is dropped.
pub struct Suspended {
    process: String,
}

impl Installation {
    /// Puts a queue to sleep. `None`, with a word about it, when the broker is not this checkout's own.
    #[expect(
        clippy::print_stderr,
        reason = "a test that proves less than it could should say so"
    )]
    #[must_use]
    pub fn suspend(&self, queue: Queue) -> Option<Suspended> {
        let process = format!("'%2F_{}{}'", self.config.amqp.queue_prefix, queue.name());
        if !evaluate(&format!("sys:suspend({process}).")) {
            eprintln!("the broker is not this checkout's own: no queue of it can be suspended");
            return None;
        }
        Some(Suspended { process })
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        evaluate(&format!("sys:resume({}).", self.process));
    }
}

/// Has the checkout's own broker evaluate an expression; `false` when there is none.
fn evaluate(expression: &str) -> bool {
    const RUN: &str =
        r#"eval "$(scripts/servers env rabbitmq)" && [ -n "${RABBITMQCTL:-}" ] && "$RABBITMQCTL" eval "$0""#;
    Command::new("bash")
        .args(["-c", RUN, expression])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .is_ok_and(|done| done.status.success())
}
