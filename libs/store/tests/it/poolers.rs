//! `PgBouncer` between the store and its database. Its package is installed by `scripts/test`; without it these tests are left out.

use std::path::Path;

use rustix::process::Signal;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, PgPool, Row as _};
use store::Error;
use testkit::eventually;
use tokio::net::TcpStream;

use crate::own_servers::{Server, command, folder, free_address, give, store_at};

const PROGRAM: &str = "/usr/sbin/pgbouncer";
/// What has to be set for a session to begin at all.
const LETS_SETTINGS_PASS: &str = "ignore_startup_parameters = options";

/// A pooler before the database of `pool`, with `settings` beside those that make it listen.
async fn pgbouncer(pool: &PgPool, settings: &[&str]) -> Option<(Server, String)> {
    if !Path::new(PROGRAM).exists() {
        return left_out();
    }
    let (address, folder) = (free_address(), folder());
    let server = pool.connect_options().to_url_lossy();
    let (host, database) = (server.host_str().unwrap(), server.path().trim_start_matches('/'));
    let configuration = format!(
        "[databases]\n\
         {database} = host={host} port={port} user={user} password={password}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {listen}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         {settings}\n",
        port = server.port().unwrap_or(5432),
        user = server.username(),
        password = server.password().unwrap_or_default(),
        listen = address.port(),
        settings = settings.join("\n"),
    );
    let file = folder.path().join("pgbouncer.ini");
    std::fs::write(&file, configuration).unwrap();
    give(&file);
    let mut program = command(Path::new(PROGRAM));
    program.arg(&file);
    // It does not handle SIGQUIT, which a shell has its jobs in the background ignore.
    let pooler = Server::start(program, Signal::TERM, address, folder);
    eventually("the pooler to listen", async || {
        TcpStream::connect(address).await.ok()
    })
    .await;
    Some((pooler, format!("postgres://any@{address}/{database}")))
}

#[expect(
    clippy::print_stderr,
    reason = "who runs the tests has to see what was not tried"
)]
fn left_out() -> Option<(Server, String)> {
    eprintln!("!!! LEFT OUT: PgBouncer, which is not installed");
    None
}

#[testkit::database_test]
async fn a_pooler_that_shares_sessions_is_refused_with_what_to_do(pool: PgPool) {
    for mode in ["pool_mode = transaction", "pool_mode = statement"] {
        let Some((_pooler, url)) = pgbouncer(&pool, &[mode, LETS_SETTINGS_PASS]).await else {
            return;
        };
        let store = store_at(url);
        for refused in [
            store.ping().await,
            store.is_migrated().await.map(drop),
            store.migrate().await.map(drop),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::SharedSessions), "{mode}: {error:?}");
            assert!(error.to_string().contains("pool_mode = session"), "{error}");
        }
        // Nothing else is done over it either.
        assert!(store.list_pauses().await.is_err(), "{mode}");
    }
}

#[testkit::database_test]
async fn settings_are_made_by_a_statement_over_a_pooler_that_keeps_sessions_apart(pool: PgPool) {
    // The one session is kept as it is for the next client.
    let one = [
        "pool_mode = session",
        "default_pool_size = 1",
        "server_reset_query =",
        LETS_SETTINGS_PASS,
    ];
    let Some((_pooler, url)) = pgbouncer(&pool, &one).await else {
        return;
    };
    let store = store_at(url.clone());
    assert!(store.is_migrated().await.unwrap());
    store.close().await;
    let options: PgConnectOptions = url.parse().unwrap();
    let mut next = PgConnection::connect_with(&options.extra_float_digits(None))
        .await
        .unwrap();
    // Prepared statements of the store are there as well.
    let timeout = sqlx::raw_sql("SHOW statement_timeout")
        .fetch_one(&mut next)
        .await
        .unwrap();
    assert_eq!(timeout.get::<String, _>(0), "8s");
    next.close().await.unwrap();
}

#[testkit::database_test]
async fn a_pooler_that_refuses_the_settings_is_told_apart_from_a_database_that_is_away(pool: PgPool) {
    let Some((_pooler, url)) = pgbouncer(&pool, &["pool_mode = session"]).await else {
        return;
    };
    let error = store_at(url).is_migrated().await.unwrap_err();
    assert!(matches!(error, Error::Pooler(_)), "{error:?}");
    assert!(error.to_string().contains("ignore_startup_parameters"), "{error}");
    assert!(error.is_transient(), "it also refuses while its server is away");
}
