//! Replaying and discarding dead letters, one by one and in bulk, and what the audit log says of it.

use chrono::TimeDelta;
use domain::key::Role;
use domain::push::PushState;
use serde_json::{Value, json};
use store::webhook::StatisticsDelta;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::console::{Browser, holds};
use crate::dead_letters::make_dead_letters;
use crate::rig::{Rig, answer, fields, problem};

/// A push that failed, and the dead letter about it.
async fn failed(rig: &Rig) -> (Uuid, Uuid) {
    let push = PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    let letter = sqlx::query_scalar("SELECT id FROM dead_letters WHERE push_id = $1")
        .bind(push.id.uuid())
        .fetch_one(&rig.it.pool)
        .await
        .unwrap();
    (push.id.uuid(), letter)
}

/// Everything that acts could have changed.
async fn everything(rig: &Rig) -> Value {
    sqlx::query_scalar(
        "SELECT jsonb_build_object(
            'pushes', (SELECT jsonb_agg(to_jsonb(p) ORDER BY p.id) FROM push_notifications p),
            'deadLetters', (SELECT jsonb_agg(to_jsonb(d) ORDER BY d.id) FROM dead_letters d),
            'jobs', (SELECT jsonb_agg(to_jsonb(j) ORDER BY j.id) FROM dead_letter_jobs j),
            'log', (SELECT count(*) FROM audit_log))",
    )
    .fetch_one(&rig.it.pool)
    .await
    .unwrap()
}

#[testkit::test]
async fn a_dead_letter_is_replayed_once_and_who_did_it_is_known(rig: &Rig) {
    let (push, letter) = failed(rig).await;
    let path = format!("/dead-letters/{letter}/replay");
    let shown = rig.act(&path, &json!({"note": "Swrve is back"}), 200).await;
    assert_eq!(
        (&shown["id"], &shown["state"]),
        (&json!(letter), &json!("REPLAYED"))
    );
    assert_eq!(
        (&shown["pushId"], &shown["note"]),
        (&json!(push), &json!("Swrve is back"))
    );
    let before = everything(rig).await;
    let refused = rig
        .refused("POST", &path, Some(&json!({})), (409, "conflict"))
        .await;
    assert_eq!(refused["detail"], "the dead letter was replayed before");
    assert_eq!(everything(rig).await, before);

    let log = rig.all("/audit", 1).await;
    let [entry] = &log[..] else { panic!("{log:?}") };
    assert_eq!(entry["actor"], shown["resolvedBy"]);
    assert_eq!(entry["action"], "dead-letter.replay");
    assert_eq!(entry["subject"], json!(format!("dead-letter/{letter}")));
    assert_eq!(
        (&entry["note"], &entry["at"]),
        (&json!("Swrve is back"), &shown["resolvedAt"])
    );
    assert_eq!(entry["details"]["push"], json!(push));
}

#[testkit::test]
async fn what_cannot_be_done_is_refused_with_the_reason_and_changes_nothing(rig: &Rig) {
    let (_, letter) = failed(rig).await;
    let malformed: Uuid = sqlx::query_scalar(
        "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
         VALUES ('push', 'MALFORMED', 'broker/malformed', 'what') RETURNING id",
    )
    .fetch_one(&rig.it.pool)
    .await
    .unwrap();
    let unknown = Uuid::now_v7();
    let before = everything(rig).await;

    let discard = format!("/dead-letters/{letter}/discard");
    for body in [
        json!({}),
        json!({"note": " "}),
        json!({"note": "x".repeat(2_001)}),
    ] {
        let refused = rig
            .refused("POST", &discard, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&refused), ["note"]);
    }
    let replay = format!("/dead-letters/{malformed}/replay");
    let refused = rig
        .refused("POST", &replay, Some(&json!({})), (409, "conflict"))
        .await;
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("discard the dead letter"),
        "{refused}"
    );
    for path in [
        format!("/dead-letters/{unknown}/replay"),
        format!("/dead-letters/jobs/{unknown}/cancel"),
    ] {
        rig.refused("POST", &path, Some(&json!({})), (404, "not-found"))
            .await;
    }

    let jobs = "/dead-letters/jobs";
    for (body, field) in [
        (json!({"filter": {}}), "action"),
        (json!({"action": "mend", "filter": {}}), "action"),
        (json!({"action": "replay"}), "filter"),
        (
            json!({"action": "replay", "filter": {}, "ids": [letter]}),
            "filter",
        ),
        (json!({"action": "replay", "ids": []}), "ids"),
        (json!({"action": "replay", "ids": ["x"]}), "ids"),
        (json!({"action": "replay", "ids": [letter, unknown]}), "ids"),
        (
            json!({"action": "replay", "filter": {"lane": "fast"}}),
            "filter.lane",
        ),
        (
            json!({"action": "replay", "filter": {"state": "REPLAYED"}}),
            "filter.state",
        ),
        (
            json!({"action": "replay", "filter": {}, "perSecond": 0}),
            "perSecond",
        ),
        (
            json!({"action": "replay", "filter": {}, "perSecond": 10_001}),
            "perSecond",
        ),
        (json!({"action": "discard", "filter": {}}), "note"),
        (json!({"action": "replay", "filter": {}, "limit": 0}), "limit"),
        (
            json!({"action": "replay", "filter": {}, "order": "random"}),
            "order",
        ),
        (json!({"action": "replay", "filter": {}, "canary": 0}), "canary"),
        (
            json!({"action": "replay", "filter": {}, "canary": 1_001}),
            "canary",
        ),
        (
            json!({"action": "replay", "filter": {}, "pauseAbove": 100}),
            "pauseAbove",
        ),
        (
            json!({"action": "discard", "filter": {}, "note": "a", "canary": 1}),
            "canary",
        ),
        (
            json!({"action": "discard", "filter": {}, "note": "a", "pauseAbove": 1}),
            "pauseAbove",
        ),
    ] {
        let refused = rig.refused("POST", jobs, Some(&body), (422, "validation")).await;
        assert_eq!(fields(&refused), [field], "{body}");
    }
    let body = json!({"action": "discard", "filter": {}, "perSecond": 0});
    let refused = rig.refused("POST", jobs, Some(&body), (422, "validation")).await;
    assert_eq!(fields(&refused), ["perSecond", "note"], "all at once");
    let nothing = json!({"action": "replay", "filter": {"lane": "reseller", "reason": "FAILED"}});
    rig.refused("POST", jobs, Some(&nothing), (409, "conflict")).await;
    for query in ["status=DONE", "limit=0", "colour=red"] {
        let path = format!("{jobs}?{query}");
        rig.refused("GET", &path, None, (400, "invalid-query")).await;
    }
    for query in [
        "since=yesterday",
        "since=2026-11-21T12:00:00Z&until=2026-11-21T12:00:00Z",
        "cursor=x",
        "who=me",
        "action=dead-leter",
        "action=dead-letter,",
        "without=everything",
    ] {
        rig.refused("GET", &format!("/audit?{query}"), None, (400, "invalid-query"))
            .await;
    }
    assert_eq!(everything(rig).await, before);
}

#[testkit::test]
async fn a_viewer_sees_jobs_and_the_log_and_changes_nothing(rig: &Rig) {
    let (_, letter) = failed(rig).await;
    let filter = json!({"action": "replay", "filter": {}, "note": "a"});
    let made = rig.act("/dead-letters/jobs", &filter, 202).await;
    let job = made["id"].as_str().unwrap();
    let viewer = rig.key_of(Role::Viewer).await;
    let before = everything(rig).await;
    for path in [
        "/dead-letters/jobs".to_owned(),
        format!("/dead-letters/{letter}/replay"),
        format!("/dead-letters/{letter}/discard"),
        format!("/dead-letters/jobs/{job}/pause"),
        format!("/dead-letters/jobs/{job}/cancel"),
    ] {
        let request = rig.request("POST", &path).bearer_auth(&viewer).json(&filter);
        problem(request.send().await.unwrap(), 403, "forbidden").await;
    }
    assert_eq!(everything(rig).await, before);
    for path in [
        "/dead-letters/jobs".to_owned(),
        format!("/dead-letters/jobs/{job}"),
        "/audit".to_owned(),
    ] {
        let answer = rig
            .request("GET", &path)
            .bearer_auth(&viewer)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
}

#[testkit::test]
async fn a_job_is_counted_first_then_made_steered_and_listed(rig: &Rig) {
    let mut letters = Vec::new();
    for _ in 0..3 {
        letters.push(failed(rig).await.1);
    }
    let mut body =
        json!({"action": "discard", "filter": {"lane": "push", "fingerprint": "swrve/*"}, "dryRun": true});
    let before = everything(rig).await;
    let preview = rig.act("/dead-letters/jobs", &body, 200).await;
    assert_eq!(preview["matching"], 3);
    assert_eq!(
        preview["byFingerprint"],
        json!([{"lane": "push", "fingerprint": "swrve/503", "count": 3}])
    );
    assert_eq!(everything(rig).await, before);

    body["dryRun"] = json!(false);
    body["note"] = json!("the campaign is over");
    body["perSecond"] = json!(1);
    let job = rig.act("/dead-letters/jobs", &body, 202).await;
    let path = format!("/dead-letters/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(rig.see(&path).await, job);
    assert_eq!((&job["status"], &job["matching"]), (&json!("RUNNING"), &json!(3)));
    let eta = rig.now() + TimeDelta::seconds(3);
    assert_eq!(job["eta"], json!(eta));
    for (command, status, times) in [
        ("pause", "PAUSED", 2),
        ("resume", "RUNNING", 2),
        ("cancel", "CANCELLED", 1),
    ] {
        let command = format!("{path}/{command}");
        for _ in 0..times {
            assert_eq!(rig.act(&command, &json!({}), 200).await["status"], status);
        }
    }
    rig.refused(
        "POST",
        &format!("{path}/resume"),
        Some(&json!({})),
        (409, "conflict"),
    )
    .await;
    let cancelled = rig.see(&path).await;
    assert_eq!(cancelled["cancelledBy"], job["createdBy"], "the same key");
    assert_eq!(
        (&cancelled["matching"], &cancelled["examined"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(job["cancelledBy"], Value::Null);
    let by_list = json!({"action": "replay", "ids": [letters[0], letters[0], letters[1]]});
    let by_list = rig.act("/dead-letters/jobs", &by_list, 202).await;
    assert_eq!(
        (&by_list["matching"], &by_list["filter"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(by_list["ids"], json!([letters[0], letters[1]]));
    assert_eq!(rig.all("/dead-letters/jobs", 1).await.len(), 2);
    let listed = rig.all("/dead-letters/jobs?status=CANCELLED", 1).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["cancelledBy"], job["createdBy"]);
    let log = rig.all("/audit?action=dead-letter-job", 2).await;
    assert_eq!(log.len(), 5, "two were made, and one was told three things");
}

#[testkit::test]
async fn a_careful_job_says_how_careful_it_is_and_its_rate_is_changed_until_it_has_ended(rig: &Rig) {
    for _ in 0..3 {
        failed(rig).await;
    }
    let body = json!({"action": "replay", "filter": {}, "limit": 2, "order": "newest", "canary": 1, "pauseAbove": 5});
    let job = rig.act("/dead-letters/jobs", &body, 202).await;
    assert_eq!(job["matching"], 2);
    for (name, value) in body.as_object().unwrap() {
        if ["limit", "order", "canary", "pauseAbove"].contains(&name.as_str()) {
            assert_eq!(&job[name], value, "{name}");
        }
    }
    assert_eq!(job["pausedBecause"], Value::Null);
    let path = format!("/dead-letters/jobs/{}", job["id"].as_str().unwrap());
    let paused = rig.act(&format!("{path}/pause"), &json!({}), 200).await;
    assert_eq!(paused["pausedBecause"], "OPERATOR");

    let change =
        async |body: Value| answer(rig.call("PATCH", &path).json(&body).send().await.unwrap(), 200).await;
    for _ in 0..2 {
        let changed = change(json!({"perSecond": 7, "note": "slower"})).await;
        assert_eq!(
            (&changed["perSecond"], &changed["status"]),
            (&json!(7), &json!("PAUSED"))
        );
    }
    let log = rig.all("/audit?action=dead-letter-job.pace", 10).await;
    let [entry] = &log[..] else { panic!("{log:?}") };
    assert_eq!(entry["details"], json!({"perSecond": {"from": 100, "to": 7}}));
    assert_eq!(entry["note"], "slower");
    for body in [json!({}), json!({"perSecond": 0}), json!({"perSecond": 10_001})] {
        let refused = rig
            .refused("PATCH", &path, Some(&body), (422, "validation"))
            .await;
        assert_eq!(fields(&refused), ["perSecond"], "{body}");
    }
    let cancel = format!("{path}/cancel");
    rig.act(&cancel, &json!({}), 200).await;
    let again = rig
        .refused("POST", &cancel, Some(&json!({})), (409, "conflict"))
        .await;
    let detail = again["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("the job was cancelled before, at "),
        "{detail}"
    );
    let late = json!({"perSecond": 9});
    rig.refused("PATCH", &path, Some(&late), (409, "conflict")).await;
}

#[testkit::test]
async fn a_replay_to_one_subscription_says_what_its_endpoint_bears(rig: &Rig) {
    let (_, subscription) = make_dead_letters(rig).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let place = format!("/console/jobs/new?action=replay&subscription={subscription}");
    let begun = operator.see(&place).await;
    holds(
        &begun,
        &[
            "what it bears is not known",
            "<dt>Event types</dt>",
            "domain.created</span> 1",
        ],
    );
    let document = json!({"action": "replay", "filter": {"subscription": subscription}, "dryRun": true});
    let counted = rig.act("/dead-letters/jobs", &document, 200).await;
    assert_eq!(counted["byEventType"], json!({"domain.created": 1}));
    let mut hour = StatisticsDelta::new(subscription, rig.now());
    (hour.attempts, hour.delivered) = (50_400, 50_400);
    rig.it.store.add_delivery_statistics(&[hour]).await.unwrap();
    let told = "Its endpoint took about 14 a second in the last hour, the busiest of the last day; 100 a second is 7 times that.";
    holds(&operator.see(&place).await, &[told]);
    let slow = operator.see(&format!("{place}&perSecond=14")).await;
    assert!(!slow.contains("in the last hour"), "{slow}");
    let of_all = operator
        .see("/console/jobs/new?action=replay&lane=reseller")
        .await;
    assert!(!of_all.contains("in the last hour"), "{of_all}");
}

#[testkit::test]
async fn a_replay_to_one_endpoint_says_what_all_subscriptions_there_took(rig: &Rig) {
    let (_, subscription) = make_dead_letters(rig).await;
    let pool = &rig.it.pool;
    let at = |url| SubscriptionRow::active().reseller("bolt").url(url);
    let neighbour = at("https://ACME.example/other?key=1").make(pool).await;
    let elsewhere = at("https://acme.example.test/").make(pool).await;
    sqlx::query("UPDATE dead_letters SET target = 'https://acme.example' WHERE lane = 'reseller'")
        .execute(pool)
        .await
        .unwrap();
    let taken = |subscription, hours, delivered| {
        let mut hour = StatisticsDelta::new(subscription, rig.now() - TimeDelta::hours(hours));
        (hour.attempts, hour.delivered) = (delivered, delivered);
        hour
    };
    let hours = [
        taken(subscription, 0, 25_200),
        taken(neighbour, 0, 25_200),
        taken(subscription, 5, 180_000),
        taken(elsewhere, 0, 900_000),
    ];
    rig.it.store.add_delivery_statistics(&hours).await.unwrap();
    let operator = Browser::with_key(rig, &rig.key).await;
    let told = "acme.example took about 14 a second in the last hour, and 50 a second in the busiest hour of the last day; \
                100 a second is 7 times that of the last hour.";
    // By the target itself, as a group has it, and where all that matches has one.
    for filter in [
        "target=https%3A%2F%2Facme.example",
        "lane=reseller&fingerprint=http%2F503&target=https%3A%2F%2Facme.example",
        "lane=reseller",
    ] {
        let page = operator
            .see(&format!("/console/jobs/new?action=replay&{filter}"))
            .await;
        holds(&page, &[told]);
    }
    let of_several = operator.see("/console/jobs/new?action=replay&all=1").await;
    assert!(!of_several.contains("in the last hour"), "{of_several}");
}
