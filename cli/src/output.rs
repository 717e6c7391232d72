//! Where text goes: results to standard output, everything else to standard error; and how wide and how colourful it is there.
//!
//! Text comes with its colours. They are taken away on the way to where there are to be none: `--color` decides, else
//! `NO_COLOR` and its like, else whether there is a terminal.

mod form;
mod table;
mod tone;
mod wrap;

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use domain::counted::of;
pub(crate) use domain::foreign_text::harmless;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

pub(crate) use form::{Form, FormArgs, JsonArgs};
#[cfg(test)]
pub(crate) use table::tests::at_widths;
pub(crate) use table::{Column, Table};
pub(crate) use tone::{BAD, COMMAND, GOOD, STRONG, of_severity, styled};

/// Decides on colours for all of this process.
pub(crate) fn colour(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Columns of the terminal that results go to; none where there is no terminal, unless `COLUMNS` is in the environment.
pub(crate) fn width() -> Option<usize> {
    let told = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|width| *width > 0);
    told.or_else(|| comfy_table::Table::new().width().map(usize::from))
        .filter(|width| *width > 0)
}

/// Lines of the terminal that results go to; none where there is no terminal, unless `LINES` is in the environment.
pub(crate) fn height() -> Option<usize> {
    let told = std::env::var("LINES")
        .ok()
        .and_then(|lines| lines.parse().ok())
        .filter(|height| *height > 0);
    let of_terminal = || rustix::termios::tcgetwinsize(io::stdout()).ok();
    told.or_else(|| of_terminal().map(|size| usize::from(size.ws_row)))
        .filter(|height| *height > 0)
}

/// As much of a text as a screen shows, from its beginning; the last line says how much more there is, and which command shows it.
pub(crate) fn top(text: &str, (width, height): (Option<usize>, usize), whole: &str) -> String {
    let rows = |line: &str| {
        let shown = anstream::adapter::strip_str(line).to_string().width();
        width.map_or(1, |width| shown.div_ceil(width).max(1))
    };
    // The cursor stands below the last line.
    let room = height.saturating_sub(1);
    if text.lines().map(rows).sum::<usize>() <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let mut shown = Vec::new();
    for line in text.lines() {
        let Some(rest) = left.checked_sub(rows(line)) else {
            break;
        };
        left = rest;
        shown.push(line);
    }
    let more = of(
        (text.lines().count() - shown.len()) as u64,
        "more line",
        "more lines",
    );
    let more = format!("{more}: {whole}");
    shown.push(&more);
    shown.join("\n")
}

/// Sentences behind what begins their first line, the other lines as far to the right.
pub(crate) fn hanging(begin: &str, text: &str, indent: usize) -> String {
    match width() {
        Some(width) => hung(begin, text, indent, width),
        None => format!("{begin}{text}"),
    }
}

/// The same within a given width.
pub(crate) fn hung(begin: &str, text: &str, indent: usize, width: usize) -> String {
    let lines = wrap::lines(text, width.saturating_sub(indent));
    format!("{begin}{}", lines.join(&format!("\n{}", " ".repeat(indent))))
}

/// Columns of a help: those of the terminal as far as lines stay readable, and few in a pipe, which may end on any.
pub(crate) fn help_width() -> usize {
    width().unwrap_or(80).clamp(40, 100)
}

/// Writes a result, with a line end.
///
/// # Errors
///
/// When standard output cannot be written. A reader that has seen enough, as in `postrider … | head -1`, is no error.
pub(crate) fn result(text: impl Display) -> io::Result<()> {
    line(text).map(drop)
}

/// Writes one line of results that have no end of their own, and says whether a reader is left.
pub(crate) fn line(text: impl Display) -> io::Result<bool> {
    is_read(writeln_flushed(anstream::stdout().lock(), text))
}

/// Writes a result to the byte, without a line end, such as something that may be signed; says whether a reader is left.
pub(crate) fn exact(text: impl Display) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    is_read(write!(output, "{text}").and_then(|()| output.flush()))
}

/// Writes a result as JSON for programs.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    // As it is, since what looks like a colour in it is a value.
    is_read(writeln_flushed(
        io::stdout().lock(),
        serde_json::to_string_pretty(value)?,
    ))?;
    Ok(())
}

fn writeln_flushed(mut output: impl Write, text: impl Display) -> io::Result<()> {
    writeln!(output, "{text}").and_then(|()| output.flush())
}

fn is_read(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a note for the person who runs the command.
pub(crate) fn note(text: impl Display) {
    // When standard error is gone, there is no one left to tell.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes what went wrong.
pub(crate) fn error(error: &anyhow::Error) {
    note(format_args!("{} {error:#}", styled("error:", BAD)));
}

/// An empty table with these columns.
pub(crate) fn table(columns: impl IntoIterator<Item = impl Into<Column>>) -> Table {
    Table::of(columns)
}
