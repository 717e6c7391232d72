//! Confirming the address of a subscription.

use serde_json::json;
use sqlx::PgPool;

use crate::app::{ALL, entered};
use crate::portal::{Portal, answer, emails, fields, id_of, problem};

#[testkit::test]
async fn an_address_is_confirmed_with_the_code_that_it_got(portal: Portal) {
    let created = portal.created().await;
    assert_eq!(created["emailConfirmedAt"], json!(null));
    let path = format!("/subscriptions/{}", id_of(&created));
    let (kind, recipient, data) = emails(&portal.pool).await.remove(0);
    assert_eq!(
        (&*kind, &*recipient),
        ("ADDRESS_CONFIRMATION", "ops@reseller.example")
    );
    assert_eq!(
        data.as_object().unwrap().len(),
        2,
        "nothing of the reseller's choice: {data}"
    );
    let confirm = format!("{path}/email/confirm");
    for wrong in [
        json!({"code": "0000000000"}),
        json!({}),
        json!({"code": "x".repeat(65)}),
    ] {
        let refused = portal
            .refused("POST", &confirm, Some(&wrong), (422, "validation"))
            .await;
        assert_eq!(fields(&refused), ["code"]);
    }
    let confirmed = portal
        .sent("POST", &confirm, &json!({"code": data["code"]}), 200)
        .await;
    assert_eq!(confirmed["emailConfirmedAt"], json!(portal.now()));
    let second = portal.created().await;
    assert_eq!(
        second["emailConfirmedAt"], confirmed["emailConfirmedAt"],
        "for every subscription with it"
    );
}

#[testkit::test]
async fn a_code_is_sent_again_three_times_a_day_at_most(portal: Portal) {
    let resend = format!("/subscriptions/{}/email/resend", id_of(&portal.created().await));
    for _ in 0..2 {
        portal.done("POST", &resend, 202).await;
    }
    let refused = portal.call("POST", &resend).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "86401");
    problem(refused, 429, "too-many-requests").await;
    assert_eq!(emails(&portal.pool).await.len(), 3);
}

#[testkit::test]
async fn where_addresses_are_trusted_none_is_asked(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.mail.confirm_addresses = false).await;
    let created = portal.created().await;
    assert_eq!(created["emailConfirmedAt"], created["createdAt"]);
    assert_eq!(emails(&portal.pool).await, []);
    let form = entered(&portal, &ALL).await.see("/app/subscriptions/new").await;
    assert!(!form.contains("gets a code first"), "{form}");
}

#[testkit::test]
async fn what_a_reseller_does_is_in_the_audit_log_and_no_secret_is(portal: Portal) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}", id_of(&created));
    let change = json!({"url": "https://other.example/?token=hush"});
    portal.sent("PATCH", &path, &change, 200).await;
    let made = portal.done("POST", &format!("{path}/secrets"), 201).await;
    let made = format!("{path}/secrets/{}", made["id"].as_str().unwrap());
    let first = format!("{path}/secrets/{}", created["secret"]["id"].as_str().unwrap());
    portal.done("DELETE", &first, 204).await;
    portal.refused("DELETE", &made, None, (409, "last-secret")).await;
    for (command, status) in [
        ("pause", 200),
        ("pause", 200),
        ("resume", 200),
        ("deactivate", 200),
    ] {
        let request = portal
            .call("POST", &format!("{path}/{command}"))
            .send()
            .await
            .unwrap();
        answer(request, status).await;
    }
    portal.done("DELETE", &path, 204).await;
    let log: Vec<(String, String, String, String)> =
        sqlx::query_as("SELECT actor, action, subject, details::text FROM audit_log ORDER BY id")
            .fetch_all(&portal.pool)
            .await
            .unwrap();
    let actions: Vec<_> = log.iter().map(|entry| &*entry.1).collect();
    assert_eq!(
        actions,
        [
            "subscription.create",
            "subscription.change",
            "secret.create",
            "secret.revoke",
            "subscription.pause",
            "subscription.resume",
            "subscription.deactivate",
            "subscription.delete",
        ]
    );
    for (actor, _, subject, details) in &log {
        assert!(actor.ends_with(')') && !actor.starts_with('('), "{actor}");
        assert_eq!(subject[..13], *"subscription/");
        assert!(
            !details.contains("whsec") && !details.contains("hush"),
            "{details}"
        );
    }
}
