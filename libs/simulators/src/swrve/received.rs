//! The latest requests, in a ring: the oldest is forgotten when it is full.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Longer texts are cut in the list, so that its memory is bounded.
const MAX_TEXT_BYTES: usize = 256;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It has not been answered yet.
    Pending,
    /// It was answered.
    Answered,
    /// A rule closed its connection.
    Dropped,
    /// The client went away before the answer.
    Abandoned,
}

/// One request to `POST /push`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// Counts arrivals from 1; never used twice, also after a reset.
    pub number: u64,
    /// When it arrived, in microseconds since the simulator's start.
    pub arrival_micros: f64,
    /// The field `push_key`; this and the other texts are empty when the form was unreadable, and cut after 256 bytes.
    pub push_key: String,
    /// The field `user`.
    pub user: String,
    /// The field `message`.
    pub message: String,
    /// Whether `test=1` was there.
    pub test: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of the answer, once there is one.
    pub status: Option<u16>,
}

/// A part of the list of received requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedPage {
    /// In the order of their arrival.
    pub items: Vec<Received>,
    /// The number of the oldest request that can still be listed; what came before it is forgotten.
    pub oldest: u64,
    /// What to give as `after` to go on from here.
    pub next_after: u64,
}

#[derive(Debug)]
pub(crate) struct Ring {
    items: VecDeque<Received>,
    capacity: usize,
    /// The number of the first item, or of the next arrival while there is none.
    oldest: u64,
}

impl Ring {
    pub(crate) fn new(capacity: usize, next_number: u64) -> Self {
        Self {
            items: VecDeque::new(),
            capacity,
            oldest: next_number,
        }
    }

    /// Adds the next arrival; returns its number.
    pub(crate) fn arrive(&mut self, arrival_micros: f64) -> u64 {
        let number = self.next_number();
        self.items.push_back(Received {
            number,
            arrival_micros,
            push_key: String::new(),
            user: String::new(),
            message: String::new(),
            test: false,
            outcome: Outcome::Pending,
            status: None,
        });
        if self.items.len() > self.capacity {
            self.items.pop_front();
            self.oldest += 1;
        }
        number
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.oldest + self.items.len() as u64
    }

    /// The request of this number, unless it is forgotten.
    pub(crate) fn item(&mut self, number: u64) -> Option<&mut Received> {
        let index = number.checked_sub(self.oldest)?;
        self.items.get_mut(usize::try_from(index).ok()?)
    }

    pub(crate) fn page(&self, after: u64, limit: usize) -> ReceivedPage {
        let skipped = usize::try_from((after + 1).saturating_sub(self.oldest)).unwrap_or(usize::MAX);
        let items: Vec<Received> = self.items.iter().skip(skipped).take(limit).cloned().collect();
        let next_after = items.last().map_or(after, |last| last.number);
        ReceivedPage {
            items,
            oldest: self.oldest,
            next_after,
        }
    }
}

/// The beginning of `text`, cut between characters.
pub(crate) fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(page: &ReceivedPage) -> Vec<u64> {
        page.items.iter().map(|item| item.number).collect()
    }

    #[test]
    fn the_oldest_are_forgotten_and_the_list_says_so() {
        let mut ring = Ring::new(3, 1);
        for _ in 0..5 {
            ring.arrive(0.0);
        }
        let page = ring.page(0, 10);
        assert_eq!(
            (numbers(&page), page.oldest, page.next_after),
            (vec![3, 4, 5], 3, 5)
        );
        assert!(ring.item(2).is_none());
        assert_eq!(ring.item(3).unwrap().number, 3);
        assert!(ring.item(6).is_none());
    }

    #[test]
    fn pages_follow_each_other() {
        let mut ring = Ring::new(10, 1);
        for _ in 0..5 {
            ring.arrive(0.0);
        }
        let page = ring.page(0, 2);
        assert_eq!((numbers(&page), page.next_after), (vec![1, 2], 2));
        let page = ring.page(page.next_after, 10);
        assert_eq!((numbers(&page), page.next_after), (vec![3, 4, 5], 5));
        let page = ring.page(page.next_after, 10);
        assert_eq!((numbers(&page), page.next_after), (vec![], 5));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"é".repeat(200)).len(), 256);
        assert_eq!(cut(&format!("x{}", "é".repeat(200))).len(), 255);
    }
}
