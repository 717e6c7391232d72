//! `postrider secrets`: what the notifications of a subscription are signed with.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::shown::{self, Shown, cell};
use super::{Common, identifier};
use crate::output;
use crate::portal::Portal;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
To rotate without losing a request: rotate, tell the endpoint the new secret beside the old one, and take the old one away
after a day. While both are valid every request carries a signature of each.

Examples:
  postrider secrets list 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  SIGNING_SECRET=$(postrider secrets rotate 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)
  postrider secrets revoke 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d 01a1fd84-191a-7187-8c92-644d9a28fa8b")]
pub(crate) enum SecretsCommand {
    /// Lists them, without what they are.
    List(Of),
    /// Makes a new one; standard output is the secret and nothing else, and it is not shown again.
    Rotate(Of),
    /// Ends one at once.
    Revoke {
        #[command(flatten)]
        of: Of,
        /// The secret, from `postrider secrets list`.
        #[arg(value_parser = identifier)]
        secret: Uuid,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Of {
    /// Of which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [Shown; 5] = [
    ("secret", "/id"),
    ("signs", "/active"),
    ("made", "/createdAt"),
    ("signs until", "/expiresAt"),
    ("revoked", "/revokedAt"),
];

/// Does what the command says.
pub(crate) async fn run(command: SecretsCommand) -> anyhow::Result<()> {
    match command {
        SecretsCommand::List(of) => {
            let document: Value = portal(&of)?.get(&path(&of), &()).await?;
            if of.common.json {
                return output::json(&document);
            }
            output::result(shown::list(&document["items"], COLUMNS))?;
            Ok(())
        }
        SecretsCommand::Rotate(of) => rotate(&of).await,
        SecretsCommand::Revoke { of, secret } => {
            portal(&of)?.delete(&format!("{}/{secret}", path(&of))).await?;
            output::note(format_args!("the secret {secret} signs nothing any more"));
            Ok(())
        }
    }
}

fn portal(of: &Of) -> anyhow::Result<Portal> {
    Portal::connect(&of.common.portal)
}

fn path(of: &Of) -> String {
    format!("/subscriptions/{}/secrets", of.subscription)
}

async fn rotate(of: &Of) -> anyhow::Result<()> {
    let made: Value = portal(of)?.act(Method::POST, &path(of), &json!({})).await?;
    if of.common.json {
        output::json(&made)?;
    } else {
        output::result(cell(&made, "/secret"))?;
    }
    output::note(
        "keep it: it is not shown again; the secrets before it sign along for a while, until when `postrider secrets list` shows",
    );
    Ok(())
}
