//! How far something is that takes a while: on standard error, and only where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// How often a wait without an end in sight shows that it goes on.
const TICK: Duration = Duration::from_millis(120);

/// What shows how far something is. It goes away when it is dropped; what became of it all is the caller's to tell.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// `what` completes the sentence "… 12 of 40".
    pub(crate) fn of(what: &'static str) -> Self {
        Self::styled(what, "{prefix} {bar:30} {human_pos} of {human_len} {wide_msg}")
    }

    /// A wait of which no one knows how long it is.
    pub(crate) fn waiting(what: &'static str) -> Self {
        let waiting = Self::styled(what, "{spinner} {prefix}, {elapsed} {wide_msg}");
        waiting.bar.enable_steady_tick(TICK);
        waiting
    }

    fn styled(what: &'static str, template: &str) -> Self {
        let style = ProgressStyle::with_template(template)
            .expect("invariant: the template is a constant that a test reads");
        // Draws nothing where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.set_prefix(what);
        Self { bar }
    }

    /// Shows how far it is. `word` is whatever else there is to say, such as how long it will take.
    pub(crate) fn show(&self, done: u64, total: u64, word: &str) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.say(word);
    }

    /// Shows what is going on.
    pub(crate) fn say(&self, word: &str) {
        self.bar.set_message(output::harmless(word));
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Writes a note that stays, above what shows how far it is.
    pub(crate) fn note(&self, text: impl std::fmt::Display) {
        self.bar.suspend(|| output::note(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_can_be_drawn() {
        let progress = Progress::of("replayed");
        progress.show(3, 40, "12 s left");
        progress.step();
        let waiting = Progress::waiting("waiting for the endpoint");
        waiting.say("the challenge was not met");
    }
}
