//! Running a command to its end.

use std::process::{Command, Stdio};

use super::Error;
use super::wait::PATIENCE;

/// Its standard output, when it succeeds. A command that is not waited for any more is killed.
pub(crate) async fn output(command: Command) -> Result<String, Error> {
    let said = shown(&command);
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let ended = ended.map_err(|_| Error::TooLate {
        what: said.clone(),
        seconds: PATIENCE.as_secs(),
    })?;
    let output = ended.map_err(|source| Error::Run {
        command: said.clone(),
        source,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let both = [output.stdout, output.stderr].concat();
    Err(Error::Failed {
        command: said,
        status: output.status,
        output: String::from_utf8_lossy(&both).trim().to_owned(),
    })
}

/// The program and its arguments; none of ours holds a secret.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
