//! A process that may open no more files, and so no more connections. Only for tests that have a process to themselves.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many files as may still be opened while nothing is left: room for what is closed meanwhile.
const ROOM: u64 = 64;

/// Every file that this process may open, until it is dropped.
pub struct NoDescriptors {
    before: Rlimit,
    taken: Vec<File>,
}

impl NoDescriptors {
    /// Takes them.
    ///
    /// # Panics
    ///
    /// When the limit cannot be set.
    pub fn left() -> Self {
        let before = getrlimit(Resource::Nofile);
        let highest = File::open("/dev/null").map_or(0, |file| {
            use std::os::fd::AsRawFd as _;
            file.as_raw_fd().unsigned_abs()
        });
        let limit = Rlimit {
            current: Some(u64::from(highest) + ROOM),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, limit).expect("a process may lower its own limit");
        let mut none = Self {
            before,
            taken: Vec::new(),
        };
        none.take_what_was_closed();
        none
    }

    /// Takes what has become free meanwhile.
    pub fn take_what_was_closed(&mut self) {
        while let Ok(file) = File::open("/dev/null") {
            self.taken.push(file);
        }
    }
}

impl Drop for NoDescriptors {
    fn drop(&mut self) {
        self.taken.clear();
        let _ = setrlimit(Resource::Nofile, self.before);
    }
}
