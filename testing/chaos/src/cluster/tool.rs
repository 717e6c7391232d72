//! Running a command to its end.

use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::wait::PATIENCE;

/// Its standard output, when it succeeds. A command that is not waited for any more is killed.
pub(crate) async fn output(command: Command) -> anyhow::Result<String> {
    let said = shown(&command);
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let ended = ended.with_context(|| format!("waited {PATIENCE:?} in vain for {said}"))?;
    let output = ended.with_context(|| format!("failed to run {said}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let both = [output.stdout, output.stderr].concat();
    anyhow::bail!(
        "{said} failed with {}: {}",
        output.status,
        String::from_utf8_lossy(&both).trim()
    )
}

/// The program and its arguments; none of ours holds a secret.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
