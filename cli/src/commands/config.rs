//! `postrider config`: whether the configuration is usable, and what it is.

use clap::Subcommand;
use config::Sources;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Lists everything that is wrong and exits with 64, or says that nothing is.
    Check {
        /// Asks for what an installation needs before resellers rely on it: the addresses that requests come from.
        #[arg(long)]
        production: bool,
    },
    /// Prints the configuration that a service started from this shell would have, as YAML without secrets, and where each value
    /// comes from. A service that runs elsewhere, or since before a change, may have another one.
    Show,
}

/// Does what the command says.
pub(crate) fn run(sources: &Sources, command: &ConfigCommand) -> anyhow::Result<()> {
    let config = match command {
        ConfigCommand::Check { production: true } => config::load_for_production(sources)?,
        _ => config::load(sources)?,
    };
    match command {
        ConfigCommand::Check { .. } => {
            if config.reseller.secrets.key.is_some() && config.reseller.sending_ips.is_empty() {
                output::note(
                    "reseller.sendingIps is empty, so that resellers are told no addresses for their firewalls; with \
                     --production that is an error",
                );
            }
            if let Some(shortage) = runtime::descriptor_shortage(&config) {
                output::note(shortage);
            }
            output::result("the configuration is fine")?;
        }
        ConfigCommand::Show => {
            output::note(
                "this is what a service started from here would have: defaults, file and environment of this shell; one that runs was \
                 started with its own",
            );
            output::result(config.redacted_yaml().trim_end())?;
        }
    }
    Ok(())
}
