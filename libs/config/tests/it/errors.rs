//! Every kind of error, all of them at once, each with its mend.

use config::{Fault, Sources};

use crate::{complete, problem, problems};

#[test]
fn all_errors_are_listed_together() {
    let yaml = "
swrve:
  delayMillis: 2
  url: service.swrve.com
push:
  queue: { capacity: many }
  job:
    queue: { capacity: 5 }
    sendPending: { portionSize: 300 }
  timeZone: Europe/Rigga
telemetry:
  logFormat: xml
  sampleRatio: 2
ingest:
  listen: localhost:8080
";
    let sources = Sources::default()
        .with_yaml("prod.yaml", yaml)
        .with_variable("DATABASE_URL", "mysql://root:hunter2@127.0.0.1/postrider")
        .with_variable("POSTRIDER__SWRVE__DELAY_MILIS", "4")
        .with_variable("POSTRIDER__SWRVE__TEST", "maybe");
    let errors = config::load(&sources).unwrap_err();
    let shown = errors.to_string();

    insta::assert_snapshot!(shown);
    assert!(!shown.contains("hunter2"));
}

#[test]
fn wrong_types_say_what_was_found() {
    for (yaml, found) in [
        ("swrve: { delayMillis: '4' }", "the text \"4\""),
        ("swrve: { delayMillis: 4.5 }", "a number 4.5"),
        ("swrve: { delayMillis: }", "nothing"),
        ("swrve: { delayMillis: [4] }", "a list"),
        ("swrve: { delayMillis: { a: 1 } }", "a mapping"),
        ("swrve: { test: yes }", "the text \"yes\""),
        ("telemetry: { sampleRatio: all }", "the text \"all\""),
        (
            "telemetry: { logFilter: '=nonsense=' }",
            "the text \"=nonsense=\"",
        ),
        ("amqp: { queuePrefix: 'a b' }", "the text \"a b\""),
        ("portal: { publicUrl: 'https://' }", "the text \"https://\""),
        (
            "swrve: { url: 'https:/u:hunter2@swrve.example' }",
            "the text (not shown, it is a secret)",
        ),
    ] {
        match problem(yaml).fault {
            Fault::Unexpected { found: actual, .. } => assert_eq!(actual, found, "{yaml}"),
            other => panic!("{yaml}: {other:?}"),
        }
    }
}

#[test]
fn numbers_out_of_range_say_the_range() {
    for (yaml, found, range) in [
        ("push: { retry: { maxAttempts: 0 } }", "0", "1 to 1000"),
        ("push: { retry: { maxAttempts: -1 } }", "-1", "1 to 1000"),
        (
            "push: { retry: { maxAttempts: 18446744073709551615 } }",
            "18446744073709551615",
            "1 to 1000",
        ),
        ("swrve: { delayMillis: 3 }", "3", "milliseconds, 4 to 60000"),
        (
            "push: { leader: { ttlMillis: 4001 } }",
            "4001",
            "milliseconds, 100 to 4000",
        ),
        ("telemetry: { sampleRatio: 1.01 }", "1.01", "0 to 1"),
        ("operator: { maxBodyBytes: 1023 }", "1023", "1024 to 16777216"),
        (
            "operator: { requestTimeoutMillis: 9 }",
            "9",
            "milliseconds, 10 to 600000",
        ),
    ] {
        let expected = Fault::OutOfRange {
            found: found.to_owned(),
            range: range.to_owned(),
        };
        assert_eq!(problem(yaml).fault, expected, "{yaml}");
    }
}

#[test]
fn pace_limit_gives_its_reason() {
    assert!(problem("swrve: { delayMillis: 3 }").mend.contains("429"));
    assert!(
        problem("push: { leader: { ttlMillis: 5000 } }")
            .mend
            .contains("within 5 s")
    );
}

#[test]
fn unknown_key_suggests_the_nearest_one() {
    for (yaml, subject, suggestion) in [
        (
            "swrve: { delayMilis: 4 }",
            "swrve.delayMilis",
            "did you mean swrve.delayMillis?",
        ),
        (
            "push: { job: { queue: { capacity: 5 } } }",
            "push.job.queue.capacity",
            "did you mean push.queue.capacity?",
        ),
        (
            "swrve: { delay_millis: 4 }",
            "swrve.delay_millis",
            "did you mean swrve.delayMillis?",
        ),
        (
            "zebra: 1",
            "zebra",
            "remove it; config/default.yaml holds every key there is",
        ),
        (
            "push.queue.capacity: 5",
            "push.queue.capacity",
            "write it as nested sections, one name per line, without dots",
        ),
    ] {
        let problem = problem(yaml);
        assert_eq!(problem.fault, Fault::UnknownKey, "{yaml}");
        assert_eq!(
            (problem.subject.as_str(), problem.mend.as_str()),
            (subject, suggestion),
            "{yaml}"
        );
    }
}

#[test]
fn unknown_variable_suggests_the_nearest_one() {
    let problems = problems(
        &complete()
            .with_variable("POSTRIDER__SWRVE__DELAY_MILIS", "4")
            .with_variable("POSTRIDER__PUSH__JOB__QUEUE__CAPACITY", "4"),
    );
    let mends: Vec<_> = problems.iter().map(|problem| problem.mend.as_str()).collect();
    assert_eq!(
        mends,
        [
            "did you mean POSTRIDER__PUSH__QUEUE__CAPACITY, for push.queue.capacity?",
            "did you mean POSTRIDER__SWRVE__DELAY_MILLIS, for swrve.delayMillis?",
        ]
    );
}

#[test]
fn variable_for_a_section_is_unknown() {
    let problems = problems(&complete().with_variable("POSTRIDER__SWRVE", "{delayMillis: 5}"));
    assert_eq!(problems[0].fault, Fault::UnknownVariable);
}

#[test]
fn value_in_place_of_a_section_names_the_keys_below() {
    let problem = problem("push:\n  retry: 5");
    assert_eq!(problem.subject, "push.retry");
    assert!(problem.mend.ends_with("delayInSeconds, maxAttempts"), "{problem}");
}

#[test]
fn text_that_is_not_yaml_is_located_without_being_quoted() {
    let problem = problem("swrve:\n  delayMillis: 4\n  url: \"hunter2\n");
    match &problem.fault {
        Fault::Syntax { line, column, .. } => assert!(*line >= 3 && *column >= 1, "{problem}"),
        other => panic!("{other:?}"),
    }
    assert!(!problem.to_string().contains("hunter2"), "{problem}");
}

#[test]
fn key_given_twice_is_an_error() {
    let problem = problem("swrve:\n  delayMillis: 4\n  delayMillis: 5\n");
    assert!(
        matches!(problem.fault, Fault::Syntax { line: 3, .. }),
        "{problem}"
    );
}

#[test]
fn wrong_push_keys_are_located() {
    let yaml = "
swrve:
  messagePrototypePushKeys:
    Hello:
      IOS: { a: 1 }
      WINDOWS: hunter2
    Bye: hunter2
";
    let problems = problems(&complete().with_yaml("prod.yaml", yaml));
    let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 3, "{shown:#?}");
    assert!(
        shown[0].starts_with("swrve.messagePrototypePushKeys.'Hello'.IOS (prod.yaml:5)"),
        "{shown:#?}"
    );
    assert!(
        shown[1].starts_with("swrve.messagePrototypePushKeys.'Hello'.WINDOWS (prod.yaml:6)"),
        "{shown:#?}"
    );
    assert!(
        shown[2].starts_with("swrve.messagePrototypePushKeys.'Bye' (prod.yaml:7)"),
        "{shown:#?}"
    );
    assert!(!shown.concat().contains("hunter2"), "{shown:#?}");
}

#[test]
fn push_keys_that_are_no_mapping_are_an_error() {
    let problems = problems(&complete().with_variable(
        "POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS",
        "{Hello: {IOS: hunter2}",
    ));
    assert_eq!(problems.len(), 1);
    assert!(!problems[0].to_string().contains("hunter2"), "{}", problems[0]);
}
