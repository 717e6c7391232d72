//! One list over all subscriptions, what waits in sums, the story of a notification, and cancelling one.

use std::collections::BTreeMap;

use chrono::{SecondsFormat, TimeDelta};
use domain::notification::NotificationState::{
    self, Failed, GivenUp, Pending, Retry, Scheduled, Sending, Sent,
};
use serde_json::{Value, json};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::portal::{Portal, answer, fields};

async fn made(portal: &Portal, id: Uuid, state: NotificationState, minutes: i64) -> MadeNotification {
    NotificationRow::in_state(state, id)
        .created_at(portal.now() - TimeDelta::minutes(minutes))
        .make(&portal.pool)
        .await
}

async fn ids(portal: &Portal, query: &str, limit: usize) -> Vec<String> {
    let items = portal.all(&format!("/notifications{query}"), limit).await;
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    items.iter().map(id).collect()
}

async fn dead_letter(portal: &Portal, notification: &MadeNotification, change: &str) {
    let change = format!("UPDATE dead_letters SET {change} WHERE notification_id = $1");
    sqlx::query(sqlx::AssertSqlSafe(change))
        .bind(notification.id.uuid())
        .execute(&portal.pool)
        .await
        .unwrap();
}

async fn attempt(portal: &Portal, notification: &MadeNotification, change: &str) {
    let change = format!("UPDATE delivery_attempts SET {change} WHERE notification_id = $1");
    sqlx::query(sqlx::AssertSqlSafe(change))
        .bind(notification.id.uuid())
        .execute(&portal.pool)
        .await
        .unwrap();
}

#[testkit::test]
async fn the_list_goes_over_all_subscriptions_and_by_what_the_endpoint_answered(portal: Portal) {
    let (one, other) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    let foreign = SubscriptionRow::active()
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    let stranger = NotificationRow::in_state(Sent, foreign).reseller("stranger");
    let stranger = stranger.make(&portal.pool).await;
    let rows = [
        made(&portal, one, Sent, 1).await,
        made(&portal, other, Failed, 2).await,
        made(&portal, one, GivenUp, 3).await,
        made(&portal, other, Retry, 4).await,
        made(&portal, one, Scheduled, 5).await,
        made(&portal, one, Failed, 60 * 24 * 8).await,
    ];
    attempt(&portal, &rows[1], "response_status = 404").await;
    let dns = "response_status = NULL, error_type = 'EGRESS', error = 'the endpoint has a private address', url = 'https://vault.example/'";
    attempt(&portal, &rows[3], dns).await;
    let named = |places: &[usize]| -> Vec<String> {
        places.iter().map(|place| rows[*place].id.to_string()).collect()
    };
    for limit in [1, 2, 50] {
        assert_eq!(ids(&portal, "", limit).await, named(&[0, 1, 2, 3, 4]), "{limit}");
        assert_eq!(
            ids(&portal, "?status=FAILED,GIVEN_UP", limit).await,
            named(&[1, 2])
        );
        assert_eq!(ids(&portal, "?code=404", limit).await, named(&[1]));
        assert_eq!(ids(&portal, "?code=4xx", limit).await, named(&[1]));
        assert_eq!(ids(&portal, "?code=5xx", limit).await, named(&[2]));
        assert_eq!(ids(&portal, "?error=HTTP", limit).await, named(&[1, 2]));
        assert_eq!(
            ids(&portal, "?error=DNS", limit).await,
            named(&[3]),
            "told like a name without an address"
        );
        assert_eq!(ids(&portal, "?error=EGRESS", limit).await, named(&[]));
        let of_one = format!("?subscription={one}");
        assert_eq!(ids(&portal, &of_one, limit).await, named(&[0, 2, 4]));
    }
    let event = format!("?eventId={}", rows[2].event);
    assert_eq!(ids(&portal, &event, 50).await, named(&[2]));
    for (code, found) in [("200", named(&[])), ("4xx", named(&[])), ("5xx", named(&[2]))] {
        assert_eq!(
            ids(&portal, &format!("{event}&code={code}"), 50).await,
            found,
            "{code}"
        );
    }
    assert_eq!(ids(&portal, "?eventId=unknown", 50).await, named(&[]));
    assert_eq!(
        ids(&portal, &format!("?eventId={}", stranger.event), 50).await,
        named(&[])
    );
    let listed = portal.see("/notifications?code=404").await;
    assert_eq!(listed["items"][0]["subscriptionId"], json!(other));
    assert_eq!(
        listed["items"][0]["last"],
        json!({"status": 404, "millis": 250, "errorType": "HTTP", "error": "503 Service Unavailable"})
    );
    for query in [
        "?code=99",
        "?code=6xx",
        "?error=X",
        "?status=X",
        "?eventId=",
        "?limit=0",
        "?subscription=x",
    ] {
        portal
            .refused(
                "GET",
                &format!("/notifications{query}"),
                None,
                (400, "invalid-query"),
            )
            .await;
    }
    let several = "/notifications?code=99&status=X&limit=0&since=yesterday";
    let refused = portal.refused("GET", several, None, (400, "invalid-query")).await;
    assert_eq!(fields(&refused), ["since", "code", "status", "limit"]);
    for (several, named) in [
        ("stauts=FAILED&code=6xx", vec!["stauts", "code"]),
        ("code=6xx&limit=abc&since=x", vec!["limit", "since", "code"]),
    ] {
        let path = format!("/notifications?{several}");
        let refused = portal.refused("GET", &path, None, (400, "invalid-query")).await;
        assert_eq!(fields(&refused), named, "{several}");
    }
    for (wanted, said) in [
        ("domain.creatd", "; did you mean domain.created"),
        ("domain.created,domain.unheard_of", "has domain.unheard_of"),
        ("domain.*", "prefixes such as domain.* are not taken here"),
    ] {
        for path in [
            "/notifications".to_owned(),
            format!("/subscriptions/{one}/notifications"),
            format!("/subscriptions/{one}/scheduled"),
        ] {
            let path = format!("{path}?eventType={wanted}");
            let refused = portal.refused("GET", &path, None, (400, "invalid-query")).await;
            assert_eq!(fields(&refused), ["eventType"]);
            let detail = refused["errors"][0]["detail"].as_str().unwrap();
            assert!(detail.contains(said), "{detail}");
        }
    }
    sqlx::query(
        "UPDATE event_types SET retired_at = now(), updated_at = now() WHERE name = 'domain.created'",
    )
    .execute(&portal.pool)
    .await
    .unwrap();
    let kept = "?eventType=domain.created,postrider.test";
    assert_eq!(
        ids(&portal, kept, 50).await,
        named(&[0, 1, 2, 3, 4]),
        "what was sent of a type that was retired is found"
    );
    portal
        .refused(
            "GET",
            &format!("/notifications?subscription={foreign}"),
            None,
            (404, "not-found"),
        )
        .await;
}

#[testkit::test]
async fn what_ended_in_a_time_is_found_whenever_its_event_was_accepted(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let rows = [
        made(&portal, id, Pending, 1).await,
        made(&portal, id, Failed, 10).await,
        made(&portal, id, Sent, 20).await,
        made(&portal, id, Failed, 60 * 24).await,
    ];
    let minutes_ago = |minutes| {
        let at = portal.now() - TimeDelta::minutes(minutes);
        at.to_rfc3339_opts(SecondsFormat::Secs, true)
    };
    for (place, minutes) in [(1, 9_i32), (2, 19), (3, 5)] {
        sqlx::query("UPDATE notifications SET finished_at = $2 - make_interval(mins => $3) WHERE id = $1")
            .bind(rows[place].id.uuid())
            .bind(portal.now())
            .bind(minutes)
            .execute(&portal.pool)
            .await
            .unwrap();
    }
    let named = |places: &[usize]| -> Vec<String> {
        places.iter().map(|place| rows[*place].id.to_string()).collect()
    };
    let (six, fifteen) = (minutes_ago(6), minutes_ago(15));
    for (query, found) in [
        (format!("?endedSince={six}"), &[3][..]),
        (format!("?endedSince={fifteen}"), &[1, 3]),
        (format!("?endedSince={fifteen}&endedUntil={six}"), &[1]),
        (format!("?endedUntil={six}"), &[1, 2]),
        (format!("?endedUntil={six}&status=FAILED,GIVEN_UP"), &[1]),
        ("?endedSince=-200000-01-01T00:00:00Z".to_owned(), &[1, 2, 3]),
        ("?endedUntil=-200000-01-01T00:00:00Z".to_owned(), &[]),
    ] {
        for limit in [1, 50] {
            assert_eq!(ids(&portal, &query, limit).await, named(found), "{query}");
        }
    }
    for (query, field) in [
        (format!("?endedSince={six}&status=FAILED,RETRY"), "endedSince"),
        (format!("?endedSince={six}&endedUntil={fifteen}"), "endedUntil"),
    ] {
        let path = format!("/notifications{query}");
        let refused = portal.refused("GET", &path, None, (400, "invalid-query")).await;
        assert_eq!(fields(&refused), [field]);
    }
    let path = format!("/subscriptions/{id}/resends");
    let body = json!({"statuses": ["FAILED", "GIVEN_UP"], "endedSince": six, "dryRun": true});
    let counted = portal.sent("POST", &path, &body, 200).await;
    assert_eq!(counted["count"], 1);
    let body = json!({"statuses": ["FAILED"], "endedSince": six});
    assert_eq!(portal.sent("POST", &path, &body, 202).await["count"], 1);
    let seen = portal.see(&format!("/notifications/{}", rows[3].id)).await;
    assert_eq!(seen["status"], "RETRY", "the one of yesterday's event");
}

#[testkit::test]
async fn failures_are_counted_by_what_the_endpoint_answered_and_by_time(portal: Portal) {
    let (one, other) = (
        SubscriptionRow::active().make(&portal.pool).await,
        SubscriptionRow::active().make(&portal.pool).await,
    );
    let foreign = SubscriptionRow::active()
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    let stranger = NotificationRow::in_state(Failed, foreign).reseller("stranger");
    stranger.make(&portal.pool).await;
    made(&portal, one, Sent, 1).await;
    for (id, state, change) in [
        (one, Failed, "fingerprint = 'delivery/http/503/json'"),
        (other, GivenUp, "fingerprint = 'delivery/http/503/html'"),
        (
            other,
            GivenUp,
            "fingerprint = 'delivery/egress', error_type = 'EGRESS'",
        ),
        (
            other,
            GivenUp,
            "fingerprint = 'delivery/expired', error_type = NULL",
        ),
        (one, Failed, "created_at = now() - interval '8 days'"),
    ] {
        let notification = made(&portal, id, state, 1).await;
        dead_letter(&portal, &notification, change).await;
    }
    let seen = async |query: &str| {
        let seen = portal.see(&format!("/notifications/failures{query}")).await;
        assert_eq!(seen["atLeast"], false);
        let items = seen["items"].as_array().unwrap().iter();
        let kinds: Vec<_> = items
            .map(|it| json!([it["errorType"], it["code"], it["count"]]))
            .collect();
        (seen["total"].as_u64().unwrap(), kinds)
    };
    let (http, dns) = (json!(["HTTP", 503, 2]), json!(["DNS", null, 1]));
    assert_eq!(seen("").await, (3, vec![http, dns.clone()]));
    let of_other = json!(["HTTP", 503, 1]);
    assert_eq!(
        seen(&format!("?subscription={other}")).await,
        (2, vec![dns, of_other])
    );
    let hour = (portal.now() - TimeDelta::hours(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    assert_eq!(seen(&format!("?until={hour}")).await, (0, vec![]));
    let before_all_times = "?until=-200000-01-01T00:00:00Z";
    assert_eq!(seen(before_all_times).await, (0, vec![]));
    assert_eq!(seen(&format!("?since={hour}")).await.0, 3);
    let resent = [
        made(&portal, one, Failed, 1).await,
        made(&portal, one, Failed, 1).await,
    ];
    let replayed = "fingerprint = 'delivery/http/401/json', state = 'REPLAYED', resolved_at = now(), resolved_by = 'a test'";
    for notification in &resent {
        dead_letter(&portal, notification, replayed).await;
    }
    sqlx::query("UPDATE notifications SET status = 'SENT' WHERE id = $1")
        .bind(resent[0].id.uuid())
        .execute(&portal.pool)
        .await
        .unwrap();
    let sums = portal
        .see(&format!("/notifications/failures?subscription={one}"))
        .await;
    let items = sums["items"].as_array().unwrap().iter();
    let delivered = items.map(|it| json!([it["code"], it["count"], it["deliveredByResending"]]));
    assert_eq!(
        delivered.collect::<Vec<_>>(),
        [json!([401, 2, 1]), json!([503, 1, 0])]
    );
    assert_eq!(sums["deliveredByResending"], 1);
    for (query, refused) in [
        ("?subscription=x".to_owned(), (400, "invalid-query")),
        (format!("?subscription={foreign}"), (404, "not-found")),
    ] {
        let path = format!("/notifications/failures{query}");
        portal.refused("GET", &path, None, refused).await;
    }
}

#[testkit::test]
async fn what_was_told_of_a_domain_is_found_and_how_far_was_looked(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let foreign = SubscriptionRow::active()
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    NotificationRow::in_state(Sent, foreign)
        .reseller("stranger")
        .make(&portal.pool)
        .await;
    let rows = [
        made(&portal, id, Sent, 3).await,
        made(&portal, id, Failed, 2).await,
        made(&portal, id, Pending, 1).await,
    ];
    sqlx::query("UPDATE events SET body = replace(body, 'example.lv', 'other.example') WHERE id = $1")
        .bind(rows[1].event)
        .execute(&portal.pool)
        .await
        .unwrap();
    let named = |places: &[usize]| -> Vec<String> {
        places.iter().map(|place| rows[*place].id.to_string()).collect()
    };
    for limit in [1, 50] {
        assert_eq!(ids(&portal, "?value=example.lv", limit).await, named(&[2, 0]));
        assert_eq!(ids(&portal, "?value=other.example", limit).await, named(&[1]));
        let sent = format!("?value=example.lv&status=SENT&subscription={id}");
        assert_eq!(ids(&portal, &sent, limit).await, named(&[0]));
        assert_eq!(
            ids(&portal, "?value=example", limit).await,
            named(&[]),
            "a part of a value"
        );
    }
    let part = portal.see("/notifications?value=example.lv&limit=1").await;
    let looked = |part: &Value| -> chrono::DateTime<chrono::Utc> {
        part["lookedBackTo"].as_str().unwrap().parse().unwrap()
    };
    assert_eq!(part["items"][0]["acceptedAt"], part["lookedBackTo"]);
    let cursor = part["next"].as_str().unwrap();
    let last = portal
        .see(&format!("/notifications?value=example.lv&cursor={cursor}"))
        .await;
    assert!(last["next"].is_null());
    assert!(looked(&last) <= portal.now() - TimeDelta::days(6), "{last}");
    for query in ["?value=", "?value=x&eventId=y"] {
        let path = format!("/notifications{query}");
        portal.refused("GET", &path, None, (400, "invalid-query")).await;
    }
}

#[testkit::test]
async fn what_waits_is_summed_up_by_day_and_by_what_it_waits_for(portal: Portal) {
    let id = SubscriptionRow::active().daily_quota(2).make(&portal.pool).await;
    for _ in 0..5 {
        NotificationRow::in_state(Scheduled, id).make(&portal.pool).await;
    }
    sqlx::query("UPDATE notifications SET reason = 'RATE' WHERE id = (SELECT id FROM notifications ORDER BY next_attempt_at, id LIMIT 1)")
        .execute(&portal.pool)
        .await
        .unwrap();
    for state in [Retry, Pending, Sent, Sending] {
        NotificationRow::in_state(state, id).make(&portal.pool).await;
    }
    let path = format!("/subscriptions/{id}/scheduled");
    let summary = portal.see(&format!("{path}/summary")).await;
    assert_eq!(
        (&summary["total"], &summary["timeZone"]),
        (&json!(7), &json!("UTC"))
    );
    let sums = summary["waiting"].as_array().unwrap();
    let counted: u64 = sums.iter().map(|sum| sum["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 7, "{summary:#}");
    let of = |reason: &str| -> Vec<u64> {
        let of = sums.iter().filter(|sum| sum["reason"] == reason);
        of.map(|sum| sum["count"].as_u64().unwrap()).collect()
    };
    assert_eq!((of("RATE"), of("RETRY"), of("TURN")), (vec![1], vec![1], vec![1]));
    assert_eq!(
        of("QUOTA"),
        [1, 2, 1],
        "two a day, and one place of today was before them"
    );
    assert_eq!(sums.last().unwrap()["day"], Value::Null);

    let listed = portal.all(&format!("{path}?reason=QUOTA"), 3).await;
    assert_eq!(listed.len(), 4);
    assert_eq!(portal.all(&format!("{path}?reason=QUOTA,RATE"), 2).await.len(), 5);
    assert_eq!(
        portal
            .all(&format!("{path}?eventType=contact.updated"), 2)
            .await
            .len(),
        0
    );
    for wrong in ["reason=X", "day=tomorrow"] {
        portal
            .refused("GET", &format!("{path}?{wrong}"), None, (400, "invalid-query"))
            .await;
    }

    let in_line = sums
        .iter()
        .filter(|sum| ["QUOTA", "RATE"].map(Value::from).contains(&sum["reason"]));
    let mut days: BTreeMap<&str, u64> = BTreeMap::new();
    for sum in in_line {
        *days.entry(sum["day"].as_str().unwrap()).or_default() += sum["count"].as_u64().unwrap();
    }
    assert_eq!(days.values().copied().collect::<Vec<_>>(), [2, 2, 1]);
    for (day, count) in &days {
        for limit in [1, 2, 50] {
            let of_day = portal.all(&format!("{path}?day={day}"), limit).await;
            assert_eq!(of_day.len() as u64, *count, "{day} by {limit}");
            let is_of_it = |it: &Value| it["nextAttemptAt"].as_str().unwrap().starts_with(day);
            assert!(of_day.iter().all(is_of_it), "{day}: {of_day:?}");
        }
    }
    let first = days.keys().next().unwrap();
    let by_rate = format!("{path}?day={first}&reason=RATE");
    assert_eq!(portal.all(&by_rate, 50).await.len(), 1);
    assert!(portal.all(&format!("{path}?day=2020-01-01"), 50).await.is_empty());

    portal
        .done("POST", &format!("/subscriptions/{id}/pause"), 200)
        .await;
    let paused = portal.see(&format!("{path}/summary")).await;
    assert_eq!(paused["pausedBy"], "RESELLER");
    let pause = paused["waiting"].as_array().unwrap().last().unwrap();
    assert_eq!(
        *pause,
        json!({"reason": "PAUSED", "day": null, "firstAt": null, "lastAt": null, "count": 6})
    );
}

#[testkit::test]
async fn a_story_is_told_without_anything_of_the_house(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let given_up = made(&portal, id, GivenUp, 3).await;
    attempt(
        &portal,
        &given_up,
        "response_status = NULL, error_type = 'EGRESS', error = 'the endpoint has a private address', url = 'https://vault.example/'",
    )
    .await;
    let story = portal.see(&format!("/notifications/{}/story", given_up.id)).await;
    assert_eq!(
        (&story["status"], &story["headline"]["code"]),
        (&json!("GIVEN_UP"), &json!("given-up"))
    );
    assert_eq!(story["headline"]["params"]["errorType"], "DNS", "{story:#}");
    assert_eq!(story["next"]["code"], "resend");
    let steps = story["story"].as_array().unwrap();
    assert_eq!(
        (&steps[0]["code"], &steps[1]["code"]),
        (&json!("accepted"), &json!("attempt-failed"))
    );
    assert_eq!(steps[1]["params"]["attempt"], 1);
    for word in [
        "private",
        "dead letter",
        "retry-worker",
        "postrider ",
        "acme",
        "operator",
    ] {
        assert!(!story.to_string().contains(word), "{word}: {story:#}");
    }
    for state in NotificationState::ALL {
        let it = made(&portal, id, state, 2).await;
        let story = portal.see(&format!("/notifications/{}/story", it.id)).await;
        assert_eq!(story["status"], state.status().as_str());
        assert!(!story["headline"]["text"].as_str().unwrap().is_empty());
    }
}

#[testkit::test]
async fn what_waits_can_be_cancelled_and_what_is_sent_cannot(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let act = async |it: &MadeNotification, act: &str, status: u16| {
        let path = format!("/notifications/{}/{act}", it.id);
        portal.done("POST", &path, status).await
    };
    for state in [Scheduled, Pending, Retry] {
        let waiting = made(&portal, id, state, 1).await;
        let cancelled = act(&waiting, "cancel", 200).await;
        assert_eq!(
            (&cancelled["status"], &cancelled["reason"]),
            (&json!("GIVEN_UP"), &json!("CANCELLED")),
            "{state:?}"
        );
        act(&waiting, "resend", 409).await;
        let again = act(&waiting, "cancel", 409).await;
        assert_eq!(again["type"], "urn:postrider:problem:notification-beyond");
        let story = portal.see(&format!("/notifications/{}/story", waiting.id)).await;
        assert_eq!(story["headline"]["code"], "cancelled-by-you", "{story:#}");
    }
    for state in [Sent, Failed, Sending] {
        act(&made(&portal, id, state, 1).await, "cancel", 409).await;
    }
    let waiting = made(&portal, id, Scheduled, 1).await;
    let stranger = portal.key_of("stranger").await;
    for (method, path) in [("POST", "cancel"), ("GET", "story")] {
        let path = format!("/notifications/{}/{path}", waiting.id);
        let foreign = portal.request(method, &path).bearer_auth(&stranger);
        answer(foreign.send().await.unwrap(), 404).await;
    }
}
