//! Asking before what cannot be undone: on a terminal a question, elsewhere a refusal, unless `--yes` is given.

use std::io::{BufRead as _, IsTerminal as _};

use anyhow::bail;
use clap::Args;

use crate::output;

/// The option of commands that ask first.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Yes {
    /// Does it without asking.
    #[arg(long, short)]
    yes: bool,
}

/// What is about to be done, as a question and a refusal say it.
#[derive(Debug)]
pub(crate) struct Act<'a> {
    /// To what, and to how many of it, beginning with a verb: "cancel 12 pushes".
    pub(crate) what: &'a str,
    /// What follows from it, or nothing where the verb says all: "none of them is ever sent".
    pub(crate) effect: &'a str,
    /// What shows more of it and does nothing: "--dry-run to count them".
    pub(crate) instead: &'a str,
}

impl Act<'_> {
    fn sentence(&self, end: char) -> String {
        let Self { what, effect, .. } = self;
        if effect.is_empty() {
            format!("{what}{end}")
        } else {
            format!("{what}: {effect}{end}")
        }
    }
}

impl Yes {
    /// Whether nothing is asked.
    pub(crate) fn is_given(self) -> bool {
        self.yes
    }

    /// Makes sure that the act is meant. On a terminal `shown` comes before the question.
    ///
    /// # Errors
    ///
    /// When the answer is another than yes, and where there is no terminal to ask on.
    pub(crate) fn confirm(self, act: &Act<'_>, shown: impl FnOnce()) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            bail!(
                "this would {} add --yes to do it, or {}",
                act.sentence(';'),
                act.instead
            );
        }
        shown();
        output::note(format_args!("{} [y/N]", act.sentence('?')));
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("nothing was done");
        }
        Ok(())
    }
}
