use super::*;
use crate::script::Script;

fn arrival(event_type: &'static str, id: &'static str, arrivals: u32) -> Subject<'static> {
    Subject {
        event_type,
        id,
        path: "/hook",
        arrivals,
    }
}

fn script(json: &str) -> Script<Rule> {
    Script::new(parse_script(json.as_bytes()).unwrap())
}

#[test]
fn the_first_matching_rule_that_is_not_used_up_decides() {
    let mut script = script(
        r#"[{"match": {"type": "domain.created"}, "status": 503, "times": 2},
            {"match": {"type": {"prefix": "domain."}, "path": "/hook"}, "status": 400},
            {"match": {"path": "/other"}, "status": 500},
            {"status": 418, "times": 1}]"#,
    );
    let mut status = |event_type| {
        script
            .apply(|rule| rule.matching.matches(arrival(event_type, "1", 1)))
            .and_then(|rule| rule.status)
    };
    assert_eq!(status("domain.created"), Some(503));
    assert_eq!(status("domain.created"), Some(503));
    assert_eq!(status("domain.created"), Some(400));
    assert_eq!(status("contact.created"), Some(418));
    assert_eq!(status("contact.created"), None);
}

#[test]
fn the_first_arrivals_of_each_identifier_can_fail() {
    let mut script = script(r#"[{"match": {"firstArrivals": 2}, "status": 503}]"#);
    let mut fails = |id, arrivals| {
        script
            .apply(|rule| rule.matching.matches(arrival("x", id, arrivals)))
            .is_some()
    };
    assert!(fails("1", 1) && fails("2", 1) && fails("1", 2));
    assert!(!fails("1", 3));
}

#[test]
fn challenges_are_spared_unless_they_are_meant() {
    let mut all = script(r#"[{"hang": true}, {"match": {"path": "/hook"}, "drop": true}]"#);
    assert_eq!(
        all.apply(|rule| rule.matching.matches(arrival(CHALLENGE, "1", 1))),
        None
    );
    for wanted in [r#""postrider.verification""#, r#"{"prefix": ""}"#] {
        let mut meant = script(&format!(r#"[{{"match": {{"type": {wanted}}}, "status": 404}}]"#));
        assert!(
            meant
                .apply(|rule| rule.matching.matches(arrival(CHALLENGE, "1", 1)))
                .is_some(),
            "{wanted}"
        );
    }
}

#[test]
fn senseless_rules_are_named() {
    for (json, wanted) in [
        (r#"{"status": 199}"#, RuleError::Status(199)),
        (r#"{"status": 600}"#, RuleError::Status(600)),
        (
            r#"{"drop": true, "hang": true}"#,
            RuleError::Conflict("drop", "hang"),
        ),
        (
            r#"{"hang": true, "status": 500}"#,
            RuleError::Conflict("hang", "status"),
        ),
        (
            r#"{"drop": true, "body": "x"}"#,
            RuleError::Conflict("drop or hang", "an answer"),
        ),
        (
            r#"{"body": "x", "endless": true}"#,
            RuleError::Conflict("body", "endless"),
        ),
        (r#"{"byteMillis": 5}"#, RuleError::PaceOfNothing),
        (
            r#"{"headers": {"a b": "x"}}"#,
            RuleError::Header("a b".to_owned()),
        ),
        (r#"{"headers": {"a": "x\n"}}"#, RuleError::Header("a".to_owned())),
    ] {
        match parse_script(format!("[{{}}, {json}]").as_bytes()) {
            Err(ScriptError::Rule { number: 2, source }) => assert_eq!(source, wanted),
            other => panic!("{json}: {other:?}"),
        }
    }
}

#[test]
fn misspelt_fields_are_refused() {
    for json in [
        r#"[{"stauts": 503}]"#,
        r#"[{"match": {"typ": "x"}}]"#,
        r#"{"status": 503}"#,
        "[",
    ] {
        let read = parse_script(json.as_bytes());
        assert!(matches!(read, Err(ScriptError::Json(_))), "{json}");
    }
}
