//! Making subscriptions, and reading them.

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::portal::{Portal, emails, fields, id_of, subscription};

#[testkit::test]
async fn a_new_subscription_waits_for_its_verification_and_shows_its_secret_once(portal: Portal) {
    let response = portal
        .call("POST", "/subscriptions")
        .json(&subscription())
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["cache-control"], "no-store");
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let mut created: Value = response.json().await.unwrap();
    let secret = created.as_object_mut().unwrap().remove("secret").unwrap();
    assert!(secret["secret"].as_str().unwrap().starts_with("whsec_"));
    assert_eq!(created["state"], "PENDING_VERIFICATION");
    assert_eq!(created["stateReason"], "CREATED");
    assert_eq!(created["verification"]["nextAttemptAt"], created["createdAt"]);
    assert_eq!(
        (&created["timeoutMillis"], &created["dailyQuota"]),
        (&json!(10_000), &json!(1_000_000))
    );
    assert_eq!(created["requestsPerSecond"], Value::Null);
    assert_eq!(
        portal.see(&location).await,
        created,
        "the same, without the secret"
    );
    assert_eq!(portal.see("/subscriptions").await["items"], json!([created]));
    let due: bool = sqlx::query_scalar("SELECT verification_due_at = $1 FROM subscriptions")
        .bind(portal.now())
        .fetch_one(&portal.pool)
        .await
        .unwrap();
    assert!(due);
    let kinds: Vec<_> = emails(&portal.pool)
        .await
        .into_iter()
        .map(|mail| mail.0)
        .collect();
    assert_eq!(
        kinds,
        ["ADDRESS_CONFIRMATION"],
        "a state that it was made in is no change"
    );
}

#[testkit::test]
async fn a_subscription_can_be_verified_later_and_says_how_it_is_retried(portal: Portal) {
    let mut wanted = subscription();
    for (field, value) in [
        ("verifyLater", json!(true)),
        ("retryPlan", json!("DAY")),
        ("retryClientErrors", json!(true)),
    ] {
        wanted[field] = value;
    }
    let created = portal.sent("POST", "/subscriptions", &wanted, 201).await;
    assert_eq!(created["state"], "PENDING_VERIFICATION");
    assert_eq!(created["verification"]["nextAttemptAt"], Value::Null);
    assert_eq!(
        (&created["retryPlan"], &created["retryClientErrors"]),
        (&json!("DAY"), &json!(true))
    );
    let path = format!("/subscriptions/{}/verify", id_of(&created));
    let asked = portal.sent("POST", &path, &json!({}), 200).await;
    assert!(asked["verification"]["nextAttemptAt"].is_string(), "{asked}");
    wanted["retryPlan"] = json!("WEEK");
    let problem = portal
        .refused("POST", "/subscriptions", Some(&wanted), (422, "validation"))
        .await;
    assert_eq!(fields(&problem), ["retryPlan"]);
}

#[testkit::test]
async fn everything_that_is_wrong_is_listed_at_once(portal: Portal) {
    let wrong = json!({
        "url": "ftp://reseller.example/",
        "eventTypes": ["domain.created", "dmain.*", "postrider.test", "Domain"],
        "email": "Ops <ops@reseller.example>",
        "description": "x".repeat(501),
        "timeoutMillis": 30_001,
        "dailyQuota": 5,
        "secret": "whsec_x",
    });
    let problem = portal
        .refused("POST", "/subscriptions", Some(&wrong), (422, "validation"))
        .await;
    let expected = [
        "url",
        "eventTypes[1]",
        "eventTypes[2]",
        "eventTypes[3]",
        "email",
        "description",
        "timeoutMillis",
        "dailyQuota",
        "secret",
    ];
    assert_eq!(fields(&problem), expected, "{problem}");
    let problem = portal
        .refused("POST", "/subscriptions", Some(&json!({})), (422, "validation"))
        .await;
    assert_eq!(fields(&problem), ["url", "eventTypes", "email"]);
    let none: i64 = sqlx::query_scalar("SELECT count(*) FROM subscriptions")
        .fetch_one(&portal.pool)
        .await
        .unwrap();
    assert_eq!(none, 0);
}

#[testkit::test]
async fn an_endpoint_that_may_not_be_dialled_is_refused(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| {
        config.reseller.egress.allow_http = false;
        config.reseller.egress.allow_networks.clear();
    })
    .await;
    let address = |kind: &str| json!({"kind": kind});
    let overlong = format!("https://reseller.example/{}", "\u{e4}".repeat(400));
    for (url, code, params) in [
        (
            "http://reseller.example/hooks",
            "url-scheme",
            json!({"scheme": "https"}),
        ),
        (
            "ftp://reseller.example/",
            "url-scheme",
            json!({"scheme": "https"}),
        ),
        (
            "https://user:s3cret@reseller.example/",
            "url-credentials",
            Value::Null,
        ),
        ("https://reseller.example/#s3cret", "url-fragment", Value::Null),
        ("https://reseller.example:22/", "url-port", json!({"port": 22})),
        ("https://reseller.example:0/", "url-port", json!({"port": 0})),
        ("https://10.0.0.1/hooks", "url-address", address("private")),
        ("https://127.0.0.1/hooks", "url-address", address("loopback")),
        (
            "https://169.254.169.254/latest/meta-data",
            "url-address",
            address("link-local"),
        ),
        ("https://[::ffff:10.0.0.1]/", "url-address", address("private")),
        ("https://0x0a.1/", "url-address", address("private")),
        ("not a url", "wrong-format", Value::Null),
        ("https://reseller..example/", "wrong-format", Value::Null),
        // It is short enough, and its normalised form is not.
        (overlong.as_str(), "too-long", json!({"max": 2048})),
    ] {
        let mut body = subscription();
        body["url"] = url.into();
        let problem = portal
            .refused("POST", "/subscriptions", Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), ["url"], "{url}: {problem}");
        let wrong = &problem["errors"][0];
        assert_eq!(
            (&wrong["code"], &wrong["params"]),
            (&json!(code), &params),
            "{url}"
        );
        assert!(!problem.to_string().contains("s3cret"), "{problem}");
    }
}

#[testkit::test]
async fn without_a_sealing_key_no_subscription_can_be_made(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.reseller.secrets.key = None).await;
    let problem = portal
        .refused(
            "POST",
            "/subscriptions",
            Some(&subscription()),
            (503, "unavailable"),
        )
        .await;
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("reseller.secrets.key"),
        "{problem}"
    );
}

#[testkit::test]
async fn bodies_that_cannot_be_read_are_refused(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.portal.max_body_bytes = 500).await;
    let post = |content_type: &str, body: String| {
        let request = portal
            .call("POST", "/subscriptions")
            .header("content-type", content_type);
        request.body(body).send()
    };
    for (content_type, body, status) in [
        ("application/json", "{\"url\":".to_owned(), 400),
        ("application/json", "[]".to_owned(), 422),
        ("application/json", "{\"url\": 5}".to_owned(), 422),
        ("text/plain", "{}".to_owned(), 415),
        ("application/json", " ".repeat(501), 413),
    ] {
        let answer = post(content_type, body.clone()).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{body}");
    }
}

#[testkit::test]
async fn subscriptions_are_listed_part_by_part(portal: Portal) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(id_of(&portal.created().await));
    }
    for limit in [1, 2, 5, 200] {
        let listed: Vec<_> = portal
            .all("/subscriptions", limit)
            .await
            .iter()
            .map(id_of)
            .collect();
        assert_eq!(listed.len(), 5, "{limit}");
        assert!(listed.is_sorted() && ids.iter().all(|id| listed.contains(id)));
    }
    for query in ["limit=0", "limit=201", "limit=x", "cursor=x", "order=asc"] {
        let path = format!("/subscriptions?{query}");
        portal.refused("GET", &path, None, (400, "invalid-query")).await;
    }
}

#[testkit::test]
async fn the_catalogue_is_shown_as_resellers_have_it_in_a_file(portal: Portal) {
    let types = portal.see("/event-types").await["items"]
        .as_array()
        .unwrap()
        .clone();
    let created = types
        .iter()
        .find(|it| it["name"] == "domain.created")
        .expect("it is seeded");
    assert_eq!(portal.see("/event-types/domain.created").await, *created);
    let file: Vec<Value> = serde_json::from_str(include_str!("../../../../sdks/catalogue.json")).unwrap();
    assert_eq!(types.len(), file.len());
    for (shown, said) in types.iter().zip(&file) {
        for (member, value) in said.as_object().unwrap() {
            assert_eq!(&shown[member], value, "{} {member}", said["name"]);
        }
    }
    for name in ["domain.unheard_of", "postrider.test", "%00", "%ff", "a%27b"] {
        let path = format!("/event-types/{name}");
        portal.refused("GET", &path, None, (404, "not-found")).await;
    }
}
