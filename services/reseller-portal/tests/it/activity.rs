//! Who did what, which states there were, which mails went out, and what the installation allows.

use chrono::{Days, TimeDelta};
use domain::key::KeyDigest;
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use store::NewPortalLink;
use store::webhook::NotificationsOf;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{Browser, entered};
use crate::portal::{Portal, answer, emails, fields, problem};

#[testkit::test]
async fn what_was_done_is_told_with_names_of_ones_own_and_without_those_of_the_house(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}");
    portal.done("POST", &format!("{path}/pause"), 200).await;
    portal.done("POST", &format!("{path}/resume"), 200).await;
    let act = store::Act {
        by: "ann (1)",
        note: Some("incident 17"),
        at: portal.now(),
    };
    let subscription = store::Pausable::Subscription(id);
    portal.store.pause(&subscription, act).await.unwrap();
    let stranger = portal.key_of("stranger").await;
    for limit in [1, 2, 50] {
        let told = portal.all("/activity", limit).await;
        let acts: Vec<(&str, &str)> = told
            .iter()
            .map(|act| (act["by"].as_str().unwrap(), act["action"].as_str().unwrap()))
            .filter(|(_, action)| action.starts_with("subscription."))
            .collect();
        assert_eq!(acts.len(), 3, "{told:#?}");
        assert_eq!(acts[0].0, "OPERATOR");
        assert_eq!(acts[1], ("YOU", "subscription.resume"));
        assert!(told.iter().all(|act| !act.to_string().contains("incident")));
    }
    let by = async |who: &str| {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("by", who)
            .finish();
        let told = portal
            .all(&format!("/activity?action=subscription&{query}"), 1)
            .await;
        let actions = told.iter().map(|act| act["action"].as_str().unwrap().to_owned());
        actions.collect::<Vec<_>>()
    };
    let own = ["subscription.resume", "subscription.pause"];
    let key = portal.see("/activity?by=YOU&limit=1").await["items"][0]["name"].clone();
    assert_eq!(by("OPERATOR").await, ["subscription.pause"]);
    assert_eq!(by("YOU").await, own);
    assert_eq!(by(key.as_str().unwrap()).await, own);
    let (plain, _) = key.as_str().unwrap().split_once(" (").unwrap();
    assert_eq!(by(plain).await, own);
    // What one of the operators did is not to be found out by the name.
    for unknown in ["ann%20(1)", "stranger", "%00@acme%3E"] {
        let problem = portal
            .refused(
                "GET",
                &format!("/activity?by={unknown}"),
                None,
                (400, "invalid-query"),
            )
            .await;
        assert_eq!(fields(&problem), ["by"], "{unknown}");
    }
    let told = portal.see("/activity?action=subscription.pause&limit=200").await;
    let own: Vec<&Value> = told["items"].as_array().unwrap().iter().collect();
    assert!(
        own.iter()
            .any(|act| act["by"] == "YOU" && act["subscriptionId"] == json!(id))
    );
    assert_eq!(portal.all("/activity?action=secret", 50).await.len(), 0);
    let foreign = portal.request("GET", "/activity").bearer_auth(&stranger);
    let foreign: Value = foreign.send().await.unwrap().json().await.unwrap();
    assert_eq!(foreign["items"], json!([]));
    for (unknown, said) in [
        ("Sub%00", "must be an action such as"),
        ("subscription.puase", "; did you mean subscription.pause"),
        (
            "nonsense",
            "There are actions on endpoint, notification, portal-link",
        ),
    ] {
        let address = format!("/activity?action={unknown}");
        let problem = portal
            .refused("GET", &address, None, (400, "invalid-query"))
            .await;
        assert_eq!(fields(&problem), ["action"], "{unknown}");
        assert!(problem.to_string().contains(said), "{problem}");
    }
    // The page names the subscription as long as there is one.
    let browser = entered(&portal, &["manage"]).await;
    let named = "acme.example/hook</a><br>";
    let page = browser.see("/app/activity?action=subscription").await;
    assert!(page.contains(named), "{page}");
    portal.done("DELETE", &path, 204).await;
    let page = browser.see("/app/activity?action=subscription").await;
    assert!(
        page.contains("a deleted subscription<br>") && !page.contains(named),
        "{page}"
    );
}

/// Cancels one notification each of these subscriptions, as an operator does.
async fn cancelled(portal: &Portal, of: &NotificationsOf, subscriptions: &[(Uuid, &str)]) {
    let mut ids = Vec::new();
    for (subscription, reseller) in subscriptions {
        let row = NotificationRow::in_state(NotificationState::Pending, *subscription).reseller(reseller);
        ids.push(row.make(&portal.pool).await.id.uuid());
    }
    let act = store::Act {
        by: "ann (1)",
        note: Some("incident 17"),
        at: portal.now(),
    };
    let chosen = json!({"status": "PENDING"});
    let many = portal.store.cancel_notifications(&ids, (of, None), chosen, act);
    assert_eq!(many.await.unwrap().cancelled, ids.len() as u64);
}

#[testkit::test]
async fn what_the_operators_cancelled_of_a_reseller_is_counted_for_it_alone(portal: Portal) {
    let own = SubscriptionRow::active().make(&portal.pool).await;
    let foreign = SubscriptionRow::active()
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    let told = async || {
        let acts = portal
            .all("/activity?by=OPERATOR&action=notification.cancel-many", 10)
            .await;
        assert!(acts.iter().all(|act| !act.to_string().contains("incident")));
        let act = acts.first().cloned().unwrap_or_default();
        (acts.len(), act["subscriptionId"].clone(), act["details"].clone())
    };
    // Of others alone.
    cancelled(&portal, &NotificationsOf::All, &[(foreign, "stranger")]).await;
    assert_eq!(told().await, (0, Value::Null, Value::Null));
    let of_both = [(own, "acme"), (foreign, "stranger"), (own, "acme")];
    cancelled(&portal, &NotificationsOf::All, &of_both).await;
    assert_eq!(told().await, (1, Value::Null, json!({"cancelled": 2})));
    let of_reseller = NotificationsOf::Reseller("acme".to_owned());
    cancelled(&portal, &of_reseller, &[(own, "acme")]).await;
    assert_eq!(told().await, (2, Value::Null, json!({"cancelled": 1})));
    cancelled(&portal, &NotificationsOf::Subscription(own), &[(own, "acme")]).await;
    assert_eq!(told().await, (3, json!(own), json!({"cancelled": 1})));
    let page = entered(&portal, &[]).await.see("/app/activity").await;
    assert!(page.contains("2 of your waiting notifications"), "{page}");
}

#[testkit::test]
async fn what_was_done_in_a_visit_is_told_after_its_end(portal: Portal) {
    entered(&portal, &[]).await;
    let begun = async || portal.all("/activity?action=portal-visit.begin", 50).await;
    let during = begun().await;
    assert_eq!(
        (&during[0]["by"], &during[0]["name"]),
        (&json!("YOU"), &json!("Anna Ozola <user-17@acme>"))
    );
    portal.done("DELETE", "/visits", 200).await;
    assert_eq!(begun().await, during);
    let anna = portal
        .all(
            "/activity?action=portal-visit.begin&by=Anna%20Ozola%20%3Cuser-17@acme%3E",
            50,
        )
        .await;
    assert_eq!(anna, during);
    let stranger = portal.key_of("stranger").await;
    let foreign = portal.request("GET", "/activity").bearer_auth(&stranger);
    assert_eq!(
        answer(foreign.send().await.unwrap(), 200).await["items"],
        json!([])
    );
}

#[testkit::test]
async fn every_state_and_pause_is_remembered(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}");
    // Within one millisecond, and from a machine whose clock is behind: in the order in which they were made all the same.
    for act in ["pause", "resume", "deactivate"] {
        portal.done("POST", &format!("{path}/{act}"), 200).await;
        portal.clock.advance(TimeDelta::milliseconds(-300));
    }
    let states = portal.all(&format!("{path}/states"), 2).await;
    let told: Vec<(&str, bool)> = states
        .iter()
        .map(|entry| {
            (
                entry["state"].as_str().unwrap(),
                entry["paused"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("DEACTIVATED", false),
            ("ACTIVE", false),
            ("ACTIVE", true),
            ("ACTIVE", false)
        ]
    );
    assert_eq!(states[0]["stateReason"], "BY_RESELLER");
    let mails = portal.all("/mails", 1).await;
    assert_eq!(mails.len(), emails(&portal.pool).await.len());
    assert_eq!(
        (&mails[0]["kind"], &mails[0]["subscriptionId"]),
        (&json!("STATE_CHANGED"), &json!(id))
    );
    assert_eq!(mails[0]["status"], "PENDING");
    assert!(mails[0]["dueAt"].is_string(), "{}", mails[0]);
}

#[testkit::test]
async fn a_change_of_another_version_is_refused_with_both_of_them_named(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{id}");
    let etag = async || {
        let answer = portal.call("GET", &path).send().await.unwrap();
        answer.headers()["etag"].to_str().unwrap().to_owned()
    };
    let first = etag().await;
    portal.done("POST", &format!("{path}/pause"), 200).await;
    assert_eq!(etag().await, first, "a pause is no change of what can be changed");
    let change = async |of: &str, text: &str| {
        let request = portal.call("PATCH", &path).header("if-match", of);
        request.json(&json!({"description": text})).send().await.unwrap()
    };
    let changed = change(&first, "one").await;
    assert_eq!(changed.status(), 200);
    let second = changed.headers()["etag"].to_str().unwrap().to_owned();
    let stale = problem(change(&first, "two").await, 412, "changed-meanwhile").await;
    let detail = stale["detail"].as_str().unwrap();
    assert!(detail.contains(&first) && detail.contains(&second), "{detail}");
    assert_eq!(portal.see(&path).await["description"], "one");
    assert_eq!(change("*", "three").await.status(), 200);
    assert_eq!(change(&etag().await, "four").await.status(), 200);
    portal
        .sent("PATCH", &path, &json!({"description": "five"}), 200)
        .await;
}

#[testkit::test]
async fn days_of_a_quota_are_kept_and_the_end_of_today_is_foretold(portal: Portal) {
    let id = SubscriptionRow::active()
        .daily_quota(100)
        .make(&portal.pool)
        .await;
    let today = portal.now().date_naive();
    let yesterday = today - Days::new(1);
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, 70, 100)",
    )
    .bind(id)
    .bind(yesterday)
    .execute(&portal.pool)
    .await
    .unwrap();
    sqlx::query("UPDATE subscription_budgets SET day = $2, used = 100 WHERE subscription_id = $1")
        .bind(id)
        .bind(today)
        .execute(&portal.pool)
        .await
        .unwrap();
    let seen = portal.see(&format!("/subscriptions/{id}/quota/days")).await;
    let days = seen["days"].as_array().unwrap();
    assert_eq!(days.len(), 28);
    assert_eq!(
        days[26],
        json!({"day": yesterday, "used": 70, "quota": 100, "ended": 0})
    );
    assert_eq!(
        (&days[27]["used"], &seen["usedToday"]),
        (&json!(100), &json!(100))
    );
    assert_eq!(days[0]["used"], Value::Null);
    assert_eq!(seen["busiest"], 100);
    assert!(seen["usedUpAt"].is_null(), "{seen}");
}

#[testkit::test]
async fn limits_are_those_of_the_configuration(portal: Portal) {
    let limits = portal.see("/limits").await;
    assert_eq!(
        limits["subscriptions"],
        portal.config.reseller.subscription.maximum
    );
    assert_eq!(
        limits["dailyQuota"],
        portal.config.reseller.subscription.daily_quota
    );
    assert_eq!(
        limits["retries"]["SHORT"],
        portal.config.reseller.retry.max_retries
    );
    assert_eq!(
        (&limits["secrets"], &limits["notificationDays"]),
        (&json!(5), &json!(7))
    );
    assert_eq!(limits["ports"], json!(["443", "8443", "1024-65535"]));
}

#[testkit::test]
async fn a_look_at_a_secret_is_told_by_mail_and_an_overlap_can_be_chosen(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    sqlx::query(
        "INSERT INTO email_addresses (reseller_id, address, confirmed_at, created_at)
         SELECT reseller_id, lower(email), now(), now() FROM subscriptions WHERE id = $1
         ON CONFLICT (reseller_id, address) DO UPDATE SET confirmed_at = now()",
    )
    .bind(id)
    .execute(&portal.pool)
    .await
    .unwrap();
    let path = format!("/subscriptions/{id}/secrets");
    let first = portal.done("POST", &path, 201).await;
    let secret = first["id"].as_str().unwrap();
    let before = emails(&portal.pool).await.len();
    let seen = portal.see(&format!("{path}/{secret}")).await;
    assert_eq!(seen["secret"], first["secret"]);
    let told = emails(&portal.pool).await;
    assert!(
        told.iter()
            .any(|(_, _, data)| data.to_string().contains("SECRET_VIEWED")),
        "{before}: {told:?}"
    );
    portal.sent("POST", &path, &json!({"overlapHours": 1}), 201).await;
    let listed = portal.see(&path).await;
    let replaced = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == first["id"])
        .unwrap();
    let until: chrono::DateTime<chrono::Utc> = replaced["expiresAt"].as_str().unwrap().parse().unwrap();
    assert_eq!(until, portal.now() + TimeDelta::hours(1));
    portal
        .refused(
            "POST",
            &path,
            Some(&json!({"overlapHours": 169})),
            (422, "validation"),
        )
        .await;
}

#[testkit::test]
async fn a_test_event_can_be_of_any_type_and_variant_of_the_catalogue(portal: Portal) {
    let id = SubscriptionRow::in_state(SubscriptionState::Active)
        .make(&portal.pool)
        .await;
    let path = format!("/subscriptions/{id}/test");
    sqlx::query(
        "INSERT INTO event_types (name, description, attributes, example, variants, created_at, updated_at)
         VALUES ('domain.tested', 'x', '[]', '{\"domain\": \"a.example\"}',
                 '[{\"name\": \"other\", \"description\": \"x\", \"data\": {\"domain\": \"b.example\"}}]', now(), now())",
    )
    .execute(&portal.pool)
    .await
    .unwrap();
    let body = async |request: Value| {
        let sent = portal.sent("POST", &path, &request, 202).await;
        let id = sent["notificationId"].as_str().unwrap();
        portal.see(&format!("/notifications/{id}")).await["body"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(body(json!({"type": "domain.tested"})).await.contains("a.example"));
    assert!(
        body(json!({"type": "domain.tested", "variant": "other"}))
            .await
            .contains("b.example")
    );
    assert!(body(json!({})).await.contains("postrider.test"));
    for (wrong, field) in [
        (json!({"type": "domain.unknown"}), "type"),
        (json!({"variant": "other"}), "variant"),
        (json!({"type": "domain.tested", "variant": "none"}), "variant"),
    ] {
        let problem = portal
            .refused("POST", &path, Some(&wrong), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), [field]);
    }
    let near = json!({"type": "domain.teste"});
    let problem = portal
        .refused("POST", &path, Some(&near), (422, "validation"))
        .await;
    let detail = problem["errors"][0]["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("is \"domain.teste\",") && detail.contains("; did you mean domain.tested"),
        "{detail}"
    );
}

#[testkit::test]
async fn an_operator_who_looks_is_told_of_and_is_no_person_of_the_reseller(portal: Portal) {
    let ada = "ada <7f3a@https://id.example>";
    let now = portal.now();
    let link = NewPortalLink {
        id: Uuid::now_v7(),
        reseller_id: "acme".to_owned(),
        person_id: "operator".to_owned(),
        person_name: "the operators of the platform".to_owned(),
        capabilities: Vec::new(),
        key: None,
        operator: Some(ada.to_owned()),
        expires_at: now + TimeDelta::minutes(5),
        visit_minutes: 60,
        landing: "/app".to_owned(),
        parent_origin: None,
        return_url: None,
        theme: None,
        locale: None,
        time_zone: None,
        authenticated_at: None,
    };
    let act = store::Act {
        by: ada,
        note: Some("ticket 4711"),
        at: now,
    };
    let token = "prl_of_an_operator";
    let digest = KeyDigest::of(token);
    portal
        .store
        .create_portal_link(&link, &digest, act)
        .await
        .unwrap();
    let browser = Browser::new(&portal);
    browser.enter(token).await;
    browser.see("/app").await;
    let visits = portal.see("/visits").await;
    assert_eq!(visits["items"][0]["person"]["id"], json!("operator"));
    assert_eq!(visits["items"][0]["keyId"], json!(null));
    let told = portal.all("/activity?action=portal-link", 50).await;
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(
        (&told[0]["by"], &told[0]["name"], &told[0]["details"]),
        (&json!("OPERATOR"), &Value::Null, &Value::Null)
    );
    assert_eq!(portal.all("/activity?action=portal-visit", 50).await.len(), 0);
}
