//! Finding pushes, notifications, subscriptions and resellers, and what became of what a job has sent again.

use domain::notification::NotificationState;
use domain::push::PushState;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::{Rig, fields};

async fn change(rig: &Rig, sql: &'static str, id: Uuid) {
    sqlx::query(sql).bind(id).execute(&rig.it.pool).await.unwrap();
}

fn ids(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap()).collect()
}

#[testkit::test]
async fn the_pushes_of_a_device_are_found_and_the_device_is_in_no_answer(rig: &Rig) {
    let device = "463B3209-C1A6-4F2E";
    let mine = PushRow::in_state(PushState::Failed)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    PushRow::in_state(PushState::Sent).make(&rig.it.pool).await;
    change(
        rig,
        "UPDATE push_notifications SET push_key = '463B3209-C1A6-4F2E' WHERE id = $1",
        mine,
    )
    .await;
    let found = rig.see(&format!("/pushes?device={device}")).await;
    assert_eq!(ids(&found), [mine.to_string()]);
    let push = &found["items"][0];
    assert_eq!(push["status"], "FAILED");
    assert!(push["lastFailure"]["errorType"].is_string(), "{push}");
    assert!(!found.to_string().contains(device), "{found}");
    assert_eq!(
        rig.see(&format!("/pushes?device={device}&status=SENT")).await["items"],
        json!([])
    );
    for (query, field) in [
        ("status=LOST", "status"),
        ("platform=ios", "platform"),
        ("reason=NONE", "reason"),
        ("device=", "device"),
        ("since=2026-11-21T12:00:00Z&until=2026-11-21T11:00:00Z", "until"),
    ] {
        let problem = rig
            .refused("GET", &format!("/pushes?{query}"), None, (400, "invalid-query"))
            .await;
        assert_eq!(fields(&problem), [field], "{query}");
    }
}

#[testkit::test]
async fn several_statuses_are_asked_for_at_once_and_an_unknown_one_is_answered_with_those_there_are(
    rig: &Rig,
) {
    let pool = &rig.it.pool;
    let subscription = SubscriptionRow::active().make(pool).await;
    let (mut pushes, mut notifications) = (Vec::new(), Vec::new());
    for (push, notification) in [
        (PushState::Failed, NotificationState::Failed),
        (PushState::GivenUp, NotificationState::GivenUp),
        (PushState::Cancelled, NotificationState::Cancelled),
        (PushState::Sent, NotificationState::Sent),
        (PushState::Retry, NotificationState::Retry),
    ] {
        pushes.push(PushRow::in_state(push).make(pool).await.id.to_string());
        let row = NotificationRow::in_state(notification, subscription);
        notifications.push(row.make(pool).await.id.to_string());
    }
    for (query, wanted) in [
        ("status=FAILED,GIVEN_UP", &[0, 1, 2][..]),
        ("status=GIVEN_UP,%20RETRY", &[1, 2, 4][..]),
        ("status=FAILED,GIVEN_UP&reason=CANCELLED", &[2][..]),
        ("reason=CANCELLED", &[2][..]),
    ] {
        for (list, made) in [("pushes", &pushes), ("notifications", &notifications)] {
            let found = rig.see(&format!("/{list}?{query}")).await;
            let mut found = ids(&found);
            found.sort_unstable();
            let mut wanted: Vec<&str> = wanted.iter().map(|place| &*made[*place]).collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{list}, {query}");
        }
    }
    for (query, said) in [
        ("pushes?status=FALED,GIVEN_UP", "GIVEN_UP; did you mean FAILED?"),
        (
            "notifications?status=SENT,given_up",
            "GIVEN_UP; did you mean GIVEN_UP?",
        ),
        (
            "notifications?reason=CANCELED",
            "SUBSCRIPTION_DELETED; did you mean CANCELLED?",
        ),
        (
            "notifications?reason=QUOTA,CANCELLED",
            "ask for one of the two at a time",
        ),
        (
            "notifications?status=SENT,RETRY&endedSince=2026-11-21T12:00:00Z",
            "ask for SENT, FAILED or GIVEN_UP",
        ),
        (
            "notifications?status=SENT,RETRY&lateBySeconds=600",
            "ask for SENT, FAILED or GIVEN_UP",
        ),
        (
            "pushes?status=SENT,RETRY&endedSince=2026-11-21T12:00:00Z",
            "ask for SENT, FAILED or GIVEN_UP",
        ),
        (
            "pushes?status=PENDING&lateBySeconds=600",
            "ask for SENT, FAILED or GIVEN_UP",
        ),
    ] {
        let problem = rig
            .refused("GET", &format!("/{query}"), None, (400, "invalid-query"))
            .await;
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.ends_with(said), "{query}: {detail}");
    }
}

#[testkit::test]
async fn what_a_reseller_got_is_found_without_a_key_of_its_own(rig: &Rig) {
    let url = "https://hooks.acme.example/postrider?tenant=1";
    let subscription = SubscriptionRow::active().url(url).make(&rig.it.pool).await;
    let other = SubscriptionRow::active()
        .reseller("other")
        .make(&rig.it.pool)
        .await;
    let row = |state, subscription| NotificationRow::in_state(state, subscription);
    let sent = row(NotificationState::Sent, subscription)
        .make(&rig.it.pool)
        .await;
    let retry = row(NotificationState::Retry, subscription)
        .make(&rig.it.pool)
        .await;
    row(NotificationState::Sent, other)
        .reseller("other")
        .make(&rig.it.pool)
        .await;
    change(
        rig,
        "INSERT INTO event_keys VALUES ('reseller/acme', 'order-17', $1, '\\x01', now())",
        sent.event,
    )
    .await;

    let all = rig.see("/notifications?reseller=acme").await;
    assert_eq!(all["items"].as_array().unwrap().len(), 2, "{all}");
    assert_eq!(all["items"][0]["url"], url, "with its path");
    assert_eq!(
        ids(&rig.see("/notifications?reseller=acme&status=RETRY").await),
        [retry.id.to_string()]
    );
    let of_all = rig.see("/notifications?status=SENT").await;
    assert_eq!(of_all["items"].as_array().unwrap().len(), 2, "{of_all}");
    for query in [
        "reseller=acme&eventId=order-17".to_owned(),
        format!("eventId={}", sent.event),
    ] {
        let found = rig.see(&format!("/notifications?{query}")).await;
        assert_eq!(ids(&found), [sent.id.to_string()], "{query}");
    }
    for query in [
        "code=503",
        "code=5xx",
        "code=503&error=HTTP",
        "error=HTTP&status=RETRY",
    ] {
        let found = rig.see(&format!("/notifications?{query}")).await;
        assert_eq!(ids(&found), [retry.id.to_string()], "{query}");
        assert_eq!(found["items"][0]["errorType"], "HTTP");
    }
    for query in [
        "code=404".to_owned(),
        "code=4xx".to_owned(),
        "error=TIMEOUT".to_owned(),
        format!("eventId={}&code=4xx", retry.event),
        format!("eventId={}&error=DNS", retry.event),
    ] {
        let found = rig.see(&format!("/notifications?{query}")).await;
        assert_eq!(found["items"], json!([]), "{query}");
    }
    for (query, field) in [
        ("eventId=order-17", "reseller"),
        ("code=99", "code"),
        ("code=6xx", "code"),
        ("error=SLOW", "error"),
        ("reseller=a&status=x", "status"),
        ("status=RETRY&endedSince=2026-11-21T12:00:00Z", "endedSince"),
        (
            "endedSince=2026-11-21T12:00:00Z&endedUntil=2026-11-21T12:00:00Z",
            "endedUntil",
        ),
    ] {
        let path = format!("/notifications?{query}");
        let problem = rig.refused("GET", &path, None, (400, "invalid-query")).await;
        assert_eq!(fields(&problem), [field], "{query}");
    }
}

#[testkit::test]
async fn notifications_are_found_by_the_url_of_their_endpoint(rig: &Rig) {
    let made = async |reseller: &str, url: &str| {
        let row = SubscriptionRow::active().reseller(reseller).url(url);
        let subscription = row.make(&rig.it.pool).await;
        let row = NotificationRow::in_state(NotificationState::Sent, subscription).reseller(reseller);
        row.make(&rig.it.pool).await
    };
    let first = made("acme", "https://hooks.one.example/a").await;
    let second = made("bolt", "https://hooks.one.example/b").await;
    made("acme", "https://hooks.two.example/a").await;
    let found = async |query: String| {
        let list = rig.see(&format!("/notifications?{query}")).await;
        let mut found: Vec<String> = ids(&list).into_iter().map(str::to_owned).collect();
        found.sort_unstable();
        found
    };
    let mut both = [first.id.to_string(), second.id.to_string()];
    both.sort_unstable();
    assert_eq!(found("url=hooks.one.example".to_owned()).await, both);
    assert_eq!(found("url=hooks.one.example&status=SENT".to_owned()).await, both);
    let theirs = [second.id.to_string()];
    assert_eq!(found("url=one.example&reseller=bolt".to_owned()).await, theirs);
    let of_event = |url: &str| format!("url={url}&eventId={}", second.event);
    assert_eq!(found(of_event("one.example")).await, theirs);
    assert!(found(of_event("two.example")).await.is_empty());
    assert!(found("url=three.example".to_owned()).await.is_empty());
    let path = format!("/notifications?url=one.example&subscription={}", Uuid::now_v7());
    let problem = rig.refused("GET", &path, None, (400, "invalid-query")).await;
    assert_eq!(fields(&problem), ["url"]);

    sqlx::query(
        "INSERT INTO subscriptions
             (id, reseller_id, url, event_types, email, state, state_reason, state_changed_at, verified_at, created_at, updated_at)
         SELECT gen_random_uuid(), reseller_id, url, event_types, email, state, state_reason, state_changed_at, verified_at, created_at,
                updated_at
         FROM subscriptions, generate_series(1, 999) WHERE url = 'https://hooks.one.example/a'",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let path = "/notifications?url=one.example";
    let problem = rig.refused("GET", path, None, (400, "invalid-query")).await;
    assert_eq!(fields(&problem), ["url"]);
    let of_one = found("url=one.example&reseller=bolt".to_owned()).await;
    assert_eq!(of_one, theirs);
}

#[testkit::test]
async fn what_waits_for_a_pause_says_whose_it_is_in_every_list(rig: &Rig) {
    let held = SubscriptionRow::active().make(&rig.it.pool).await;
    let own = SubscriptionRow::active().paused().make(&rig.it.pool).await;
    let other = SubscriptionRow::active()
        .reseller("other")
        .make(&rig.it.pool)
        .await;
    for (subscription, reseller) in [(held, "acme"), (own, "acme"), (other, "other")] {
        for state in [NotificationState::Pending, NotificationState::Sent] {
            let row = NotificationRow::in_state(state, subscription).reseller(reseller);
            row.make(&rig.it.pool).await;
        }
    }
    for state in [PushState::Pending, PushState::Queued, PushState::Sent] {
        PushRow::in_state(state).make(&rig.it.pool).await;
    }
    let told = async |path: &str| -> Vec<(String, Value)> {
        let list = rig.see(path).await;
        let items = list["items"].as_array().unwrap().iter();
        let mut told: Vec<_> = items
            .map(|item| (item["status"].to_string(), item["pausedBy"].clone()))
            .collect();
        told.sort_by_key(|(status, by)| (status.clone(), by.to_string()));
        told
    };
    let reasons = async || -> Vec<Value> {
        let list = rig.see("/pushes?status=PENDING").await;
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["reason"].clone()).collect()
    };
    assert_eq!(reasons().await, [Value::Null]);
    let told_of = async |subscription: Uuid| -> (Value, Value, Value) {
        let list = rig
            .see(&format!(
                "/notifications?subscription={subscription}&status=PENDING"
            ))
            .await;
        let it = &list["items"][0];
        (it["pausedBy"].clone(), it["paused"].clone(), it["reason"].clone())
    };
    let note = json!({"note": "because"});
    assert_eq!(told_of(held).await, (Value::Null, json!(false), Value::Null));
    let paused_by = |by: &str| (json!(by), json!(true), json!("PAUSED"));
    assert_eq!(told_of(own).await, paused_by("RESELLER"));
    rig.act(&format!("/subscriptions/{held}/pause"), &note, 200).await;
    assert_eq!(told_of(held).await, paused_by("OPERATOR"));
    rig.act("/resellers/acme/pause", &note, 200).await;
    assert_eq!(told_of(held).await, paused_by("ALL_OF_RESELLER"));
    assert_eq!(told_of(other).await.0, Value::Null);
    rig.act("/lanes/reseller/pause", &note, 200).await;
    assert_eq!(told_of(other).await, paused_by("LANE"));
    let sent = told("/notifications?status=SENT").await;
    assert_eq!(sent.len(), 3);
    assert!(
        sent.iter().all(|(_, by)| by.is_null()),
        "what has ended waits for nothing: {sent:?}"
    );

    assert!(
        told("/pushes").await.iter().all(|(_, by)| by.is_null()),
        "the pause of another lane"
    );
    rig.act("/lanes/push/pause", &note, 200).await;
    let said = |status: &str, by: Value| (json!(status).to_string(), by);
    assert_eq!(
        told("/pushes").await,
        [
            said("IN_MEMORY", json!("LANE")),
            said("PENDING", json!("LANE")),
            said("SENT", Value::Null)
        ]
    );
    assert_eq!(reasons().await, ["PAUSED"]);
}

#[testkit::test]
async fn an_event_that_became_no_notification_is_found_by_what_it_says(rig: &Rig) {
    let event = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at, missed)
         VALUES ($1, 'order-17', 'acme', 'domain.created', $2, now(), now(), '[]')",
    )
    .bind(event)
    .bind(r#"{"data":{"domain":{"name":"found.example"}}}"#)
    .execute(&rig.it.pool)
    .await
    .unwrap();
    change(
        rig,
        "INSERT INTO event_keys VALUES ('reseller/acme', 'order-17', $1, '\\x01', now())",
        event,
    )
    .await;
    for query in [
        "value=found.example",
        "value=found.example&unmatched=true&reseller=acme",
        "eventType=domain.created",
        "",
    ] {
        let found = rig.see(&format!("/events?{query}")).await;
        assert_eq!(ids(&found), [event.to_string()], "{query}");
        assert_eq!(found["items"][0]["notifications"], 0);
        assert!(!found.to_string().contains("found.example"), "{found}");
    }
    for query in ["value=found", "reseller=other", "until=2026-01-01T00:00:00Z"] {
        assert_eq!(
            rig.see(&format!("/events?{query}")).await["items"],
            json!([]),
            "{query}"
        );
    }
    for path in ["/events?eventType=domain.*", "/notifications?eventType=domain.*"] {
        let problem = rig.refused("GET", path, None, (400, "invalid-query")).await;
        assert_eq!(fields(&problem), ["eventType"], "{path}");
    }
    for (text, tried) in [("order-17", "eventId"), ("found.example", "value")] {
        let found = rig.see(&format!("/search?q={text}")).await;
        assert_eq!(ids(&found), [event.to_string()], "{text}");
        assert_eq!(found["items"][0]["state"], "UNMATCHED");
        assert_eq!(found["tried"].as_array().unwrap().last().unwrap(), tried);
    }
    for query in ["q=found.example&reseller=acme", "q=acme/found.example"] {
        let found = rig.see(&format!("/search?{query}")).await;
        assert_eq!(ids(&found), [event.to_string()], "{query}");
    }
    let of_another = rig.see("/search?q=found.example&reseller=other").await;
    assert_eq!(of_another["items"], json!([]));
}

#[testkit::test]
async fn subscriptions_and_resellers_are_listed_with_how_they_are(rig: &Rig) {
    let url = "https://hooks.acme.example/postrider?tenant=1";
    let mine = SubscriptionRow::active().url(url).make(&rig.it.pool).await;
    SubscriptionRow::active().paused().make(&rig.it.pool).await;
    SubscriptionRow::in_state(SubscriptionState::Degraded)
        .reseller("bolt")
        .make(&rig.it.pool)
        .await;
    SubscriptionRow::active()
        .reseller("gone")
        .deleted()
        .make(&rig.it.pool)
        .await;

    let resellers = rig.all("/resellers", 1).await;
    let counts: Vec<_> = resellers
        .iter()
        .map(|one| {
            (
                one["id"].as_str().unwrap(),
                one["subscriptions"].as_u64(),
                one["paused"].as_u64(),
            )
        })
        .collect();
    assert_eq!(counts, [("acme", Some(2), Some(1)), ("bolt", Some(1), Some(0))]);

    for (name, found) in [
        ("AC", vec!["acme"]),
        ("acme", vec!["acme"]),
        ("b", vec!["bolt"]),
        // Neither what follows the beginning, nor what stands for any character elsewhere, nor one whose subscription is deleted.
        ("cme", vec![]),
        ("%25", vec![]),
        ("gone", vec![]),
    ] {
        let listed = rig.see(&format!("/resellers?name={name}")).await;
        assert_eq!(ids(&listed), found, "{name}");
    }
    let problem = rig
        .refused("GET", "/resellers?name=", None, (400, "invalid-query"))
        .await;
    assert_eq!(fields(&problem), ["name"]);

    assert_eq!(rig.all("/subscriptions", 1).await.len(), 3);
    assert_eq!(rig.all("/subscriptions?reseller=acme", 1).await.len(), 2);
    assert_eq!(rig.all("/subscriptions?state=DEGRADED", 1).await.len(), 1);
    assert_eq!(
        rig.all("/subscriptions?reseller=acme&paused=false", 1)
            .await
            .len(),
        1
    );
    let found = rig.see("/subscriptions?url=hooks.acme.example/postrider").await;
    assert_eq!(ids(&found), [mine.to_string()]);
    let one = rig.see(&format!("/subscriptions/{mine}")).await;
    assert_eq!(one, found["items"][0]);
    assert_eq!((&one["url"], &one["resellerId"]), (&json!(url), &json!("acme")));
    assert_eq!(one["failingSince"], Value::Null);
    change(
        rig,
        "UPDATE subscriptions SET failing_since = '2026-11-21T12:00:00Z' WHERE id = $1",
        mine,
    )
    .await;
    let failing = rig.see("/subscriptions?failing=true&reseller=acme").await;
    assert_eq!(ids(&failing), [mine.to_string()]);
    assert_eq!(failing["items"][0]["failingSince"], "2026-11-21T12:00:00Z");
    rig.refused(
        "GET",
        &format!("/subscriptions/{}", Uuid::now_v7()),
        None,
        (404, "not-found"),
    )
    .await;
}

#[testkit::test]
async fn the_outcome_of_a_job_tells_what_became_of_what_it_has_sent_again(rig: &Rig) {
    let job = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO dead_letter_jobs (id, action, filter, per_second, until, matching, created_by, created_at, paced_to, updated_at)
         VALUES ($1, 'REPLAY', '{}', 100, now(), 4, 'ann', now(), now(), now())",
    )
    .bind(job)
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let path = format!("/dead-letters/jobs/{job}/outcome");
    let empty = rig.see(&path).await;
    assert_eq!(
        (&empty["delivered"], &empty["byFingerprint"]),
        (&json!(0), &json!([]))
    );

    for state in [
        PushState::Sent,
        PushState::Sent,
        PushState::Retry,
        PushState::Failed,
    ] {
        let push = PushRow::in_state(state).make(&rig.it.pool).await.id.uuid();
        sqlx::query(
            "INSERT INTO dead_letters (lane, reason, fingerprint, detail, push_id, state, resolved_at, resolved_by, job_id)
             VALUES ('push', 'FAILED', 'swrve/503', 'busy', $1, 'REPLAYED', now(), 'ann', $2)",
        )
        .bind(push)
        .bind(job)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    }
    let outcome = rig.see(&path).await;
    assert_eq!(
        [
            &outcome["delivered"],
            &outcome["waiting"],
            &outcome["failedAgain"],
            &outcome["gone"]
        ],
        [&json!(2), &json!(1), &json!(1), &json!(0)],
        "{outcome}"
    );
    assert_eq!(
        (&outcome["examined"], &outcome["whole"]),
        (&json!(4), &json!(true))
    );
    let [kind] = &outcome["byFingerprint"].as_array().unwrap()[..] else {
        panic!("{outcome}");
    };
    assert_eq!(
        (&kind["fingerprint"], &kind["delivered"]),
        (&json!("swrve/503"), &json!(2))
    );
    let failures = kind["failures"].as_object().unwrap();
    assert_eq!(failures.values().collect::<Vec<_>>(), [&json!(1)], "{kind}");

    let of_each = rig.see("/dead-letters?state=REPLAYED").await;
    let mut of_each: Vec<_> = of_each["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| letter["outcome"].as_str().unwrap())
        .collect();
    of_each.sort_unstable();
    assert_eq!(of_each, ["DELIVERED", "DELIVERED", "FAILED_AGAIN", "WAITING"]);
    for (job, count) in [(job, 4), (Uuid::now_v7(), 0)] {
        let resolved = rig.see(&format!("/dead-letters?job={job}")).await;
        assert_eq!(resolved["items"].as_array().unwrap().len(), count, "{resolved}");
        let groups = rig.see(&format!("/dead-letters/groups?job={job}")).await;
        assert_eq!(groups["total"], json!(count), "{groups}");
    }
    let open = rig.see("/dead-letters").await;
    let open = open["items"].as_array().unwrap();
    assert!(!open.is_empty(), "what failed again is open again");
    assert!(
        open.iter().all(|letter| letter.get("outcome").is_none()),
        "{open:?}"
    );
    for (id, action) in [(Uuid::now_v7(), "DISCARD"), (Uuid::now_v7(), "REPLAY")] {
        sqlx::query(
            "INSERT INTO dead_letter_jobs (id, action, filter, per_second, until, matching, note, created_by, created_at, paced_to, updated_at)
             VALUES ($1, $2, '{}', 100, now(), 4, 'why', 'ann', now(), now(), now())",
        )
        .bind(id)
        .bind(action)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    }
    let listed = rig.see("/dead-letters/jobs").await;
    let [replay, discard, first] = &listed["items"].as_array().unwrap()[..] else {
        panic!("{listed}");
    };
    assert_eq!(first["outcome"], outcome, "the same as of the job alone");
    assert_eq!(
        (&replay["outcome"]["examined"], &replay["outcome"]["whole"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(
        discard["outcome"],
        Value::Null,
        "nothing becomes of what is discarded"
    );
    let unknown = format!("/dead-letters/jobs/{}/outcome", Uuid::now_v7());
    rig.refused("GET", &unknown, None, (404, "not-found")).await;
}
