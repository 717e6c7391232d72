//! `config check`, `config show`, and what a bad configuration does to a service.

use crate::postrider::postrider;

#[test]
fn all_errors_of_the_configuration_are_listed_together() {
    for command in ["config check", "up", "serve dispatcher", "config show"] {
        let finished = postrider(command)
            .env("AMQP_URL", "http://localhost")
            .env("POSTRIDER__SWRVE__DELAY_MILLIS", "2")
            .env("POSTRIDER__SWRFE__URL", "http://localhost")
            .run();
        assert_eq!(finished.code, Some(64), "{command}: {finished:?}");
        assert_eq!(finished.stdout, "");
        for part in [
            "1. ",
            "4. ",
            "database.url",
            "amqp.url",
            "swrve.delayMillis",
            "POSTRIDER__SWRFE__URL",
        ] {
            assert!(finished.stderr.contains(part), "{command}: {}", finished.stderr);
        }
    }
}

#[test]
fn a_log_filter_that_is_none_is_an_error_of_the_configuration() {
    let finished = postrider("serve dispatcher")
        .env("DATABASE_URL", "postgres://localhost/none")
        .env("AMQP_URL", "amqp://localhost")
        .env("POSTRIDER__TELEMETRY__LOG_FILTER", "info,=,x=loud")
        .run();
    assert_eq!(finished.code, Some(64), "{finished:?}");
    assert!(
        finished.stderr.contains("telemetry.logFilter"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_good_configuration_is_shown_without_secrets_and_with_origins() {
    let with_servers = |command| {
        postrider(command)
            .env("DATABASE_URL", "postgres://me:hunter2@localhost/postrider")
            .env("AMQP_URL", "amqp://me:hunter2@localhost")
    };
    let checked = with_servers("config check").run();
    assert_eq!(
        (checked.code, checked.stdout.as_str()),
        (Some(0), "the configuration is fine\n")
    );
    let shown = with_servers("config show").run();
    assert_eq!(shown.code, Some(0));
    assert!(
        shown.stdout.contains("environment variable DATABASE_URL"),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains("hunter2"), "{}", shown.stdout);
}

#[test]
fn production_needs_the_addresses_that_resellers_are_told() {
    let check = |arguments, addresses: &str, key: &str| {
        let check = postrider(arguments)
            .env("DATABASE_URL", "postgres://localhost/postrider")
            .env("AMQP_URL", "amqp://localhost")
            .env("POSTRIDER__RESELLER__SENDING_IPS", addresses);
        match key {
            "" => check.run(),
            key => check.env("POSTRIDER__RESELLER__SECRETS__KEY", key).run(),
        }
    };
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let refused = check("config check --production", "", key);
    assert_eq!(refused.code, Some(64), "{refused:?}");
    for part in ["reseller.sendingIps", "is empty", "set reseller.sendingIps to"] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    let noted = check("config check", "", key);
    assert_eq!(noted.code, Some(0), "{noted:?}");
    assert!(noted.stderr.contains("--production"), "{noted:?}");
    for (addresses, key) in [("192.0.2.0/24,2001:db8::/32", key), ("", "")] {
        let fine = check("config check --production", addresses, key);
        assert_eq!(
            (fine.code, fine.stderr.contains("sendingIps")),
            (Some(0), false),
            "{fine:?}"
        );
    }
}

#[test]
fn a_configuration_file_that_is_not_there_is_named() {
    let finished = postrider("--config /nowhere/postrider.yaml config check").run();
    assert_eq!(finished.code, Some(64));
    assert!(
        finished.stderr.contains("/nowhere/postrider.yaml"),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_definitions_of_the_broker_are_the_committed_ones() {
    let finished = postrider("broker definitions").run();
    assert_eq!(
        finished.stdout,
        include_str!("../../../rabbitmq/definitions.json")
    );
}
