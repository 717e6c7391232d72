//! `postrider keys`: API keys. Only their digests are stored, so a key is shown once.

use anyhow::{Context as _, bail};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Subcommand};
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use domain::key::{KeyDigest, Role, RoleConflict, format_key};
use domain::reseller::{RESELLER_ID_FORM, is_reseller_id};
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde_json::json;
use store::ApiKey;
use uuid::Uuid;

use super::database::{Database, by_hand};
use crate::args::Cli;
use crate::output::{self, Column, Form, FormArgs, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Makes a key; standard output is the key and nothing else.
    #[command(
        after_help = "Examples:\n  INGEST_KEY=$(postrider keys create --name shop --role ingest)\n  \
                      RESELLER_KEY=$(postrider keys create --name acme --role reseller --reseller acme)"
    )]
    Create(CreateArgs),
    /// Lists all keys, revoked ones included.
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        form: FormArgs,
    },
    /// Revokes a key. Services that remember it refuse it some seconds later.
    Revoke {
        /// The key's identifier, from `postrider keys list`.
        id: Uuid,
        /// Why; kept in the audit log.
        #[arg(long)]
        note: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Who it is for.
    #[arg(long, value_parser = not_blank)]
    name: String,
    /// What it allows; may be repeated.
    #[arg(long = "role", required = true, value_parser = role())]
    roles: Vec<Role>,
    /// The reseller whose key it is; only with --role reseller, and no other role.
    #[arg(long, value_name = "ID", value_parser = reseller)]
    reseller: Option<String>,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
}

fn not_blank(name: &str) -> Result<String, &'static str> {
    let name = name.trim();
    if name.is_empty() {
        return Err("a name must not be blank");
    }
    Ok(name.to_owned())
}

fn reseller(id: &str) -> Result<String, String> {
    if is_reseller_id(id) {
        Ok(id.to_owned())
    } else {
        Err(format!("the identifier of a reseller is {RESELLER_ID_FORM}"))
    }
}

fn role() -> impl clap::builder::TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|name| name.parse::<Role>())
}

/// Does what the command says.
pub(crate) async fn run(sources: &Sources, command: KeysCommand) -> anyhow::Result<()> {
    if let KeysCommand::Create(args) = &command
        && let Err(refused) = check_reseller(args)
    {
        Cli::command().error(ErrorKind::ArgumentConflict, refused).exit();
    }
    let database = Database::open_migrated(sources).await?;
    match command {
        KeysCommand::Create(args) => create(&database, args).await,
        KeysCommand::List { form } => list(&database, form.form()).await,
        KeysCommand::Revoke { id, note } => revoke(&database, id, note.as_deref()).await,
    }
}

fn check_reseller(args: &CreateArgs) -> Result<(), &'static str> {
    match RoleConflict::of(&args.roles, args.reseller.is_some()) {
        None => Ok(()),
        Some(RoleConflict::WithoutReseller) => {
            Err("--role reseller needs --reseller ID, the reseller whose key it is")
        }
        Some(RoleConflict::WithoutRole) => Err("--reseller goes with --role reseller only"),
        Some(RoleConflict::NotAlone) => {
            Err("--role reseller cannot be combined with another role: make two keys")
        }
    }
}

async fn create(database: &Database, args: CreateArgs) -> anyhow::Result<()> {
    let mut random = [0; 32];
    SysRng
        .try_fill_bytes(&mut random)
        .context("the operating system gives no random bytes")?;
    let key = format_key(&random);
    let mut roles = args.roles;
    roles.sort_unstable();
    roles.dedup();
    let stored = ApiKey {
        id: Uuid::now_v7(),
        name: args.name,
        roles,
        reseller_id: args.reseller,
        created_at: SystemClock.now(),
        revoked_at: None,
    };
    database
        .store
        .create_api_key(
            &stored,
            &KeyDigest::of(&key),
            by_hand(stored.created_at, args.note.as_deref()),
        )
        .await
        .with_context(|| database.failure("store the key in"))?;
    output::result(key)?;
    output::note(format_args!(
        "key {} ({}, {}{}): it is not shown again",
        stored.id,
        stored.name,
        role_names(&stored),
        stored
            .reseller_id
            .as_ref()
            .map(|id| format!(" {id}"))
            .unwrap_or_default(),
    ));
    Ok(())
}

async fn list(database: &Database, form: Form) -> anyhow::Result<()> {
    let keys = database
        .store
        .list_api_keys()
        .await
        .with_context(|| database.failure("read the keys from"))?;
    form.print(&json!({ "items": keys }), || table_of(&keys))
}

fn table_of(keys: &[ApiKey]) -> Table {
    let mut table = output::table([
        Column::whole("id"),
        Column::prose("name"),
        Column::prose("roles"),
        Column::whole("reseller").spare(1),
        Column::whole("created").spare(2),
        Column::whole("revoked").spare(3),
    ]);
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    for key in keys {
        table.add_row([
            key.id.to_string(),
            output::harmless(&key.name),
            role_names(key),
            key.reseller_id.clone().unwrap_or_default(),
            time(key.created_at),
            key.revoked_at.map(time).unwrap_or_default(),
        ]);
    }
    table
}

async fn revoke(database: &Database, id: Uuid, note: Option<&str>) -> anyhow::Result<()> {
    let revoked = database
        .store
        .revoke_api_key(id, by_hand(SystemClock.now(), note))
        .await
        .with_context(|| database.failure("revoke the key in"))?;
    if !revoked {
        bail!("no key that could be revoked has the id {id}; `postrider keys list` shows all of them");
    }
    output::result(format_args!("revoked {id}"))?;
    Ok(())
}

fn role_names(key: &ApiKey) -> String {
    let names: Vec<_> = key.roles.iter().map(|role| role.as_str()).collect();
    names.join(" ")
}
