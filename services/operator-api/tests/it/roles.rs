//! Who may do what, and what is refused to everybody: every operation of the OpenAPI document, so that none is forgotten.

use domain::key::Role;
use reqwest::{RequestBuilder, Response};
use testkit::key_of_the_reseller;

use crate::operations::{Operation, operations};
use crate::rig::{Rig, problem};

async fn refused(operation: &Operation, request: RequestBuilder, (status, name): (u16, &str)) -> Response {
    let response = request.send().await.unwrap();
    assert_eq!(
        response.status().as_u16(),
        status,
        "{operation}: {name} is expected"
    );
    response
}

async fn audit_entries(rig: &Rig) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM audit_log")
        .fetch_one(&rig.it.pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn only_keys_of_the_house_look_and_only_operators_and_administrators_act(rig: &Rig) {
    let reseller = key_of_the_reseller(&rig.it.store, "acme").await;
    let (ingest, viewer) = (rig.key_of(Role::Ingest).await, rig.key_of(Role::Viewer).await);
    let admin = rig.key_of(Role::Admin).await;
    let forbidden = (403, "forbidden");
    for operation in operations() {
        let request = || operation.request(rig, &operation.path);
        let response = refused(&operation, request(), (401, "unauthorized")).await;
        assert!(response.headers().contains_key("www-authenticate"), "{operation}");
        problem(response, 401, "unauthorized").await;
        for key in [&ingest, &reseller] {
            let response = refused(&operation, request().bearer_auth(key), forbidden).await;
            problem(response, 403, "forbidden").await;
        }
        if operation.changes() {
            refused(&operation, request().bearer_auth(&viewer), forbidden).await;
            if operation.is_of_administrators() {
                refused(&operation, request().bearer_auth(&rig.key), forbidden).await;
            }
            continue;
        }
        for key in [&viewer, &rig.key, &admin] {
            let status = request().bearer_auth(key).send().await.unwrap().status();
            assert!(![401, 403].contains(&status.as_u16()), "{operation}: {status}");
        }
    }
    assert_eq!(audit_entries(rig).await, 0, "nothing was done");
}

/// Whatever a stranger sends, the answer tells nothing of what is there.
#[testkit::test]
async fn who_asks_comes_before_what_is_asked(rig: &Rig) {
    for operation in operations() {
        let path = operation.malformed_path.as_ref().unwrap_or(&operation.path);
        let request = rig.request(&operation.method.to_uppercase(), &format!("{path}?nonsense=1"));
        refused(&operation, request.body("{"), (401, "unauthorized")).await;
    }
}

#[testkit::test]
async fn bodies_that_cannot_be_read_are_refused(rig: &Rig) {
    let bodies = [
        ("{", 400, "malformed-body"),
        ("[]", 422, "validation"),
        (r#"{"note": 5}"#, 422, "validation"),
        (r#"{"nonsense": true}"#, 422, "validation"),
    ];
    let admin = rig.key_of(Role::Admin).await;
    for operation in operations().iter().filter(|operation| operation.body.is_some()) {
        let send = || {
            let request = rig.request(&operation.method.to_uppercase(), &operation.path);
            request.bearer_auth(&admin)
        };
        for (body, status, name) in bodies {
            let request = send().header("content-type", "application/json").body(body);
            problem(refused(operation, request, (status, name)).await, status, name).await;
        }
        let undeclared = send().body(r#"{"note": "because"}"#);
        refused(operation, undeclared, (415, "unsupported-media-type")).await;
    }
    assert_eq!(audit_entries(rig).await, 0, "nothing was done");
}

#[testkit::test]
async fn what_does_not_exist_is_not_found(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    for operation in operations() {
        let unknown = operation
            .malformed_path
            .iter()
            .flat_map(|malformed| [&operation.path, malformed]);
        for path in unknown.chain(&operation.undecodable_path) {
            let request = operation.request(rig, path).bearer_auth(&admin);
            let response = refused(&operation, request, (404, "not-found")).await;
            problem(response, 404, "not-found").await;
        }
    }
    assert_eq!(audit_entries(rig).await, 0, "nothing was done");
}

#[testkit::test]
async fn parameters_that_mean_nothing_are_refused_by_their_name(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    for operation in operations().iter().filter(|it| !it.parameters.is_empty()) {
        let wrong = operation
            .parameters
            .iter()
            .filter_map(|name| match name.as_str() {
                "limit" => Some("limit=1000000"),
                "cursor" => Some("cursor=nonsense"),
                "since" => Some("since=yesterday"),
                "until" => Some("until=tomorrow"),
                _ => None,
            });
        for query in wrong.chain(["nonsense=1"]) {
            let path = format!("{}?{query}", operation.path);
            let request = operation.request(rig, &path).bearer_auth(&admin);
            let response = refused(operation, request, (400, query)).await;
            let problem = problem(response, 400, "invalid-query").await;
            let (name, _) = query.split_once('=').unwrap();
            assert!(
                problem["detail"].as_str().unwrap().contains(name),
                "{operation}: {problem}"
            );
        }
    }
}
