//! Rules between keys, with the numbers in the message.

use config::{Fault, KeyLogin, Origin, Sources};

use crate::{complete, load_yaml, problem, problems, rule_of};

#[test]
fn portion_must_be_sent_before_the_next_execution() {
    for job in ["sendScheduled", "sendPending"] {
        let problem = problem(&format!("push:\n  job:\n    {job}:\n      portionSize: 250\n"));

        assert_eq!(problem.subject, format!("push.job.{job}.portionSize"));
        assert_eq!(
            problem.origin,
            Some(Origin::File {
                path: "prod.yaml".into(),
                line: 4
            })
        );
        assert!(
            rule_of(&problem).contains("(250 * 4 = 1000) must be less than"),
            "{problem}"
        );
        assert!(problem.mend.contains("to 249 or less"), "{problem}");

        load_yaml(&format!("push: {{ job: {{ {job}: {{ portionSize: 249 }} }} }}")).unwrap();
    }
}

#[test]
fn portion_must_be_smaller_than_the_queue() {
    let problems = problems(&complete().with_yaml("prod.yaml", "push: { queue: { capacity: 249 } }"));

    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        rule_of(&problems[0])
            .contains("push.job.sendScheduled.portionSize (249) must be less than push.queue.capacity (249)")
    );
    assert!(rule_of(&problems[1]).contains("push.job.sendPending.portionSize (249)"));
    load_yaml("push: { queue: { capacity: 250 } }").unwrap();
}

#[test]
fn average_processing_must_cover_one_delay() {
    let problem = problem(
        "swrve: { averageProcessingMillis: 5, delayMillis: 6 }\npush: { job: { sendScheduled: { portionSize: 9 }, sendPending: { portionSize: 9 } } }",
    );
    assert!(
        rule_of(&problem)
            .contains("swrve.averageProcessingMillis (5) must be at least swrve.delayMillis (6)")
    );
}

#[test]
fn leader_must_poll_faster_than_its_lease_runs_out() {
    let equal = problem("push: { leader: { ttlMillis: 500, pollMillis: 500 } }");
    assert!(
        rule_of(&equal)
            .contains("push.leader.pollMillis (500) must be less than push.leader.ttlMillis (500)")
    );

    let slow = problem("push: { leader: { ttlMillis: 4000, pollMillis: 501 } }");
    assert!(rule_of(&slow).contains("4000 + 2 * 501 = 5002"), "{slow}");
    load_yaml("push: { leader: { ttlMillis: 4000, pollMillis: 500 } }").unwrap();
}

#[test]
fn body_limit_must_leave_room_for_the_largest_push() {
    let problem = problem("ingest: { maxBodyBytes: 4096 }");
    assert!(rule_of(&problem).contains("(4096 + 256 = 4352)"), "{problem}");
}

#[test]
fn what_goes_to_a_collector_needs_one() {
    for key in ["otlpLogs", "otlpMetrics"] {
        let problem = problem(&format!("telemetry: {{ {key}: true }}"));
        assert_eq!(problem.subject, format!("telemetry.{key}"));
        assert!(
            rule_of(&problem).contains(&format!("telemetry.{key} needs telemetry.otlpEndpoint")),
            "{problem}"
        );

        load_yaml(&format!(
            "telemetry: {{ {key}: true, otlpEndpoint: 'http://localhost:4318' }}"
        ))
        .unwrap();
    }
}

#[test]
fn rule_over_a_key_that_is_wrong_by_itself_is_not_reported() {
    let problem = problem("push: { queue: { capacity: 1 } }");
    assert!(matches!(problem.fault, Fault::OutOfRange { .. }), "{problem}");
}

#[test]
fn an_installation_that_sends_notifications_has_to_publish_its_addresses() {
    let with = |yaml: String| complete().with_yaml("prod.yaml", yaml);
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let silent = with(format!("reseller: {{ secrets: {{ key: {key} }} }}"));
    let told = with(format!(
        "reseller: {{ sendingIps: [192.0.2.0/24], secrets: {{ key: {key} }} }}"
    ));
    config::load(&silent).unwrap();
    let errors = config::load_for_production(&silent).unwrap_err();
    let [problem] = errors.problems() else {
        panic!("{errors}")
    };
    assert_eq!(problem.subject, "reseller.sendingIps");
    config::load_for_production(&told).unwrap();
    // Pushes alone need none.
    config::load_for_production(&complete()).unwrap();
}

#[test]
fn the_average_response_time_of_swrve_is_told_when_it_is_set_although_the_rest_is_missing() {
    let nothing = Sources::default();
    assert_eq!(config::given_average_processing(&nothing).unwrap(), None);
    let with = |millis: &str| {
        nothing
            .clone()
            .with_variable("POSTRIDER__SWRVE__AVERAGE_PROCESSING_MILLIS", millis)
    };
    let two_seconds = Some(std::time::Duration::from_secs(2));
    assert_eq!(
        config::given_average_processing(&with("2000")).unwrap(),
        two_seconds
    );
    assert!(config::given_average_processing(&with("1")).is_err());
}

#[test]
fn a_provider_needs_all_that_a_sign_in_takes() {
    let oidc = |rest: &str| format!("operator: {{ {rest} }}");
    let issuer = "issuer: 'https://id.example/'";
    let all = format!(
        "publicUrl: 'https://here.example/', oidc: {{ {issuer}, clientId: postrider, roles: {{ operator: [on-call] }} }}"
    );
    let config = load_yaml(&oidc(&all)).unwrap();
    assert_eq!(config.operator.key_login(), KeyLogin::Emergency);
    // Providers compare it to the last slash, while ours has none.
    assert_eq!(
        config.operator.oidc.issuer.as_deref(),
        Some("https://id.example/")
    );
    assert_eq!(
        config.operator.public_url.as_deref(),
        Some("https://here.example")
    );
    assert_eq!(config.operator.oidc.roles_claim, "groups");

    for (without, part) in [
        ("clientId: postrider, ", "needs operator.oidc.clientId"),
        ("publicUrl: 'https://here.example/', ", "needs operator.publicUrl"),
        ("operator: [on-call]", "needs a value in operator.oidc.roles"),
    ] {
        let problem = problem(&oidc(&all.replace(without, "")));
        assert_eq!(problem.subject, "operator.oidc.issuer");
        assert!(rule_of(&problem).contains(part), "{problem}");
    }
    let said = load_yaml(&oidc(&format!("keyLogin: never, {all}"))).unwrap();
    assert_eq!(said.operator.key_login(), KeyLogin::Never);
}

#[test]
fn without_a_provider_keys_open_the_console() {
    assert_eq!(load_yaml("{}").unwrap().operator.key_login(), KeyLogin::Always);
    load_yaml("operator: { keyLogin: always }").unwrap();
    for other in ["emergency", "never"] {
        let problem = problem(&format!("operator: {{ keyLogin: {other} }}"));
        assert!(rule_of(&problem).contains("must be always without"), "{problem}");
    }
}

#[test]
fn a_trace_is_looked_at_where_its_address_says() {
    assert_eq!(load_yaml("{}").unwrap().operator.trace_at("0af7"), None);
    let with = |url: &str| format!("operator: {{ traceUrl: '{url}' }}");
    for bad in [
        "https://traces.example/trace/",
        "https://{trace}/trace",
        "traces.example/{trace}",
        "https:///{trace}",
        "https://traces.example/{trace} x",
    ] {
        let problem = problem(&with(bad));
        assert_eq!(problem.subject, "operator.traceUrl", "{bad}");
    }
    for (good, place) in [
        (
            "https://traces.example/trace/{trace}",
            "https://traces.example/trace/0af7",
        ),
        (
            "http://localhost:3000/explore?query={trace}#x",
            "http://localhost:3000/explore?query=0af7#x",
        ),
    ] {
        let config = load_yaml(&with(good)).unwrap();
        assert_eq!(config.operator.trace_at("0af7").as_deref(), Some(place));
    }
}

#[test]
fn browsers_reach_the_console_over_https_or_on_this_machine() {
    let with = |url: &str| format!("operator: {{ publicUrl: '{url}' }}");
    for bad in [
        "http://here.example",
        "http://10.0.0.1:8082",
        "here.example",
        "https://a@here.example",
    ] {
        let problem = problem(&with(bad));
        assert_eq!(problem.subject, "operator.publicUrl");
        assert!(
            problem
                .to_string()
                .contains("an https:// URL, or an http:// URL of this machine"),
            "{problem}"
        );
    }
    for (good, kept) in [
        ("https://here.example/", "https://here.example"),
        ("http://localhost:8082", "http://localhost:8082"),
        ("http://[::1]:8082", "http://[::1]:8082"),
    ] {
        let config = load_yaml(&with(good)).unwrap();
        assert_eq!(config.operator.public_url.as_deref(), Some(kept));
    }
}

#[test]
fn values_of_a_claim_are_plain_names_without_control_characters() {
    let with = |value: &str| format!("operator: {{ oidc: {{ roles: {{ operator: [{value}] }} }} }}");
    for bad in [r#""a\nb""#, r#""\0""#, r#""""#] {
        let problems = problems(&complete().with_yaml("prod.yaml", with(bad)));
        assert_eq!(
            problems[0].subject, "operator.oidc.roles.operator",
            "{bad}: {problems:?}"
        );
    }
    for name in ["{NULL}", "NULL", "{a,b}", "null"] {
        let config = load_yaml(&with(&format!("'{name}'"))).unwrap();
        assert_eq!(config.operator.oidc.roles.operator, [name]);
    }
}

#[test]
fn the_page_of_a_runbook_may_be_named_by_a_query_but_by_no_fragment() {
    let with = |url: &str| format!("operator: {{ runbookUrl: '{url}' }}");
    for bad in [
        "https://wiki.example/pages?pageId=7#top",
        "https://wiki.example/pages#top",
        "https://wiki.example/pages?pageId=7 8",
        "https://?pageId=7",
        "wiki.example?pageId=7",
    ] {
        let problem = problem(&with(bad));
        assert_eq!(problem.subject, "operator.runbookUrl", "{bad}");
    }
    for (good, kept) in [
        (
            "https://wiki.example/pages?pageId=7&path=/",
            "https://wiki.example/pages?pageId=7&path=/",
        ),
        ("https://wiki.example/runbook/", "https://wiki.example/runbook"),
    ] {
        let config = load_yaml(&with(good)).unwrap();
        assert_eq!(config.operator.runbook_url.as_deref(), Some(kept));
    }
}

#[test]
fn a_provider_is_asked_over_https_or_on_this_machine() {
    let with = |issuer: &str| format!("operator: {{ oidc: {{ issuer: '{issuer}' }} }}");
    for bad in [
        "http://id.example",
        "id.example",
        "https://",
        "https://a@id.example",
        "https://id.example?a=b",
        "http://127.0.0.1.example",
    ] {
        let problems = problems(&complete().with_yaml("prod.yaml", with(bad)));
        assert!(
            matches!(problems[0].fault, Fault::Unexpected { .. }),
            "{bad}: {problems:?}"
        );
    }
    for good in [
        "https://id.example/realms/house",
        "http://localhost:8080",
        "http://127.0.0.1",
        "http://[::1]:80/a",
    ] {
        let problems = problems(&complete().with_yaml("prod.yaml", with(good)));
        assert!(
            problems
                .iter()
                .all(|it| matches!(it.fault, Fault::RuleBroken { .. })),
            "{good}: {problems:?}"
        );
    }
}
