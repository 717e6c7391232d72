//! The latest requests: the oldest is forgotten when there are too many, or when they take too much memory.

use std::collections::VecDeque;

use crate::receiver::received::{Received, ReceivedPage};

#[derive(Debug)]
pub(crate) struct Ring {
    items: VecDeque<Received>,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
    /// The number of the first item, or of the next arrival while there is none.
    oldest: u64,
}

impl Ring {
    pub(crate) fn new(max_items: usize, max_bytes: usize, next_number: u64) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            max_items,
            max_bytes,
            oldest: next_number,
        }
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.oldest + self.items.len() as u64
    }

    /// Adds the next arrival, which must have the next number.
    pub(crate) fn push(&mut self, item: Received) {
        debug_assert_eq!(item.number, self.next_number());
        self.bytes += item.bytes();
        self.items.push_back(item);
        self.forget();
    }

    /// Changes the request of this number, unless it is forgotten, and returns it.
    pub(crate) fn change(&mut self, number: u64, change: impl FnOnce(&mut Received)) -> Option<&Received> {
        let index = usize::try_from(number.checked_sub(self.oldest)?).ok()?;
        let item = self.items.get_mut(index)?;
        let before = item.bytes();
        change(item);
        self.bytes = self.bytes - before + item.bytes();
        self.forget();
        // It may be the one that was too much.
        let index = usize::try_from(number.checked_sub(self.oldest)?).ok()?;
        self.items.get(index)
    }

    fn forget(&mut self) {
        while self.items.len() > self.max_items || self.bytes > self.max_bytes {
            let Some(gone) = self.items.pop_front() else {
                return;
            };
            self.bytes -= gone.bytes();
            self.oldest += 1;
        }
    }

    pub(crate) fn page(&self, after: u64, limit: usize) -> ReceivedPage {
        let skipped =
            usize::try_from((after.saturating_add(1)).saturating_sub(self.oldest)).unwrap_or(usize::MAX);
        let items: Vec<Received> = self.items.iter().skip(skipped).take(limit).cloned().collect();
        ReceivedPage {
            next_after: items.last().map_or(after, |last| last.number),
            oldest: self.oldest,
            items,
        }
    }

    /// The latest `limit`, in the order of their arrival.
    pub(crate) fn latest(&self, limit: usize) -> Vec<Received> {
        let skipped = self.items.len().saturating_sub(limit);
        self.items.iter().skip(skipped).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::keyring::Verdict;
    use crate::receiver::received::Outcome;

    fn item(number: u64, body: usize) -> Received {
        Received {
            number,
            received_at: chrono::DateTime::UNIX_EPOCH,
            arrival_micros: 0,
            method: String::new(),
            path: String::new(),
            headers: Default::default(),
            body: "x".repeat(body),
            id: String::new(),
            event_type: String::new(),
            arrivals: 1,
            verdict: Verdict::Unread,
            delay_millis: None,
            outcome: Outcome::Pending,
            status: None,
        }
    }

    fn numbers(page: &ReceivedPage) -> Vec<u64> {
        page.items.iter().map(|item| item.number).collect()
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut ring = Ring::new(3, usize::MAX, 1);
        (1..=5).for_each(|number| ring.push(item(number, 0)));
        assert_eq!(numbers(&ring.page(0, 10)), [3, 4, 5]);
        assert_eq!(numbers(&ring.page(4, 10)), [5]);
        assert_eq!((ring.page(0, 1).next_after, ring.page(9, 1).next_after), (3, 9));
        assert!(ring.page(u64::MAX, 1).items.is_empty());
        assert!(ring.change(2, |_| panic!("it is forgotten")).is_none());
        assert_eq!(ring.next_number(), 6);
    }

    #[test]
    fn the_oldest_go_when_they_take_too_much() {
        let mut ring = Ring::new(100, 10_000, 1);
        (1..=3).for_each(|number| ring.push(item(number, 0)));
        ring.change(3, |item| item.body = "x".repeat(9_700));
        assert_eq!(numbers(&ring.page(0, 10)), [3]);
        assert!(ring.change(3, |item| item.body = "x".repeat(20_000)).is_none());
        assert_eq!(
            (ring.page(0, 10).items.len(), ring.next_number(), ring.bytes),
            (0, 4, 0)
        );
    }
}
