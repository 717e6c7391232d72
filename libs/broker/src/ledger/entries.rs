//! The books of a ledger: which messages are open and which are done, by their tags. No I/O.
//!
//! What is settled is forgotten at once, so that a message that is never settled costs no more than its own tag.

use std::collections::{BTreeMap, BTreeSet};

use lapin::types::DeliveryTag;

/// The books. `A` is the right to acknowledge.
#[derive(Debug)]
pub(super) struct Entries<A> {
    /// The newest tag that was seen.
    newest: DeliveryTag,
    /// Not done, or being settled on their own.
    open: BTreeSet<DeliveryTag>,
    /// To be acknowledged.
    done: BTreeMap<DeliveryTag, A>,
    /// Whether a task will see to what is done and cannot be acknowledged yet.
    held: bool,
}

impl<A> Default for Entries<A> {
    fn default() -> Self {
        Self {
            newest: 0,
            open: BTreeSet::new(),
            done: BTreeMap::new(),
            held: false,
        }
    }
}

impl<A> Entries<A> {
    pub(super) fn given(&mut self, tag: DeliveryTag) {
        // The tags of a gap were given to no caller of this ledger; what comes after a gap is never acknowledged together with it.
        self.open.extend(self.newest + 1..=tag);
        self.newest = self.newest.max(tag);
    }

    pub(super) fn done(&mut self, tag: DeliveryTag, acker: A) {
        if self.open.remove(&tag) {
            self.done.insert(tag, acker);
        }
    }

    pub(super) fn settled(&mut self, tag: DeliveryTag) {
        self.open.remove(&tag);
    }

    /// Takes what is acknowledged by acknowledging the returned one and all before it.
    pub(super) fn take_prefix(&mut self) -> Option<A> {
        let behind = self.open.first().map(|open| self.done.split_off(open));
        let ready = std::mem::replace(&mut self.done, behind.unwrap_or_default());
        ready.into_values().next_back()
    }

    /// Takes everything else that is done. It counts as open until it is noted as settled.
    pub(super) fn take_scattered(&mut self) -> Vec<(DeliveryTag, A)> {
        self.held = false;
        let taken = std::mem::take(&mut self.done);
        self.open.extend(taken.keys());
        taken.into_iter().collect()
    }

    /// Whether the caller has to see to it that what is done is taken before long.
    pub(super) fn hold(&mut self) -> bool {
        let waits = match (self.open.first(), self.done.last_key_value()) {
            (Some(open), Some((done, _))) => open < done,
            _ => false,
        };
        waits && !std::mem::replace(&mut self.held, true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn given(count: u64) -> Entries<u64> {
        let mut entries = Entries::default();
        (1..=count).for_each(|tag| entries.given(tag));
        entries
    }

    #[test]
    fn what_is_done_in_order_is_acknowledged_at_once() {
        let mut entries = given(3);
        entries.done(1, 1);
        entries.done(2, 2);
        assert!(!entries.hold());
        assert_eq!(entries.take_prefix(), Some(2));
        assert_eq!(entries.take_prefix(), None);
        entries.done(3, 3);
        assert_eq!(entries.take_prefix(), Some(3));
    }

    #[test]
    fn what_is_done_behind_something_open_waits_and_goes_singly() {
        let mut entries = given(4);
        entries.done(1, 1);
        entries.done(3, 3);
        assert!(entries.hold());
        assert!(!entries.hold(), "it is seen to already");
        assert_eq!(entries.take_prefix(), Some(1));
        assert_eq!(entries.take_scattered(), [(3, 3)]);
        entries.done(2, 2);
        entries.done(4, 4);
        assert_eq!(entries.take_prefix(), Some(2), "3 is not written yet");
        entries.settled(3);
        assert_eq!(entries.take_prefix(), Some(4));
        assert!(!entries.hold());
    }

    #[test]
    fn what_was_handed_back_is_never_named_and_stops_the_others_until_that_is_written() {
        let mut entries = given(3);
        entries.done(1, 1);
        entries.done(3, 3);
        assert_eq!(entries.take_prefix(), Some(1));
        entries.settled(2);
        assert_eq!(entries.take_prefix(), Some(3));
        let mut entries = given(2);
        entries.done(1, 1);
        entries.settled(2);
        assert_eq!(entries.take_prefix(), Some(1), "the last that is acknowledged");
    }

    #[test]
    fn a_gap_is_never_crossed() {
        let mut entries = Entries::default();
        entries.given(1);
        entries.given(3);
        entries.done(1, 1);
        entries.done(3, 3);
        assert_eq!(entries.take_prefix(), Some(1));
        assert_eq!(entries.take_prefix(), None);
    }

    /// The server's side: what it has given out and not seen settled. It closes the channel when told of anything else.
    struct Server(BTreeSet<u64>);

    impl Server {
        fn acknowledge(&mut self, tag: u64, multiple: bool, open: &BTreeSet<u64>) {
            assert!(self.0.remove(&tag), "unknown delivery tag {tag}");
            if multiple {
                let kept = self.0.split_off(&tag);
                self.0 = kept;
            }
            assert!(open.is_subset(&self.0), "an open message was acknowledged");
        }
    }

    proptest! {
        /// Whatever the order, the server is never told of a message twice, nor of one that is still open, and in the end it
        /// has been told of all.
        #[test]
        fn every_message_is_acknowledged_exactly_once(steps in proptest::collection::vec((0_u8..5, 0_usize..9), 1..120)) {
            let (mut entries, mut server, mut open) = (Entries::default(), Server(BTreeSet::new()), BTreeSet::new());
            let mut last = 0;
            let mut writing: Vec<(u64, u64)> = Vec::new();
            for (step, place) in steps {
                match step {
                    0 => {
                        last += 1;
                        entries.given(last);
                        server.0.insert(last);
                        open.insert(last);
                    }
                    1 => if let Some(tag) = open.iter().nth(place).copied() {
                        open.remove(&tag);
                        entries.done(tag, tag);
                    },
                    2 => if let Some(tag) = entries.take_prefix() {
                        server.acknowledge(tag, true, &open);
                    },
                    3 => writing.extend(entries.take_scattered()),
                    _ => for (tag, acker) in writing.drain(..) {
                        server.acknowledge(acker, false, &open);
                        entries.settled(tag);
                    },
                }
            }
            for tag in std::mem::take(&mut open) {
                entries.done(tag, tag);
            }
            for (tag, acker) in writing.into_iter().chain(entries.take_scattered()) {
                server.acknowledge(acker, false, &open);
                entries.settled(tag);
            }
            prop_assert!(server.0.is_empty());
            prop_assert!(entries.open.is_empty() && entries.done.is_empty());
        }
    }
}
