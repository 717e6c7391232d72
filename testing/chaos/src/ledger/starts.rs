//! The send starts, as the dispatchers tell of them in their logs right before the bytes of each send.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use uuid::Uuid;

/// A send of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The term in which it was made.
    pub epoch: i64,
    /// When it started, in nanoseconds of the host's monotonic clock.
    pub started: u64,
    /// When its bytes were about to be written.
    pub handed_over: u64,
    /// Which push.
    pub push: Uuid,
}

#[derive(Deserialize)]
struct Line {
    target: String,
    #[serde(flatten)]
    told: Option<Told>,
}

#[derive(Deserialize)]
struct Told {
    epoch: i64,
    started: u64,
    handed_over: u64,
    #[serde(rename = "push.id")]
    push: Uuid,
}

/// Adds those of one log. A last line that its process could not finish is no line.
pub fn read_starts(path: &Path, starts: &mut Vec<Start>) -> anyhow::Result<()> {
    let failed = || format!("failed to read the log {}", path.display());
    let mut log = BufReader::new(File::open(path).with_context(failed)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if log.read_until(b'\n', &mut line).with_context(failed)? == 0 {
            return Ok(());
        }
        starts.extend(read_line(&line));
    }
}

fn read_line(line: &[u8]) -> Option<Start> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let told = line.told.filter(|_| line.target == "engine::push::starts")?;
    Some(Start {
        epoch: told.epoch,
        started: told.started,
        handed_over: told.handed_over,
        push: told.push,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_dispatcher_is_read_and_others_are_not() {
        let line = br#"{"timestamp":"2026-01-01T00:00:00Z","level":"TRACE","epoch":3,"push.id":"019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d","started":17,"handed_over":19,"message":"send","target":"engine::push::starts","span":{"name":"send"}}"#;
        let start = read_line(line).unwrap();
        assert_eq!((start.epoch, start.started, start.handed_over), (3, 17, 19));
        assert_eq!(read_line(&line[..line.len() - 20]), None);
        assert_eq!(
            read_line(br#"{"level":"INFO","message":"resigned","epoch":3,"target":"leadership::term"}"#),
            None
        );
    }
}
