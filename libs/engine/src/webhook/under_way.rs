//! What the loop has started, and what it is told when that is over. A guard tells it when it is dropped: a task that panics gives
//! back what it was about, as one that ends well does.

use tokio::sync::mpsc;
use uuid::Uuid;

use super::claimer::Claimed;
use super::scheduler::{Fetch, Turn};
use crate::message::Message;

/// What comes back to the loop.
pub(crate) enum Done {
    Claimed(Vec<Turn<Message>>, Option<Claimed>),
    Fetched(Vec<Fetch>, Option<Claimed>),
    /// What was found for a probe; `None` when that could not be found out.
    Probed(Fetch, Option<Claimed>),
    /// An attempt is over, or was dropped.
    Attempted(Uuid),
    /// Something of each of these was put into the database, so many notifications in all, unless that failed.
    PutAside(Vec<Uuid>, usize),
    Settled,
}

/// Something under way. Dropping it tells the loop that it is over, however it ended.
pub(crate) struct UnderWay {
    over: Option<Done>,
    done: mpsc::UnboundedSender<Done>,
}

impl UnderWay {
    /// `over` is what the loop is told unless it comes to something else.
    pub(crate) fn new(over: Done, done: mpsc::UnboundedSender<Done>) -> Self {
        Self {
            over: Some(over),
            done,
        }
    }

    /// A claim, a fetch or a probe has come to this.
    pub(crate) fn ended(mut self, result: Option<Claimed>) {
        match &mut self.over {
            Some(Done::Claimed(_, claimed) | Done::Fetched(_, claimed) | Done::Probed(_, claimed)) => {
                *claimed = result;
            }
            _ => unreachable!("invariant: what claims nothing is dropped, see run_loop"),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(over) = self.over.take() {
            // The loop is gone when everything is.
            let _ = self.done.send(over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_claim_a_fetch_or_a_probe_that_panics_tells_the_loop_that_it_is_over() {
        let (done, mut dones) = mpsc::unbounded_channel();
        let fetch = |slots| Fetch {
            subscription: Uuid::nil(),
            slots,
        };
        let claiming = UnderWay::new(Done::Claimed(Vec::new(), None), done.clone());
        let fetching = UnderWay::new(Done::Fetched(vec![fetch(3)], None), done.clone());
        let probing = UnderWay::new(Done::Probed(fetch(1), None), done);
        let panicking = tokio::spawn(async move {
            let (_claiming, _fetching, _probing) = (claiming, fetching, probing);
            panic!("as a test wants it");
        });
        assert!(panicking.await.unwrap_err().is_panic());
        let (mut claims, mut fetches, mut probes) = (0, 0, 0);
        while let Some(done) = dones.recv().await {
            match done {
                Done::Claimed(turns, None) if turns.is_empty() => claims += 1,
                Done::Fetched(fetched, None) if fetched == [fetch(3)] => fetches += 1,
                Done::Probed(fetch, None) if fetch.slots == 1 => probes += 1,
                _ => panic!("another end"),
            }
        }
        assert_eq!((claims, fetches, probes), (1, 1, 1));
    }
}
