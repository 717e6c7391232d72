//! How far something is that takes a while: a bar on a terminal, else a line now and then, on standard error both.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Least time between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// What shows how far something is.
pub(crate) struct Progress {
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    Lines(Lines),
}

impl Progress {
    /// `what` completes the sentence "… 12 of 40".
    pub(crate) fn of(what: &'static str) -> Self {
        let shown = if std::io::stderr().is_terminal() {
            Shown::Bar(bar(what))
        } else {
            Shown::Lines(Lines::of(what))
        };
        Self { shown }
    }

    /// Shows how far it is. `word` is whatever else there is to say, such as how long it will take.
    pub(crate) fn show(&mut self, done: u64, total: u64, word: &str) {
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(output::harmless(word));
            }
            Shown::Lines(lines) => {
                if let Some(line) = lines.line(Instant::now(), (done, total), word) {
                    output::note(line);
                }
            }
        }
    }

    /// Takes the bar away; what became of it all is the caller's to tell.
    pub(crate) fn end(self) {
        if let Shown::Bar(bar) = self.shown {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {human_pos} of {human_len} {msg}")
        .expect("invariant: the template is a constant that a test reads");
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    bar.set_style(style);
    bar.set_prefix(what);
    bar
}

/// Lines that are written where there is no terminal, as in a log: not many, and none that says what the last one did.
struct Lines {
    what: &'static str,
    last: Option<(Instant, u64)>,
}

impl Lines {
    fn of(what: &'static str) -> Self {
        Self { what, last: None }
    }

    /// The line to write now, if any. The last one, at which all is done, does not wait.
    fn line(&mut self, now: Instant, (done, total): (u64, u64), word: &str) -> Option<String> {
        let news = match self.last {
            None => true,
            Some((_, before)) if before == done => false,
            Some((at, _)) => done >= total || now.saturating_duration_since(at) >= LINE_INTERVAL,
        };
        if !news {
            return None;
        }
        self.last = Some((now, done));
        let word = output::harmless(word);
        let line = format!("{} {done} of {total} {word}", self.what);
        Some(line.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_few_and_say_something_new() {
        let start = Instant::now();
        let mut lines = Lines::of("replayed");
        let mut at = |seconds, done| lines.line(start + Duration::from_secs(seconds), (done, 40), "");
        assert_eq!(at(0, 0).as_deref(), Some("replayed 0 of 40"));
        assert_eq!(at(1, 10), None, "too soon");
        assert_eq!(at(5, 20).as_deref(), Some("replayed 20 of 40"));
        assert_eq!(at(50, 20), None, "nothing new");
        assert_eq!(at(51, 40).as_deref(), Some("replayed 40 of 40"));
        assert_eq!(at(99, 40), None);
    }

    #[test]
    fn the_end_is_told_at_once() {
        let start = Instant::now();
        let mut lines = Lines::of("replayed");
        lines.line(start, (0, 40), "");
        let last = lines.line(start, (40, 40), "(2 skipped)");
        assert_eq!(last.as_deref(), Some("replayed 40 of 40 (2 skipped)"));
    }

    #[test]
    fn a_bar_can_be_drawn() {
        let mut progress = Progress {
            shown: Shown::Bar(bar("replayed")),
        };
        progress.show(3, 40, "12 s left");
        progress.end();
    }
}
