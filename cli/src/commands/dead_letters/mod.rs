//! `postrider dead-letters`: what will not be delivered unless an operator acts.

mod by_reseller;
pub(crate) mod filter;
mod groups;
mod list;
mod note;
mod nothing;
mod resolve;
mod show;
mod timeline;

use std::process::ExitCode;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Subcommand;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// Lists dead letters, the newest first.
    #[command(after_help = "\
Examples:
  postrider dead-letters list                                     what is open
  postrider dead-letters list --fingerprint 'delivery/http/*' --reseller acme --newer-than 2h
  postrider dead-letters list --job 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d    what a job has sent again, and what came of each
  postrider dead-letters list --state ALL --order oldest --limit 200 --json")]
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Counts dead letters by kind of failure and by where it was, or by reseller, the most frequent first.
    #[command(after_help = "\
Examples:
  postrider dead-letters groups                                   what went wrong, and how often
  postrider dead-letters groups --by reseller                     whose they are
  postrider dead-letters groups --lane reseller --older-than 1d")]
    Groups(groups::GroupsArgs),
    /// Notes what is known of a group of dead letters and who looks after it, in place of what was noted before.
    ///
    /// Without --note and --owner the note is taken away.
    #[command(after_help = "\
Examples:
  postrider dead-letters note --lane push --fingerprint swrve/503 --note 'Swrve knows, case 4711' --owner ada --holds 2d
  postrider dead-letters note --lane push --fingerprint swrve/503")]
    Note(note::NoteArgs),
    /// Counts dead letters by the hour in which they were written, whatever became of them since.
    #[command(after_help = "\
Examples:
  postrider dead-letters timeline                                 which kinds still grow?
  postrider dead-letters timeline --fingerprint 'delivery/http/*' --hours 168")]
    Timeline(timeline::TimelineArgs),
    /// Shows one dead letter: its history, its trace, and a command that repeats the request.
    #[command(after_help = "\
Examples:
  postrider dead-letters show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider dead-letters show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --curl")]
    Show(show::ShowArgs),
    /// Sends again what dead letters are about: one at once, more of them as a job.
    Replay(resolve::ReplayArgs),
    /// Puts dead letters aside: one at once, more of them as a job.
    Discard(resolve::DiscardArgs),
}

/// Does what the command says.
pub(crate) async fn run(command: DeadLettersCommand) -> anyhow::Result<ExitCode> {
    let done = match command {
        DeadLettersCommand::List(args) => list::run(&args).await,
        DeadLettersCommand::Groups(args) => groups::run(&args).await,
        DeadLettersCommand::Note(args) => note::run(&args).await,
        DeadLettersCommand::Timeline(args) => timeline::run(&args).await,
        DeadLettersCommand::Show(args) => show::run(&args).await,
        DeadLettersCommand::Replay(args) => return resolve::replay(args).await,
        DeadLettersCommand::Discard(args) => return resolve::discard(args).await,
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// A time of the API to the second, as it can be typed back; what is none is shown as it is.
fn seconds(time: &str) -> String {
    match time.parse::<DateTime<Utc>>() {
        Ok(at) => at.to_rfc3339_opts(SecondsFormat::Secs, true),
        Err(_) => output::harmless(time),
    }
}

/// The beginning of a text of strangers, in one line.
fn shortened(text: &str, characters: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().take(characters).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    output::harmless(&shown)
}
