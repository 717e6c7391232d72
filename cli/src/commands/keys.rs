//! `postrider keys`: API keys. Only their digests are stored, so a key is shown once.
//!
//! On the database, which alone has the first key of an installation made; elsewhere over the operator API.

mod over_api;

use anyhow::{Context as _, bail};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Subcommand};
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use domain::key::{KeyDigest, REMEMBERED, Role, RoleConflict, can_be_limited, format_key};
use domain::lane::Lane;
use domain::reseller::{RESELLER_ID_FORM, is_reseller_id};
use domain::scope::{Scope, limits};
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde_json::json;
use store::{ApiKey, KeyRotated, SuccessorEnd};
use uuid::Uuid;

use self::over_api::Made;
use super::database::{Access, Database, by_hand};
use crate::age::Age;
use crate::args::Cli;
use crate::confirm::{Act, Yes};
use crate::operator::OperatorArgs;
use crate::output::{self, Column, Form, FormArgs, Table};
use crate::refusal::IDENTIFIER;

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Makes a key; standard output is the key and nothing else.
    #[command(
        after_help = "Examples:\n  INGEST_KEY=$(postrider keys create --name shop --role ingest)\n  \
                      RESELLER_KEY=$(postrider keys create --name acme --role reseller --reseller acme)"
    )]
    Create(CreateArgs),
    /// Lists all keys, revoked ones included. When each was last used is noted once a minute.
    #[command(visible_alias = "ls")]
    List {
        /// Those of this name alone.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        form: FormArgs,
        #[command(flatten)]
        operator: OperatorArgs,
    },
    /// Makes a key of the same name, roles, limits and length of life, and lets the old one end; standard output is the new key and nothing else.
    #[command(
        after_help = "Examples:\n  INGEST_KEY=$(postrider keys rotate 01a1fd84-191a-7187-8c92-644d9a28fa8b --overlap 24h)"
    )]
    Rotate(RotateArgs),
    /// Revokes a key. Services that remember it refuse it some seconds later.
    Revoke {
        /// The key's identifier, from `postrider keys list`.
        #[arg(value_parser = identifier)]
        id: Uuid,
        /// Why; kept in the audit log.
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        yes: Yes,
        #[command(flatten)]
        operator: OperatorArgs,
    },
}

impl KeysCommand {
    fn operator(&self) -> &OperatorArgs {
        match self {
            Self::Create(args) => &args.operator,
            Self::Rotate(args) => &args.operator,
            Self::List { operator, .. } | Self::Revoke { operator, .. } => operator,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Who it is for.
    #[arg(long, value_parser = not_blank)]
    name: String,
    /// What it allows; may be repeated.
    #[arg(long = "role", required = true, value_parser = role())]
    roles: Vec<Role>,
    /// The reseller whose key it is; only with --role reseller or reseller-viewer, and no other role.
    #[arg(long, value_name = "ID", value_parser = reseller)]
    reseller: Option<String>,
    /// When it ends by itself: after an age such as 90d; it does not without this.
    #[arg(long, value_name = "AGE")]
    expires_in: Option<Age>,
    /// With --role ingest: pushes alone, or events alone.
    #[arg(long, value_name = "LANE", value_parser = lane())]
    only_lane: Option<Lane>,
    /// With --role ingest: pushes of this message prototype alone; may be repeated.
    #[arg(long = "only-prototype", value_name = "NAME")]
    prototypes: Vec<String>,
    /// With --role ingest: events of this reseller alone; may be repeated.
    #[arg(long = "only-reseller", value_name = "ID")]
    resellers: Vec<String>,
    /// With --role ingest: events of this type alone, such as domain.created or domain.*; may be repeated.
    #[arg(long = "only-event-type", value_name = "TYPE")]
    event_types: Vec<String>,
    /// With --role ingest: so many pushes and events together a second, at each replica of ingest-api.
    #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    per_second: Option<u32>,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RotateArgs {
    /// The identifier of the key that is to end, from `postrider keys list`.
    #[arg(value_parser = identifier)]
    id: Uuid,
    /// How long the old key works beside the new one.
    #[arg(long, value_name = "AGE", default_value = "24h")]
    overlap: Age,
    /// When the new key ends by itself: after an age such as 90d. Without this it lasts as long as the old one was made to.
    #[arg(long, value_name = "AGE")]
    expires_in: Option<Age>,
    /// The new key does not end by itself, also when the old one does.
    #[arg(long, conflicts_with = "expires_in")]
    never_expires: bool,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    operator: OperatorArgs,
}

impl CreateArgs {
    fn scope(&self) -> Scope {
        Scope {
            lane: self.only_lane,
            prototypes: self.prototypes.clone(),
            resellers: self.resellers.clone(),
            event_types: self.event_types.clone(),
        }
    }
}

fn lane() -> impl clap::builder::TypedValueParser<Value = Lane> {
    PossibleValuesParser::new(Lane::ALL.map(Lane::as_str)).try_map(|name| name.parse::<Lane>())
}

fn not_blank(name: &str) -> Result<String, &'static str> {
    let name = name.trim();
    if name.is_empty() {
        return Err("a name must not be blank");
    }
    Ok(name.to_owned())
}

/// Several keys may have one name, as after a rotation, so that no name stands for one.
fn identifier(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| {
        format!("{IDENTIFIER}; `postrider keys list --name NAME` has those of the keys of a name")
    })
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
            .map_err(str::to_owned)
            .and_then(|()| check_limits(args))
    {
        Cli::command().error(ErrorKind::ArgumentConflict, refused).exit();
    }
    let access = Access::open(sources, command.operator()).await?;
    if !matches!(command, KeysCommand::List { .. }) {
        access.tell_actor(command.operator());
    }
    match command {
        KeysCommand::Create(args) => create(&access, args).await,
        KeysCommand::List { name, form, .. } => list(&access, name.as_deref(), form.form()).await,
        KeysCommand::Rotate(args) => rotate(&access, &args).await,
        KeysCommand::Revoke { id, note, yes, .. } => {
            confirm_revocation(yes, id)?;
            revoke(&access, id, note.as_deref()).await
        }
    }
}

fn check_reseller(args: &CreateArgs) -> Result<(), &'static str> {
    match RoleConflict::of(&args.roles, args.reseller.is_some()) {
        None => Ok(()),
        Some(RoleConflict::WithoutReseller) => {
            Err("--role reseller and --role reseller-viewer need --reseller ID, the reseller whose key it is")
        }
        Some(RoleConflict::WithoutRole) => {
            Err("--reseller goes with --role reseller or reseller-viewer only")
        }
        Some(RoleConflict::NotAlone) => Err(
            "--role reseller and --role reseller-viewer cannot be combined with another role: make two keys",
        ),
    }
}

/// Limits are of ingest keys, and have to be such that something is within them.
fn check_limits(args: &CreateArgs) -> Result<(), String> {
    let scope = args.scope();
    let is_limited = !scope.is_open() || args.per_second.is_some();
    if is_limited && !can_be_limited(&args.roles) {
        return Err("--only-… and --per-second go with --role ingest alone".to_owned());
    }
    let option = |field: &str| match field {
        "prototypes" => "--only-prototype",
        "resellers" => "--only-reseller",
        _ => "--only-event-type",
    };
    match scope.wrong().first() {
        None => Ok(()),
        Some((field, detail)) => Err(format!("{}: {detail}", option(field))),
    }
}

fn generate() -> anyhow::Result<String> {
    let mut random = [0; 32];
    SysRng
        .try_fill_bytes(&mut random)
        .context("the operating system gives no random bytes")?;
    Ok(format_key(&random))
}

/// So long after `now`.
fn after(age: Age, now: DateTime<Utc>) -> anyhow::Result<DateTime<Utc>> {
    age.after(now).context("that is too far in the future")
}

async fn create(access: &Access, args: CreateArgs) -> anyhow::Result<()> {
    let (scope, now) = (args.scope(), SystemClock.now());
    let mut roles = args.roles;
    roles.sort_unstable();
    roles.dedup();
    let stored = ApiKey {
        expires_at: args.expires_in.map(|age| after(age, now)).transpose()?,
        scope,
        per_second: args.per_second,
        ..ApiKey::new(args.name, roles, args.reseller, now)
    };
    let note = args.note.as_deref();
    let database = match access {
        Access::Database(database) => database,
        Access::Api(api) => {
            let made = over_api::create(api, &stored, note).await?;
            return show(&made.key, &made.stored);
        }
    };
    let key = generate()?;
    database
        .store
        .create_api_key(&stored, &KeyDigest::of(&key), by_hand(stored.created_at, note))
        .await
        .with_context(|| database.failure("store the key in"))?;
    show(&key, &stored)
}

/// Shows a key, and says what is known of it.
fn show(key: &str, stored: &ApiKey) -> anyhow::Result<()> {
    output::result(key)?;
    let reseller = stored.reseller_id.iter().map(|id| format!(" {id}"));
    let limits = Some(limits(&stored.scope, stored.per_second)).filter(|limits| !limits.is_empty());
    let ends = stored.expires_at.map(|at| format!("ends {}", time(at)));
    let further = limits
        .into_iter()
        .chain(ends)
        .map(|further| format!(", {further}"));
    output::note(format_args!(
        "key {} ({}, {}{}): it is not shown again",
        stored.id,
        stored.name,
        role_names(stored),
        reseller.chain(further).collect::<String>(),
    ));
    Ok(())
}

async fn rotate(access: &Access, args: &RotateArgs) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let end = match args.expires_in {
        Some(age) => SuccessorEnd::At(after(age, now)?),
        None if args.never_expires => SuccessorEnd::Never,
        None => SuccessorEnd::SameLife,
    };
    let made = match access {
        Access::Database(database) => rotate_in(database, args, end, now).await?,
        Access::Api(api) => over_api::rotate(api, args, end).await?,
    };
    show(&made.key, &made.stored)?;
    if let Some(until) = made.old_expires_at {
        output::note(format_args!(
            "the key {} works until {}; an Idempotency-Key that was used with it is known with the new one",
            args.id,
            time(until)
        ));
    }
    if end == SuccessorEnd::SameLife && made.stored.expires_at.is_some() {
        output::note(
            "the new key lasts as long as the old one was made to; --expires-in or --never-expires would have said otherwise",
        );
    }
    Ok(())
}

async fn rotate_in(
    database: &Database,
    args: &RotateArgs,
    end: SuccessorEnd,
    now: DateTime<Utc>,
) -> anyhow::Result<Made> {
    let key = generate()?;
    let ends = (after(args.overlap, now)?, end);
    let digest = KeyDigest::of(&key);
    let act = by_hand(now, args.note.as_deref());
    let rotating = database.store.rotate_api_key(args.id, &digest, ends, act);
    let rotated = rotating
        .await
        .with_context(|| database.failure("rotate the key in"))?;
    match rotated {
        KeyRotated::Done { into, until } => Ok(Made {
            key,
            stored: *into,
            old_expires_at: Some(until),
        }),
        KeyRotated::Before(into) => bail!(
            "the key {} was rotated before, into {into}: rotate that one, or revoke it first if its holder has not got it",
            args.id
        ),
        KeyRotated::LastAdministrator => bail!(
            "no other key of an administrator lasts as long as {}: make another one first, or have the new one end later",
            args.id
        ),
        KeyRotated::Unknown => bail!(
            "no key that could be rotated has the id {}: one that was revoked or has expired is not; `postrider keys list` shows all of them",
            args.id
        ),
    }
}

async fn list(access: &Access, name: Option<&str>, form: Form) -> anyhow::Result<()> {
    let mut keys = match access {
        Access::Database(database) => {
            let listing = database.store.list_api_keys().await;
            listing.with_context(|| database.failure("read the keys from"))?
        }
        Access::Api(api) => over_api::list(api).await?,
    };
    keys.retain(|key| name.is_none_or(|name| key.name == name));
    if form.is_for_people() && !keys.is_empty() {
        output::note(
            "used: noted once a minute, so that a key that is used now may show a time of up to a minute ago",
        );
    }
    form.print(&json!({ "items": keys }), || table_of(&keys))
}

fn table_of(keys: &[ApiKey]) -> Table {
    let mut table = output::table([
        Column::whole("id"),
        Column::prose("name"),
        Column::prose("roles"),
        Column::whole("reseller").spare(1),
        Column::prose("limits").spare(1),
        Column::whole("used").spare(2),
        Column::whole("ends").spare(2),
        Column::whole("created").spare(3),
        Column::prose("created by").spare(6),
        Column::whole("revoked").spare(4),
        Column::prose("revoked by").spare(5),
    ]);
    for key in keys {
        table.add_row([
            key.id.to_string(),
            output::harmless(&key.name),
            role_names(key),
            key.reseller_id.clone().unwrap_or_default(),
            output::harmless(&limits(&key.scope, key.per_second)),
            key.used_at.map(time).unwrap_or_default(),
            key.expires_at.map(time).unwrap_or_default(),
            time(key.created_at),
            key.created_by
                .as_deref()
                .map(output::harmless)
                .unwrap_or_default(),
            key.revoked_at.map(time).unwrap_or_default(),
            key.revoked_by
                .as_deref()
                .map(output::harmless)
                .unwrap_or_default(),
        ]);
    }
    table
}

fn confirm_revocation(yes: Yes, id: Uuid) -> anyhow::Result<()> {
    let act = Act {
        what: &format!("revoke the key {id}"),
        effect: "requests with it are refused within seconds, and that cannot be undone",
        instead: &format!("`postrider keys rotate {id}` to have it end later"),
    };
    yes.confirm(&act, || ())
}

async fn revoke(access: &Access, id: Uuid, note: Option<&str>) -> anyhow::Result<()> {
    match access {
        Access::Database(database) => {
            let revoking = database
                .store
                .revoke_api_key(id, by_hand(SystemClock.now(), note));
            let revoked = revoking
                .await
                .with_context(|| database.failure("revoke the key in"))?;
            if !revoked {
                let known = database.store.find_key(id).await;
                let known = known.with_context(|| database.failure("read the key from"))?;
                if let Some(was) = known.as_ref().and_then(ApiKey::said_of_revocation) {
                    bail!("{}", output::harmless(&was));
                }
                bail!(
                    "no key that could be revoked has the id {id}; `postrider keys list` shows all of them"
                );
            }
        }
        Access::Api(api) => api.delete_noted(&format!("/keys/{id}"), note).await?,
    }
    output::result(format_args!("revoked {id}"))?;
    output::note(format_args!(
        "services refuse it within {} s: for so long they remember a key",
        REMEMBERED.as_secs()
    ));
    Ok(())
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn role_names(key: &ApiKey) -> String {
    let names: Vec<_> = key.roles.iter().map(|role| role.as_str()).collect();
    names.join(" ")
}
