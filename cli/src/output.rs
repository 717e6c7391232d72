//! Where text goes: results to standard output, everything else to standard error.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
pub(crate) use domain::foreign_text::harmless;
use serde::Serialize;

/// Widest table; longer cells are wrapped.
const TABLE_WIDTH: u16 = 132;

/// Writes a result, with a line end.
///
/// # Errors
///
/// When standard output cannot be written. A reader that has seen enough, as in `postrider … | head -1`, is no error.
pub(crate) fn result(text: impl Display) -> io::Result<()> {
    line(text).map(drop)
}

/// Writes one line of results that have no end of their own, and says whether somebody still reads them.
///
/// # Errors
///
/// As [`result`].
pub(crate) fn line(text: impl Display) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a result to the byte, without a line end: it is something that may be signed.
///
/// # Errors
///
/// As [`result`].
pub(crate) fn exact(text: impl Display) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match write!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a result as JSON for programs.
///
/// # Errors
///
/// As [`result`].
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    result(serde_json::to_string_pretty(value)?)?;
    Ok(())
}

/// Writes something for whoever watches.
pub(crate) fn note(text: impl Display) {
    // Nobody is left to be told that standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// An empty table with these column heads.
pub(crate) fn table<const COLUMNS: usize>(heads: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(TABLE_WIDTH)
        .set_header(heads);
    table
}
