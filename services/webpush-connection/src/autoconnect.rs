//! The variables of autopush's connection node (`AUTOCONNECT__…`), as the configuration of this one. Those that mean nothing here
//! are left alone, as there they are.

use std::collections::HashMap;
use std::net::ToSocketAddrs as _;
use std::time::Duration;

use config::Sources;

const PREFIX: &str = "AUTOCONNECT__";
/// The AMQP server, which this service does not use, has to be named in every configuration.
const NO_BROKER: &str = "amqp://unused";
/// The least that `webpush.connection.messageLimit` may be: a batch.
const LEAST_MESSAGES: u64 = 10;

/// A variable whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{PREFIX}{variable} is {value:?}, and has to be {wanted}")]
pub struct Unusable {
    variable: &'static str,
    value: String,
    wanted: &'static str,
}

/// The configuration that the environment of a process stands for: the variables of autopush, and those of Postrider, which win and
/// set what autopush does not have.
///
/// # Errors
///
/// [`Unusable`] names the variable.
pub fn sources(environment: impl IntoIterator<Item = (String, String)>) -> Result<Sources, Unusable> {
    let (autopush, own): (Vec<_>, Vec<_>) = environment
        .into_iter()
        .partition(|(name, _)| name.to_uppercase().starts_with(PREFIX));
    let given = autopush.into_iter().filter_map(|(name, value)| {
        let name = name.to_uppercase();
        Some((name.strip_prefix(PREFIX)?.to_owned(), value))
    });
    let given = Given(given.filter(|(_, value)| !value.is_empty()).collect());
    let port = given.number("PORT", 8080)?;
    let router_port = given.number("ROUTER_PORT", 8081)?;
    let hostname = given.hostname()?;
    let router_hostname = given.text("ROUTER_HOSTNAME").map_or(hostname, ToOwned::to_owned);
    let mut sources = Sources::default()
        .with_variable("AMQP_URL", NO_BROKER)
        .with_variable("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0")
        .with_variable("POSTRIDER__WEBPUSH__ENDPOINT_URL", given.endpoint_url()?)
        .with_variable(setting("LISTEN"), format!("0.0.0.0:{port}"))
        .with_variable(setting("ROUTER_LISTEN"), format!("0.0.0.0:{router_port}"))
        .with_variable(setting("ROUTER_URL"), url("http", &router_hostname, router_port));
    for (variable, ours) in [
        ("AUTO_PING_INTERVAL", "PING_INTERVAL_MILLIS"),
        ("AUTO_PING_TIMEOUT", "PONG_TIMEOUT_MILLIS"),
        ("OPEN_HANDSHAKE_TIMEOUT", "HELLO_TIMEOUT_MILLIS"),
        ("MEGAPHONE_POLL_INTERVAL", "MEGAPHONE_INTERVAL_MILLIS"),
    ] {
        if let Some(time) = given.seconds(variable)? {
            sources = sources.with_variable(setting(ours), time.as_millis().to_string());
        }
    }
    let limit = given.read("MSG_LIMIT", "a number", |value| value.parse::<u64>().ok())?;
    if let Some(limit) = limit {
        sources = sources.with_variable(setting("MESSAGE_LIMIT"), limit.max(LEAST_MESSAGES).to_string());
    }
    for (variable, ours) in [
        ("CLIENT_CHANNEL_CAPACITY", "QUEUE_CAPACITY"),
        ("MEGAPHONE_API_URL", "MEGAPHONE_URL"),
        ("MEGAPHONE_API_TOKEN", "MEGAPHONE_TOKEN"),
    ] {
        if let Some(value) = given.text(variable) {
            sources = sources.with_variable(setting(ours), value);
        }
    }
    if let Some(keys) = given.text("CRYPTO_KEY") {
        let keys = keys.trim().trim_start_matches('[').trim_end_matches(']');
        sources = sources.with_variable("POSTRIDER__WEBPUSH__KEYS", keys.replace(['"', '\'', ' '], ""));
    }
    if let Some(url) = given.text("DB_DSN") {
        // Not as DATABASE_URL, which may stand in the environment for another program.
        sources = sources.with_variable("POSTRIDER__DATABASE__URL", url);
    }
    let format = if given.is_on("HUMAN_LOGS") {
        "human"
    } else {
        "json"
    };
    sources = sources.with_variable("POSTRIDER__TELEMETRY__LOG_FORMAT", format);
    let and_own = |sources: Sources, (name, value): (String, String)| sources.with_variable(name, value);
    Ok(own.into_iter().fold(sources, and_own))
}

fn setting(name: &str) -> String {
    format!("POSTRIDER__WEBPUSH__CONNECTION__{name}")
}

/// Where a server is; the port that goes without saying is left out.
fn url(scheme: &str, hostname: &str, port: u16) -> String {
    let is_bare = hostname.contains(':') && !hostname.starts_with('[');
    let hostname = if is_bare {
        format!("[{hostname}]")
    } else {
        hostname.to_owned()
    };
    match (scheme, port) {
        ("http", 80) | ("https", 443) => format!("{scheme}://{hostname}"),
        _ => format!("{scheme}://{hostname}:{port}"),
    }
}

/// The variables without their prefix.
struct Given(HashMap<String, String>);

impl Given {
    fn text(&self, variable: &str) -> Option<&str> {
        self.0.get(variable).map(String::as_str)
    }

    /// Whether a switch is on; Python writes `True`.
    fn is_on(&self, variable: &str) -> bool {
        self.text(variable)
            .is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    fn number(&self, variable: &'static str, default: u16) -> Result<u16, Unusable> {
        self.read(variable, "a port", |value| value.parse().ok())
            .map(|number| number.unwrap_or(default))
    }

    /// A time in seconds, which may have a fraction.
    fn seconds(&self, variable: &'static str) -> Result<Option<Duration>, Unusable> {
        self.read(variable, "a number of seconds", |value| {
            Duration::try_from_secs_f64(value.parse().ok()?).ok()
        })
    }

    fn read<T>(
        &self,
        variable: &'static str,
        wanted: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Unusable> {
        let Some(value) = self.text(variable) else {
            return Ok(None);
        };
        read(value.trim()).map(Some).ok_or_else(|| Unusable {
            variable,
            value: value.to_owned(),
            wanted,
        })
    }

    /// The name of this node for others, which is its address if that is wanted.
    fn hostname(&self) -> Result<String, Unusable> {
        let name = self.text("HOSTNAME").unwrap_or("localhost").to_owned();
        if !self.is_on("RESOLVE_HOSTNAME") {
            return Ok(name);
        }
        let address = (name.as_str(), 0)
            .to_socket_addrs()
            .ok()
            .and_then(|mut found| found.next());
        let address = address.map(|address| address.ip().to_string());
        address.ok_or(Unusable {
            variable: "HOSTNAME",
            value: name,
            wanted: "a name that can be resolved",
        })
    }

    fn endpoint_url(&self) -> Result<String, Unusable> {
        let scheme = self.text("ENDPOINT_SCHEME").unwrap_or("http");
        let hostname = self.text("ENDPOINT_HOSTNAME").unwrap_or("localhost");
        Ok(url(scheme, hostname, self.number("ENDPOINT_PORT", 8082)?))
    }
}

#[cfg(test)]
mod tests {
    use config::Config;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Config {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let required = [("AUTOCONNECT__DB_DSN", "postgres://localhost/push")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        config::load(&sources(variables.chain(required)).unwrap()).unwrap()
    }

    #[test]
    fn what_autopush_is_told_means_the_same_here() {
        let config = read(&[
            ("AUTOCONNECT__PORT", "9150"),
            ("AUTOCONNECT__ROUTER_PORT", "9170"),
            ("AUTOCONNECT__HOSTNAME", "127.0.0.1"),
            ("AUTOCONNECT__ENDPOINT_SCHEME", "http"),
            ("AUTOCONNECT__ENDPOINT_HOSTNAME", "127.0.0.1"),
            ("AUTOCONNECT__ENDPOINT_PORT", "9160"),
            (
                "AUTOCONNECT__CRYPTO_KEY",
                "[mqCGb8D-N7mqx6iWJov9wm70Us6kA9veeXdb8QUuzLQ=]",
            ),
            ("AUTOCONNECT__AUTO_PING_INTERVAL", "0.5"),
            ("AUTOCONNECT__AUTO_PING_TIMEOUT", "10.0"),
            ("AUTOCONNECT__MSG_LIMIT", "20"),
            (
                "AUTOCONNECT__MEGAPHONE_API_URL",
                "http://127.0.0.1:5000/v1/broadcasts/",
            ),
            ("AUTOCONNECT__MEGAPHONE_POLL_INTERVAL", "1"),
            ("AUTOCONNECT__MEGAPHONE_API_TOKEN", "Bearer abc"),
            ("AUTOCONNECT__CLIENT_CHANNEL_CAPACITY", "64"),
            ("AUTOCONNECT__ROUTER_TABLENAME", "router"),
        ]);
        let connection = &config.webpush.connection;
        assert_eq!(connection.listen.to_string(), "0.0.0.0:9150");
        assert_eq!(connection.router_url.as_deref(), Some("http://127.0.0.1:9170"));
        assert_eq!(config.webpush.endpoint_url, "http://127.0.0.1:9160");
        assert_eq!(config.webpush.keys.len(), 1);
        assert_eq!(connection.ping_interval, Duration::from_millis(500));
        assert_eq!(connection.pong_timeout, Duration::from_secs(10));
        assert_eq!(connection.message_limit, 20);
        let url = connection.megaphone_url.as_deref();
        assert_eq!(url, Some("http://127.0.0.1:5000/v1/broadcasts"));
        assert_eq!(connection.megaphone_interval, Duration::from_secs(1));
        let token = connection.megaphone_token.as_ref().map(config::Secret::expose);
        assert_eq!(token, Some("Bearer abc"));
        assert_eq!(connection.queue_capacity, 64);
        assert_eq!(connection.hello_timeout, Duration::from_secs(5));
    }

    #[test]
    fn others_reach_a_node_at_the_name_or_the_address_that_is_given_for_it() {
        for (variables, url) in [
            (
                [
                    ("AUTOCONNECT__HOSTNAME", "node-1"),
                    ("AUTOCONNECT__ROUTER_HOSTNAME", "10.0.0.1"),
                ],
                "http://10.0.0.1:8081",
            ),
            (
                [
                    ("AUTOCONNECT__HOSTNAME", "127.0.0.1"),
                    ("AUTOCONNECT__RESOLVE_HOSTNAME", "True"),
                ],
                "http://127.0.0.1:8081",
            ),
            (
                [
                    ("AUTOCONNECT__HOSTNAME", "::1"),
                    ("AUTOCONNECT__ROUTER_PORT", "9170"),
                ],
                "http://[::1]:9170",
            ),
        ] {
            let config = read(&variables);
            assert_eq!(config.webpush.connection.router_url.as_deref(), Some(url));
        }
    }

    #[test]
    fn the_variables_of_postrider_win_and_set_what_autopush_does_not_have() {
        let config = read(&[
            ("AUTOCONNECT__PORT", "9150"),
            ("POSTRIDER__WEBPUSH__CONNECTION__LISTEN", "127.0.0.1:1"),
            ("POSTRIDER__WEBPUSH__CONNECTION__TRUSTED_PROXIES", "10.0.0.0/8"),
            ("DATABASE_URL", "postgres://of@another/program"),
        ]);
        let connection = &config.webpush.connection;
        assert_eq!(connection.listen.to_string(), "127.0.0.1:1");
        assert_eq!(connection.trusted_proxies[0].to_string(), "10.0.0.0/8");
        assert_eq!(config.database.url.expose(), "postgres://localhost/push");
    }

    #[test]
    fn a_limit_of_messages_below_a_batch_is_a_batch() {
        let config = read(&[("AUTOCONNECT__MSG_LIMIT", "3")]);
        assert_eq!(config.webpush.connection.message_limit, 10);
    }

    #[test]
    fn a_port_that_goes_without_saying_is_left_out() {
        let config = read(&[
            ("AUTOCONNECT__ENDPOINT_SCHEME", "https"),
            ("AUTOCONNECT__ENDPOINT_HOSTNAME", "push.example"),
            ("AUTOCONNECT__ENDPOINT_PORT", "443"),
        ]);
        assert_eq!(config.webpush.endpoint_url, "https://push.example");
    }

    #[test]
    fn a_value_that_cannot_be_used_is_named() {
        let wrong = [("AUTOCONNECT__PORT".to_owned(), "many".to_owned())];
        let unusable = sources(wrong).unwrap_err();
        assert_eq!(
            unusable.to_string(),
            "AUTOCONNECT__PORT is \"many\", and has to be a port"
        );
    }
}
