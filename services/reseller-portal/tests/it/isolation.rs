//! What belongs to a reseller does not exist for anybody else: on every route of the document, so that a new one cannot be
//! forgotten.

use chrono::TimeDelta;
use domain::key::Role;
use domain::notification::NotificationState;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::ApiKey;
use testkit::key_stored_as;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app;
use crate::portal::{Portal, id_of, subscription};

/// An operation of the document.
struct Operation {
    name: String,
    method: String,
    path: String,
    has_body: bool,
}

/// Every operation that needs a key; those that delete come last.
fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(reseller_portal::openapi()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["tags"][0] != "service" {
                operations.push(Operation {
                    name: operation["operationId"].as_str().unwrap().to_owned(),
                    method: method.to_uppercase(),
                    path: path.clone(),
                    has_body: operation["requestBody"].is_object(),
                });
            }
        }
    }
    assert!(operations.len() > 30);
    operations.sort_by_key(|operation| {
        (
            operation.method == "DELETE",
            matches!(operation.path.as_str(), "/subscriptions/{id}" | "/visits"),
        )
    });
    operations
}

impl Operation {
    /// A body that is accepted from every reseller.
    fn body(&self, portal: &Portal) -> Value {
        match self.name.as_str() {
            "createSubscription" => subscription(),
            "changeSubscription" => json!({"url": "https://elsewhere.example/", "description": "taken over"}),
            "rotateSecret" => json!({}),
            "requestQuota" => json!({"dailyQuota": 2_000_000, "reason": "x"}),
            "testSubscription" => json!({}),
            // The service itself, which knows no such path.
            "checkEndpoint" => json!({"url": format!("http://{}/hooks", portal.address)}),
            "checkSignature" => json!({"headers": {"webhook-id": "x"}, "body": "{}"}),
            "cancelNotifications" => json!({"status": "SCHEDULED"}),
            "resendNotifications" => json!({"statuses": ["SENT"]}),
            "createReplay" => json!({"since": portal.now() - TimeDelta::hours(1)}),
            "createPortalLink" => json!({"person": {"id": "mallory"}}),
            "confirmEmail" => json!({"code": "5F0C81A94D"}),
            other => panic!("{other} is new: say here what it takes"),
        }
    }

    fn request(&self, portal: &Portal, names: &Names, key: Option<&str>) -> RequestBuilder {
        let mut request = portal.request(&self.method, &names.fill(&self.path));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if self.has_body {
            request = request.json(&self.body(portal));
        }
        request
    }
}

/// What the parts of a path are filled with.
pub(crate) struct Names {
    pub(crate) subscription: Uuid,
    pub(crate) secret: Uuid,
    pub(crate) notification: Uuid,
    pub(crate) event: Uuid,
    pub(crate) replay: Uuid,
    pub(crate) quota_request: Uuid,
    pub(crate) visit: Uuid,
}

impl Names {
    fn of_nothing() -> Self {
        Self {
            subscription: Uuid::now_v7(),
            secret: Uuid::now_v7(),
            notification: Uuid::now_v7(),
            event: Uuid::now_v7(),
            replay: Uuid::now_v7(),
            quota_request: Uuid::now_v7(),
            visit: Uuid::now_v7(),
        }
    }

    fn fill(&self, path: &str) -> String {
        let id = match path.split('/').nth(1).unwrap() {
            "subscriptions" => self.subscription,
            "notifications" => self.notification,
            "events" => self.event,
            "event-types" | "overview" | "changes" | "limits" | "activity" | "mails" | "portal-links"
            | "endpoint-checks" => Uuid::nil(),
            "visits" => self.visit,
            other => panic!("/{other} is new: say here what its id names"),
        };
        self.parts(path, id)
    }

    /// The same of a page of the dashboard.
    pub(crate) fn page(&self, path: &str) -> String {
        let is_notification = path.starts_with("/app/n/");
        assert!(
            is_notification || path.starts_with("/app/s/") || !path.contains("{id}"),
            "{path} is new: say here what its id names"
        );
        let id = if is_notification {
            self.notification
        } else {
            self.subscription
        };
        self.parts(path, id)
    }

    fn parts(&self, path: &str, id: Uuid) -> String {
        let path = path
            .replace("{id}", &id.to_string())
            .replace("{secret}", &self.secret.to_string())
            .replace("{replay}", &self.replay.to_string())
            .replace("{request}", &self.quota_request.to_string())
            .replace("{name}", "domain.created");
        assert!(!path.contains('{'), "{path}: say here what its parts name");
        path
    }
}

/// One of everything, for acme.
pub(crate) async fn furnished(portal: &Portal) -> Names {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/subscriptions/{subscription}");
    let secret = portal.done("POST", &format!("{path}/secrets"), 201).await;
    let since = json!({"since": portal.now() - TimeDelta::hours(1)});
    let replay = portal.sent("POST", &format!("{path}/replays"), &since, 202).await;
    let more = json!({"dailyQuota": 2_000_000, "reason": "x"});
    let quota_request = portal
        .sent("POST", &format!("{path}/quota-requests"), &more, 201)
        .await;
    let notification = NotificationRow::in_state(NotificationState::Sent, subscription)
        .make(&portal.pool)
        .await;
    app::entered(portal, &[]).await;
    let visit = id_of(&portal.see("/visits").await["items"][0]);
    Names {
        visit,
        subscription,
        secret: id_of(&secret),
        notification: notification.id.uuid(),
        event: notification.event,
        replay: id_of(&replay),
        quota_request: id_of(&quota_request),
    }
}

/// Everything that is stored of acme.
pub(crate) async fn everything(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT t::text FROM subscriptions t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM signing_secrets t
                   WHERE subscription_id IN (SELECT id FROM subscriptions WHERE reseller_id = 'acme')
         UNION ALL SELECT t::text FROM quota_requests t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM replays t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM notifications t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM events t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM emails t
                   WHERE subscription_id IN (SELECT id FROM subscriptions WHERE reseller_id = 'acme')
         ORDER BY 1",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn answer_to(request: RequestBuilder) -> (u16, String) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[testkit::test]
async fn what_belongs_to_another_is_answered_as_what_does_not_exist(portal: Portal) {
    let (names, nothing) = (furnished(&portal).await, Names::of_nothing());
    let stranger = portal.key_of("stranger").await;
    let before = everything(&portal.pool).await;
    for operation in operations() {
        let foreign = answer_to(operation.request(&portal, &names, Some(&stranger))).await;
        let named = operation.path.contains("{id}");
        if named {
            let missing = answer_to(operation.request(&portal, &nothing, Some(&stranger))).await;
            assert_eq!(foreign, missing, "{}", operation.name);
            assert_eq!(foreign.0, 404, "{}: {}", operation.name, foreign.1);
        } else {
            assert!(
                (200..300).contains(&foreign.0),
                "{}: {}",
                operation.name,
                foreign.1
            );
        }
        for id in [
            names.subscription,
            names.secret,
            names.notification,
            names.event,
            names.replay,
            names.quota_request,
        ] {
            assert!(
                !foreign.1.contains(&id.to_string()),
                "{}: {}",
                operation.name,
                foreign.1
            );
        }
        assert!(!foreign.1.contains("acme"), "{}: {}", operation.name, foreign.1);
    }
    assert_eq!(everything(&portal.pool).await, before, "nothing was touched");
}

/// A secret or a replay below a subscription of one's own that belongs to a subscription of another reseller.
#[testkit::test]
async fn a_way_through_ones_own_subscription_leads_to_nothing_of_another_reseller(portal: Portal) {
    let names = furnished(&portal).await;
    let stranger = portal.key_of("stranger").await;
    let own = SubscriptionRow::active()
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    let before = everything(&portal.pool).await;
    let mixed = Names {
        subscription: own,
        ..names
    };
    let nested = operations();
    let nested: Vec<_> = nested
        .iter()
        .filter(|it| it.path.matches('{').count() > 1)
        .collect();
    assert!(nested.len() >= 3);
    for operation in nested {
        let (status, text) = answer_to(operation.request(&portal, &mixed, Some(&stranger))).await;
        assert_eq!(status, 404, "{}: {text}", operation.name);
    }
    assert_eq!(everything(&portal.pool).await, before);
}

/// Else the tests above would prove nothing: the same paths lead somewhere for their owner.
#[testkit::test]
async fn the_owner_finds_everything(portal: Portal) {
    let names = furnished(&portal).await;
    for operation in operations() {
        let (status, text) = answer_to(operation.request(&portal, &names, Some(&portal.key))).await;
        assert!(
            matches!(status, 200..300 | 409),
            "{}: {status} {text}",
            operation.name
        );
    }
}

/// What a key that only looks is refused although it is asked for with `GET`: signing secrets, and who visits the dashboard.
const NOT_FOR_VIEWERS: [&str; 2] = ["viewSecret", "listVisits"];
/// What it may send: what is asked with a body and leaves nothing behind.
const ASKED_WITH_A_BODY: [&str; 1] = ["checkSignature"];

#[testkit::test]
async fn a_key_that_only_looks_sees_what_the_reseller_has_and_changes_nothing(portal: Portal) {
    let names = furnished(&portal).await;
    let stored = ApiKey::new(
        "charts".to_owned(),
        vec![Role::ResellerViewer],
        Some("acme".to_owned()),
        portal.now(),
    );
    let looking = key_stored_as(&portal.store, &stored).await;
    let before = everything(&portal.pool).await;
    for operation in operations() {
        let name = operation.name.as_str();
        let may = match operation.method.as_str() {
            "GET" => !NOT_FOR_VIEWERS.contains(&name),
            _ => ASKED_WITH_A_BODY.contains(&name),
        };
        let expected = if may { 200 } else { 403 };
        let (status, text) = answer_to(operation.request(&portal, &names, Some(&looking))).await;
        assert_eq!(status, expected, "{name}: {text}");
    }
    assert_eq!(everything(&portal.pool).await, before, "nothing was touched");
    // Bodies are not left out, as they are in a visit that may not see them.
    let path = format!("/notifications/{}", names.notification);
    let asked = |key: &str| answer_to(portal.request("GET", &path).bearer_auth(key));
    assert_eq!(asked(&looking).await, asked(&portal.key).await);
}

#[testkit::test]
async fn keys_of_the_house_are_refused_and_so_are_strangers(portal: Portal) {
    let names = furnished(&portal).await;
    let before = everything(&portal.pool).await;
    let mut keys = Vec::new();
    for role in Role::OF_THE_HOUSE {
        keys.push((role, portal.house_key(role).await));
    }
    let unknown = domain::key::format_key(&[9; 32]);
    for operation in operations() {
        let embeds = matches!(operation.path.split('/').nth(1), Some("portal-links" | "visits"));
        for (role, key) in &keys {
            if *role == Role::Embedder && embeds {
                continue;
            }
            let (status, _) = answer_to(operation.request(&portal, &names, Some(key))).await;
            assert_eq!(status, 403, "{} with {role}", operation.name);
        }
        for key in [None, Some(unknown.as_str())] {
            let (status, _) = answer_to(operation.request(&portal, &names, key)).await;
            assert_eq!(status, 401, "{}", operation.name);
        }
    }
    assert_eq!(everything(&portal.pool).await, before, "nothing was touched");
}
