//! The folder with the mails. A mail gets its name once it is complete, so that a reader of the folder never sees
//! half of one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    next: AtomicU64,
}

impl Spool {
    /// Makes the folder if it is missing.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            next: AtomicU64::new(1),
        })
    }

    /// Writes a mail; its file's name sorts by the time of arrival, over restarts as well.
    pub(crate) async fn keep(&self, content: &[u8]) -> io::Result<PathBuf> {
        let millis = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{millis:013}-{number:06}.eml");
        let (hidden, file) = (self.folder.join(format!(".{name}")), self.folder.join(name));
        tokio::fs::write(&hidden, content).await?;
        tokio::fs::rename(&hidden, &file).await?;
        Ok(file)
    }
}
