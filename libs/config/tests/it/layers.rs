//! File over defaults, environment over file.

use std::time::Duration;

use config::{Fault, Origin, Sources};
use domain::push::Platform;

use crate::{complete, load_yaml, problems};

const FILE: &str = "
swrve:
  timeoutMillis: 5000
  messagePrototypePushKeys:
    'Hello':
      IOS: ios-hello
      ANDROID: android-hello
    'Good bye, v1.2':
      IOS: ios-bye
push:
  queue: # nothing set
";

#[test]
fn file_overrides_defaults_key_by_key() {
    let config = load_yaml(FILE).unwrap();

    assert_eq!(config.swrve.timeout, Duration::from_secs(5));
    assert_eq!(config.swrve.delay, Duration::from_millis(4));
    assert_eq!(config.push.queue.capacity, 10_000);
}

#[test]
fn environment_overrides_the_file() {
    let sources = complete()
        .with_yaml("prod.yaml", FILE)
        .with_variable("POSTRIDER__SWRVE__TIMEOUT_MILLIS", "6000")
        .with_variable("postrider__Push__Queue__CAPACITY", "20000")
        .with_variable("POSTRIDER__TELEMETRY__LOG_FILTER", "info,dispatcher=debug")
        .with_variable("POSTRIDER__TELEMETRY__SAMPLE_RATIO", "0.25")
        .with_variable("POSTRIDER__SWRVE__TEST", "true")
        .with_variable("POSTRIDER__AMQP__QUEUE_PREFIX", "17")
        .with_variable("POSTRIDER_CONFIG", "not ours to read here");
    let config = config::load(&sources).unwrap();

    assert_eq!(config.swrve.timeout, Duration::from_secs(6));
    assert_eq!(config.push.queue.capacity, 20_000);
    assert_eq!(config.telemetry.log_filter, "info,dispatcher=debug");
    assert!((config.telemetry.sample_ratio - 0.25).abs() < f64::EPSILON);
    assert!(config.swrve.test);
    assert_eq!(config.amqp.queue_prefix, "17");
}

#[test]
fn push_keys_are_found_by_prototype_and_platform() {
    let keys = load_yaml(FILE).unwrap().swrve.message_prototype_push_keys;

    assert_eq!(keys.len(), 2);
    assert_eq!(keys.find(Some("Hello"), Platform::Ios), Some("ios-hello"));
    assert_eq!(keys.find(Some("Hello"), Platform::Android), Some("android-hello"));
    assert_eq!(keys.find(Some("Good bye, v1.2"), Platform::Ios), Some("ios-bye"));
    assert_eq!(keys.find(Some("Good bye, v1.2"), Platform::Android), None);
    assert_eq!(keys.find(Some("hello"), Platform::Ios), None);
    assert_eq!(keys.find(None, Platform::Ios), None);
}

#[test]
fn push_keys_can_come_from_one_variable() {
    for value in [r#"{"Hello": {"IOS": "from-json"}}"#, "{Hello: {IOS: from-json}}"] {
        let sources = complete()
            .with_yaml("prod.yaml", FILE)
            .with_variable("POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS", value);
        let keys = config::load(&sources).unwrap().swrve.message_prototype_push_keys;

        assert_eq!(keys.len(), 1, "the variable replaces the whole mapping");
        assert_eq!(keys.find(Some("Hello"), Platform::Ios), Some("from-json"));
    }
}

#[test]
fn well_known_url_variables_fill_only_what_is_not_set() {
    let file = "database:\n  url: postgresql://file/db\namqp:\n  url: null\n";
    let config = load_yaml(file).unwrap();
    assert_eq!(config.database.url.expose(), "postgresql://file/db");
    assert_eq!(config.amqp.url.expose(), crate::AMQP_URL);

    let sources = complete().with_variable("POSTRIDER__DATABASE__URL", "postgres://variable/db #1");
    assert_eq!(
        config::load(&sources).unwrap().database.url.expose(),
        "postgres://variable/db #1"
    );
}

#[test]
fn empty_variable_counts_as_not_set() {
    let sources = complete()
        .with_variable("POSTRIDER__SWRVE__URL", "")
        .with_variable("DATABASE_URL", "");

    let problems = problems(&sources);

    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].subject, "database.url");
    assert_eq!(problems[0].fault, Fault::Missing);
}

#[test]
fn file_on_disk_is_read_and_a_missing_one_is_an_error() {
    let path = std::env::temp_dir().join(format!("postrider-config-{}.yaml", std::process::id()));
    std::fs::write(&path, "swrve: { timeoutMillis: 8000 }").unwrap();
    let config = config::load(&complete().with_file(&path)).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(config.swrve.timeout, Duration::from_secs(8));

    let problems = problems(&complete().with_file(&path));
    assert!(
        matches!(problems[0].fault, Fault::Unreadable { .. }),
        "{problems:?}"
    );
    assert_eq!(problems[0].subject, path.display().to_string());
}

#[test]
fn a_variable_that_ends_in_file_names_the_file_with_the_value() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let database = file("database", "postgres://of:file@host/db\n");
    let broker = file("broker", "amqp://of:file@host/%2f\r\n");
    let sources = Sources::default()
        .with_variable("DATABASE_URL_FILE", &database)
        .with_variable("POSTRIDER__AMQP__URL_FILE", &broker)
        .with_variable("AMQP_URL", crate::AMQP_URL)
        .with_variable("POSTRIDER__SWRVE__TIMEOUT_MILLIS_FILE", file("timeout", "8000\n"));

    let config = config::load(&sources).unwrap();

    assert_eq!(config.database.url.expose(), "postgres://of:file@host/db");
    assert_eq!(config.amqp.url.expose(), "amqp://of:file@host/%2f");
    assert_eq!(config.swrve.timeout, Duration::from_secs(8));
    assert!(
        config
            .redacted_yaml()
            .contains("environment variable POSTRIDER__AMQP__URL_FILE"),
        "{}",
        config.redacted_yaml()
    );
}

#[test]
fn a_file_of_a_variable_that_cannot_be_read_is_the_one_error() {
    for (variable, value) in [
        ("POSTRIDER__AMQP__URL_FILE", "/nowhere/amqp"),
        ("AMQP_URL_FILE", "/nowhere/amqp"),
    ] {
        let sources = Sources::default()
            .with_variable("DATABASE_URL", crate::DATABASE_URL)
            .with_variable(variable, value);

        let problems = problems(&sources);

        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].subject, format!("environment variable {variable}"));
        assert!(
            matches!(&problems[0].fault, Fault::Unreadable { message } if message.starts_with("/nowhere/amqp: ")),
            "{problems:?}"
        );
    }
}

#[test]
fn a_value_and_a_file_for_one_key_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeout");
    std::fs::write(&path, "8000").unwrap();

    let problems = problems(
        &complete()
            .with_variable("POSTRIDER__SWRVE__TIMEOUT_MILLIS", "7000")
            .with_variable(
                "POSTRIDER__SWRVE__TIMEOUT_MILLIS_FILE",
                path.display().to_string(),
            ),
    );

    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        matches!(problems[0].fault, Fault::Ambiguous { .. }),
        "{problems:?}"
    );
}

#[test]
fn two_variables_for_one_key_are_an_error() {
    let problems = problems(
        &complete()
            .with_variable("POSTRIDER__SWRVE__TIMEOUTMILLIS", "500")
            .with_variable("POSTRIDER__SWRVE__TIMEOUT_MILLIS", "600"),
    );

    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(matches!(problems[0].fault, Fault::Ambiguous { .. }));
}

#[test]
fn origin_names_file_and_line_or_variable() {
    let sources = complete()
        .with_yaml("prod.yaml", "swrve:\n  test: 1\n  delayMillis: fast\n")
        .with_variable("POSTRIDER__SWRVE__TIMEOUT_MILLIS", "soon");
    let problems = problems(&sources);
    let origins: Vec<_> = problems
        .iter()
        .map(|problem| (problem.subject.as_str(), problem.origin.clone()))
        .collect();

    let in_file = |line| {
        Some(Origin::File {
            path: "prod.yaml".into(),
            line,
        })
    };
    assert_eq!(
        origins,
        [
            ("swrve.delayMillis", in_file(3)),
            (
                "swrve.timeoutMillis",
                Some(Origin::Variable("POSTRIDER__SWRVE__TIMEOUT_MILLIS".to_owned()))
            ),
            ("swrve.test", in_file(2)),
        ]
    );
}

#[test]
fn sources_show_no_values() {
    let shown = format!("{:?}", complete().with_yaml("prod.yaml", FILE));
    assert!(
        !shown.contains("hunter2") && !shown.contains("ios-hello"),
        "{shown}"
    );
    assert!(format!("{:?}", Sources::default().with_variable("A", "b")).contains('A'));
}
