//! Seeing what a reseller sees, and who is in the dashboards of resellers.

use chrono::TimeDelta;
use domain::key::{KeyDigest, Role};
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::{Browser, HOSTILE, holds, shows_hostile};
use crate::rig::{Rig, fields, problem};

const LINKS: &str = "/resellers/acme/portal-links";

fn token_of(url: &str) -> &str {
    url.strip_prefix("https://dashboard.example/app/enter#t=")
        .unwrap()
}

/// Opens a link as the reseller portal does.
async fn open(rig: &Rig, token: &str) -> store::PortalVisit {
    let (link, visit) = (KeyDigest::of(token), KeyDigest::of(&format!("visit of {token}")));
    let used = rig.it.store.use_portal_link(&link, &visit, rig.now()).await;
    used.unwrap().unwrap()
}

#[testkit::test]
async fn an_operator_looks_and_does_nothing_else_for_an_hour(rig: &Rig) {
    let made = rig.act(LINKS, &json!({"note": "sees no deliveries"}), 201).await;
    assert_eq!(made["visitMinutes"], json!(60));
    let token = token_of(made["url"].as_str().unwrap());
    let visit = open(rig, token).await;
    assert_eq!(
        (visit.reseller_id.as_str(), visit.capabilities.len()),
        ("acme", 0)
    );
    assert_eq!(visit.ends_at, rig.now() + TimeDelta::minutes(60));
    assert_eq!(visit.person_name, "the operators of the platform");

    let log = rig.all("/audit?action=portal-link.create", 10).await;
    assert_eq!((log.len(), &log[0]["note"]), (1, &json!("sees no deliveries")));
    assert_eq!(log[0]["subject"], json!("reseller/acme"));
    assert!(!log[0].to_string().contains(token), "{log:?}");

    let links = rig.see("/portal-links?reseller=acme").await;
    assert_eq!(links["items"][0]["id"], made["id"]);
    assert_eq!(links["items"][0]["operator"], log[0]["actor"]);
    assert!(links["items"][0]["usedAt"].is_string());
    assert!(!links.to_string().contains("prl_"), "{links}");
    let visits = rig.see("/portal-visits").await;
    assert_eq!(visits["items"][0]["operator"], log[0]["actor"]);
    assert_eq!(rig.see("/portal-visits?reseller=other").await["items"], json!([]));
}

#[testkit::test]
async fn a_link_needs_a_note_and_a_reseller_that_can_be(rig: &Rig) {
    let silent = rig
        .refused("POST", LINKS, Some(&json!({"note": " "})), (422, "validation"))
        .await;
    assert_eq!(fields(&silent), ["note"]);
    let body = json!({"note": "why"});
    let path = "/resellers/a%00b/portal-links";
    rig.refused("POST", path, Some(&body), (404, "not-found")).await;
    assert_eq!(rig.all("/audit", 10).await, Vec::<Value>::new());
}

#[testkit::test]
async fn without_its_address_no_link_to_the_dashboard_is_made(pool: PgPool) {
    let rig = Rig::with(pool, |config| config.portal.public_url = None).await;
    let refused = rig
        .refused("POST", LINKS, Some(&json!({"note": "why"})), (409, "conflict"))
        .await;
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("portal.publicUrl is not set"), "{detail}");
}

#[testkit::test]
async fn an_administrator_ends_a_visit_to_a_dashboard(rig: &Rig) {
    let made = rig.act(LINKS, &json!({"note": "why"}), 201).await;
    let visit = open(rig, token_of(made["url"].as_str().unwrap())).await;
    let (admin, operator) = (
        Browser::of(rig, Role::Admin).await,
        Browser::with_key(rig, &rig.key).await,
    );
    let place = format!("/console/access/portal-visits/{}/end", visit.id);
    holds(
        &admin.see("/console/access").await,
        &[
            &place,
            "the operators of the platform",
            "Links to dashboards of resellers",
        ],
    );
    assert!(!operator.see("/console/access").await.contains(&place));
    operator.refused(&place, &[("note", "why")], 403).await;
    holds(&admin.see(&place).await, &["revoke the key that makes them"]);
    admin.refused(&place, &[], 422).await;

    let key = rig.key_of(Role::Admin).await;
    let path = format!("/portal-visits/{}?note=enough", visit.id);
    let end = async || {
        let request = rig.request("DELETE", &path).bearer_auth(&key);
        request.send().await.unwrap()
    };
    assert_eq!(end().await.status(), 204);
    problem(end().await, 404, "not-found").await;
    assert_eq!(rig.see("/portal-visits").await["items"], json!([]));
    let log = rig.all("/audit?action=portal-visit.end", 10).await;
    assert_eq!((log.len(), &log[0]["note"]), (1, &json!("enough")));
    admin.refused(&place, &[("note", "late")], 404).await;
}

#[testkit::test]
async fn an_operator_revokes_a_link_that_was_not_used_yet(rig: &Rig) {
    SubscriptionRow::active().make(&rig.it.pool).await;
    let made = async || rig.act(LINKS, &json!({"note": "why"}), 201).await;
    let (first, second) = (made().await, made().await);
    let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
    let place = format!("/console/portal-links/{}/revoke", id(&first));
    let operator = Browser::with_key(rig, &rig.key).await;
    let here = "/console/resellers/acme";
    let back = format!("href=\"{place}?back=%2Fconsole%2Fresellers%2Facme\"");
    holds(&operator.see(here).await, &["not used yet", &back]);
    holds(
        &operator.see("/console/access").await,
        &[&format!("href=\"{place}\"")],
    );
    let viewer = Browser::of(rig, Role::Viewer).await;
    let page = viewer.see(here).await;
    assert!(
        !page.contains(&place) && page.contains("needs the role operator"),
        "{page}"
    );
    viewer.refused(&place, &[("note", "why")], 403).await;
    operator.refused(&place, &[("note", " ")], 422).await;

    let (to, page) = operator
        .act(&place, &[("note", "sent to a list"), ("back", here)])
        .await;
    assert_eq!(to, here);
    holds(&page, &["The link is revoked."]);
    assert!(!page.contains(&format!("link-{}", id(&first))), "{page}");
    let (link, visit) = (
        KeyDigest::of(token_of(first["url"].as_str().unwrap())),
        KeyDigest::of("visit"),
    );
    let used = rig.it.store.use_portal_link(&link, &visit, rig.now()).await;
    assert_eq!(used.unwrap(), None);
    operator.refused(&place, &[("note", "again")], 404).await;

    open(rig, token_of(second["url"].as_str().unwrap())).await;
    let path = format!("/portal-links/{}?note=late", id(&second));
    rig.refused("DELETE", &path, None, (404, "not-found")).await;
    let log = rig.all("/audit?action=portal-link.revoke", 10).await;
    assert_eq!((log.len(), &log[0]["note"]), (1, &json!("sent to a list")));
    assert_eq!(log[0]["subject"], json!("reseller/acme"));
}

#[testkit::test]
async fn the_console_shows_a_link_once_on_the_page_that_answers_the_form(rig: &Rig) {
    SubscriptionRow::active().make(&rig.it.pool).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let place = "/console/resellers/acme/dashboard";
    holds(
        &operator.see("/console/resellers/acme").await,
        &["See its dashboard…", place],
    );
    holds(
        &operator.see(place).await,
        &["may look and change nothing", "required"],
    );
    operator.refused(place, &[("note", " ")], 422).await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    viewer.refused(place, &[("note", "why")], 403).await;

    let made = operator.post(place, &[("note", HOSTILE)]).await;
    assert_eq!(
        (made.status, made.header("cache-control")),
        (200, "no-store"),
        "{made:?}"
    );
    let (_, url) = made.html.split_once("id=\"made-link\">").unwrap();
    let token = token_of(url.split('<').next().unwrap()).to_owned();
    open(rig, &token).await;
    let access = operator.see("/console/access").await;
    assert!(!access.contains(&token), "a link is shown once");
    shows_hostile(&operator.see("/console/audit?action=portal-link.create").await);
}
