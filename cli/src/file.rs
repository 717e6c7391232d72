//! Files that a command is given, standard input among them.

use std::io::Read as _;

use anyhow::Context as _;

/// What a file holds; `-` is standard input.
pub(crate) fn read(path: &str) -> anyhow::Result<String> {
    if path == "-" {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .context("failed to read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("failed to read {path}"))
}

/// The same to the byte, for what is signed and what may not be text.
pub(crate) fn read_bytes(path: &str) -> anyhow::Result<Vec<u8>> {
    if path == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .context("failed to read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| format!("failed to read {path}"))
}
