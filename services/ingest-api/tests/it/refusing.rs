//! What is refused, and how the caller is told.

use domain::key::Role;
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::{Installation, eventually};
use tokio::io::AsyncWriteExt as _;
use uuid::Uuid;

use crate::running::{Running, make_key, problem, push, read_to_end, stored};

#[testkit::test]
async fn a_body_that_cannot_be_read_is_refused_with_the_place(it: Installation) {
    let service = Running::ready(&it).await;
    let cases = [
        (
            "{\"platform\": \"IOS\",\n \"message\": 5}",
            422,
            json!("message"),
            2,
        ),
        ("{\"platform\": [\"IOS\"]}", 422, json!("platform"), 1),
        ("{\n\"platform\" \"IOS\"}", 400, json!(""), 2),
        ("\"IOS\"", 422, json!(""), 1),
    ];
    for (body, status, field, line) in cases {
        let kind = if status == 400 {
            "malformed-body"
        } else {
            "validation"
        };
        let request = service.request("POST", "/push").bearer_auth(&service.key);
        let request = request.header("content-type", "application/json").body(body);
        let problem = problem(request.send().await.unwrap(), status, kind).await;
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["field"], &error["line"]),
            (&field, &json!(line)),
            "{problem}"
        );
        assert!(error["column"].is_u64(), "{problem}");
    }
    assert_eq!(stored(&it.pool).await, 0);
}

#[testkit::test]
async fn only_a_known_key_with_the_right_role_may_hand_in(it: Installation) {
    let service = Running::ready(&it).await;
    let unknown = domain::key::format_key(&[1; 32]);
    for authorization in [
        None,
        Some("Basic cHI6"),
        Some("Bearer pr_1"),
        Some(&*format!("Bearer {unknown}")),
    ] {
        let mut request = service.request("POST", "/push").json(&push());
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let answer = request.send().await.unwrap();
        let challenge = answer.headers()["www-authenticate"].to_str().unwrap().to_owned();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
        problem(answer, 401, "unauthorized").await;
    }
    for (role, expected) in [
        (Role::Viewer, StatusCode::FORBIDDEN),
        (Role::Operator, StatusCode::FORBIDDEN),
        (Role::Admin, StatusCode::ACCEPTED),
    ] {
        let (_, key) = make_key(&it.store, &[role]).await;
        let request = service.request("POST", "/push").bearer_auth(&key).json(&push());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), expected, "{role}");
        if expected == StatusCode::FORBIDDEN {
            problem(answer, 403, "forbidden").await;
        }
    }
    assert_eq!(stored(&it.pool).await, 1);
}

#[testkit::test]
async fn a_revoked_key_is_refused_as_soon_as_it_is_forgotten(it: Installation) {
    let service = Running::ready(&it).await;
    let (id, key) = make_key(&it.store, &[Role::Viewer]).await;
    let look = async || {
        let request = service
            .request("GET", &format!("/push/{}", Uuid::nil()))
            .bearer_auth(&key);
        request.send().await.unwrap().status()
    };
    assert_eq!(look().await, StatusCode::NOT_FOUND);
    let act = store::Act {
        by: "a test",
        note: None,
        at: chrono::DateTime::UNIX_EPOCH,
    };
    assert!(it.store.revoke_api_key(id, act).await.unwrap());
    eventually("the key to be refused", async || {
        (look().await == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
}

#[testkit::test]
async fn a_body_that_is_too_long_is_refused_however_it_is_framed(it: Installation) {
    let mut config = it.config.clone();
    config.ingest.max_body_bytes = 1000;
    let service = Running::start(&it, config).await;
    service.until_ready().await;
    let mut body = push();
    body["message"] = "x".repeat(2000).into();
    problem(service.post(&body).send().await.unwrap(), 413, "body-too-large").await;
    body["message"] = "x".repeat(300_000).into();
    problem(service.post(&body).send().await.unwrap(), 413, "body-too-large").await;

    let mut chunked = service.head("transfer-encoding: chunked").into_bytes();
    for _ in 0..20 {
        chunked.extend_from_slice(b"64\r\n");
        chunked.extend_from_slice(&[b' '; 100]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let answer = service.raw(&chunked).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(
        answer.contains("urn:postrider:problem:body-too-large"),
        "{answer}"
    );

    let answer = service
        .raw(
            service
                .head("content-length: 2000\r\nexpect: 100-continue")
                .as_bytes(),
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(stored(&it.pool).await, 0);
}

#[testkit::test]
async fn a_chunked_body_within_the_limit_is_accepted(it: Installation) {
    let service = Running::ready(&it).await;
    let mut chunked = service.head("transfer-encoding: chunked");
    for part in push().to_string().as_bytes().chunks(7) {
        let part = std::str::from_utf8(part).unwrap();
        chunked.push_str(&format!("{:x}\r\n{part}\r\n", part.len()));
    }
    chunked.push_str("0\r\n\r\n");
    let answer = service.raw(chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
}

#[testkit::test]
async fn a_body_that_does_not_come_is_not_waited_for(it: Installation) {
    let mut config = it.config.clone();
    // Not so short that the check of the key takes all of it.
    config.ingest.request_timeout = std::time::Duration::from_secs(4);
    let service = Running::start(&it, config).await;
    service.until_ready().await;
    let mut stream = service.connect().await;
    let head = service.head("content-length: 100");
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[testkit::test]
async fn a_body_that_is_not_declared_as_json_is_refused(it: Installation) {
    let service = Running::ready(&it).await;
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
    ] {
        let mut request = service
            .request("POST", "/push")
            .bearer_auth(&service.key)
            .body(push().to_string());
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        problem(request.send().await.unwrap(), 415, "unsupported-media-type").await;
    }
}

#[testkit::test]
async fn every_field_that_is_wrong_is_named(it: Installation) {
    let service = Running::ready(&it).await;
    let cases: [(&str, Value, &str); 12] = [
        ("platform", json!("BEOS"), "\"BEOS\""),
        ("platform", Value::Null, "is missing"),
        ("pushKey", Value::Null, "is missing"),
        ("pushKey", json!(""), "not blank"),
        ("pushKey", json!("x".repeat(257)), "257 bytes"),
        ("message", json!("  \n"), "not blank"),
        ("message", json!("x".repeat(4097)), "4097 bytes"),
        ("message", json!("a\u{0}b"), "U+0000"),
        ("messagePrototypeKey", json!("x".repeat(257)), "257 bytes"),
        ("cronExpression", json!("0 0 12"), "3 fields"),
        ("cronExpression", json!("0 61 * * * ?"), "column 3"),
        (
            "cronExpression",
            json!("0 0 12 1 1 ? 2020"),
            "no time from now on",
        ),
    ];
    for (field, value, expected) in cases {
        let mut body = push();
        body[field] = value;
        let problem = problem(service.post(&body).send().await.unwrap(), 422, "validation").await;
        let errors = problem["errors"].as_array().unwrap();
        assert_eq!(
            (errors.len(), &errors[0]["field"]),
            (1, &json!(field)),
            "{problem}"
        );
        assert!(
            errors[0]["detail"].as_str().unwrap().contains(expected),
            "{problem}"
        );
    }
    let problem = problem(service.post(&json!({})).send().await.unwrap(), 422, "validation").await;
    let fields: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["field"].clone())
        .collect();
    assert_eq!(fields, ["platform", "pushKey", "message"]);
    assert_eq!(stored(&it.pool).await, 0);
}

#[testkit::test]
async fn parameters_are_refused_where_none_is_taken(it: Installation) {
    let service = Running::ready(&it).await;
    for path in ["/push", "/events", "/events/batch"] {
        let request = service
            .request("POST", &format!("{path}?dryRun=true"))
            .bearer_auth(&service.key)
            .json(&push());
        let refused = problem(request.send().await.unwrap(), 400, "invalid-query").await;
        assert_eq!(refused["errors"][0]["field"], "dryRun", "{refused}");
    }
    let nothing = Uuid::nil();
    for path in [
        format!("/push/{nothing}"),
        format!("/events/{nothing}"),
        "/event-types".to_owned(),
        "/event-types/domain.created".to_owned(),
    ] {
        let path = format!("{path}?expand=1");
        let refused = problem(service.get(&path).send().await.unwrap(), 400, "invalid-query").await;
        assert_eq!(refused["errors"][0]["field"], "expand", "{refused}");
        let stranger = service.request("GET", &path).send().await.unwrap();
        problem(stranger, 401, "unauthorized").await;
    }
    assert_eq!(stored(&it.pool).await, 0);
}

/// A slip in the name of an optional field must not send at once what was to be sent later.
#[testkit::test]
async fn fields_that_are_not_known_are_refused_unless_the_caller_prefers_leniency(it: Installation) {
    let service = Running::ready(&it).await;
    let mut late = push();
    late["cronExpresion"] = json!("0 0 12 * * ? 2099");
    late["pushKey"] = json!(5);
    let refused = problem(service.post(&late).send().await.unwrap(), 422, "validation").await;
    let errors = refused["errors"].as_array().unwrap();
    let mut fields: Vec<_> = errors
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    fields.sort_unstable();
    assert_eq!(fields, ["cronExpresion", "pushKey"], "{refused}");
    let detail = "is no field of this request; did you mean cronExpression?";
    assert!(errors.iter().any(|error| error["detail"] == detail), "{refused}");
    for name in ["sendAt", "scheduled_at", "deliverAt", "scheduleAt", "when", "at"] {
        let mut timed = push();
        timed[name] = json!("2099-01-01T12:00:00Z");
        let refused = problem(service.post(&timed).send().await.unwrap(), 422, "validation").await;
        let error = &refused["errors"][0];
        assert_eq!(
            (&error["field"], &error["code"]),
            (&json!(name), &json!("unknown-field"))
        );
        let detail = error["detail"].as_str().unwrap();
        assert!(
            detail.contains("cronExpression") && detail.contains("time zone UTC"),
            "{detail}"
        );
        assert_eq!(
            error["params"]["didYouMean"],
            json!(["cronExpression"]),
            "{refused}"
        );
    }
    let event = json!({"resellerId": "acme", "type": "domain.created", "data": {}, "eventid": "e-1"});
    for (path, body, field) in [
        ("/events", event.clone(), "eventid"),
        ("/events/batch", json!({"events": [event]}), "events[0].eventid"),
    ] {
        let request = service
            .request("POST", path)
            .bearer_auth(&service.key)
            .json(&body);
        let refused = problem(request.send().await.unwrap(), 422, "validation").await;
        let named = refused["errors"]
            .as_array()
            .unwrap()
            .iter()
            .any(|error| error["field"] == field);
        assert!(named, "{refused}");
    }
    assert_eq!(stored(&it.pool).await, 0);

    late["pushKey"] = json!("k");
    let lenient = service.post(&late).header("prefer", "handling=lenient");
    assert_eq!(lenient.send().await.unwrap().status(), StatusCode::ACCEPTED);
    assert_eq!(stored(&it.pool).await, 1);
}

#[testkit::test]
async fn unknown_paths_and_methods_are_answered_with_problems(it: Installation) {
    let service = Running::ready(&it).await;
    for path in ["/", "/pushes", "/push/1/2", "/metrics"] {
        problem(service.get(path).send().await.unwrap(), 404, "not-found").await;
    }
    for (method, path, allowed) in [
        ("GET", "/push", "POST"),
        ("DELETE", "/push/0", "GET"),
        ("POST", "/docs", "GET"),
        ("POST", "/readyz", "GET"),
    ] {
        let answer = service.request(method, path).send().await.unwrap();
        let allow = answer.headers()["allow"].to_str().unwrap().to_owned();
        assert!(allow.contains(allowed), "{method} {path}: {allow}");
        problem(answer, 405, "method-not-allowed").await;
    }
}
