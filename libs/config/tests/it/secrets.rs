//! No secret is printed, wherever it stands.

use config::{Secret, Sources};

use crate::{complete, load_yaml};

const FILE: &str = "swrve: { messagePrototypePushKeys: { Hello: { IOS: hunter4 } }, timeoutMillis: 5000 }";

#[test]
fn debug_output_shows_no_secret() {
    let shown = format!("{:?}", load_yaml(FILE).unwrap());
    assert!(!shown.contains("hunter"), "{shown}");
}

#[test]
fn secret_is_redacted_unless_exposed() {
    let secret = Secret::new("hunter2");
    assert_eq!(format!("{secret} {secret:?}"), "*** Secret(***)");
    assert_eq!(secret.expose(), "hunter2");
}

#[test]
fn masked_url_keeps_the_location_only() {
    for (url, masked) in [
        (
            "postgres://u:p@host:5432/db?sslmode=require",
            "postgres://***@host:5432/db",
        ),
        ("postgres://host/db?user=u&password=hunter2", "postgres://host/db"),
        ("postgres://u:p@one:5432,two/db", "postgres://***@one:5432,two/db"),
        ("postgres://u:p/a@b@host/db", "postgres://***@host/db"),
        ("postgres:///db?password=a@b", "postgres://***"),
        ("amqp://host", "amqp://host"),
        ("hunter2", "***"),
    ] {
        assert_eq!(Secret::new(url).masked_url(), masked, "{url}");
    }
}

#[test]
fn redacted_yaml_shows_effective_values_and_where_they_came_from() {
    let sources = complete()
        .with_yaml("prod.yaml", FILE)
        .with_variable("POSTRIDER__AMQP__QUEUE_PREFIX", "1");
    let shown = config::load(&sources).unwrap().redacted_yaml().to_owned();

    assert!(!shown.contains("hunter"), "{shown}");
    for line in [
        "database:",
        "  url: \"postgres://***@127.0.0.1:5432/postrider\"  # environment variable DATABASE_URL",
        "  timeoutMillis: 5000  # prod.yaml:1",
        "  messagePrototypePushKeys: {\"Hello\":{\"IOS\":\"***\"}}  # prod.yaml:1",
        "  queuePrefix: \"1\"  # environment variable POSTRIDER__AMQP__QUEUE_PREFIX",
        "  delayMillis: 4",
        "    sendPending:",
        "      portionSize: 249",
    ] {
        assert!(
            shown.lines().any(|shown| shown == line),
            "{line:?} is not in\n{shown}"
        );
    }
}

#[test]
fn addresses_that_may_hold_a_password_are_shown_without_it() {
    let sources = complete()
        .with_variable("POSTRIDER__SWRVE__URL", "https://u:hunter2@swrve.example")
        .with_variable(
            "POSTRIDER__TELEMETRY__OTLP_ENDPOINT",
            "https://u:hunter2@otel.example",
        );
    let config = config::load(&sources).unwrap();
    let debug = format!("{config:?}");
    assert!(!debug.contains("hunter2"), "{debug}");
    let shown = config.redacted_yaml();
    assert!(!shown.contains("hunter2"), "{shown}");
    for line in [
        "  url: \"https://***@swrve.example\"  # environment variable POSTRIDER__SWRVE__URL",
        "  otlpEndpoint: \"https://***@otel.example\"  # environment variable POSTRIDER__TELEMETRY__OTLP_ENDPOINT",
    ] {
        assert!(
            shown.lines().any(|shown| shown == line),
            "{line:?} is not in\n{shown}"
        );
    }
}

#[test]
fn redacted_yaml_is_a_configuration_again() {
    let first = load_yaml(FILE).unwrap();
    let again = config::load(&Sources::default().with_yaml("again.yaml", first.redacted_yaml())).unwrap();

    assert_eq!(again.swrve.timeout, first.swrve.timeout);
    assert_eq!(again.push.queue.capacity, first.push.queue.capacity);
    assert_eq!(again.telemetry.log_filter, first.telemetry.log_filter);
}
