//! Dead letters as the engineer on call sees them: in lists, in groups, and one by one.

use chrono::{SecondsFormat, TimeDelta};
use domain::notification::NotificationState;
use domain::push::PushState;
use serde_json::{Value, json};
use store::{BrokerDeadLetter, DeadLetterLane};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::{Rig, fields};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Two dead letters about pushes, one about a notification, one that is none of ours. Returns push and subscription.
pub(crate) async fn make_dead_letters(rig: &Rig) -> (Uuid, Uuid) {
    let pool = &rig.it.pool;
    let push = PushRow::in_state(PushState::GivenUp)
        .attempts(3)
        .traceparent(TRACE);
    let push = push.make(pool).await.id.uuid();
    PushRow::in_state(PushState::Failed).make(pool).await;
    let subscription = SubscriptionRow::active().make(pool).await;
    NotificationRow::in_state(NotificationState::Failed, subscription)
        .make(pool)
        .await;
    let malformed = BrokerDeadLetter {
        lane: DeadLetterLane::Push,
        id: None,
        detail: "the message cannot be read".to_owned(),
        fingerprint: "broker/malformed".to_owned(),
        message: json!({"reason": "rejected", "queue": "push.ready", "count": 1, "body": "{", "headers": {}}),
    };
    rig.it.store.archive_dead_letter(&malformed).await.unwrap();
    (push, subscription)
}

async fn only(rig: &Rig, query: &str) -> Value {
    let letters = rig.all(&format!("/dead-letters?{query}"), 10).await;
    assert_eq!(letters.len(), 1, "{query}: {letters:?}");
    letters[0].clone()
}

#[testkit::test]
async fn dead_letters_are_listed_page_by_page_with_each_filter(rig: &Rig) {
    let (push, subscription) = make_dead_letters(rig).await;
    let newest = rig.all("/dead-letters", 1).await;
    let mut oldest = rig.all("/dead-letters?order=oldest", 3).await;
    oldest.reverse();
    assert_eq!((newest.len(), &newest), (4, &oldest));
    let about_push = only(rig, "lane=push&reason=GIVEN_UP").await;
    assert_eq!(about_push["pushId"], push.to_string());
    assert_eq!(
        (&about_push["state"], &about_push["attempts"]),
        (&json!("OPEN"), &json!(3))
    );
    assert!(about_push.get("resolvedAt").is_none());
    let about_notification = only(rig, &format!("subscription={subscription}")).await;
    assert_eq!(
        only(rig, "lane=reseller&eventType=domain.created").await,
        about_notification
    );
    assert_eq!(only(rig, "fingerprint=broker/*").await["reason"], "MALFORMED");
    for none in [
        "state=DISCARDED",
        "reseller=unknown",
        "prototype=nothing",
        "target=https://nowhere.example",
        "until=2020-01-01T00:00:00Z",
    ] {
        let page = rig.see(&format!("/dead-letters?{none}")).await;
        assert_eq!(page, json!({"items": [], "next": null}), "{none}");
    }
    assert_eq!(rig.all("/dead-letters?state=ALL", 200).await.len(), 4);
}

#[testkit::test]
async fn groups_count_dead_letters_by_what_went_wrong(rig: &Rig) {
    make_dead_letters(rig).await;
    let groups = rig.see("/dead-letters/groups").await;
    assert_eq!((&groups["total"], &groups["atLeast"]), (&json!(4), &json!(false)));
    let largest = &groups["items"][0];
    assert_eq!(
        (&largest["count"], &largest["fingerprint"], &largest["kind"]),
        (&json!(2), &json!("swrve/503"), &json!("swrve-5xx"))
    );
    let letters = rig
        .all("/dead-letters?fingerprint=swrve/503&order=oldest", 10)
        .await;
    assert_eq!(
        (&largest["firstSeen"], &largest["lastSeen"]),
        (&letters[0]["createdAt"], &letters[1]["createdAt"])
    );
    assert_eq!(
        largest["sample"],
        json!({"id": letters[1]["id"], "detail": letters[1]["detail"]})
    );
    let resellers = rig.see("/dead-letters/groups?lane=reseller&limit=1").await;
    assert_eq!(resellers["total"], 1);
}

#[testkit::test]
async fn dead_letters_are_counted_by_the_hour_in_which_they_were_written(rig: &Rig) {
    make_dead_letters(rig).await;
    // By the clock of the service, so that an hour that ends meanwhile is no matter.
    let written = "UPDATE dead_letters SET created_at = $1 - hours * interval '1 hour'
                   FROM (SELECT id, CASE WHEN fingerprint <> 'swrve/503' THEN 0
                                    ELSE 2 * row_number() OVER (PARTITION BY fingerprint ORDER BY id) - 1 END AS hours
                         FROM dead_letters) AS places WHERE places.id = dead_letters.id";
    sqlx::query(written)
        .bind(rig.now())
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let groups = rig
        .see("/dead-letters/timeline?fingerprint=swrve/503&hours=4")
        .await;
    let group = &groups["items"][0];
    assert_eq!(groups["items"].as_array().unwrap().len(), 1, "{groups}");
    assert_eq!(
        (&group["lane"], &group["kind"], &group["counts"]),
        (&json!("push"), &json!("swrve-5xx"), &json!([1, 0, 1, 0])),
        "{groups}"
    );
    let all = rig.see("/dead-letters/timeline").await;
    let sums = all["items"].as_array().unwrap().iter().map(|group| {
        let counts = group["counts"].as_array().unwrap();
        assert_eq!(counts.len(), 24);
        counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>()
    });
    assert_eq!(sums.sum::<u64>(), 4, "{all}");
    let of_all = all["counts"].as_array().unwrap().iter();
    assert_eq!(
        of_all.map(|count| count.as_u64().unwrap()).sum::<u64>(),
        4,
        "{all}"
    );
    let alone = rig.see("/dead-letters/timeline?limit=0").await;
    assert_eq!((&alone["counts"], &alone["items"]), (&all["counts"], &json!([])));
    let short = rig
        .see("/dead-letters/timeline?fingerprint=swrve/503&hours=2")
        .await;
    assert_eq!(
        short["items"][0]["counts"],
        json!([1, 0]),
        "what came before is not counted"
    );
    sqlx::query(
        "UPDATE dead_letters SET reseller_id = 'acme', target = 'https://acme.example' WHERE lane = 'reseller'",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let of_acme = rig.see("/dead-letters/timeline?reseller=acme&hours=1").await;
    let group = &of_acme["items"][0];
    assert_eq!(
        (
            &of_acme["counts"],
            &of_acme["atLeast"],
            &group["target"],
            &group["counts"]
        ),
        (
            &json!([1]),
            &json!(false),
            &json!("https://acme.example"),
            &json!([1])
        ),
        "{of_acme}"
    );
    let by_reseller = rig.see("/dead-letters/timeline?by=reseller&hours=2").await;
    assert_eq!(
        (&by_reseller["counts"], &by_reseller["items"]),
        (
            &json!([0, 1]),
            &json!([{"lane": "reseller", "fingerprint": null, "kind": null, "target": null, "resellerId": "acme", "counts": [0, 1]}])
        ),
        "those of pushes are of no reseller"
    );
    let by_endpoint = rig
        .see("/dead-letters/timeline?by=endpoint&lane=push&hours=4")
        .await;
    let group = &by_endpoint["items"][0];
    assert_eq!(
        (&group["fingerprint"], &group["kind"], &group["counts"][0]),
        (&Value::Null, &Value::Null, &json!(1)),
        "{by_endpoint}"
    );
    let since = (rig.now() - TimeDelta::hours(3)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let past = rig
        .see(&format!(
            "/dead-letters/timeline?fingerprint=swrve/503&since={since}&limit=1"
        ))
        .await;
    assert_eq!(
        past["items"][0]["counts"],
        json!([1, 0, 1, 0]),
        "from the hour of that time on"
    );
    for wrong in [
        "hours=0",
        "hours=673",
        "limit=301",
        "state=GONE",
        "fingerprint=*",
        "by=colour",
        "hours=2&since=2026-11-21T00:00:00Z",
        "since=2026-11-21T00:00:00Z&until=2026-11-20T00:00:00Z",
        "since=2020-01-01T00:00:00Z",
        "job=019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
    ] {
        let path = format!("/dead-letters/timeline?{wrong}");
        rig.refused("GET", &path, None, (400, "invalid-query")).await;
    }
}

#[testkit::test]
async fn one_dead_letter_is_shown_with_its_history_and_a_request_without_secrets(rig: &Rig) {
    let (push, _) = make_dead_letters(rig).await;
    let again = "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail)
                 VALUES ('push', 'GIVEN_UP', 'swrve/unreachable', $1, 'no answer') RETURNING id";
    let other: Uuid = sqlx::query_scalar(again)
        .bind(push)
        .fetch_one(&rig.it.pool)
        .await
        .unwrap();
    let letter = only(rig, "reason=GIVEN_UP&fingerprint=swrve/503").await;
    let shown = rig
        .see(&format!("/dead-letters/{}", letter["id"].as_str().unwrap()))
        .await;
    for (name, value) in letter.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{name}");
    }
    let attempts = shown["history"]["attempts"].as_array().unwrap();
    let attempt = json!({"number": 1, "status": "ERROR", "startedAt": attempts[0]["startedAt"], "millis": 250,
                         "errorType": "SWRVE", "code": 503, "error": "503 Service Unavailable"});
    assert_eq!((attempts.len(), &attempts[0]), (3, &attempt));
    assert_eq!(shown["history"]["status"], "GIVEN_UP");
    assert_eq!(shown["history"]["events"].as_array().unwrap().len(), 2);
    assert_eq!(shown["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(shown["otherLetters"], json!([other]));
    let curl = shown["curl"].as_str().unwrap();
    assert!(
        curl.contains("Hello client!") && curl.contains("\"$SWRVE_PUSH_KEY\""),
        "{curl}"
    );
    assert!(!curl.contains("device-1"), "{curl}");
    let unasked = "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail)
                   VALUES ('push', 'FAILED', 'prototype-key/IOS/Hello', $1, 'no push key') RETURNING id";
    let unasked: Uuid = sqlx::query_scalar(unasked)
        .bind(push)
        .fetch_one(&rig.it.pool)
        .await
        .unwrap();
    let shown = rig.see(&format!("/dead-letters/{unasked}")).await;
    assert!(
        shown.get("curl").is_none() && shown.get("history").is_some(),
        "{shown}"
    );

    let letter = only(rig, "lane=reseller").await;
    let shown = rig
        .see(&format!("/dead-letters/{}", letter["id"].as_str().unwrap()))
        .await;
    let notification = letter["notificationId"].as_str().unwrap();
    let told = rig
        .see(&format!(
            "/notifications?eventId={}",
            shown["event"].as_str().unwrap()
        ))
        .await;
    assert_eq!(told["items"][0]["id"], notification);
    let curl = shown["curl"].as_str().unwrap();
    assert!(
        curl.contains("example.lv") && curl.contains("\"$SIGNATURE\""),
        "{curl}"
    );
    assert_eq!(
        shown["history"]["attempts"][0]["url"],
        "https://acme.example/hook"
    );

    let letter = only(rig, "reason=MALFORMED").await;
    let shown = rig
        .see(&format!("/dead-letters/{}", letter["id"].as_str().unwrap()))
        .await;
    assert_eq!(
        shown["broker"],
        json!({"reason": "rejected", "queue": "push.ready", "count": 1, "body": "{", "headers": {}})
    );
    assert!(shown.get("curl").is_none() && shown.get("history").is_none());
}

#[testkit::test]
async fn what_cannot_be_asked_is_named_with_what_can(rig: &Rig) {
    for (query, field, detail) in [
        ("lane=fast", "lane", "push, reseller"),
        ("state=open", "state", "OPEN, REPLAYED, DISCARDED, or ALL"),
        ("reason=why", "reason", "FAILED, GIVEN_UP, REJECTED, MALFORMED"),
        ("subscription=acme", "subscription", "identifier"),
        ("eventType=x", "eventType", "domain.created"),
        ("target=%00", "target", "U+0000"),
        ("target=", "target", "empty"),
        ("fingerprint=*", "fingerprint", "before *"),
        ("since=-9999-01-01T00:00:00Z", "since", "1970"),
        (
            "since=2026-11-21T12:00:00Z&until=2026-11-21T12:00:00Z",
            "until",
            "later than since",
        ),
        ("limit=0", "limit", "between 1 and"),
    ] {
        for path in ["/dead-letters", "/dead-letters/groups"] {
            let problem = rig
                .refused("GET", &format!("{path}?{query}"), None, (400, "invalid-query"))
                .await;
            assert_eq!(fields(&problem), [field], "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
        }
    }
    for path in ["/explain/%00?reseller=acme", "/explain/x?reseller=%00"] {
        rig.refused("GET", path, None, (404, "not-found")).await;
    }
    rig.refused(
        "GET",
        "/audit?until=-9999-01-01T00:00:00Z",
        None,
        (400, "invalid-query"),
    )
    .await;
    for query in ["order=best", "cursor=x"] {
        rig.refused(
            "GET",
            &format!("/dead-letters?{query}"),
            None,
            (400, "invalid-query"),
        )
        .await;
    }
    let several = "/dead-letters?lane=fast&limit=0&cursor=x&since=yesterday&colour=red";
    let problem = rig.refused("GET", several, None, (400, "invalid-query")).await;
    assert_eq!(fields(&problem), ["since", "colour", "lane", "limit", "cursor"]);
    let unknown = rig
        .refused("GET", "/dead-letters?colour=red", None, (400, "invalid-query"))
        .await;
    let detail = unknown["detail"].as_str().unwrap();
    assert!(
        detail.contains("colour") && detail.contains("fingerprint"),
        "{detail}"
    );
    rig.refused(
        "GET",
        "/dead-letters?since=yesterday",
        None,
        (400, "invalid-query"),
    )
    .await;
    for id in ["019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "nonsense"] {
        rig.refused("GET", &format!("/dead-letters/{id}"), None, (404, "not-found"))
            .await;
    }
}
