//! Where the processes of a test write their logs.

use std::fs;
use std::path::PathBuf;

use uuid::Uuid;

/// The folder for the logs of a test's processes, which is kept when the test fails.
pub(super) struct Logs {
    pub(super) dir: PathBuf,
}

impl Logs {
    pub(super) fn new() -> Self {
        let dir =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}", Uuid::now_v7().simple()));
        fs::create_dir_all(&dir).expect("a folder can be made");
        Self { dir }
    }
}

impl Drop for Logs {
    #[expect(
        clippy::print_stderr,
        reason = "it tells the reader of the failure where to look"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the logs of the processes are in {}", self.dir.display());
        } else {
            // What is left of it does not matter.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
