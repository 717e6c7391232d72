//! One push as it is remembered and shown.

use serde::{Deserialize, Serialize};

use crate::received::{Outcome, Page, Remembered};

/// Longer texts are cut in the list, so that its memory is bounded.
const MAX_TEXT_BYTES: usize = 256;

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
pub type ReceivedPage = Page<Received>;

impl Remembered for Received {
    fn number(&self) -> u64 {
        self.number
    }

    /// Bounded by itself.
    fn bytes(&self) -> usize {
        0
    }
}

/// The beginning of `text`, cut between characters.
pub(crate) fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"é".repeat(200)).len(), 256);
        assert_eq!(cut(&format!("x{}", "é".repeat(200))).len(), 255);
    }
}
