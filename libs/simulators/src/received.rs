//! The latest requests: the oldest is forgotten when there are too many, or when they take too much memory.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It has not been answered yet.
    Pending,
    /// It was answered. An answer's body may still be on its way.
    Answered,
    /// A rule closed its connection.
    Dropped,
    /// The client went away before the answer.
    Abandoned,
}

/// A part of the list of received requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// In the order of their arrival.
    pub items: Vec<T>,
    /// The number of the oldest request that can still be listed; what came before it is forgotten.
    pub oldest: u64,
    /// What to give as `after` to go on from here.
    pub next_after: u64,
}

/// A request as it is remembered.
pub(crate) trait Remembered: Clone {
    /// Counts arrivals from 1.
    fn number(&self) -> u64;

    /// Roughly what it costs to remember it.
    fn bytes(&self) -> usize;
}

#[derive(Debug)]
pub(crate) struct Ring<T> {
    items: VecDeque<T>,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
    /// The number of the first item, or of the next arrival while there is none.
    oldest: u64,
}

impl<T: Remembered> Ring<T> {
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
    pub(crate) fn push(&mut self, item: T) {
        debug_assert_eq!(item.number(), self.next_number());
        self.bytes += item.bytes();
        self.items.push_back(item);
        self.forget();
    }

    /// Changes the request of this number, unless it is forgotten, and returns it.
    pub(crate) fn change(&mut self, number: u64, change: impl FnOnce(&mut T)) -> Option<&T> {
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

    pub(crate) fn page(&self, after: u64, limit: usize) -> Page<T> {
        let skipped =
            usize::try_from((after.saturating_add(1)).saturating_sub(self.oldest)).unwrap_or(usize::MAX);
        let items: Vec<T> = self.items.iter().skip(skipped).take(limit).cloned().collect();
        Page {
            next_after: items.last().map_or(after, |last| last.number()),
            oldest: self.oldest,
            items,
        }
    }

    /// The latest `limit`, in the order of their arrival.
    pub(crate) fn latest(&self, limit: usize) -> Vec<T> {
        let skipped = self.items.len().saturating_sub(limit);
        self.items.iter().skip(skipped).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Item {
        number: u64,
        bytes: usize,
    }

    impl Remembered for Item {
        fn number(&self) -> u64 {
            self.number
        }

        fn bytes(&self) -> usize {
            self.bytes
        }
    }

    fn filled(max_items: usize, max_bytes: usize, items: u64) -> Ring<Item> {
        let mut ring = Ring::new(max_items, max_bytes, 1);
        (1..=items).for_each(|number| ring.push(Item { number, bytes: 300 }));
        ring
    }

    fn numbers(page: &Page<Item>) -> Vec<u64> {
        page.items.iter().map(|item| item.number).collect()
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut ring = filled(3, usize::MAX, 5);
        let page = ring.page(0, 10);
        assert_eq!(
            (numbers(&page), page.oldest, page.next_after),
            (vec![3, 4, 5], 3, 5)
        );
        assert_eq!(numbers(&ring.page(4, 10)), [5]);
        assert_eq!((ring.page(0, 1).next_after, ring.page(9, 1).next_after), (3, 9));
        assert!(ring.page(u64::MAX, 1).items.is_empty());
        assert!(ring.change(2, |_| panic!("it is forgotten")).is_none());
        assert_eq!(ring.change(3, |_| {}).map(|item| item.number), Some(3));
        assert!(ring.change(6, |_| panic!("it has not come yet")).is_none());
        assert_eq!(ring.next_number(), 6);
    }

    #[test]
    fn pages_follow_each_other() {
        let ring = filled(10, usize::MAX, 5);
        let page = ring.page(0, 2);
        assert_eq!((numbers(&page), page.next_after), (vec![1, 2], 2));
        let page = ring.page(page.next_after, 10);
        assert_eq!((numbers(&page), page.next_after), (vec![3, 4, 5], 5));
        let page = ring.page(page.next_after, 10);
        assert_eq!((numbers(&page), page.next_after), (vec![], 5));
    }

    #[test]
    fn the_oldest_go_when_they_take_too_much() {
        let mut ring = filled(100, 10_000, 3);
        ring.change(3, |item| item.bytes = 9_800);
        assert_eq!(numbers(&ring.page(0, 10)), [3]);
        assert!(ring.change(3, |item| item.bytes = 20_000).is_none());
        assert_eq!(
            (ring.page(0, 10).items.len(), ring.next_number(), ring.bytes),
            (0, 4, 0)
        );
    }
}
