//! The pages of secrets and signatures.

use chrono::TimeDelta;
use domain::notification::NotificationState;
use serde_json::json;
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use uuid::Uuid;

use crate::app::{ALL, HOSTILE, entered, is_safe};
use crate::portal::{Portal, id_of};

#[testkit::test]
async fn a_secret_is_made_shown_for_a_while_and_revoked(portal: Portal) {
    let id = id_of(&portal.created().await);
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/secrets"));
    let page = browser.see(&path).await;
    assert!(
        page.contains("One secret signs every request") && !page.contains("whsec_"),
        "{page}"
    );
    assert!(page.contains("the last one without an end"), "{page}");
    let rotate = format!("{path}/rotate");
    let asked = browser.see(&rotate).await;
    assert!(asked.contains(r#"value="24""#), "{asked}");
    let wrong = [("secret", "hunter2"), ("overlapHours", "3")];
    let refused = browser.refused(&rotate, &wrong, 422).await;
    assert!(
        !refused.contains("hunter2") && refused.contains(r#"value="3""#),
        "{refused}"
    );
    browser.refused(&rotate, &[("overlapHours", "soon")], 422).await;
    let made = browser.post(&rotate, &[("overlapHours", "2")]).await;
    assert_eq!(made.status, 200, "{}", made.html);
    assert!(
        made.html.contains("whsec_") && made.header("cache-control").contains("no-store"),
        "{made:?}"
    );
    let page = browser.see(&path).await;
    assert!(
        page.contains("2 secrets sign every request") && !page.contains("whsec_"),
        "{page}"
    );
    let by = r#"data-label="By" class="wrap">Anna Ozola &#60;user-17@acme&#62;<"#;
    assert_eq!(page.matches(by).count(), 1, "{page}");
    let secrets = portal.see(&format!("/subscriptions/{id}/secrets")).await;
    // Both are of one instant of the clock, so that their order says nothing.
    let lasting = |lasts: bool| {
        let items = secrets["items"].as_array().unwrap();
        id_of(
            items
                .iter()
                .find(|secret| secret["expiresAt"].is_null() == lasts)
                .unwrap(),
        )
    };
    let (new, old) = (lasting(true), lasting(false));
    for secret in secrets["items"].as_array().unwrap() {
        let is_annas = secret["createdBy"] == "Anna Ozola <user-17@acme>";
        assert_eq!(is_annas, id_of(secret) == new, "{secret}");
        assert!(secret["createdBy"].is_string(), "{secret}");
    }
    let shown = browser.post(&format!("{path}/{new}/reveal"), &[]).await;
    assert_eq!(shown.status, 200, "{}", shown.html);
    assert!(shown.html.contains("whsec_"), "{}", shown.html);
    assert_eq!(shown.header("refresh"), format!("30;url={path}"));
    let revoke = format!("{path}/{old}/revoke");
    let asked = browser.see(&revoke).await;
    for said in ["This cannot be undone", "no delivery tells which of them"] {
        assert!(asked.contains(said), "{asked}");
    }
    let (_, page) = browser.act(&revoke, &[]).await;
    assert!(
        page.contains("Revoked") && page.contains("One secret signs every request"),
        "{page}"
    );
    let (_, last) = (browser.see(&path).await, format!("{path}/{new}/revoke"));
    browser.refused(&last, &[], 409).await;
    // A person who signed in too long ago sees none, and is told so before asking.
    let offered = "<button class=\"btn small\" aria-label=\"Show for 30 s";
    let page = browser.see(&path).await;
    assert!(page.contains(offered), "{page}");
    portal.clock.advance(TimeDelta::minutes(16));
    let page = browser.see(&path).await;
    assert!(
        !page.contains(offered) && page.contains("needs a sign-in of the last 15 minutes"),
        "{page}"
    );
    let stale = browser.refused(&format!("{path}/{new}/reveal"), &[], 403).await;
    assert!(!stale.contains("whsec_"), "{stale}");
}

#[testkit::test]
async fn an_installation_that_shows_no_secret_again_says_so(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| {
        config.reseller.secrets.allow_viewing = false;
        config.reseller.secrets.allow_choosing = false;
    })
    .await;
    let id = id_of(&portal.created().await);
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/s/{id}/secrets")).await;
    assert!(page.contains("do not let a secret be shown again"), "{page}");
    assert!(
        !browser
            .see(&format!("/app/s/{id}/secrets/rotate"))
            .await
            .contains("of your own")
    );
    portal.stop().await;
}

#[testkit::test]
async fn a_signature_is_checked_without_a_look_at_a_secret(portal: Portal) {
    let browser = entered(&portal, &[]).await;
    let path = "/app/tools/signature";
    assert!(browser.see(path).await.contains("You have no subscription"));
    let made = portal.created().await;
    let (id, secret) = (id_of(&made), made["secret"]["secret"].as_str().unwrap());
    let (now, body) = (portal.now().timestamp(), r#"{"a":1} "#);
    let key = signing::Secret::parse(secret).unwrap();
    let signature = signing::sign(&key, "event-17", now, body.as_bytes());
    let headers = format!("webhook-id: event-17\nwebhook-timestamp: {now}\nWebhook-Signature: {signature}");
    let id = id.to_string();
    let fields = |body| {
        [
            ("subscription", id.as_str()),
            ("headers", headers.as_str()),
            ("body", body),
        ]
    };
    let right = browser.post(path, &fields(body)).await;
    assert!(right.html.contains("The signature is right"), "{}", right.html);
    let wrong = browser.post(path, &fields(HOSTILE)).await;
    assert_eq!(wrong.status, 200, "{}", wrong.html);
    assert!(
        wrong.html.contains("not accepted") && !wrong.html.contains(secret),
        "{}",
        wrong.html
    );
    is_safe(&wrong.html);
    let empty = browser
        .refused(path, &[("subscription", &id), ("headers", "")], 422)
        .await;
    assert!(
        empty.contains("headers-error") && empty.contains("They must be lines such as"),
        "{empty}"
    );
    browser.refused(path, &[("subscription", "x")], 422).await;
    let other = Uuid::now_v7().to_string();
    browser
        .refused(
            path,
            &[
                ("subscription", &other),
                ("headers", "webhook-id: 1"),
                ("body", "x"),
            ],
            404,
        )
        .await;
}

#[testkit::test]
async fn refusals_are_counted_from_the_moment_at_which_the_secrets_changed(portal: Portal) {
    let id = id_of(&portal.created().await);
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/secrets"));
    // The first one was answered before, in the same hour.
    for (state, seconds) in [
        (NotificationState::Failed, 1),
        (NotificationState::Failed, 0),
        (NotificationState::Sent, 0),
    ] {
        let at = portal.now() - TimeDelta::seconds(seconds);
        let row = NotificationRow::in_state(state, id).created_at(at);
        row.make(&portal.pool).await;
    }
    sqlx::query("UPDATE delivery_attempts SET response_status = 401 WHERE status = 'ERROR'")
        .execute(&portal.pool)
        .await
        .unwrap();
    let page = browser.see(&path).await;
    let told = "50 % of the attempts since the secrets last changed were answered 401 or 403.";
    assert!(page.contains(told) && page.contains("1 of 2 since"), "{page}");
    let list = portal.see(&format!("/subscriptions/{id}/secrets")).await;
    let answers =
        json!({"since": list["items"][0]["createdAt"], "attempts": 2, "refused": 1, "ofNewest": null});
    assert_eq!(list["answers"], answers);
}

#[testkit::test]
async fn a_sixth_secret_is_not_offered(portal: Portal) {
    let id = id_of(&portal.created().await);
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/secrets"));
    let (offered, full) = (format!("{path}/rotate"), "5 are valid");
    let page = browser.see(&path).await;
    assert!(page.contains(&offered) && !page.contains(full), "{page}");
    for _ in 0..4 {
        portal
            .done("POST", &format!("/subscriptions/{id}/secrets"), 201)
            .await;
    }
    let page = browser.see(&path).await;
    assert!(page.contains(full) && !page.contains(&offered), "{page}");
}

#[testkit::test]
async fn who_made_a_subscription_made_its_first_secret(portal: Portal) {
    let id = id_of(&portal.created().await);
    let acts = portal.see("/activity?action=subscription").await;
    let name = acts["items"][0]["name"].as_str().unwrap().to_owned();
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/s/{id}/secrets")).await;
    let by = format!(r#"data-label="By" class="wrap">{name}<"#);
    assert!(page.contains(&by), "{by}: {page}");
}
