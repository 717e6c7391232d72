//! Which role a person has by the claim of the ID token, and for how long.

use domain::key::Role;
use serde_json::json;
use sqlx::PgPool;
use url::form_urlencoded;

use super::{JOBS, entries, is_refused, rig_with, sign_in, signed_in};
use crate::console::{Browser, HOSTILE, holds, shows_hostile};
use crate::provider::Provider;
use crate::rig::Rig;

#[testkit::test]
async fn the_highest_role_of_the_claim_counts(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let page = Browser::new(&rig)
        .see("/console/sign-in?next=/console/jobs")
        .await;
    holds(
        &page,
        &[
            "Sign in with 127.0.0.1",
            "/console/sign-in/start?next=%2Fconsole%2Fjobs",
        ],
    );
    assert!(!page.contains("type=\"password\""), "{page}");

    for (groups, role) in [
        (json!(["everyone", "support"]), "viewer"),
        (json!("on-call"), "operator"),
        (json!(["support", "engineers"]), "operator"),
        (json!(["support", "leads", "on-call"]), "admin"),
    ] {
        provider.change(|mood| mood.claims["groups"] = groups);
        let browser = Browser::new(&rig);
        let answer = sign_in(&browser, &provider).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, JOBS),
            "{answer:?}"
        );
        holds(&browser.see(JOBS).await, &["Ada Lovelace", role]);
    }
    let log = entries(&rig, "visit.begin").await;
    assert_eq!(log.len(), 4);
    let who = format!("Ada Lovelace <7f3a@{}>", provider.issuer());
    assert_eq!(
        (&log[0]["actor"], &log[0]["details"]["role"]),
        (&json!(who), &json!("admin"))
    );
    assert_eq!(rig.all("/audit?actor=Ada%20Lovelace", 10).await.len(), 4);
}

#[testkit::test]
async fn what_a_person_may_is_what_the_role_may(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let viewer = signed_in(&rig, &provider, "support").await;
    let fields = [("note", "a test"), ("name", "push")];
    let page = viewer.refused("/console/lanes/push/pause", &fields, 403).await;
    holds(&page, &["needs operator or admin", "your roles"]);

    let operator = signed_in(&rig, &provider, "on-call").await;
    operator.act("/console/lanes/push/pause", &fields).await;
    let log = entries(&rig, "lane.pause").await;
    assert!(
        log[0]["actor"]
            .as_str()
            .unwrap()
            .starts_with("Ada Lovelace <7f3a@"),
        "{log:?}"
    );
    operator.post("/console/sign-out", &[]).await;
    assert_eq!(operator.get(JOBS).await.status, 303);
}

#[testkit::test]
async fn without_a_role_a_page_says_what_was_in_the_claim(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let hostile = HOSTILE.split(" hx-").next().unwrap();
    provider.change(|mood| mood.claims = json!({"groups": ["everyone", hostile], "name": hostile}));
    let browser = Browser::new(&rig);
    let answer = sign_in(&browser, &provider).await;
    assert_eq!(answer.status, 403);
    shows_hostile(&answer.html);
    holds(
        &answer.html,
        &["<code>groups</code>", "everyone", "operator.oidc.roles"],
    );
    provider.change(|mood| mood.claims = json!({}));
    is_refused(&rig, &provider, 403, &["was empty or was not there"]).await;
    assert!(entries(&rig, "visit").await.is_empty());
}

#[testkit::test]
async fn an_administrator_ends_the_visits_of_a_person(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let ada = signed_in(&rig, &provider, "on-call").await;
    provider.change(|mood| mood.claims["sub"] = json!("other"));
    let other = signed_in(&rig, &provider, "on-call").await;
    let person = format!("7f3a@{}", provider.issuer());
    let end = async |key: &str, query: &[(&str, &str)]| {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(query)
            .finish();
        let request = rig.request("DELETE", &format!("/visits?{query}"));
        request.bearer_auth(key).send().await.unwrap()
    };
    assert_eq!(end(&rig.key, &[("person", &person)]).await.status(), 403);
    let admin = rig.key_of(Role::Admin).await;
    assert_eq!(end(&admin, &[]).await.status(), 422);
    assert_eq!(end(&admin, &[("person", "a\nb")]).await.status(), 422);
    let answer = end(&admin, &[("person", &person), ("note", "a test")]).await;
    let answer = crate::rig::answer(answer, 200).await;
    assert_eq!(answer, json!({"ended": 1}));
    assert_eq!(ada.get(JOBS).await.status, 303, "at once, where it was ended");
    assert_eq!(other.get(JOBS).await.status, 200);
    let log = entries(&rig, "visit.revoke").await;
    assert_eq!(
        (log.len(), &log[0]["subject"], &log[0]["note"]),
        (1, &json!(format!("person/{person}")), &json!("a test"))
    );
}

#[testkit::test]
async fn a_visit_ends_with_the_value_that_made_its_role(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    let browser = signed_in(&rig, &provider, "engineers").await;
    let granted: Vec<String> = sqlx::query_scalar("SELECT unnest(granted_by) FROM visits")
        .fetch_all(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(granted, ["engineers"]);
    // As if the configuration had another one since.
    sqlx::query("UPDATE visits SET granted_by = '{support}'")
        .execute(&rig.it.pool)
        .await
        .unwrap();
    crate::console::ended(&browser).await;
}

#[testkit::test]
async fn roles_are_plain_names_whatever_they_hold(pool: PgPool) {
    let provider = Provider::start().await;
    let rig = Rig::with(pool, |config| {
        provider.configure(config);
        config.operator.oidc.roles.operator = vec!["{NULL}".to_owned(), "on-call".to_owned()];
    })
    .await;
    provider.change(|mood| mood.clock = Some(rig.clock.clone()));
    let browser = signed_in(&rig, &provider, "{NULL}").await;
    holds(&browser.see(JOBS).await, &["operator"]);
    for other in [
        "NULL",
        "{on-call}",
        "on-call\u{0}",
        "on-call\n",
        "\u{202e}on-call",
        " on-call",
        "ON-CALL",
    ] {
        provider.change(|mood| mood.claims["groups"] = json!([other]));
        is_refused(&rig, &provider, 403, &["You have no role here"]).await;
    }
    provider.change(|mood| mood.claims["groups"] = json!({"on-call": null}));
    is_refused(&rig, &provider, 403, &["was empty or was not there"]).await;
}
