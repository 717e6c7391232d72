//! Cancelling what of a subscription waits and matches, over the API and on the dashboard.

use chrono::TimeDelta;
use domain::notification::NotificationState::{self, Pending, Queued, Retry, Scheduled, Sending, Sent};
use serde_json::{Value, json};
use testkit::eventually;
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{ALL, entered};
use crate::portal::{Portal, answer, fields};

async fn made(portal: &Portal, id: Uuid, state: NotificationState, minutes: i64) -> MadeNotification {
    NotificationRow::in_state(state, id)
        .created_at(portal.now() - TimeDelta::minutes(minutes))
        .due_in(TimeDelta::hours(1))
        .make(&portal.pool)
        .await
}

async fn status(portal: &Portal, it: &MadeNotification) -> String {
    let seen = portal.see(&format!("/notifications/{}", it.id)).await;
    seen["status"].as_str().unwrap().to_owned()
}

async fn cancel(portal: &Portal, id: Uuid, body: &Value) -> Value {
    let path = format!("/subscriptions/{id}/cancellations");
    portal.sent("POST", &path, body, 200).await
}

#[testkit::test]
async fn what_waits_and_matches_is_counted_and_then_cancelled_and_nothing_else(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let other = SubscriptionRow::active().make(&portal.pool).await;
    let mut waiting = Vec::new();
    for (state, minutes) in [(Scheduled, 9), (Pending, 8), (Queued, 7), (Retry, 6)] {
        waiting.push(made(&portal, id, state, minutes).await);
    }
    let kept = [
        made(&portal, id, Sent, 5).await,
        made(&portal, id, Sending, 4).await,
        made(&portal, id, Scheduled, 1).await,
        made(&portal, other, Scheduled, 9).await,
    ];
    let mut before = Vec::new();
    for it in &kept {
        before.push(status(&portal, it).await);
    }
    let until = portal.now() - TimeDelta::minutes(2);
    let counted = cancel(&portal, id, &json!({"until": until, "dryRun": true})).await;
    assert_eq!(
        counted,
        json!({"dryRun": true, "matching": 4, "byStatus": {"SCHEDULED": 1, "PENDING": 1, "IN_MEMORY": 1, "RETRY": 1},
               "oldest": portal.now() - TimeDelta::minutes(9), "newest": portal.now() - TimeDelta::minutes(6), "more": false, "cancelled": 0, "delivered": 0})
    );
    let all = cancel(&portal, id, &json!({"dryRun": true})).await;
    assert_eq!(all["matching"], 5, "what is counted need not be restricted");
    assert_eq!(status(&portal, &waiting[0]).await, "SCHEDULED", "only counted");

    let body = json!({"until": until, "note": " transferred away "});
    assert_eq!(cancel(&portal, id, &body).await["cancelled"], 4);
    let again = cancel(&portal, id, &body).await;
    assert_eq!((&again["matching"], &again["cancelled"]), (&json!(0), &json!(0)));
    let path = format!("/notifications/{}/cancel", waiting[0].id);
    let beyond = portal
        .refused("POST", &path, None, (409, "notification-beyond"))
        .await;
    let detail = beyond["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("the notification was cancelled already, at 2"),
        "{beyond}"
    );
    for it in &waiting {
        let seen = portal.see(&format!("/notifications/{}", it.id)).await;
        assert_eq!(
            (&seen["status"], &seen["reason"]),
            (&json!("GIVEN_UP"), &json!("CANCELLED"))
        );
        let story = portal.see(&format!("/notifications/{}/story", it.id)).await;
        assert_eq!(story["headline"]["code"], "cancelled-by-you", "{story:#}");
        let steps = story["story"].as_array().unwrap();
        assert!(
            steps.iter().any(|step| step["code"] == "cancelled-by-you"),
            "{story:#}"
        );
    }
    for (it, before) in kept.iter().zip(before) {
        assert_eq!(status(&portal, it).await, before);
    }
    let letters: Vec<(String, Option<String>)> =
        sqlx::query_as("SELECT state, note FROM dead_letters WHERE subscription_id = $1")
            .bind(id)
            .fetch_all(&portal.pool)
            .await
            .unwrap();
    let letter = ("DISCARDED".to_owned(), Some("transferred away".to_owned()));
    assert_eq!(letters, vec![letter; 4]);
    let acts = portal.all("/activity?action=notification.cancel-many", 10).await;
    assert_eq!(acts.len(), 1, "one entry, and none of what did nothing: {acts:?}");
    assert_eq!(
        (&acts[0]["subscriptionId"], &acts[0]["by"], &acts[0]["note"]),
        (&json!(id), &json!("YOU"), &json!("transferred away"))
    );
    assert_eq!(
        acts[0]["details"],
        json!({"cancelled": 4, "filter": {"until": until}})
    );
}

#[testkit::test]
async fn a_status_and_an_event_type_restrict_what_is_cancelled(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let (scheduled, retry) = (
        made(&portal, id, Scheduled, 2).await,
        made(&portal, id, Retry, 1).await,
    );
    let none = json!({"eventType": "contact.updated"});
    assert_eq!(cancel(&portal, id, &none).await["matching"], 0);
    let body = json!({"status": "RETRY", "eventType": "domain.created"});
    assert_eq!(cancel(&portal, id, &body).await["byStatus"], json!({"RETRY": 1}));
    assert_eq!(status(&portal, &retry).await, "GIVEN_UP");
    assert_eq!(status(&portal, &scheduled).await, "SCHEDULED");
}

#[testkit::test]
async fn what_had_been_delivered_stays_so_when_sending_it_again_is_cancelled(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let mut resent = Vec::new();
    for minutes in [3, 2, 1] {
        let it = made(&portal, id, Sent, minutes).await;
        let path = format!("/notifications/{}/resend", it.id);
        portal.done("POST", &path, 202).await;
        resent.push(it);
    }
    let path = format!("/notifications/{}/cancel", resent[0].id);
    let one = portal.done("POST", &path, 200).await;
    assert_eq!((&one["status"], &one["reason"]), (&json!("SENT"), &Value::Null));
    let browser = entered(&portal, &ALL).await;
    let (_, page) = browser.act(&format!("/app/n/{}/cancel", resent[1].id), &[]).await;
    assert!(
        page.contains("The notification is not sent again. It stays delivered."),
        "{page}"
    );
    let many = cancel(&portal, id, &json!({"status": "RETRY"})).await;
    assert_eq!((&many["cancelled"], &many["delivered"]), (&json!(1), &json!(1)));
    for it in &resent {
        let story = portal.see(&format!("/notifications/{}/story", it.id)).await;
        assert_eq!(
            (&story["status"], &story["headline"]["code"]),
            (&json!("SENT"), &json!("delivered"))
        );
        let steps = story["story"].as_array().unwrap();
        let told = steps.iter().any(|step| step["code"] == "resend-cancelled-by-you");
        assert!(told, "{story:#}");
    }
    let path = format!("/notifications/{}/resend", resent[0].id);
    portal.done("POST", &path, 202).await;
}

/// It is claimed between the look and the act, which waits for the claim to commit.
#[testkit::test]
async fn what_is_claimed_meanwhile_is_sent_and_the_others_are_cancelled(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let (claimed, waiting) = (
        made(&portal, id, Retry, 2).await,
        made(&portal, id, Retry, 1).await,
    );
    let mut claim = portal.pool.begin().await.unwrap();
    sqlx::query(
        "UPDATE notifications SET status = 'IN_MEMORY', lease_token = $2, leased_until = now() + interval '1 hour',
                next_attempt_at = NULL, reason = NULL, attempts = attempts + 1 WHERE id = $1",
    )
    .bind(claimed.id.uuid())
    .bind(claimed.lease_token)
    .execute(&mut *claim)
    .await
    .unwrap();
    let body = json!({"status": "RETRY"});
    let (cancelled, ()) = tokio::join!(cancel(&portal, id, &body), async {
        eventually("the request to wait for the claim", async || {
            let blocked: bool = sqlx::query_scalar(
                "SELECT EXISTS (SELECT FROM pg_stat_activity
                                WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)",
            )
            .fetch_one(&portal.pool)
            .await
            .ok()?;
            blocked.then_some(())
        })
        .await;
        claim.commit().await.unwrap();
    });
    assert_eq!(
        (&cancelled["matching"], &cancelled["cancelled"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(status(&portal, &claimed).await, "IN_MEMORY");
    assert_eq!(status(&portal, &waiting).await, "GIVEN_UP");
}

#[testkit::test]
async fn all_that_waits_is_not_cancelled_by_mistake_and_nothing_of_another_reseller_is(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let waiting = made(&portal, id, Scheduled, 1).await;
    let path = format!("/subscriptions/{id}/cancellations");
    for (body, field) in [
        (json!({}), "status"),
        (json!({"note": "all of it"}), "status"),
        (json!({"status": "SENT"}), "status"),
        (json!({"eventType": "no type"}), "eventType"),
        (
            json!({"since": portal.now(), "until": portal.now() - TimeDelta::hours(1)}),
            "until",
        ),
        (json!({"status": "RETRY", "note": "a\u{0}b"}), "note"),
        (
            json!({"status": "RETRY", "evenType": "domain.created"}),
            "evenType",
        ),
    ] {
        let problem = portal
            .refused("POST", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&problem), [field], "{body}");
    }
    let stranger = portal.key_of("stranger").await;
    let foreign = portal.request("POST", &path).bearer_auth(stranger);
    let foreign = foreign.json(&json!({"status": "SCHEDULED"}));
    answer(foreign.send().await.unwrap(), 404).await;
    assert_eq!(status(&portal, &waiting).await, "SCHEDULED");
}

#[testkit::test]
async fn all_that_are_in_line_are_counted_before_they_are_cancelled(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/scheduled"));
    let first = made(&portal, id, Scheduled, 3).await;
    made(&portal, id, Scheduled, 2).await;
    let cancel = format!("/app/s/{id}/cancel?status=SCHEDULED");
    let page = browser.see(&path).await;
    assert!(page.contains(&cancel), "{page}");
    for filter in ["reason=QUOTA", "eventType=domain.created,domain.deleted"] {
        let page = browser.see(&format!("{path}?{filter}")).await;
        assert!(
            !page.contains(&cancel),
            "{filter}: the list knows more than what is cancelled"
        );
    }
    let looking = entered(&portal, &[]).await;
    assert!(
        looking
            .see(&cancel)
            .await
            .contains("your link was made without manage")
    );
    looking.refused(&cancel, &[], 403).await;
    let form = browser.see(&cancel).await;
    assert!(
        form.contains("<h1>Cancel 2 notifications</h1>") && form.contains("2 Scheduled"),
        "{form}"
    );
    let action = |form: &str| {
        let (_, action) = form
            .split_once("class=\"form\" method=\"post\" action=\"")
            .unwrap();
        action.split('"').next().unwrap().replace("&#38;", "&")
    };
    // One more that was accepted before then is more than was agreed to.
    let late = made(&portal, id, Scheduled, 1).await;
    let again = browser.post(&action(&form), &[]).await;
    assert_eq!(again.status, 200, "{}", again.html);
    assert!(
        again.html.contains("<h1>Cancel 3 notifications</h1>")
            && again.html.contains("nothing is cancelled yet"),
        "{}",
        again.html
    );
    assert_eq!(status(&portal, &first).await, "SCHEDULED", "nothing was done");
    // A number that was not typed is no agreement, and what is shown then is what waits now.
    let untyped = browser.post(&format!("{cancel}&counted=1001"), &[]).await;
    assert!(
        untyped.html.contains("<h1>Cancel 3 notifications</h1>") && !untyped.html.contains("Type 1001"),
        "{}",
        untyped.html
    );
    assert_eq!(status(&portal, &first).await, "SCHEDULED", "nothing was done");
    let (to, page) = browser.act(&action(&again.html), &[]).await;
    assert_eq!(to, path);
    assert!(page.contains("3 are cancelled and not sent any more."), "{page}");
    for cancelled in [first, late] {
        assert_eq!(status(&portal, &cancelled).await, "GIVEN_UP");
    }
    let none = browser.see(&cancel).await;
    assert!(
        none.contains("there is nothing to cancel") && !none.contains("Cancel them"),
        "{none}"
    );
}
