//! Colours. They say nothing that words do not say, so that nothing is lost without them.

use anstyle::{AnsiColor, Effects, Style};
use comfy_table::Color;

/// What is said first, or matters most.
pub(crate) const STRONG: Style = Style::new().effects(Effects::BOLD);
/// What someone has to look at now.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
/// What someone has to look at some time.
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
/// All is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().effects(Effects::BOLD);
/// What can be typed.
pub(crate) const COMMAND: Style = AnsiColor::Cyan.on_default();

/// The text in this style, and what follows without it.
pub(crate) fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// The style of a severity, as `postrider status` has them.
pub(crate) fn of_severity(severity: &str) -> Style {
    match severity {
        "critical" => BAD,
        "warning" => DOUBTFUL,
        _ => STRONG,
    }
}

/// A cell in the colour of how something stands, if it says that.
pub(super) fn dressed(cell: &str) -> String {
    let colour = match of_state(cell) {
        Some(Color::DarkGreen) => AnsiColor::Green,
        Some(Color::DarkRed) => AnsiColor::Red,
        Some(_) => AnsiColor::Yellow,
        None => return cell.to_owned(),
    };
    styled(cell, colour.on_default())
}

/// The colour of a cell that says how something stands; none for every other.
pub(super) fn of_state(cell: &str) -> Option<Color> {
    let state = cell.split(',').next().unwrap_or_default();
    match state {
        "SENT" | "ACTIVE" | "COMPLETED" | "OK" | "APPROVED" | "ready" => Some(Color::DarkGreen),
        "FAILED" | "GIVEN_UP" | "DEACTIVATED" | "CANCELLED" | "ERROR" | "DENIED" | "silent" => {
            Some(Color::DarkRed)
        }
        "RETRY" | "DEGRADED" | "PENDING_VERIFICATION" | "PAUSED" => Some(Color::DarkYellow),
        _ => None,
    }
}
