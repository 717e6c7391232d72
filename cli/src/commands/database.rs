//! What the commands that work on the database share: opening it, saying clearly when it is away or not prepared, and going over the operator
//! API where none is configured.

use std::sync::LazyLock;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use config::{Config, Fault, Sources};
use domain::foreign_text::harmless_char;
use store::{Act, Store};

use crate::api::Api;
use crate::operator::OperatorArgs;
use crate::output;

/// An open database and the configuration that led to it.
pub(crate) struct Database {
    pub(crate) config: Config,
    pub(crate) store: Store,
}

impl Database {
    /// Opens the database of the configuration; of several hosts it finds the one that can be written to.
    pub(crate) async fn open(sources: &Sources) -> anyhow::Result<Self> {
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
        store.find_host().await;
        Ok(Self { config, store })
    }

    /// Opens the database and makes sure that it has the schema of this version.
    pub(crate) async fn open_migrated(sources: &Sources) -> anyhow::Result<Self> {
        let database = Self::open(sources).await?;
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

/// How a command reaches what it is about, where it can do so in two ways.
pub(crate) enum Access {
    /// Past the services.
    Database(Box<Database>),
    /// Over the operator API, with a key.
    Api(Api),
}

impl Access {
    /// The database; where none is configured, the operator API, if there is a key for it.
    pub(crate) async fn open(sources: &Sources, operator: &OperatorArgs) -> anyhow::Result<Self> {
        match Database::open_migrated(sources).await {
            Ok(database) => Ok(Self::Database(Box::new(database))),
            Err(error) if !lacks_only_the_database(&error) => Err(error),
            Err(_) if operator.has_key() => Ok(Self::Api(operator.connect()?)),
            Err(error) => Err(error.context(
                "this needs the database (DATABASE_URL), or the operator API with the key of an administrator (OPERATOR_KEY or --key); to \
                 list, the key of a viewer is enough; the first key of an installation is made on the database",
            )),
        }
    }

    /// Says whom the audit log will name for what is about to be changed, where that is not the key that is given.
    pub(crate) fn tell_actor(&self, operator: &OperatorArgs) {
        if let Self::Database(_) = self
            && operator.has_key()
        {
            tell_actor();
        }
    }
}

/// Says whom the audit log will name although there is a key, unless a person is named.
pub(crate) fn tell_actor() {
    let by = by_hand(DateTime::UNIX_EPOCH, None).by;
    if let Some(told) = unnamed(by) {
        output::note(told);
    }
}

/// What is said of a signature that names no person.
fn unnamed(by: &str) -> Option<String> {
    by.starts_with(UNNAMED).then(|| {
        format!(
            "this goes to the database and not over the operator API, so the audit log will name {by} and not your key; {ACTOR_VARIABLE} names \
             you, and without DATABASE_URL the key is used"
        )
    })
}

/// Whether all that is wrong is that no database is configured. With any other mistake in the configuration the caller meant a database, and
/// the operator API may be one of another installation.
pub(crate) fn lacks_only_the_database(error: &anyhow::Error) -> bool {
    let errors = error.downcast_ref::<config::Errors>();
    errors.is_some_and(|errors| {
        matches!(errors.problems(), [only] if only.subject == "database.url" && only.fault == Fault::Missing)
    })
}

/// Who it is that commands on the database act for.
const ACTOR_VARIABLE: &str = "POSTRIDER_ACTOR";
/// How a signature begins that names no person.
const UNNAMED: &str = "postrider-cli (";
/// Longest name of a person, in characters.
const ACTOR_MAX: usize = 200;

/// What a change that is made past the services is signed with in the audit log. There is no key that could tell who it was: `POSTRIDER_ACTOR`, the
/// user and the machine do, as far as they say the truth.
pub(crate) fn by_hand(at: DateTime<Utc>, note: Option<&str>) -> Act<'_> {
    static BY: LazyLock<String> = LazyLock::new(|| {
        let named = ["SUDO_USER", "USER", "LOGNAME"].into_iter();
        let user = named
            .filter_map(|name| std::env::var(name).ok())
            .find(|user| !user.is_empty());
        let user = user.unwrap_or_else(|| user_name(&rustix::process::getuid().as_raw().to_string()));
        let machine = rustix::system::uname();
        let place = format!("{user}@{}", machine.nodename().to_string_lossy());
        signature(std::env::var(ACTOR_VARIABLE).ok().as_deref(), &place)
    });
    Act { by: &BY, note, at }
}

/// The person comes first, as the name of a key does, so that the audit log finds acts by it.
fn signature(person: Option<&str>, place: &str) -> String {
    let written = person.unwrap_or_default().chars();
    let written: String = written
        .filter(|character| harmless_char(*character) == *character)
        .collect();
    let person: String = written.trim().chars().take(ACTOR_MAX).collect();
    match person.trim_end() {
        "" => format!("{UNNAMED}{place})"),
        person => format!("{person} (postrider-cli, {place})"),
    }
}

/// The name of a user, as this machine knows it; else its number.
fn user_name(number: &str) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut users = known.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let named = users.find(|fields| fields.get(2) == Some(&number));
    named.map_or(number, |fields| fields[0]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_on_the_database_are_signed_by_the_person_that_is_named() {
        let signed = |person| signature(person, "root@db1");
        assert_eq!(signed(Some("ada")), "ada (postrider-cli, root@db1)");
        assert_eq!(signed(Some(" ada\n")), "ada (postrider-cli, root@db1)");
        assert_eq!(
            signed(Some("a\u{1b}[2J\u{202e}da")),
            "a[2Jda (postrider-cli, root@db1)"
        );
        for blank in [None, Some(""), Some(" "), Some("\u{7} \u{7}")] {
            assert_eq!(signed(blank), "postrider-cli (root@db1)");
        }
        let told = unnamed(&signed(None)).expect("a hint");
        assert!(
            told.contains("POSTRIDER_ACTOR") && told.contains("postrider-cli (root@db1)"),
            "{told}"
        );
        assert_eq!(unnamed(&signed(Some("ada"))), None);
    }
}
