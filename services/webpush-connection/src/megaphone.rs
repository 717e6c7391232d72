//! Asks the megaphone for the versions of broadcasts, again and again, and tells the connections when one has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use config::Secret;
use lifecycle::{Shutdown, error_chain};
use reqwest::Client;
use reqwest::header::AUTHORIZATION;
use serde::Deserialize;

use crate::broadcasts::Broadcasts;
use crate::node::Node;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What the megaphone answers.
#[derive(Debug, Deserialize)]
struct Answer {
    broadcasts: HashMap<String, String>,
}

/// Where broadcasts come from.
pub(crate) struct Megaphone {
    client: Client,
    url: String,
    token: Option<Secret>,
    interval: Duration,
}

impl Megaphone {
    /// The megaphone at `url`, which is asked each `interval`.
    ///
    /// # Errors
    ///
    /// When no client for HTTP can be made.
    pub(crate) fn new(
        url: String,
        token: Option<Secret>,
        interval: Duration,
    ) -> Result<Self, reqwest::Error> {
        Ok(Self {
            // Redirects are followed, as the paths of megaphones end with a slash or without.
            client: Client::builder().timeout(TIMEOUT).build()?,
            url,
            token,
            interval,
        })
    }

    /// Asks once.
    pub(crate) async fn ask(&self) -> Result<Broadcasts, reqwest::Error> {
        let mut request = self.client.get(&self.url);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.expose());
        }
        let answer: Answer = request.send().await?.error_for_status()?.json().await?;
        Ok(answer.broadcasts.into_iter().collect())
    }

    /// Asks until the shutdown. While the megaphone is away its last answer holds.
    pub(crate) async fn listen(self, node: Arc<Node>, shutdown: Shutdown) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            match self.ask().await {
                Ok(broadcasts) if broadcasts != **node.broadcasts.load() => {
                    node.broadcasts.store(Arc::new(broadcasts));
                    for mailbox in node.registry.all() {
                        mailbox.tell_broadcasts();
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(error = error_chain(&error), "the megaphone does not answer");
                }
            }
        }
    }
}
