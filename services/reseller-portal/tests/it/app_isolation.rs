//! Pages and forms with what belongs to another reseller, and in visits that may do one thing alone: nothing is seen and nothing
//! changed. It is tried on every route of the dashboard, so that a new one cannot be forgotten.

use reseller_portal::pages;
use testkit::subscription_factory::SubscriptionRow;

use crate::app::{ALL, entered, entered_by};
use crate::isolation::{Names, everything, furnished};
use crate::portal::Portal;

/// What names something in a form, and what the forms that have it want beside.
fn fields(names: &Names) -> [(&'static str, String); 4] {
    [
        ("id", names.notification.to_string()),
        ("subscription", names.subscription.to_string()),
        ("headers", "webhook-id: x".to_owned()),
        ("body", "{}".to_owned()),
    ]
}

/// What a form needs of a visit; those that need nothing change nothing that is stored.
fn needed(path: &str) -> Option<&'static str> {
    match path {
        "/app/tools/signature" | "/app/preferences" => None,
        "/app/s/{id}/quota" | "/app/s/{id}/quota-requests/{request}/withdraw" => Some("quota"),
        "/app/s/{id}/secrets/{secret}/reveal" => Some("secrets.reveal"),
        "/app/deliveries/resend" | "/app/resend" | "/app/s/{id}/resend" | "/app/n/{id}/resend" => {
            Some("resend")
        }
        _ if path.starts_with("/app/s/{id}/secrets/") => Some("secrets.rotate"),
        "/app/s/{id}/retry-now" => Some("resend"),
        _ if path.starts_with("/app/s/{id}/replays/") => Some("resend"),
        _ => Some("manage"),
    }
}

#[testkit::test]
async fn pages_and_forms_show_and_change_nothing_of_another_reseller(portal: Portal) {
    let names = furnished(&portal).await;
    let key = portal.key_of("stranger").await;
    let stranger = entered_by(&portal, &key, &ALL).await;
    let before = everything(&portal.pool).await;
    let fields = fields(&names);
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert!(pages().len() > 20);
    for (method, path) in pages() {
        let filled = names.page(path);
        let answer = match method {
            "GET" => stranger.get(&filled).await,
            _ => stranger.post(&filled, &fields).await,
        };
        let names_it_in_a_field = matches!(
            (method, path),
            (
                "POST",
                "/app/tools/signature" | "/app/event-types/{name}/test" | "/app/live"
            )
        );
        if names_it_in_a_field || (method == "GET" && path.contains("{id}")) {
            assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        } else if path.contains("{id}") {
            // A form that lacks a field may say so before it looks for what it is about.
            assert!(matches!(answer.status, 404 | 422), "{method} {path}: {answer:?}");
        }
        for theirs in ["acme", "https://endpoint"] {
            assert!(
                !answer.html.contains(theirs),
                "{method} {path} tells {theirs}: {}",
                answer.html
            );
        }
    }
    assert_eq!(everything(&portal.pool).await, before, "nothing was touched");
}

/// A secret, a replay or a quota request of another reseller, below a subscription of one's own.
#[testkit::test]
async fn a_page_of_ones_own_subscription_leads_to_nothing_of_another_reseller(portal: Portal) {
    let names = furnished(&portal).await;
    let key = portal.key_of("stranger").await;
    let stranger = entered_by(&portal, &key, &ALL).await;
    let own = SubscriptionRow::active()
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    let mixed = Names {
        subscription: own,
        ..names
    };
    let before = everything(&portal.pool).await;
    let nested = pages()
        .into_iter()
        .filter(|(_, path)| path.matches('{').count() > 1);
    let nested: Vec<_> = nested.collect();
    assert!(nested.len() >= 6);
    for (method, path) in nested {
        let filled = mixed.page(path);
        let answer = match method {
            "GET" => stranger.get(&filled).await,
            _ => stranger.post(&filled, &[]).await,
        };
        let status = match (method, path) {
            // It asks the same whatever the request is, and looks for it when it is answered.
            ("GET", "/app/s/{id}/quota-requests/{request}/withdraw") => 200,
            _ => 404,
        };
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(!answer.html.contains("acme"), "{method} {path}: {}", answer.html);
    }
    assert_eq!(everything(&portal.pool).await, before, "nothing was touched");
}

/// Sends every form in a visit with this capability alone; each that needs another one is refused.
async fn allows_nothing_else(portal: &Portal, capabilities: &[&str]) {
    let names = furnished(portal).await;
    let fields = fields(&names);
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    let body = names.page("/app/n/{id}/body");
    for &capability in capabilities {
        let visit = entered(portal, &[capability]).await;
        let before = everything(&portal.pool).await;
        let mut own = 0;
        for (_, path) in pages().into_iter().filter(|(method, _)| *method == "POST") {
            let needed = needed(path);
            own += usize::from(needed == Some(capability));
            if needed.is_some_and(|needed| needed != capability) {
                let answer = visit.post(&names.page(path), &fields).await;
                assert_eq!(
                    answer.status, 403,
                    "{path} with {capability} alone: {}",
                    answer.html
                );
            }
        }
        let status = if capability == "bodies" { 200 } else { 403 };
        assert_eq!(visit.get(&body).await.status, status, "{capability}");
        assert!(own > 0 || capability == "bodies", "no form needs {capability}");
        assert_eq!(
            everything(&portal.pool).await,
            before,
            "nothing was touched with {capability} alone"
        );
    }
}

// Two tests, since a reseller may change only so much in a minute.

#[testkit::test]
async fn bodies_manage_or_resend_alone_allow_nothing_else(portal: Portal) {
    allows_nothing_else(&portal, &ALL[..3]).await;
}

#[testkit::test]
async fn reveal_rotate_or_quota_alone_allow_nothing_else(portal: Portal) {
    allows_nothing_else(&portal, &ALL[3..]).await;
}
