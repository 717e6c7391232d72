//! What a process has written since a moment.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::PathBuf;

const TAIL_LINES: usize = 20;
const TAIL_BYTES: u64 = 16 * 1024;
/// What is looked for is said at the start.
const START_BYTES: u64 = 1024 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Log {
    path: PathBuf,
    start: u64,
}

impl Log {
    /// From what is written next on.
    pub(crate) fn at_end_of(path: PathBuf) -> Self {
        let start = std::fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, start }
    }

    fn read(&self, from: u64, limit: u64) -> String {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(limit).read_to_end(&mut bytes)
        });
        // A log that is not there yet says nothing.
        let _ = read;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The field `address` of the first line that says `message`. A line that is still being written is no JSON yet.
    pub(crate) fn address(&self, message: &str) -> Option<SocketAddr> {
        self.read(self.start, START_BYTES)
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find(|line| line["message"] == message)
            .and_then(|line| line["address"].as_str()?.parse().ok())
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        let length = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        let text = self.read(self.start.max(length.saturating_sub(TAIL_BYTES)), TAIL_BYTES);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}
