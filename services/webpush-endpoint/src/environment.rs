//! The variables of the reference's endpoint node, `AUTOEND__*`, as those of this configuration.
//!
//! Variables that are not known are ignored, as the reference ignores them.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs as _};

use config::Sources;

const PREFIX: &str = "AUTOEND__";
/// The most that `webpush.endpoint.maxTtlInSeconds` may be. The reference takes more, and keeps nothing for longer either.
const MOST_TTL: u64 = 2_592_000;

/// What is kept when its name changes only.
const RENAMED: [(&str, &str); 6] = [
    ("MAX_DATA_BYTES", "WEBPUSH__ENDPOINT__MAX_DATA_BYTES"),
    ("MAX_NOTIFICATION_TTL", "WEBPUSH__ENDPOINT__MAX_TTL_IN_SECONDS"),
    (
        "CONNECTION_TIMEOUT_MILLIS",
        "WEBPUSH__ENDPOINT__NODE_CONNECT_TIMEOUT_MILLIS",
    ),
    ("REQUEST_TIMEOUT_MILLIS", "WEBPUSH__ENDPOINT__NODE_TIMEOUT_MILLIS"),
    ("CRYPTO_KEYS", "WEBPUSH__KEYS"),
    ("AUTH_KEYS", "WEBPUSH__ENDPOINT__AUTH_KEYS"),
];

/// A configuration that the variables of the reference describe, and those of Postrider, which win.
pub fn sources(variables: impl IntoIterator<Item = (String, String)>) -> Sources {
    let (reference, own): (BTreeMap<_, _>, BTreeMap<_, _>) = variables
        .into_iter()
        .partition(|(name, _)| name.to_ascii_uppercase().starts_with(PREFIX));
    let reference: BTreeMap<String, String> = reference
        .into_iter()
        .map(|(name, value)| (name[PREFIX.len()..].to_ascii_uppercase(), value))
        .collect();
    let mut sources = translated(&reference);
    for (name, value) in own {
        sources = sources.with_variable(name, value);
    }
    sources
}

fn translated(reference: &BTreeMap<String, String>) -> Sources {
    let get = |name: &str, default: &str| match reference.get(name) {
        Some(value) if !value.is_empty() => value.clone(),
        _ => default.to_owned(),
    };
    let (scheme, host, port) = (
        get("SCHEME", "http"),
        get("HOST", "127.0.0.1"),
        get("PORT", "8000"),
    );
    let listen = format!("{}:{port}", in_url(&address_of(&host)));
    let host_in_url = in_url(&host);
    let endpoint_url = get("ENDPOINT_URL", &format!("{scheme}://{host_in_url}:{port}"));
    let human_logs = get("HUMAN_LOGS", "false");
    let log_format = if human_logs == "1" || human_logs.eq_ignore_ascii_case("true") {
        "human"
    } else {
        "json"
    };
    let own = |name: &str| format!("POSTRIDER__{name}");
    let mut sources = Sources::default()
        // There is no broker in Web Push, and no room for the ports of several nodes on one machine.
        .with_variable("AMQP_URL", "amqp://unused")
        .with_variable(own("ADMIN__LISTEN"), "127.0.0.1:0")
        .with_variable(own("WEBPUSH__ENDPOINT__LISTEN"), listen)
        .with_variable(own("WEBPUSH__ENDPOINT_URL"), endpoint_url)
        .with_variable(own("TELEMETRY__LOG_FORMAT"), log_format);
    if let Some(dsn) = reference.get("DB_DSN") {
        // Not as DATABASE_URL, which may stand in the environment for another program.
        sources = sources.with_variable(own("DATABASE__URL"), dsn);
    }
    for (name, renamed) in RENAMED {
        if let Some(value) = reference.get(name) {
            let value = match name {
                "CRYPTO_KEYS" | "AUTH_KEYS" => unlisted(value),
                "MAX_NOTIFICATION_TTL" => value
                    .trim()
                    .parse::<u64>()
                    .map_or_else(|_| value.clone(), |seconds| seconds.min(MOST_TTL).to_string()),
                _ => value.clone(),
            };
            sources = sources.with_variable(own(renamed), value);
        }
    }
    sources
}

/// The address that a host has. One that has none stays as it is, and is named when the configuration is read.
fn address_of(host: &str) -> String {
    let address = match host.parse::<IpAddr>() {
        Ok(address) => Some(address),
        Err(_) => (host, 0)
            .to_socket_addrs()
            .ok()
            .and_then(|mut found| found.next())
            .map(|found| found.ip()),
    };
    address.map_or_else(|| host.to_owned(), |address| address.to_string())
}

fn in_url(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// `["a","b"]` as `a,b`.
fn unlisted(list: &str) -> String {
    list.replace(['[', ']', '"', '\'', ' '], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=";

    fn load(variables: &[(&str, &str)]) -> config::Config {
        let given = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        config::load(&sources(given)).unwrap()
    }

    #[test]
    fn the_variables_of_the_reference_are_understood() {
        let list = format!("[{KEY}]");
        let config = load(&[
            ("AUTOEND__SCHEME", "http"),
            ("AUTOEND__HOST", "127.0.0.1"),
            ("AUTOEND__PORT", "9160"),
            ("AUTOEND__DB_DSN", "postgres://a@b/c"),
            ("AUTOEND__DB_SETTINGS", "{}"),
            ("AUTOEND__CRYPTO_KEYS", &list),
            ("AUTOEND__AUTH_KEYS", r#"["AAAA=", "BBBB"]"#),
            ("AUTOEND__MAX_DATA_BYTES", "4096"),
            ("AUTOEND__MAX_NOTIFICATION_TTL", "60"),
            ("AUTOEND__CONNECTION_TIMEOUT_MILLIS", "500"),
            ("AUTOEND__REQUEST_TIMEOUT_MILLIS", "900"),
            ("AUTOEND__STATSD_HOST", "unknown to us"),
        ]);
        let endpoint = &config.webpush.endpoint;
        assert_eq!(endpoint.listen.to_string(), "127.0.0.1:9160");
        assert_eq!(config.webpush.endpoint_url, "http://127.0.0.1:9160");
        assert_eq!(config.webpush.keys.len(), 1);
        assert_eq!(endpoint.auth_keys.len(), 2);
        assert_eq!(endpoint.max_data_bytes, 4096);
        assert_eq!(endpoint.max_ttl.as_secs(), 60);
        assert_eq!(endpoint.node_connect_timeout.as_millis(), 500);
        assert_eq!(endpoint.node_timeout.as_millis(), 900);
    }

    #[test]
    fn the_database_is_the_one_of_the_reference_whatever_stands_in_the_environment_for_others() {
        let config = load(&[
            ("DATABASE_URL", "postgres://of@another/program"),
            ("AUTOEND__DB_DSN", "postgres://a@b/c"),
        ]);
        assert_eq!(config.database.url.expose(), "postgres://a@b/c");
    }

    #[test]
    fn a_host_may_be_a_name_or_an_address() {
        for (host, url) in [
            ("localhost", "http://localhost:8000"),
            ("::1", "http://[::1]:8000"),
        ] {
            let config = load(&[("AUTOEND__HOST", host), ("AUTOEND__DB_DSN", "postgres://a@b/c")]);
            let listen = config.webpush.endpoint.listen;
            assert!(listen.ip().is_loopback() && listen.port() == 8000, "{listen}");
            assert_eq!(config.webpush.endpoint_url, url);
        }
    }

    #[test]
    fn a_ttl_that_is_too_long_is_the_longest() {
        let config = load(&[
            ("AUTOEND__DB_DSN", "postgres://a@b/c"),
            ("AUTOEND__MAX_NOTIFICATION_TTL", "5184000"),
        ]);
        assert_eq!(config.webpush.endpoint.max_ttl.as_secs(), MOST_TTL);
    }

    #[test]
    fn a_url_of_its_own_wins_and_so_do_the_variables_of_postrider() {
        let config = load(&[
            ("autoend__endpoint_url", "https://push.example.com/"),
            ("AUTOEND__DB_DSN", "postgres://a@b/c"),
            ("AUTOEND__CRYPTO_KEYS", KEY),
            ("POSTRIDER__WEBPUSH__ENDPOINT__LISTEN", "127.0.0.1:1"),
        ]);
        assert_eq!(config.webpush.endpoint_url, "https://push.example.com");
        assert_eq!(config.webpush.endpoint.listen.to_string(), "127.0.0.1:1");
    }
}
