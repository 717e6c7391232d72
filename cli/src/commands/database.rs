//! What the commands that work on the database share: opening it, and saying clearly when it is away or not prepared.

use std::sync::LazyLock;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use config::{Config, Sources};
use store::{Act, Store};

/// An open database and the configuration that led to it.
pub(crate) struct Database {
    pub(crate) config: Config,
    pub(crate) store: Store,
}

impl Database {
    /// Opens the database of the configuration, without connecting yet.
    pub(crate) fn open(sources: &Sources) -> anyhow::Result<Self> {
        // The fallback for amqp.url, which these commands do not use: making a key needs no broker.
        let config = config::load(&sources.clone().with_variable("AMQP_URL", "amqp://unused"))?;
        let store = Store::open(&store::Settings {
            url: config.database.url.expose().to_owned(),
            max_connections: 1,
            lease_connections: 1,
            acquire_timeout: config.database.acquire_timeout,
            application_name: "postrider-cli".to_owned(),
            line_terms: runtime::connections::line_terms(&config),
        })?;
        Ok(Self { config, store })
    }

    /// Opens the database and makes sure that it has the schema of this version.
    pub(crate) async fn open_migrated(sources: &Sources) -> anyhow::Result<Self> {
        let database = Self::open(sources)?;
        let migrated = database.store.is_migrated().await;
        if !migrated.with_context(|| database.failure("look into"))? {
            bail!(
                "the database {} lacks migrations of this version; run `postrider migrate` first",
                database.config.database.url.masked_url()
            );
        }
        Ok(database)
    }

    /// What failed and where, for an error's context.
    pub(crate) fn failure(&self, verb: &str) -> String {
        format!(
            "failed to {verb} the database {} (is it running, and is database.url or DATABASE_URL right?)",
            self.config.database.url.masked_url()
        )
    }
}

/// What a change that is made past the services is signed with in the audit log. There is no key that could tell who it was: the user and the
/// machine do, as far as they say the truth.
pub(crate) fn by_hand(at: DateTime<Utc>, note: Option<&str>) -> Act<'_> {
    static BY: LazyLock<String> = LazyLock::new(|| {
        let named = ["SUDO_USER", "USER", "LOGNAME"].into_iter();
        let user = named
            .filter_map(|name| std::env::var(name).ok())
            .find(|user| !user.is_empty());
        let user = user.unwrap_or_else(|| user_name(&rustix::process::getuid().as_raw().to_string()));
        let machine = rustix::system::uname();
        format!("postrider-cli ({user}@{})", machine.nodename().to_string_lossy())
    });
    Act { by: &BY, note, at }
}

/// The name of a user, as this machine knows it; else its number.
fn user_name(number: &str) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut users = known.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let named = users.find(|fields| fields.get(2) == Some(&number));
    named.map_or(number, |fields| fields[0]).to_owned()
}
