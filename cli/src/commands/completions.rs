//! `postrider completions`: what makes a shell complete the command line.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Cli;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(postrider completions bash)                                     for this session
  postrider completions bash > ~/.local/share/bash-completion/completions/postrider
  postrider completions zsh > ~/.zfunc/_postrider                          with ~/.zfunc in fpath
  postrider completions fish > ~/.config/fish/completions/postrider.fish")]
pub(crate) struct CompletionsArgs {
    /// For which shell.
    shell: Shell,
}

/// Writes the script to standard output.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut command = Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "postrider", &mut script);
    output::result(String::from_utf8(script)?.trim_end())?;
    Ok(())
}
