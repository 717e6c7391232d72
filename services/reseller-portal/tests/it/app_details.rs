//! Details of the pages: what leads from one to another, and what they say where something is not as usual.

use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::app::{ALL, entered};
use crate::portal::Portal;

#[testkit::test]
async fn what_mends_a_challenge_follows_from_how_it_was_answered(portal: Portal) {
    let browser = entered(&portal, &ALL).await;
    for (told, mend) in [
        (engine::webhook::told::ANOTHER_TEXT, "the text of data.challenge"),
        (engine::webhook::told::ANOTHER_STATUS, "knows the secret"),
        (engine::webhook::told::NO_ANSWER, "certificate is valid"),
    ] {
        let id = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
            .make(&portal.pool)
            .await;
        let answered =
            "UPDATE subscriptions SET verification_error = $2, verification_attempts = 1 WHERE id = $1";
        sqlx::query(answered)
            .bind(id)
            .bind(told)
            .execute(&portal.pool)
            .await
            .unwrap();
        let page = browser.see(&format!("/app/s/{id}/verify")).await;
        assert!(page.contains(mend), "{told}: {page}");
    }
}

#[testkit::test]
async fn an_attempt_leads_to_the_check_of_its_signature(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::GivenUp, subscription);
    let id = row.make(&portal.pool).await.id.uuid();
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/n/{id}?a=1")).await;
    let check = format!("/app/tools/signature?notification={id}");
    assert!(page.contains(&format!("{check}&amp;a=1")), "{page}");
    let found = portal.see(&format!("/notifications/{id}")).await;
    let filled = browser.see(&format!("{check}&a=1")).await;
    for part in [
        format!(r#"<option value="{subscription}" selected>"#),
        "webhook-timestamp: ".to_owned(),
        "webhook-signature: </textarea>".to_owned(),
        body_of(&found),
        r#"value="recorded" checked"#.to_owned(),
    ] {
        assert!(filled.contains(&part), "{part}: {filled}");
    }
    let looking = entered(&portal, &[]).await;
    let filled = looking.see(&check).await;
    assert!(filled.contains("webhook-timestamp: ") && !filled.contains(&body_of(&found)));
}

fn body_of(found: &serde_json::Value) -> String {
    found["body"].as_str().unwrap().replace('"', "&#34;")
}

#[testkit::test]
async fn an_attempt_that_is_not_there_is_not_said_to_be_none(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::GivenUp, subscription);
    let id = row.make(&portal.pool).await.id.uuid();
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/n/{id}?a=99")).await;
    assert!(!page.contains("No attempt was made yet"), "{page}");
}
