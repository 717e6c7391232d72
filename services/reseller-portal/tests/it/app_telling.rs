//! The pages tell what the API tells: the story of a notification, what needs its reseller, and lists by everything that they can be
//! filtered by.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{ALL, entered};
use crate::portal::Portal;

#[testkit::test]
async fn a_notification_is_told_step_by_step_as_the_api_tells_it(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let made = async |state, due_in| {
        let row = NotificationRow::in_state(state, id).due_in(due_in);
        row.make(&portal.pool).await.id.uuid()
    };
    let hour = TimeDelta::hours(1);
    let again = made(NotificationState::GivenUp, hour).await;
    let cancelled = made(NotificationState::Pending, hour).await;
    let browser = entered(&portal, &ALL).await;
    let (_, page) = browser.act(&format!("/app/n/{again}/resend"), &[]).await;
    assert!(
        page.contains("You had it sent again (Anna Ozola, in the dashboard)."),
        "{page}"
    );
    let cancel = format!("/app/n/{cancelled}/cancel");
    assert_eq!(browser.post(&cancel, &[]).await.status, 303);
    let rest = [
        made(NotificationState::Sent, hour).await,
        made(NotificationState::Retry, hour).await,
        made(NotificationState::Scheduled, hour).await,
    ];
    for notification in [again, cancelled].into_iter().chain(rest) {
        let story = portal.see(&format!("/notifications/{notification}/story")).await;
        let page = browser.see(&format!("/app/n/{notification}")).await;
        let steps = story["story"].as_array().unwrap();
        assert_eq!(page.matches("</div></li>").count(), steps.len(), "{page}");
        let sentences = steps.iter().chain([&story["headline"], &story["next"]]);
        for sentence in sentences {
            // Its times are those of the viewer, and of how far away they are a page says nothing.
            let text = sentence["text"].as_str().unwrap();
            let beginning = text.split(" 2").next().unwrap();
            assert!(page.contains(beginning), "{beginning}: {page}");
        }
        assert!(!page.contains(" UTC ("), "{page}");
    }
    let page = browser.see(&format!("/app/n/{cancelled}")).await;
    assert!(
        page.contains("Cancelled by you.")
            && page.contains("You cancelled it (Anna Ozola, in the dashboard)."),
        "{page}"
    );
    portal
        .done("POST", &format!("/subscriptions/{id}/pause"), 200)
        .await;
    let page = browser.see(&format!("/app/n/{}", rest[1])).await;
    assert!(
        page.contains("Is held back: you have paused the subscription.") && page.contains("when you resume"),
        "{page}"
    );
    assert!(!page.contains("Why it is late"), "{page}");
    sqlx::query("UPDATE notifications SET created_at = created_at - interval '90 minutes' WHERE id = $1")
        .bind(rest[1])
        .execute(&portal.pool)
        .await
        .unwrap();
    let page = browser.see(&format!("/app/n/{}", rest[1])).await;
    let (_, causes) = page.split_once("Why it is late").unwrap();
    assert!(causes.contains("<li>1 h"), "{page}");
}

#[testkit::test]
async fn what_needs_you_is_what_the_api_says_does(portal: Portal) {
    let (unverified, failing) = (
        SubscriptionRow::in_state(SubscriptionState::PendingVerification)
            .make(&portal.pool)
            .await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    for (change, id) in [
        (
            "UPDATE subscriptions SET verification_error = 'the endpoint answered 500', verification_attempts = 2 WHERE id = $1",
            unverified,
        ),
        (
            "UPDATE subscriptions SET failing_since = now() - interval '1 hour' WHERE id = $1",
            failing,
        ),
    ] {
        sqlx::query(change).bind(id).execute(&portal.pool).await.unwrap();
    }
    let overview = portal.see("/overview").await;
    let needs = overview["needsYou"].as_array().unwrap();
    assert_eq!(
        (needs.len(), &needs[0]["code"], &needs[1]["code"]),
        (2, &json!("failing"), &json!("challenge-failed")),
        "{overview:#}"
    );
    let browser = entered(&portal, &ALL).await;
    let page = browser.see("/app").await;
    assert_eq!(page.matches("<article class=\"finding").count(), 2, "{page}");
    for part in [
        "has not answered its challenge 2 times: the endpoint answered 500.".to_owned(),
        "every attempt has failed since <time".to_owned(),
        format!("href=\"/app/s/{unverified}/verify\" aria-label=\"Verify it"),
        format!("/app/s/{failing}/deliveries?status=RETRY"),
    ] {
        assert!(page.contains(&part), "{part}: {page}");
    }
    let one = browser.see("/app?state=PENDING_VERIFICATION").await;
    assert_eq!(one.matches("<article class=\"finding").count(), 1, "{one}");
}

#[testkit::test]
async fn deliveries_are_filtered_by_everything_that_the_list_of_the_api_is(portal: Portal) {
    let (one, other) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    let made = async |state, subscription, hours| {
        let row = NotificationRow::in_state(state, subscription);
        let row = row.created_at(portal.now() - TimeDelta::hours(hours));
        row.make(&portal.pool).await
    };
    let sent = made(NotificationState::Sent, one, 0).await;
    let failed = made(NotificationState::Failed, other, 3).await;
    sqlx::query("UPDATE events SET body = replace(body, 'example.lv', 'other.example') WHERE id = $1")
        .bind(failed.event)
        .execute(&portal.pool)
        .await
        .unwrap();
    sqlx::query(
        "UPDATE delivery_attempts SET response_status = NULL, error_type = 'TIMEOUT', error = 'no answer' WHERE notification_id = $1",
    )
    .bind(failed.id.uuid())
    .execute(&portal.pool)
    .await
    .unwrap();
    let browser = entered(&portal, &["bodies", "resend"]).await;
    let between = (portal.now() - TimeDelta::hours(1))
        .format("%Y-%m-%dT%H:%M")
        .to_string();
    let of_one = format!("subscription={one}");
    let (since, until) = (format!("since={between}"), format!("until={between}"));
    for (query, is_sent) in [
        (of_one.as_str(), true),
        (since.as_str(), true),
        ("value=example.lv", true),
        ("hours=1", true),
        (until.as_str(), false),
        ("value=other.example", false),
        ("error=TIMEOUT", false),
    ] {
        for list in ["deliveries", "deliveries.csv", "deliveries.json"] {
            let page = browser.see(&format!("/app/{list}?{query}")).await;
            let holds = |id: String| page.contains(&id);
            assert_eq!(
                (holds(sent.id.to_string()), holds(failed.id.to_string())),
                (is_sent, !is_sent),
                "{list} {query}: {page}"
            );
        }
    }
    let page = browser
        .see(&format!("/app/deliveries?{since}&error=TIMEOUT"))
        .await;
    assert!(
        page.contains(&format!("value=\"{between}\"")) && page.contains("value=\"TIMEOUT\" selected"),
        "{page}"
    );
    // Sending all again knows less than the list does: it must not send what the list leaves out.
    let list = format!("/app/s/{other}/deliveries");
    let all = "Send all again that match";
    assert!(browser.see(&format!("{list}?status=FAILED")).await.contains(all));
    assert!(!browser.see(&format!("{list}?error=TIMEOUT")).await.contains(all));
    // Of one that is chosen among all it is the page of that one.
    let again = format!("/app/s/{other}/resend?status=FAILED");
    let chosen = format!("status=FAILED&subscription={other}");
    let page = browser.see(&format!("/app/deliveries?{chosen}")).await;
    assert!(page.contains(&format!("href=\"{again}\">{all}")), "{page}");
    let led = browser.get(&format!("/app/resend?{chosen}")).await;
    assert_eq!((led.status, led.header("location")), (303, again.as_str()));
    let unknown = Uuid::now_v7();
    let none = browser
        .get(&format!("/app/deliveries?subscription={unknown}"))
        .await;
    assert_eq!(none.status, 404);
    assert_eq!(browser.get("/app/resend?subscription=x").await.status, 404);
    for wrong in ["eror=TIMEOUT", "error=LATE", "since=yesterday", "subscription=x"] {
        for list in [
            "/app/deliveries",
            "/app/deliveries.csv",
            "/app/deliveries.json",
            list.as_str(),
        ] {
            assert_eq!(
                browser.get(&format!("{list}?{wrong}")).await.status,
                400,
                "{list}?{wrong}"
            );
        }
    }
    assert_eq!(browser.get(&format!("{list}?{of_one}")).await.status, 400);
    // What is found by a value says that the body has it.
    let without = entered(&portal, &[]).await;
    for list in ["deliveries", "deliveries.csv", "deliveries.json"] {
        let answer = without.get(&format!("/app/{list}?value=example.lv")).await;
        assert_eq!(answer.status, 403, "{list}: {}", answer.html);
    }
    assert!(!without.see("/app/deliveries").await.contains("name=\"value\""));
}

#[testkit::test]
async fn what_was_selected_is_sent_again_at_once_and_the_rest_is_named(portal: Portal) {
    let (one, other) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().paused().make(&portal.pool).await,
    );
    let made = async |state, subscription| {
        NotificationRow::in_state(state, subscription)
            .make(&portal.pool)
            .await
    };
    let failed = made(NotificationState::Failed, one).await;
    let given_up = made(NotificationState::GivenUp, other).await;
    let cancelled = made(NotificationState::Cancelled, one).await;
    let waiting = made(NotificationState::Pending, other).await;
    let unknown = Uuid::now_v7().to_string();
    let ids = [failed, given_up, cancelled, waiting].map(|it| it.id.to_string());
    let mut fields: Vec<_> = ids.iter().map(|id| ("id", id.as_str())).collect();
    fields.extend([("id", unknown.as_str()), ("id", ids[0].as_str())]);
    let browser = entered(&portal, &ALL).await;

    let (_, page) = browser.act("/app/deliveries/resend", &fields).await;

    let named = |event: Uuid| format!("{event} (domain.created): the notification");
    for said in [
        "2 are sent again, 3 are not.".to_owned(),
        format!("{} was cancelled, which is final.", named(cancelled.event)),
        format!(
            "{} is PENDING and waits for the end of a pause: you have paused its subscription",
            named(waiting.event)
        ),
        format!("{unknown}: "),
    ] {
        assert!(page.contains(&said), "{said}: {page}");
    }
    assert!(page.contains("class=\"flash ok\""), "{page}");
    let (_, none) = browser
        .act("/app/deliveries/resend", &[("id", ids[2].as_str())])
        .await;
    assert!(
        none.contains("class=\"flash warn\"") && none.contains("0 are sent again, 1 is not."),
        "{none}"
    );
    for (id, status) in [
        (&ids[0], "RETRY"),
        (&ids[1], "RETRY"),
        (&ids[2], "GIVEN_UP"),
        (&ids[3], "PENDING"),
    ] {
        let seen = portal.see(&format!("/notifications/{id}")).await;
        assert_eq!(seen["status"], status, "{seen:#}");
    }
    let acts = portal.see("/activity?action=notification.resend").await;
    assert_eq!(acts["items"].as_array().unwrap().len(), 2, "{acts:#}");
}

#[testkit::test]
async fn what_waits_what_was_done_and_mails_are_taken_home_as_they_are_listed(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    for _ in 0..2 {
        NotificationRow::in_state(NotificationState::Scheduled, id)
            .due_in(TimeDelta::hours(1))
            .make(&portal.pool)
            .await;
    }
    let browser = entered(&portal, &ALL).await;
    let asked = [("dailyQuota", "2,000,000"), ("reason", "x")];
    browser.act(&format!("/app/s/{id}/quota"), &asked).await;
    let other = SubscriptionRow::active().make(&portal.pool).await;
    portal
        .done("POST", &format!("/subscriptions/{other}/deactivate"), 200)
        .await;
    for (page, file, list, begins) in [
        (
            format!("/app/s/{id}/scheduled"),
            "scheduled",
            format!("/subscriptions/{id}/scheduled"),
            "acceptedAt,notificationId,eventId,eventType,status,reason,pausedBy,attempts,payloadBytes,nextAttemptAt",
        ),
        (
            "/app/activity".to_owned(),
            "activity",
            "/activity".to_owned(),
            "at,id,by,name,action,subscriptionId,notificationId,note,details",
        ),
        (
            "/app/activity/mails".to_owned(),
            "mails",
            "/mails".to_owned(),
            "createdAt,id,kind,status,subscriptionId,recipient,occurrences,dueAt,finishedAt",
        ),
    ] {
        let html = browser.see(&page).await;
        for end in ["csv", "json"] {
            assert!(html.contains(&format!("{page}.{end}\" download")), "{html}");
        }
        let listed = portal.see(&list).await;
        let rows = listed["items"].as_array().unwrap();
        assert!(!rows.is_empty(), "{listed:#}");
        let csv = browser.get(&format!("{page}.csv")).await;
        assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
        let named = format!("attachment; filename=\"{file}.csv\"");
        assert_eq!(csv.header("content-disposition"), named);
        assert_eq!(csv.html.lines().next(), Some(begins));
        assert_eq!(csv.html.lines().count(), rows.len() + 1, "{}", csv.html);
        for (line, row) in csv.html.lines().skip(1).zip(rows) {
            assert!(line.contains(row["id"].as_str().unwrap()), "{line}: {row:#}");
        }
        let json = browser.see(&format!("{page}.json")).await;
        let json: Value = serde_json::from_str(&json).unwrap();
        let ids = |list: &Value| -> Vec<Value> {
            let items = list["items"].as_array().unwrap().iter();
            items.map(|item| item["id"].clone()).collect()
        };
        assert_eq!((ids(&json), &json["next"]), (ids(&listed), &Value::Null));
    }
    for (none, lines) in [
        (format!("/app/s/{id}/scheduled.csv?reason=RATE"), 1),
        ("/app/activity.csv?action=replay".to_owned(), 1),
        (format!("/app/s/{id}/scheduled.csv?reason=QUOTA"), 3),
    ] {
        let file = browser.see(&none).await;
        assert_eq!(file.lines().count(), lines, "{none}: {file}");
    }
    let page = browser.see(&format!("/app/s/{id}/scheduled?reason=QUOTA")).await;
    assert!(
        page.contains("scheduled.csv?reason=QUOTA\""),
        "as it is filtered: {page}"
    );
    for wrong in [
        format!("/app/s/{id}/scheduled.csv?reason=LATE"),
        "/app/activity.csv?since=soon".to_owned(),
    ] {
        assert_eq!(browser.get(&wrong).await.status, 400, "{wrong}");
    }
}

/// Sending all again is of what has ended: of retries it would send everything else that has.
#[testkit::test]
async fn retries_are_tried_at_once_and_not_sent_again_with_all_that_have_ended(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    NotificationRow::in_state(NotificationState::Sent, id)
        .make(&portal.pool)
        .await;
    let retry = NotificationRow::in_state(NotificationState::Retry, id)
        .due_in(TimeDelta::hours(8))
        .make(&portal.pool)
        .await;
    let browser = entered(&portal, &["resend"]).await;
    let (list, again) = (format!("/app/s/{id}/deliveries"), "Send all again that match");
    let page = browser.see(&format!("{list}?status=RETRY")).await;
    let now = format!("/app/s/{id}/retry-now");
    assert!(page.contains(&now) && !page.contains(again), "{page}");
    let narrowed = browser.see(&format!("{list}?status=RETRY&hours=1")).await;
    assert!(
        !narrowed.contains(&now)
            && !narrowed.contains(again)
            && narrowed.contains("select what is to be tried now"),
        "{narrowed}"
    );
    let refused = browser.get(&format!("/app/s/{id}/resend?status=RETRY")).await;
    assert!(
        refused.status == 422 && refused.html.contains("that has not ended, and is sent anyhow"),
        "{refused:?}"
    );

    let waiting = browser.see(&format!("/app/s/{id}/scheduled")).await;
    assert!(waiting.contains(&now), "{waiting}");
    let form = browser.see(&now).await;
    assert!(
        form.contains("1 notification of") && form.contains("Try them now"),
        "{form}"
    );
    let (to, page) = browser.act(&now, &[]).await;
    assert_eq!(to, format!("/app/s/{id}/scheduled"));
    assert!(page.contains("1 is tried now"), "{page}");
    let seen = portal.see(&format!("/notifications/{}", retry.id)).await;
    let due: DateTime<Utc> = seen["nextAttemptAt"].as_str().unwrap().parse().unwrap();
    assert!(due <= portal.now(), "{seen}");
    let (_, page) = browser.act(&now, &[]).await;
    assert!(page.contains("not due already"), "{page}");
}
