//! Several `PostgreSQL` hosts in one URL, as libpq has them: `postgres://user@one:5432,two:5432/postrider`. sqlx opens all connections of
//! a pool to one host, so a task tells the pools which one that is.
//!
//! It does not decide which of the hosts is the primary: the fail-over of `PostgreSQL` does.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{Connection as _, Row as _};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::LIFE_SIGN_LIMIT;

/// How often the host in use is asked whether it can still be written to.
const INTERVAL: Duration = Duration::from_secs(1);

const TARGET: &str = "target_session_attrs=";

/// How each host of `url` is reached, in its order.
pub(crate) fn each(url: &str) -> Result<Vec<PgConnectOptions>, sqlx::Error> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // A password may hold commas.
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    if !hosts.contains(',') && !tail.contains(TARGET) {
        return Ok(vec![url.parse()?]);
    }
    let tail = without_target(tail)?;
    hosts
        .split(',')
        .map(|host| {
            if host.is_empty() {
                return Err(sqlx::Error::Configuration(
                    "a host between commas is empty".into(),
                ));
            }
            format!("{scheme}://{user}{host}{tail}").parse()
        })
        .collect()
}

/// What follows the hosts, without `target_session_attrs`, which sqlx does not know.
fn without_target(tail: &str) -> Result<String, sqlx::Error> {
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let mut others = Vec::new();
    for parameter in query.split('&') {
        match parameter.strip_prefix(TARGET) {
            None => others.push(parameter),
            Some("read-write" | "primary") => {}
            Some(_) => {
                return Err(sqlx::Error::Configuration(
                    "target_session_attrs has to be read-write or primary".into(),
                ));
            }
        }
    }
    Ok(format!("{path}?{}", others.join("&")))
}

/// Has `pools` connect to a host that can be written to, and to another one when that ends, until they are closed; `found` is told of the first.
/// Open connections stay: those to a host that is lost end by themselves, and those that cannot write are closed when they are given back.
///
/// It has a connection of its own, since those of the pools may all be busy.
pub(crate) async fn follow(hosts: Arc<[PgConnectOptions]>, pools: [PgPool; 2], found: watch::Sender<bool>) {
    let mut primary: Option<PgConnection> = None;
    while !pools[0].is_closed() {
        let holds = match &mut primary {
            Some(connection) => answers_as_primary(connection).await,
            None => false,
        };
        if !holds {
            primary = None;
            if let Some((host, connection)) = find_primary(&hosts).await {
                tracing::info!(
                    host = host.get_host(),
                    port = host.get_port(),
                    "connects to this host of the database from now on"
                );
                for pool in &pools {
                    pool.set_connect_options(host.clone());
                }
                primary = Some(connection);
                found.send_replace(true);
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Asks all of them at once: one that is lost may not answer for as long as it is waited for.
async fn find_primary(hosts: &[PgConnectOptions]) -> Option<(PgConnectOptions, PgConnection)> {
    let mut asked = JoinSet::new();
    for host in hosts.iter().cloned() {
        asked.spawn(async move {
            let mut connection = connect(&host).await?;
            let leads = answers_as_primary(&mut connection).await;
            leads.then_some((host, connection))
        });
    }
    while let Some(answer) = asked.join_next().await {
        if let Ok(Some(found)) = answer {
            return Some(found);
        }
    }
    None
}

/// A connection outside of the pools; none when the host is away.
pub(crate) async fn connect(host: &PgConnectOptions) -> Option<PgConnection> {
    let connected = tokio::time::timeout(LIFE_SIGN_LIMIT, PgConnection::connect_with(host)).await;
    connected.ok()?.ok()
}

async fn answers_as_primary(connection: &mut PgConnection) -> bool {
    let answer = tokio::time::timeout(LIFE_SIGN_LIMIT, is_writable(connection)).await;
    matches!(answer, Ok(Ok(true)))
}

/// Whether a connection may write: not one to a standby.
pub(crate) async fn is_writable(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row = sqlx::raw_sql("SHOW transaction_read_only")
        .fetch_one(connection)
        .await?;
    Ok(row.try_get::<String, _>(0)? == "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Vec<(String, u16)> {
        let hosts = each(url).unwrap();
        assert!(hosts.iter().all(|host| host.get_database() == Some("postrider")));
        let address = |host: PgConnectOptions| (host.get_host().to_owned(), host.get_port());
        hosts.into_iter().map(address).collect()
    }

    #[test]
    fn hosts_are_read_in_their_order() {
        let two = [("one".to_owned(), 5433), ("two".to_owned(), 5432)];
        for url in [
            "postgres://u:p@one:5433,two:5432/postrider",
            "postgres://u:a,b@one:5433,two/postrider?target_session_attrs=read-write",
            "postgresql://one:5433,two/postrider?sslmode=disable&target_session_attrs=primary",
        ] {
            assert_eq!(read(url), two, "{url}");
        }
        for url in [
            "postgres://u:p@one:5433/postrider",
            "postgres://u:a,b@one:5433/postrider",
            "postgres://one:5433/postrider?target_session_attrs=read-write",
        ] {
            assert_eq!(read(url), two[..1], "{url}");
        }
    }

    #[test]
    fn hosts_that_cannot_be_meant_are_refused() {
        for url in [
            "127.0.0.1:5432",
            "postgres://one,/postrider",
            "postgres://one,,two/postrider",
            "postgres://one:5432,two:port/postrider",
            "postgres://one,two/postrider?target_session_attrs=standby",
            "postgres://one/postrider?target_session_attrs=any",
        ] {
            assert!(each(url).is_err(), "{url}");
        }
    }
}
