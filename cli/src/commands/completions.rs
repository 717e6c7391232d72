//! `postrider completions`: what makes a shell complete the command line.

use anyhow::Context as _;
use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::{completion, output};

#[derive(Debug, Args)]
#[command(after_help = "Examples, each as a line of what the shell reads at its start:
  source <(postrider completions bash)                      ~/.bashrc
  source <(postrider completions zsh)                       ~/.zshrc, after compinit
  postrider completions fish | source                       ~/.config/fish/config.fish
Event types, subscriptions, jobs, kinds of failure and resellers come from the APIs whose keys are in the environment.
What has not answered within a second is left out.")]
pub(crate) struct CompletionsArgs {
    /// For which shell.
    shell: Shell,
}

/// Writes the script to standard output. It asks the same program for what fits at the cursor.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell.to_string());
    let shell = shell.with_context(|| format!("nothing completes in {}", args.shell))?;
    let program = program()?;
    let mut script = Vec::new();
    shell.write_registration(
        completion::VARIABLE,
        "postrider",
        "postrider",
        &program,
        &mut script,
    )?;
    output::result(String::from_utf8(script)?.trim_end())?;
    Ok(())
}

/// How this program was called: by its name, or by a path that holds in every folder.
fn program() -> anyhow::Result<String> {
    let called = std::env::args_os().next().unwrap_or_else(|| "postrider".into());
    let path = std::path::Path::new(&called);
    let path = if path.components().count() > 1 {
        std::path::absolute(path)?
    } else {
        path.to_owned()
    };
    Ok(path.to_string_lossy().into_owned())
}
