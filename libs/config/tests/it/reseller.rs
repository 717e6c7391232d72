//! The keys of the reseller lane: defaults, lists, rules, and what is said of secrets.

use std::time::Duration;

use config::{Config, Fault, Sources};

use crate::{AMQP_URL, DATABASE_URL, complete, load_yaml, problem, problems, rule_of};

/// 32 bytes.
const KEY: &str = "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ=";
const HOUR: Duration = Duration::from_secs(3600);

fn networks(networks: &[ipnet::IpNet]) -> Vec<String> {
    networks.iter().map(ToString::to_string).collect()
}

#[test]
fn lane_is_off_and_closed_by_default() {
    let config = config::load(&complete()).unwrap();
    let reseller = &config.reseller;

    assert!(reseller.secrets.key.is_none() && reseller.secrets.key_bytes().is_none());
    assert!(reseller.secrets.previous_key_bytes().is_empty());
    assert!(reseller.egress.allow_networks.is_empty() && !reseller.egress.allow_http);
    assert_eq!(reseller.egress.opened(), None);
    assert!(reseller.egress.deny_networks.is_empty() && !reseller.egress.allow_wide_networks);
    assert_eq!(
        reseller.egress.allow_ports,
        [443..=443, 8443..=8443, 1024..=65535]
    );
    assert!(config.mail.smtp_url.is_none() && config.mail.confirm_addresses);
    assert!(reseller.sending_ips.is_empty());
}

#[test]
fn defaults_are_what_resellers_are_told() {
    let config = config::load(&complete()).unwrap();
    let reseller = &config.reseller;

    assert_eq!(reseller.delivery.timeout, Duration::from_secs(10));
    assert_eq!(reseller.delivery.max_age, 30 * 24 * HOUR);
    assert_eq!(reseller.retry.max_retries, 3);
    assert_eq!(reseller.retry.max_retry_after, 24 * HOUR);
    assert_eq!(reseller.subscription.maximum, 10);
    assert_eq!(reseller.subscription.requests_per_second, None);
    assert_eq!(reseller.quota.time_zone, chrono_tz::Tz::UTC);
    assert_eq!(reseller.quota.release_window, 6 * HOUR);
    assert_eq!(reseller.health.degraded_after, 48 * HOUR);
    assert_eq!(reseller.health.deactivated_after, 120 * HOUR);
    assert_eq!(reseller.event.key_retention, 35 * 24 * HOUR);
    assert_eq!(config.mail.max_age, 5 * 24 * HOUR);
    assert_eq!(config.portal.listen.port(), 8081);
}

#[test]
fn test_configuration_may_deliver_to_this_machine() {
    let config = Config::for_tests(DATABASE_URL, AMQP_URL).unwrap();

    assert_eq!(config.portal.listen.port(), 0);
    assert!(config.reseller.secrets.key_bytes().is_some());
    assert!(config.reseller.egress.allow_http);
    assert_eq!(
        networks(&config.reseller.egress.allow_networks),
        ["127.0.0.0/8", "::1/128"]
    );
    let opened = config.reseller.egress.opened().unwrap();
    assert!(
        opened.contains("127.0.0.0/8, ::1/128") && opened.contains("http"),
        "{opened}"
    );
}

#[test]
fn the_keys_of_tests_are_known_to_their_process_alone() {
    let config = Config::for_tests(DATABASE_URL, AMQP_URL).unwrap();
    let again = Config::for_tests(DATABASE_URL, AMQP_URL).unwrap();

    let key = config.reseller.secrets.key.as_ref().unwrap().expose();
    assert_eq!(again.reseller.secrets.key.unwrap().expose(), key);
    let sources = concat!(
        include_str!("../../src/model.rs"),
        include_str!("../../src/form.rs")
    );
    assert!(!sources.contains(key));
    let bytes = config.reseller.secrets.key_bytes().unwrap();
    assert!(bytes.chunks(8).all(|part| part != [0; 8]), "{bytes:?}");
}

#[test]
fn networks_come_as_a_list_or_with_commas() {
    let expected = ["192.0.2.0/24", "2001:db8::/32", "203.0.113.7/32"];
    for yaml in [
        "reseller: { sendingIps: [192.0.2.0/24, '2001:db8::/32', 203.0.113.7] }",
        "reseller:\n  sendingIps:\n    - 192.0.2.0/24\n    - 2001:db8::/32\n    - 203.0.113.7\n",
        "reseller: { sendingIps: ' 192.0.2.0/24,2001:db8::/32, 203.0.113.7,' }",
    ] {
        let config = load_yaml(yaml).unwrap();
        assert_eq!(networks(&config.reseller.sending_ips), expected, "{yaml}");
    }
    for value in [
        "192.0.2.0/24,2001:db8::/32,203.0.113.7",
        "[192.0.2.0/24, '2001:db8::/32', 203.0.113.7]",
    ] {
        let sources = complete().with_variable("POSTRIDER__RESELLER__SENDING_IPS", value);
        let config = config::load(&sources).unwrap();
        assert_eq!(networks(&config.reseller.sending_ips), expected, "{value}");
    }
    for nothing in ["''", "[]"] {
        let config = load_yaml(&format!("reseller: {{ sendingIps: {nothing} }}")).unwrap();
        assert!(config.reseller.sending_ips.is_empty(), "{nothing}");
    }
}

#[test]
fn the_entry_that_is_no_network_is_named() {
    for (yaml, named) in [
        ("[127.0.0.0/8, 10.0.0.0/33]", "the text \"10.0.0.0/33\""),
        ("127.0.0.0/8 ::1", "the text \"127.0.0.0/8 ::1\""),
        ("[localhost]", "the text \"localhost\""),
        ("[1]", "a list"),
        ("7", "a number 7"),
    ] {
        let problem = problem(&format!("reseller: {{ egress: {{ allowNetworks: {yaml} }} }}"));
        match &problem.fault {
            Fault::Unexpected { found, .. } => assert_eq!(found, named, "{yaml}"),
            other => panic!("{yaml}: {other:?}"),
        }
    }
}

#[test]
fn rate_of_zero_is_no_limit() {
    let config = load_yaml("reseller: { subscription: { requestsPerSecond: 50 } }").unwrap();
    assert_eq!(config.reseller.subscription.requests_per_second, Some(50));
    let config = load_yaml("reseller: { subscription: { requestsPerSecond: 0 } }").unwrap();
    assert_eq!(config.reseller.subscription.requests_per_second, None);
}

#[test]
fn sealing_keys_are_32_bytes_of_base64() {
    let yaml = format!("reseller: {{ secrets: {{ key: '{KEY}', previousKeys: ['{KEY}', '{KEY}'] }} }}");
    let secrets = load_yaml(&yaml).unwrap().reseller.secrets;
    let bytes = *b"hunter2hunter2hunter2hunter2hunt";
    assert_eq!(secrets.key_bytes(), Some(bytes));
    assert_eq!(secrets.previous_key_bytes(), [bytes, bytes]);

    for wrong in [
        "hunter2",
        "aHVudGVyMg==",
        "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ",
        "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnRlcjI=",
    ] {
        let problem = problem(&format!("reseller: {{ secrets: {{ key: '{wrong}' }} }}"));
        let shown = problem.to_string();
        assert_eq!(problem.subject, "reseller.secrets.key");
        assert!(shown.contains("expected base64 of 32 bytes"), "{shown}");
        assert!(shown.contains("openssl rand -base64 32"), "{shown}");
        assert!(!shown.contains(wrong), "{shown}");
    }
    let yaml = format!("reseller: {{ secrets: {{ key: '{KEY}', previousKeys: '{KEY},hunter2' }} }}");
    let shown = problem(&yaml).to_string();
    assert!(!shown.contains("hunter2") && !shown.contains(KEY), "{shown}");
}

#[test]
fn no_secret_of_the_lane_is_shown() {
    let yaml = format!(
        "reseller: {{ secrets: {{ key: '{KEY}', previousKeys: ['{KEY}'] }} }}\n\
         mail: {{ smtpUrl: 'smtps://us:hunter2@mail.example:465' }}\n"
    );
    let config = load_yaml(&yaml).unwrap();
    for shown in [format!("{config:?}"), config.redacted_yaml().to_owned()] {
        assert!(!shown.contains("hunter2") && !shown.contains(KEY), "{shown}");
    }
    for line in [
        "    key: \"***\"  # prod.yaml:1",
        "    previousKeys: [\"***\"]  # prod.yaml:1",
        "  smtpUrl: \"smtps://***@mail.example:465\"  # prod.yaml:2",
        "    allowNetworks: []",
    ] {
        let shown = config.redacted_yaml();
        assert!(
            shown.lines().any(|shown| shown == line),
            "{line:?} is not in\n{shown}"
        );
    }
    let unset = config::load(&complete()).unwrap();
    assert!(unset.redacted_yaml().contains("    key: null\n"));
}

#[test]
fn networks_survive_being_shown() {
    let first = load_yaml("reseller: { sendingIps: [192.0.2.0/24, '::1'] }").unwrap();
    let again = Sources::default().with_yaml("again.yaml", first.redacted_yaml());
    assert_eq!(
        config::load(&again).unwrap().reseller.sending_ips,
        first.reseller.sending_ips
    );
}

#[test]
fn mail_server_and_sender_are_recognised() {
    for url in [
        "smtp://localhost:2525",
        "smtps://user:p%40ss@mail.example:465",
        "smtp://[::1]:25",
    ] {
        load_yaml(&format!("mail: {{ smtpUrl: '{url}' }}")).unwrap();
    }
    for url in [
        "hunter2",
        "smtp://",
        "smtp://u:hunter2@",
        "smtp://:25",
        "http://hunter2",
        "smtp://hunter2 x",
    ] {
        let shown = problem(&format!("mail: {{ smtpUrl: '{url}' }}")).to_string();
        assert!(shown.contains("an smtp:// or smtps:// URL"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for from in ["a@b", "Postrider <no-reply@postrider.example>"] {
        assert_eq!(
            load_yaml(&format!("mail: {{ from: '{from}' }}"))
                .unwrap()
                .mail
                .from,
            from
        );
    }
    for from in [
        "",
        "postrider",
        "@b",
        "a@",
        "Postrider <a@b",
        "\"a@b\\nBcc: c@d\"",
    ] {
        let yaml = if from.starts_with('"') {
            format!("mail: {{ from: {from} }}")
        } else {
            format!("mail: {{ from: '{from}' }}")
        };
        assert_eq!(problem(&yaml).subject, "mail.from", "{from:?}");
    }
}

#[test]
fn limits_that_contradict_each_other_are_told_with_their_numbers() {
    for (yaml, told) in [
        (
            "delivery: { timeoutMillis: 5000, maxTimeoutMillis: 4000 }",
            "reseller.delivery.timeoutMillis (5000) must be at most reseller.delivery.maxTimeoutMillis (4000)",
        ),
        (
            "retry: { initialDelayInSeconds: 20, maxDelayInSeconds: 10 }",
            "reseller.retry.initialDelayInSeconds (20) must be at most reseller.retry.maxDelayInSeconds (10)",
        ),
        (
            "health: { degradedAfterInHours: 120 }",
            "reseller.health.degradedAfterInHours (120) must be less than reseller.health.deactivatedAfterInHours (120)",
        ),
        (
            "health: { evidenceAfterInHours: 49 }",
            "reseller.health.evidenceAfterInHours (49) must be at most reseller.health.degradedAfterInHours (48)",
        ),
        ("event: { maxDataBytes: 1048576 }", "(1048576 + 4096 = 1052672)"),
        (
            &format!("secrets: {{ previousKeys: ['{KEY}'] }}"),
            "reseller.secrets.previousKeys needs reseller.secrets.key",
        ),
    ] {
        let problem = problem(&format!("reseller: {{ {yaml} }}"));
        assert!(rule_of(&problem).contains(told), "{problem}");
    }
    load_yaml("reseller: { health: { degradedAfterInHours: 12, evidenceAfterInHours: 12 } }").unwrap();
    load_yaml("reseller: { delivery: { timeoutMillis: 30000 } }").unwrap();
}

#[test]
fn what_waits_ends_before_its_month_is_past_its_retention() {
    let months = |days: u32, months: u32| {
        format!(
            "push: {{ partitions: {{ retentionMonths: {months} }} }}\nreseller: {{ delivery: {{ maxAgeInDays: {days} }} }}\n"
        )
    };
    for (days, kept) in [(27, 1), (55, 2), (365, 14)] {
        load_yaml(&months(days, kept)).unwrap();
    }
    let problem = problem(&months(28, 1));
    let told = "reseller.delivery.maxAgeInDays (28) must be less than push.partitions.retentionMonths in days (1 * 28 = 28)";
    assert!(rule_of(&problem).contains(told), "{problem}");
    load_yaml("push: { partitions: { retentionMonths: 1 } }").unwrap_err();
}

#[test]
fn documentation_is_in_a_folder_with_an_absolute_path_or_nowhere() {
    let told = |yaml: &str| load_yaml(yaml).map(|config| config.portal.docs_directory);
    assert_eq!(config::load(&complete()).unwrap().portal.docs_directory, None);
    assert_eq!(
        told("portal: { docsDirectory: /usr/share/postrider/docs }").unwrap(),
        Some("/usr/share/postrider/docs".into())
    );
    let problem = problem("portal: { docsDirectory: docs/site }");
    assert_eq!(problem.subject, "portal.docsDirectory");
}

#[test]
fn what_a_slip_would_open_is_refused_unless_it_is_meant() {
    for network in [
        "0.0.0.0/0",
        "::/0",
        "10.0.0.0/7",
        "169.254.0.0/16",
        "169.254.169.254",
    ] {
        let yaml = |wide: &str| format!("reseller: {{ egress: {{ allowNetworks: ['{network}']{wide} }} }}");
        let shown = problem(&yaml("")).to_string();
        assert!(shown.contains("reseller.egress.allowWideNetworks"), "{shown}");
        load_yaml(&yaml(", allowWideNetworks: true")).unwrap();
    }
    load_yaml("reseller: { egress: { allowNetworks: ['10.0.0.0/8', 'fd00::/8'] } }").unwrap();
}

#[test]
fn ports_are_single_or_ranges() {
    let ports = |yaml: &str| {
        let config = load_yaml(&format!("reseller: {{ egress: {{ allowPorts: {yaml} }} }}")).unwrap();
        config.reseller.egress.allow_ports
    };
    assert_eq!(ports("['443', '8000-8100']"), [443..=443, 8000..=8100]);
    assert_eq!(ports("'443, 1024-65535'"), [443..=443, 1024..=65535]);
    for wrong in ["['0']", "['9-8']", "['http']", "['1-70000']"] {
        problem(&format!("reseller: {{ egress: {{ allowPorts: {wrong} }} }}"));
    }
}

#[test]
fn everything_wrong_with_the_lane_is_listed_together() {
    let yaml = "
reseller:
  delivery: { timeoutMillis: 50 }
  quota: { timeZone: Mars, releaseWindowInMinutes: 1381 }
  egress: { allowHttp: perhaps }
  secrets: { key: short }
mail: { from: nobody }
portal: { listen: here }
";
    let found = problems(&complete().with_yaml("prod.yaml", yaml));
    let subjects: Vec<_> = found.iter().map(|problem| problem.subject.as_str()).collect();
    assert_eq!(
        subjects,
        [
            "portal.listen",
            "reseller.delivery.timeoutMillis",
            "reseller.quota.timeZone",
            "reseller.quota.releaseWindowInMinutes",
            "reseller.egress.allowHttp",
            "reseller.secrets.key",
            "mail.from",
        ],
        "{found:#?}"
    );
}
