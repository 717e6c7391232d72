//! `postrider secrets`: what the notifications of a subscription are signed with.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Common, identifier};
use crate::confirm::{Act, Yes};
use crate::file;
use crate::output::{self, Column, Form, FormArgs, JsonArgs};
use crate::portal::Portal;
use crate::shown::{self, ShownColumn, cell};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
To rotate without losing a request: rotate, tell the endpoint the new secret beside the old one, and take the old one away
after a day. While both are valid every request carries a signature of each, so that no answer tells which one the endpoint knows:
`postrider subscriptions check URL --secret-file FILE`, with the new one in the file, tells whether it takes that.

Examples:
  postrider secrets list 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  SIGNING_SECRET=$(postrider secrets rotate 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)
  (printf whsec_; openssl rand -base64 32) | postrider secrets rotate 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --secret-file -
  postrider secrets show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider secrets show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d 01a1fd84-191a-7187-8c92-644d9a28fa8b
  postrider secrets revoke 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d 01a1fd84-191a-7187-8c92-644d9a28fa8b")]
pub(crate) enum SecretsCommand {
    /// Lists them, without what they are.
    #[command(visible_alias = "ls")]
    List(Of<FormArgs>),
    /// Makes a new one, or takes yours; standard output is the secret and nothing else.
    Rotate {
        #[command(flatten)]
        of: Of,
        /// A file with a secret of your own, whsec_ and base64; - for standard input.
        #[arg(long, value_name = "FILE", visible_alias = "from-file")]
        secret_file: Option<String>,
        /// For how many hours those before it sign along; as the installation has it when not given.
        #[arg(long, value_name = "HOURS")]
        overlap_hours: Option<u64>,
    },
    /// Shows one that signs at present; standard output is the secret and nothing else. The look is in the audit log, and a mail tells of it.
    Show {
        #[command(flatten)]
        of: Of,
        /// The secret, from `postrider secrets list`; the newest that signs when left out.
        #[arg(value_parser = identifier)]
        secret: Option<Uuid>,
    },
    /// Ends one at once.
    Revoke {
        #[command(flatten)]
        of: Of,
        /// The secret, from `postrider secrets list`.
        #[arg(value_parser = identifier)]
        secret: Uuid,
        #[command(flatten)]
        yes: Yes,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Of<F: Args = JsonArgs> {
    /// Of which subscription.
    #[arg(value_parser = identifier)]
    subscription: Uuid,
    #[command(flatten)]
    common: Common<F>,
}

/// What tells whether an endpoint takes a secret, which no delivery does while several sign.
const PROOF: &str = "`postrider subscriptions check URL --secret-file FILE`";

const COLUMNS: [ShownColumn; 6] = [
    (Column::whole("secret"), "/id"),
    (Column::whole("signs"), "/active"),
    (Column::time("made").spare(2), "/createdAt"),
    (Column::whole("made by").spare(3), "/createdBy"),
    (Column::time("signs until"), "/expiresAt"),
    (Column::time("revoked").spare(1), "/revokedAt"),
];

/// Does what the command says.
pub(crate) async fn run(command: SecretsCommand) -> anyhow::Result<()> {
    match command {
        SecretsCommand::List(of) => {
            let mut document: Value = portal(&of)?.get(&path(&of), &()).await?;
            let form = of.common.form();
            if let (Form::Name, Some(all)) = (form, document["items"].as_array_mut()) {
                // The next command would be refused with one that signs nothing any more.
                all.retain(|secret| secret["active"] == true);
            }
            shown::print(&document, form, COLUMNS, "there is no secret")?;
            if let Some(refusals) = refusals(&document["answers"]).filter(|_| form.is_for_people()) {
                output::note(refusals);
            }
            Ok(())
        }
        SecretsCommand::Rotate {
            of,
            secret_file,
            overlap_hours,
        } => rotate(&of, secret_file.as_deref(), overlap_hours).await,
        SecretsCommand::Show { of, secret } => show(&of, secret).await,
        SecretsCommand::Revoke { of, secret, yes } => {
            let act = Act {
                what: &format!(
                    "revoke the secret {secret} of the subscription {}",
                    of.subscription
                ),
                effect: &format!(
                    "nothing is signed with it any more, and that cannot be undone; {PROOF} tells whether the endpoint takes the one that stays"
                ),
                instead: &format!("`postrider secrets list {}` to see which sign", of.subscription),
            };
            yes.confirm(&act, || ())?;
            portal(&of)?.delete(&format!("{}/{secret}", path(&of))).await?;
            output::note(format_args!(
                "the secret {secret} of the subscription {} signs nothing any more",
                of.subscription
            ));
            Ok(())
        }
    }
}

/// How many were refused since the secrets last changed, if any were.
fn refusals(answers: &Value) -> Option<String> {
    let refused = answers["refused"].as_u64().filter(|refused| *refused > 0)?;
    let (attempts, since) = (cell(answers, "/attempts"), cell(answers, "/since"));
    let newest = answers["ofNewest"].as_u64();
    let newest = newest.map_or_else(String::new, |newest| {
        format!(", of the newest {newest} notifications,")
    });
    Some(format!(
        "{refused} of {attempts} attempts since the secrets last changed ({since}){newest} were answered 401 or 403, which often says that \
         the endpoint checks with another secret"
    ))
}

fn portal<F: Args>(of: &Of<F>) -> anyhow::Result<Portal> {
    Portal::connect(&of.common.portal)
}

fn path<F: Args>(of: &Of<F>) -> String {
    format!("/subscriptions/{}/secrets", of.subscription)
}

/// Shows the one that is named, or the newest that signs.
async fn show(of: &Of, secret: Option<Uuid>) -> anyhow::Result<()> {
    let portal = portal(of)?;
    let secret = match secret {
        Some(secret) => secret,
        None => {
            let all: Value = portal.get(&path(of), &()).await?;
            newest_that_signs(&all).context("no secret of this subscription signs at present")?
        }
    };
    let document: Value = portal.get(&format!("{}/{secret}", path(of)), &()).await?;
    print(of, &document)
}

/// Of a list as the portal gives it, with the newest first.
fn newest_that_signs(list: &Value) -> Option<Uuid> {
    let mut all = shown::items(&list["items"]).iter();
    let newest = all.find(|secret| secret["active"] == true)?;
    cell(newest, "/id").parse().ok()
}

async fn rotate(of: &Of, secret_file: Option<&str>, overlap_hours: Option<u64>) -> anyhow::Result<()> {
    let mut request = match secret_file {
        Some(file) => json!({ "secret": file::read(file)?.trim() }),
        None => json!({}),
    };
    if let Some(hours) = overlap_hours {
        request["overlapHours"] = json!(hours);
    }
    let made: Value = portal(of)?.post(&path(of), &request).await?;
    print(of, &made)?;
    output::note(format_args!(
        "the secrets before it sign along for a while, until when `postrider secrets list {}` shows; {PROOF} with the new one tells whether \
         the endpoint takes it, which no delivery does while several sign",
        of.subscription
    ));
    Ok(())
}

fn print(of: &Of, secret: &Value) -> anyhow::Result<()> {
    if of.common.is_json() {
        return output::json(secret);
    }
    output::result(cell(secret, "/secret"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_only_where_there_are_some() {
        let of = |refused: u64, newest: Value| {
            let answers = json!({"since": "2026-11-21T15:40:00Z", "attempts": 5, "refused": refused, "ofNewest": newest});
            refusals(&answers)
        };
        assert_eq!(of(0, Value::Null), None);
        assert_eq!(refusals(&Value::Null), None, "of a portal that does not tell it");
        let told = of(2, Value::Null).expect("a sentence");
        assert!(
            told.starts_with("2 of 5 attempts since the secrets last changed (2026-11-21T15:40:00Z) were")
        );
        let told = of(2, json!(1_000)).expect("a sentence");
        assert!(
            told.contains("), of the newest 1000 notifications, were"),
            "{told}"
        );
    }

    #[test]
    fn the_newest_secret_that_signs_is_the_first_that_does() {
        let [newest, older] = [
            "01a1fd84-191a-7187-8c92-644d9a28fa8b",
            "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
        ];
        let of = |first: bool, second: bool| {
            let items = json!([{"id": newest, "active": first}, {"id": older, "active": second}]);
            newest_that_signs(&json!({ "items": items }))
        };
        assert_eq!(of(true, true), newest.parse().ok());
        assert_eq!(of(false, true), older.parse().ok());
        assert_eq!(of(false, false), None);
    }
}
