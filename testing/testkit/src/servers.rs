//! The servers that tests use. A test without them fails, and says what to do.

/// The PostgreSQL server; its role must be allowed to make databases.
///
/// # Panics
///
/// When `DATABASE_URL` is not set.
pub fn database_url() -> String {
    url("DATABASE_URL")
}

/// The RabbitMQ server.
///
/// # Panics
///
/// When `AMQP_URL` is not set.
pub fn amqp_url() -> String {
    url("AMQP_URL")
}

fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `make test`, or `set -a; eval \"$(scripts/servers env)\"` after `scripts/servers start`")
    })
}
