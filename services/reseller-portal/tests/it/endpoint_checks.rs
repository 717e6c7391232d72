//! Endpoints that are checked before there is a subscription.

use serde_json::{Value, json};
use simulators::receiver::{Options, Receiver, SecretFor};
use sqlx::PgPool;
use tokio::net::TcpListener;

use crate::app::{ALL, HOSTILE, entered};
use crate::portal::{Portal, fields, problem};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PATH: &str = "/endpoint-checks";

/// The steps with their results.
fn results(checked: &Value) -> Vec<(&str, &str)> {
    let result = |step: &'_ Value| assert_eq!(step["mend"].is_null(), step["result"] != "FAILED", "{step}");
    let steps = checked["steps"].as_array().unwrap();
    steps.iter().for_each(result);
    steps
        .iter()
        .map(|step| (step["step"].as_str().unwrap(), step["result"].as_str().unwrap()))
        .collect()
}

#[testkit::test]
async fn an_endpoint_is_checked_step_by_step(portal: Portal) {
    let options = Options {
        secrets: vec![SecretFor::everywhere(SECRET).unwrap()],
        ..Options::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let receiver = Receiver::start(listener, options).unwrap();
    let url = receiver.url("/hook");
    let check = async |body: Value| portal.sent("POST", PATH, &body, 200).await;

    let passed = check(json!({"url": url, "secret": SECRET})).await;
    assert_eq!((&passed["passed"], &passed["url"]), (&json!(true), &json!(url)));
    let all = ["NAME", "CONNECTION", "ANSWER", "CHALLENGE"].map(|step| (step, "PASSED"));
    assert_eq!(results(&passed), all, "no TLS over plain http");

    // It does not know the secret that the request is signed with.
    let refused = check(json!({"url": url})).await;
    assert_eq!(refused["passed"], false);
    assert_eq!(
        results(&refused)[2..],
        [("ANSWER", "FAILED"), ("CHALLENGE", "NOT_TRIED")]
    );
    assert!(
        refused["steps"][2]["mend"].as_str().unwrap().contains("secret"),
        "{refused}"
    );

    let no_tls = check(json!({"url": url.replace("http://", "https://")})).await;
    assert_eq!(
        results(&no_tls)[1..],
        [
            ("CONNECTION", "PASSED"),
            ("TLS", "FAILED"),
            ("ANSWER", "NOT_TRIED"),
            ("CHALLENGE", "NOT_TRIED")
        ]
    );

    let activity = portal.see("/activity?action=endpoint.check").await;
    let passed: Vec<&Value> = activity["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|act| &act["details"]["passed"])
        .collect();
    assert_eq!(passed, [false, false, true]);
    let charged: i64 = sqlx::query_scalar("SELECT count(*) FROM challenges")
        .fetch_one(&portal.pool)
        .await
        .unwrap();
    assert_eq!(charged, 0, "the network is one that was opened by hand");

    let page = entered(&portal, &ALL).await;
    let typed = [("url", url.as_str()), ("email", HOSTILE)];
    let answer = page.post("/app/subscriptions/new/check", &typed).await;
    assert_eq!(answer.status, 200, "{}", answer.html);
    assert!(answer.html.contains("not ready yet") && answer.html.contains(&format!("value=\"{url}\"")));
    assert!(!answer.html.contains("<script>alert"), "{}", answer.html);
    let inside = "in a network that the operators of the platform have opened";
    assert!(answer.html.contains(inside), "{}", answer.html);
    let secret_first = "made for this check alone";
    assert!(answer.html.contains(secret_first), "{}", answer.html);
    let unreached = url.replace("http://", "https://");
    let typed = [("url", unreached.as_str())];
    let answer = page.post("/app/subscriptions/new/check", &typed).await;
    assert!(
        answer.html.contains("not ready yet") && !answer.html.contains(secret_first),
        "{}",
        answer.html
    );
}

#[testkit::test]
async fn the_dashboard_checks_an_endpoint_with_a_secret_that_no_page_shows(portal: Portal) {
    let options = Options {
        secrets: vec![SecretFor::everywhere(SECRET).unwrap()],
        ..Options::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let receiver = Receiver::start(listener, options).unwrap();
    let url = receiver.url("/hook");
    let page = entered(&portal, &ALL).await;
    let typed = [("url", url.as_str()), ("secret", SECRET)];
    let answer = page.post("/app/subscriptions/new/check", &typed).await;
    assert!(
        answer.html.contains("The endpoint is ready") && answer.html.contains("the secret that you gave"),
        "{}",
        answer.html
    );
    let again = "Type it again now";
    assert!(answer.html.contains(again), "{}", answer.html);
    let fresh = page.see("/app/subscriptions/new").await;
    assert!(!fresh.contains(again), "{fresh}");
    assert!(!answer.html.contains(SECRET), "{}", answer.html);
    let other = SECRET.replace('M', "N");
    let typed = [("url", url.as_str()), ("secret", other.as_str())];
    let answer = page.post("/app/subscriptions/new/check", &typed).await;
    assert!(
        answer.html.contains("not ready yet") && !answer.html.contains("made for this check alone"),
        "{}",
        answer.html
    );
    let malformed = SECRET.trim_start_matches("whsec_");
    let typed = [("url", "http:"), ("secret", malformed)];
    let refused = page.refused("/app/subscriptions/new/check", &typed, 422).await;
    assert!(
        refused.contains("has to begin with whsec_") && refused.contains("id=\"url-error\""),
        "{refused}"
    );
    assert!(!refused.contains(malformed), "{refused}");
}

#[testkit::test]
async fn a_subscription_is_made_with_the_secret_that_its_endpoint_was_checked_with(portal: Portal) {
    let page = entered(&portal, &ALL).await;
    let typed = [
        ("url", "https://hooks.example/own"),
        ("email", "ops@hooks.example"),
        ("eventTypes", "*"),
        ("secret", SECRET),
    ];
    let made = page.post("/app/subscriptions/new", &typed).await;
    assert!(made.html.contains(SECRET), "{}", made.html);
    let repeating = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let typed = [
        ("url", "https://hooks.example/poor"),
        ("email", "ops@hooks.example"),
        ("eventTypes", "*"),
        ("secret", repeating),
    ];
    let refused = page.refused("/app/subscriptions/new", &typed, 422).await;
    assert!(
        refused.contains("repeat too much")
            && refused.contains("Type it again now")
            && !refused.contains(repeating),
        "{refused}"
    );
}

#[testkit::test]
async fn what_deliveries_refuse_is_not_checked_and_checks_have_a_limit(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| {
        config.reseller.egress.allow_http = false;
        config.reseller.egress.allow_networks.clear();
    })
    .await;
    let form = entered(&portal, &ALL).await.see("/app/subscriptions/new").await;
    let inside = "in a network that the operators of the platform have opened";
    assert!(!form.contains(inside), "{form}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for (body, field) in [
        (json!({}), "url"),
        (json!({"url": format!("https://127.0.0.1:{port}/")}), "url"),
        (json!({"url": format!("https://localhost:{port}/")}), "url"),
        (json!({"url": "http://hooks.example/"}), "url"),
        (json!({"url": "https://hooks.example:22/"}), "url"),
        (json!({"url": "https://hooks.example/", "secret": "x"}), "secret"),
    ] {
        let problem = portal
            .refused("POST", PATH, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), [field], "{body}");
    }
    // A reseller whose budget of checks is used up, which is less than that of challenges, is told when there is room again, and nothing is sent.
    sqlx::query(
        "INSERT INTO challenges (id, reseller_id, host, site, at)
         SELECT gen_random_uuid(), 'acme', 'h' || n || '.example', 'h' || n || '.example', now() - interval '1 minute' FROM generate_series(1, 10) n",
    )
    .execute(&portal.pool)
    .await
    .unwrap();
    let body = json!({"url": "https://192.0.9.1/"});
    let answer = portal.call("POST", PATH).json(&body).send().await.unwrap();
    assert!(answer.headers().contains_key("retry-after"));
    let told = problem(answer, 429, "too-many-requests").await;
    assert!(told["detail"].as_str().unwrap().contains("challenges"), "{told}");
    assert_eq!(
        portal.see("/activity?action=endpoint.check").await["items"],
        json!([])
    );
    portal.stop().await;
}
