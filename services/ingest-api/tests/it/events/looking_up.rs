//! What `GET /events/{id}` tells.

use domain::key::Role;
use domain::notification::NotificationState;
use serde_json::{Value, json};
use testkit::Installation;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::events::{event, key_with};
use crate::running::{Running, problem};

#[testkit::test]
async fn every_state_of_a_notification_is_explained(it: Installation) {
    let service = Running::ready(&it).await;
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    for state in NotificationState::ALL {
        let made = NotificationRow::in_state(state, subscription)
            .make(&it.pool)
            .await;
        let view = service.look_up_event(made.event).await;
        let notification = &view["notifications"][0];
        assert_eq!(notification["id"], made.id.to_string());
        assert_eq!(notification["status"], state.status().as_str());
        assert!(
            notification["explanation"].as_str().unwrap().len() > 10,
            "{notification}"
        );
        assert!(notification["attempts"].is_u64());
        assert!(notification.get("data").is_none() && view.get("data").is_none());
    }
}

#[testkit::test]
async fn of_an_endpoint_only_the_origin_is_shown(it: Installation) {
    let service = Running::ready(&it).await;
    let row = SubscriptionRow::active().url("https://hooks.example:8443/in?token=hidden");
    let subscription = row.make(&it.pool).await;
    let made = NotificationRow::in_state(NotificationState::Sent, subscription)
        .make(&it.pool)
        .await;
    let view = service.look_up_event(made.event).await;
    assert_eq!(view["notifications"][0]["url"], "https://hooks.example:8443");
}

#[testkit::test]
async fn an_event_is_found_by_what_its_caller_called_it(it: Installation) {
    let service = Running::ready(&it).await;
    let mut named = event();
    named["eventId"] = json!("order-4711-created");
    let id = service.accepted_event(&named).await;
    let reseller = named["resellerId"].as_str().unwrap();
    let key = key_with(&it, Role::Ingest).await;
    let ask = async |query: &[(&str, &str)]| {
        let request = service.request("GET", "/events").bearer_auth(&key);
        request.query(query).send().await.unwrap()
    };
    let answer = ask(&[("resellerId", reseller), ("eventId", "order-4711-created")]).await;
    assert_eq!(answer.status(), 200);
    let found: Value = answer.json().await.unwrap();
    assert_eq!(found["id"], json!(id));
    assert_eq!(found, service.look_up_event(id).await);
    let unknown = ask(&[("resellerId", "other"), ("eventId", "order-4711-created")]).await;
    problem(unknown, 404, "not-found").await;
    let alone = problem(ask(&[("eventId", "order-4711")]).await, 400, "invalid-query").await;
    assert_eq!(
        alone["errors"],
        json!([{"field": "resellerId", "code": "missing", "detail": "is missing"}])
    );
    let none = problem(ask(&[]).await, 400, "invalid-query").await;
    assert_eq!(none["errors"].as_array().unwrap().len(), 2, "{none}");
}

#[testkit::test]
async fn only_roles_of_the_house_may_look(it: Installation) {
    let service = Running::ready(&it).await;
    let mut named = event();
    named["eventId"] = json!("order-4711");
    let id = service.accepted_event(&named).await;
    for path in [
        &format!("/events/{id}"),
        &format!(
            "/events?resellerId={}&eventId=order-4711",
            named["resellerId"].as_str().unwrap()
        ),
        "/event-types",
        "/event-types/domain.created",
    ] {
        for role in Role::ALL {
            let key = key_with(&it, role).await;
            let answer = service
                .request("GET", path)
                .bearer_auth(&key)
                .send()
                .await
                .unwrap();
            let expected = if role.may_read() { 200 } else { 403 };
            assert_eq!(answer.status().as_u16(), expected, "{role} {path}");
        }
        problem(
            service.request("GET", path).send().await.unwrap(),
            401,
            "unauthorized",
        )
        .await;
    }
}

#[testkit::test]
async fn an_event_that_became_nothing_shows_whom_it_missed_and_why(it: Installation) {
    let service = Running::ready(&it).await;
    let deaf = SubscriptionRow::active().event_types(&["domain.*"]);
    let deaf = deaf.paused().make(&it.pool).await;
    let id = service.accepted_event(&event()).await;
    let view = service.look_up_event(id).await;
    assert_eq!(view["notifications"], json!([]));
    let explanation = "Got nothing of it: its filter did not let the type through (it was also paused, which alone \
                       misses nothing).";
    let missed = json!([{
        "subscriptionId": deaf, "reasons": ["FILTER"], "paused": true, "explanation": explanation,
    }]);
    assert_eq!(view["missed"], missed);
    SubscriptionRow::active().make(&it.pool).await;
    let id = service.accepted_event(&event()).await;
    assert_eq!(service.look_up_event(id).await["missed"], Value::Null);
}

#[testkit::test]
async fn what_does_not_exist_is_not_found_whatever_its_form(it: Installation) {
    let service = Running::ready(&it).await;
    for id in [
        &Uuid::now_v7().to_string(),
        &Uuid::nil().to_string(),
        "1",
        "..%2f",
    ] {
        let answer = service.get(&format!("/events/{id}")).send().await.unwrap();
        problem(answer, 404, "not-found").await;
    }
    // There is a path of this name, but only for handing in.
    let answer = service.get("/events/batch").send().await.unwrap();
    assert!([404, 405].contains(&answer.status().as_u16()));
}
