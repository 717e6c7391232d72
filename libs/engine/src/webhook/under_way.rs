//! What the loop has started, and what it is told when that is over. Each is told by a guard when it is dropped: a task that
//! panics gives back what it was about, as one that ends well does.

use tokio::sync::mpsc;
use uuid::Uuid;

use super::claimer::Claimed;
use super::message::Message;
use super::scheduler::{Fetch, Turn};

/// What comes back to the loop.
pub(crate) enum Done {
    Claimed(Vec<Turn<Message>>, Option<Claimed>),
    Fetched(Fetch, Claimed, bool),
    /// What was found for a probe; `None` when that could not be found out.
    Probed(Fetch, Option<Claimed>),
    /// An attempt is over, or was dropped.
    Attempted(Uuid),
    Settled,
}

/// The slot of an attempt. Dropping it gives it back, however the attempt ended.
pub(crate) struct Slot {
    pub(crate) subscription: Uuid,
    pub(crate) done: mpsc::UnboundedSender<Done>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The loop is gone when everything is.
        let _ = self.done.send(Done::Attempted(self.subscription));
    }
}

/// A claim under way. Dropping it tells the loop what came of it, however it ended; without a result its messages go back.
pub(crate) struct Claiming {
    pub(crate) turns: Vec<Turn<Message>>,
    pub(crate) claimed: Option<Claimed>,
    pub(crate) done: mpsc::UnboundedSender<Done>,
}

impl Claiming {
    /// It has come to this.
    pub(crate) fn ended(mut self, claimed: Option<Claimed>) {
        self.claimed = claimed;
    }
}

impl Drop for Claiming {
    fn drop(&mut self) {
        let _ = self.done.send(Done::Claimed(
            std::mem::take(&mut self.turns),
            self.claimed.take(),
        ));
    }
}

/// The same for what is fetched from the database.
pub(crate) struct Fetching {
    pub(crate) fetch: Option<Fetch>,
    pub(crate) claimed: Claimed,
    pub(crate) more: bool,
    pub(crate) done: mpsc::UnboundedSender<Done>,
}

impl Fetching {
    /// It has come to this.
    pub(crate) fn ended(mut self, claimed: Claimed, more: bool) {
        (self.claimed, self.more) = (claimed, more);
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        if let Some(fetch) = self.fetch.take() {
            let _ = self
                .done
                .send(Done::Fetched(fetch, std::mem::take(&mut self.claimed), self.more));
        }
    }
}

/// The same for a probe.
pub(crate) struct Probing {
    pub(crate) fetch: Option<Fetch>,
    pub(crate) claimed: Option<Claimed>,
    pub(crate) done: mpsc::UnboundedSender<Done>,
}

impl Probing {
    /// It has come to this.
    pub(crate) fn ended(mut self, claimed: Option<Claimed>) {
        self.claimed = claimed;
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        if let Some(fetch) = self.fetch.take() {
            let _ = self.done.send(Done::Probed(fetch, self.claimed.take()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_claim_a_fetch_or_a_probe_that_panics_tells_the_loop_that_it_is_over() {
        let (done, mut dones) = mpsc::unbounded_channel();
        let claiming = Claiming {
            turns: Vec::new(),
            claimed: None,
            done: done.clone(),
        };
        let fetching = Fetching {
            fetch: Some(Fetch {
                subscription: Uuid::nil(),
                slots: 3,
            }),
            claimed: Claimed::default(),
            more: false,
            done: done.clone(),
        };
        let probing = Probing {
            fetch: Some(Fetch {
                subscription: Uuid::nil(),
                slots: 1,
            }),
            claimed: None,
            done,
        };
        let panicking = tokio::spawn(async move {
            let (_claiming, _fetching, _probing) = (claiming, fetching, probing);
            panic!("as a test wants it");
        });
        assert!(panicking.await.unwrap_err().is_panic());
        let (mut claims, mut fetches, mut probes) = (0, 0, 0);
        while let Some(done) = dones.recv().await {
            match done {
                Done::Claimed(turns, None) if turns.is_empty() => claims += 1,
                Done::Fetched(fetch, _, false) if fetch.slots == 3 => fetches += 1,
                Done::Probed(fetch, None) if fetch.slots == 1 => probes += 1,
                _ => panic!("another end"),
            }
        }
        assert_eq!((claims, fetches, probes), (1, 1, 1));
    }
}
