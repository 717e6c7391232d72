//! The wall clocks of replicas, which can jump. Time that only ever passes (`CLOCK_MONOTONIC`) is left alone.
//!
//! They are false by means of libfaketime, which reads from a file how far; the programs are not changed for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;

use super::{Replica, using};

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
const LIBRARIES: &str = "/usr/lib";
/// How long the library may go on with what it has read before.
pub(crate) const NOTICED_WITHIN: Duration = Duration::from_secs(1);

pub(crate) struct Clocks {
    /// Without it clocks stay true.
    library: Option<PathBuf>,
    folder: PathBuf,
    offsets: Mutex<BTreeMap<Replica, i64>>,
}

impl Clocks {
    /// True clocks, until they are stepped.
    pub(crate) fn create(folder: PathBuf, replicas: impl Iterator<Item = Replica>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&folder).with_context(using(&folder))?;
        let clocks = Self {
            library: library(),
            folder,
            offsets: Mutex::default(),
        };
        for replica in replicas {
            clocks.step(replica, 0)?;
        }
        Ok(clocks)
    }

    /// Makes a program of the replica see its clock.
    pub(crate) fn show(&self, replica: Replica, command: &mut Command) {
        let Some(library) = &self.library else { return };
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", self.file(replica))
            .env("FAKETIME_CACHE_DURATION", NOTICED_WITHIN.as_secs().to_string())
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// Whether they can be made wrong at all.
    pub(crate) fn can_be_wrong(&self) -> bool {
        self.library.is_some()
    }

    /// Makes a clock wrong by so much.
    pub(crate) fn step(&self, replica: Replica, by_millis: i64) -> anyhow::Result<()> {
        let mut offsets = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        offsets.insert(replica, by_millis);
        self.write(replica, by_millis)
    }

    /// Makes all clocks true again.
    pub(crate) fn heal(&self) -> anyhow::Result<bool> {
        let mut offsets = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut healed = false;
        for (replica, offset) in offsets.iter_mut().filter(|(_, offset)| **offset != 0) {
            *offset = 0;
            self.write(*replica, 0)?;
            healed = true;
        }
        Ok(healed)
    }

    /// Whole or not at all: a file that is being written would mean another time.
    fn write(&self, replica: Replica, offset: i64) -> anyhow::Result<()> {
        let file = self.file(replica);
        let partial = file.with_extension("partial");
        let sign = if offset < 0 { '-' } else { '+' };
        let (seconds, millis) = (offset.unsigned_abs() / 1000, offset.unsigned_abs() % 1000);
        std::fs::write(&partial, format!("{sign}{seconds}.{millis:03}\n")).with_context(using(&partial))?;
        std::fs::rename(&partial, &file).with_context(using(&file))
    }

    fn file(&self, replica: Replica) -> PathBuf {
        self.folder.join(replica.to_string())
    }
}

fn library() -> Option<PathBuf> {
    let architectures = std::fs::read_dir(LIBRARIES).into_iter().flatten().flatten();
    architectures
        .map(|folder| folder.path())
        .chain([Path::new(LIBRARIES).to_owned()])
        .map(|folder| folder.join(LIBRARY))
        .find(|library| library.exists())
}
