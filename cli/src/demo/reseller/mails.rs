//! The mails that a run causes, where the mail server keeps them as files.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;

use super::subscriptions;

/// One about what was given up, one about the subscription that ended.
const LEAST: usize = 2;
const POLL: Duration = Duration::from_millis(200);

/// Waits for the mails of this run until `deadline`; returns how many there are.
pub(super) async fn wait(folder: &Path, run: &str, deadline: Instant) -> anyhow::Result<usize> {
    let recipient = subscriptions::email(run);
    loop {
        let found = count(folder, &recipient)?;
        if found >= LEAST || Instant::now() >= deadline {
            return Ok(found);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// What is not as it should be, if anything.
pub(super) fn deviation(found: usize) -> Option<String> {
    (found < LEAST).then(|| format!("only {found} mails came, at least {LEAST} should"))
}

fn count(folder: &Path, recipient: &str) -> anyhow::Result<usize> {
    let files = std::fs::read_dir(folder)
        .with_context(|| format!("failed to read the folder {}", folder.display()))?;
    let mut found = 0;
    for file in files {
        // A file may be half written, or moved to its final name just now: it is there the next time.
        let mail = std::fs::read(file?.path()).unwrap_or_default();
        found += usize::from(String::from_utf8_lossy(&mail).contains(recipient));
    }
    Ok(found)
}
