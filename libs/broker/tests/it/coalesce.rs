//! Gathers the server's confirms into few, each for many messages: what RabbitMQ does under load, made
//! certain.
//!
//! Returns are passed on at once. So the client gets many returns, and then one confirm for all messages,
//! returned and routed ones, and has to find out by itself which return belongs to which message.

use std::collections::{BTreeMap, BTreeSet};

const FRAME_HEADER: usize = 7;
const METHOD: u8 = 1;
/// Class 60, method 80, then the delivery tag (8 bytes) and `multiple` (1 byte).
const BASIC_ACK: [u8; 4] = [0, 60, 0, 80];

#[derive(Default)]
pub(crate) struct Coalescer {
    unparsed: Vec<u8>,
    channels: BTreeMap<[u8; 2], Confirms>,
}

/// Confirms of a channel that have been withheld.
#[derive(Default)]
struct Confirms {
    /// All tags up to here have been passed on.
    passed: u64,
    withheld: BTreeSet<u64>,
}

impl Coalescer {
    /// Takes bytes from the server and returns what is to be passed on at once: all frames but the confirms.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.unparsed.extend_from_slice(bytes);
        let mut passed_on = Vec::new();
        while let Some(frame) = self.frame() {
            if frame[0] == METHOD && frame[FRAME_HEADER..].starts_with(&BASIC_ACK) {
                self.withhold(&frame);
            } else {
                passed_on.extend(frame);
            }
        }
        passed_on
    }

    fn frame(&mut self) -> Option<Vec<u8>> {
        let size = self
            .unparsed
            .get(3..FRAME_HEADER)?
            .try_into()
            .expect("four bytes");
        let length = FRAME_HEADER + u32::from_be_bytes(size) as usize + 1;
        (self.unparsed.len() >= length).then(|| self.unparsed.drain(..length).collect())
    }

    fn withhold(&mut self, frame: &[u8]) {
        let arguments = &frame[FRAME_HEADER + BASIC_ACK.len()..];
        let tag = u64::from_be_bytes(arguments[..8].try_into().expect("eight bytes"));
        let confirms = self.channels.entry([frame[1], frame[2]]).or_default();
        let first = if arguments[8] == 1 {
            confirms.passed + 1
        } else {
            tag
        };
        confirms.withheld.extend(first..=tag);
    }

    /// One confirm per channel, for all messages up to the first one that the server has not confirmed.
    pub(crate) fn flush(&mut self) -> Vec<u8> {
        let mut frames = Vec::new();
        for (channel, confirms) in &mut self.channels {
            let before = confirms.passed;
            while confirms.withheld.remove(&(confirms.passed + 1)) {
                confirms.passed += 1;
            }
            if confirms.passed > before {
                frames.push(METHOD);
                frames.extend(channel);
                frames.extend(13_u32.to_be_bytes());
                frames.extend(BASIC_ACK);
                frames.extend(confirms.passed.to_be_bytes());
                frames.extend([1, 0xce]);
            }
        }
        frames
    }
}
