//! What operators stop, cancel, rescue and rebuild.

use broker::Queue;
use chrono::{SubsecRound as _, TimeDelta};
use domain::notification::NotificationState;
use domain::push::{PushState, PushStatus};
use serde_json::{Value, json};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{eventually, push_request};
use uuid::Uuid;

use crate::rig::{Rig, fields};

async fn audited(rig: &Rig) -> Vec<(String, String, Option<String>)> {
    sqlx::query_as("SELECT action, subject, note FROM audit_log ORDER BY at, id")
        .fetch_all(&rig.it.pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn a_pause_is_seen_until_it_ends_and_repeating_it_changes_nothing(rig: &Rig) {
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    for (path, scope, key) in [
        ("/lanes/push".to_owned(), "lane", "push".to_owned()),
        ("/lanes/reseller".to_owned(), "lane", "reseller".to_owned()),
        (format!("/subscriptions/{id}"), "subscription", id.to_string()),
        ("/resellers/acme".to_owned(), "reseller", "acme".to_owned()),
    ] {
        let pause = async |note: &str| {
            rig.act(&format!("{path}/pause"), &json!({"note": note}), 200)
                .await
        };
        let first = pause("incident 17").await;
        assert_eq!((&first["scope"], &first["key"]), (&json!(scope), &json!(key)));
        assert_eq!(first["changed"], true);
        let second = pause("me too").await;
        assert_eq!(second["changed"], false);
        assert_eq!(second["pause"], first["pause"], "the first note stays");
        let listed = rig.see("/pauses").await;
        let mut expected = first["pause"].clone();
        expected["waiting"] = json!(0);
        expected["waitingCountedUpTo"] = json!(if scope == "lane" { 100_000 } else { 10_000 });
        assert_eq!(listed, json!({"items": [expected], "next": null}));
        assert_eq!(listed["items"][0]["note"], "incident 17");
        let resume = async || rig.act(&format!("{path}/resume"), &json!({}), 200).await;
        assert_eq!(resume().await["changed"], true);
        let again = resume().await;
        assert_eq!(
            (&again["changed"], &again["pause"]),
            (&json!(false), &Value::Null)
        );
        assert_eq!(rig.see("/pauses").await["items"], json!([]));
    }
    assert_eq!(audited(rig).await.len(), 8);
}

#[testkit::test]
async fn a_pause_that_ends_by_itself_says_when_wherever_it_is_shown(rig: &Rig) {
    let until = json!(rig.now().trunc_subsecs(0) + TimeDelta::hours(2));
    let past = json!({"until": rig.now() - TimeDelta::hours(1)});
    let refused = rig
        .refused("POST", "/lanes/push/pause", Some(&past), (422, "validation"))
        .await;
    assert_eq!(fields(&refused), ["note", "until"]);
    let body = json!({"note": "incident 17", "until": until});
    let made = rig.act("/lanes/push/pause", &body, 200).await;
    assert_eq!(made["pause"]["until"], until);
    let later = json!({"note": "longer", "until": rig.now() + TimeDelta::hours(9)});
    let again = rig.act("/lanes/push/pause", &later, 200).await;
    assert_eq!(again["pause"], made["pause"], "the first end stays");
    assert_eq!(rig.see("/pauses").await["items"][0]["until"], until);
    assert_eq!(rig.see("/status").await["pauses"][0]["until"], until);
}

#[testkit::test]
async fn the_end_of_one_pause_names_those_that_remain(rig: &Rig) {
    let id = SubscriptionRow::active().paused().make(&rig.it.pool).await;
    let note = json!({"note": "because"});
    for path in [
        "/lanes/reseller".to_owned(),
        format!("/subscriptions/{id}"),
        "/resellers/acme".to_owned(),
    ] {
        rig.act(&format!("{path}/pause"), &note, 200).await;
    }
    let resumed = rig
        .act(&format!("/subscriptions/{id}/resume"), &json!({}), 200)
        .await;
    let expected = json!([
        "the reseller lane is paused",
        "all of reseller acme is paused",
        "its reseller has paused it"
    ]);
    assert_eq!(resumed["stillPaused"], expected);
}

#[testkit::test]
async fn what_is_unknown_or_lacks_a_reason_is_refused_and_changes_nothing(rig: &Rig) {
    let (unknown, note) = (Uuid::now_v7(), json!({"note": "because"}));
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Pending).make(&rig.it.pool).await.id;
    for path in [
        "/lanes/pushes/pause".to_owned(),
        "/lanes/pushes/resume".to_owned(),
        format!("/subscriptions/{unknown}/pause"),
        "/subscriptions/nonsense/pause".to_owned(),
        "/resellers/unknown/pause".to_owned(),
        "/resellers/a%00b/pause".to_owned(),
        format!("/pushes/{unknown}/cancel"),
        format!("/notifications/{unknown}/cancel"),
    ] {
        let refused = rig.refused("POST", &path, Some(&note), (404, "not-found")).await;
        if path.starts_with("/lanes") {
            let detail = refused["detail"].as_str().unwrap();
            assert!(detail.contains("push and reseller"), "{detail}");
        }
    }
    for path in [
        "/lanes/push/pause".to_owned(),
        format!("/subscriptions/{id}/pause"),
        "/resellers/acme/pause".to_owned(),
        format!("/pushes/{push}/cancel"),
    ] {
        for body in [json!({}), json!({"note": "  "})] {
            let refused = rig.refused("POST", &path, Some(&body), (422, "validation")).await;
            assert_eq!(fields(&refused), ["note"], "{path}");
        }
    }
    assert_eq!(rig.see("/pauses").await["items"], json!([]));
    assert_eq!(audited(rig).await, []);
}

#[testkit::test]
async fn what_had_been_delivered_stays_so_when_sending_it_again_is_cancelled(rig: &Rig) {
    let store = &rig.it.store;
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let mut resent = Vec::new();
    for state in [
        NotificationState::Sent,
        NotificationState::Sent,
        NotificationState::Failed,
    ] {
        let made = NotificationRow::in_state(state, subscription)
            .make(&rig.it.pool)
            .await;
        let act = store::Act {
            by: "acme's key (1)",
            note: None,
            at: rig.now(),
        };
        store.resend_notification("acme", made.id, act).await.unwrap();
        resent.push(made.id);
    }
    let path = format!("/notifications/{}/cancel", resent[0]);
    let cancelled = rig.act(&path, &json!({"note": "not wanted"}), 200).await;
    assert_eq!(
        (&cancelled["status"], &cancelled["previous"]),
        (&json!("SENT"), &json!("RETRY"))
    );
    let waiting = json!({"lane": "reseller", "filter": {"status": "RETRY"}, "note": "not wanted"});
    let many = rig.act("/cancellations", &waiting, 200).await;
    assert_eq!((&many["cancelled"], &many["delivered"]), (&json!(2), &json!(1)));
    let letters = rig.all("/dead-letters?state=DISCARDED", 10).await;
    assert_eq!(letters.len(), 1, "of the one that had failed: {letters:?}");
    let log = rig.all("/audit?action=notification.cancel-many", 10).await;
    assert_eq!(log[0]["details"]["delivered"], json!(1));
    for id in &resent[..2] {
        let story = rig.see(&format!("/explain/{id}")).await;
        assert_eq!(story["state"], "SENT");
        let headline = story["headline"].as_str().unwrap();
        assert!(
            headline.starts_with("It stays delivered") && headline.ends_with("\"not wanted\"."),
            "{headline}"
        );
    }
}

#[testkit::test]
async fn what_waits_can_be_cancelled_and_what_is_sent_or_ended_cannot(rig: &Rig) {
    let note = json!({"note": "sent by mistake"});
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let push = async |state| PushRow::in_state(state).make(&rig.it.pool).await.id.uuid();
    let notification = async |state| {
        let row = NotificationRow::in_state(state, subscription);
        row.make(&rig.it.pool).await.id.uuid()
    };
    for (path, previous) in [
        (
            format!("/pushes/{}/cancel", push(PushState::Scheduled).await),
            "SCHEDULED",
        ),
        (
            format!(
                "/notifications/{}/cancel",
                notification(NotificationState::Queued).await
            ),
            "IN_MEMORY",
        ),
    ] {
        let cancelled = rig.act(&path, &note, 200).await;
        assert_eq!(
            (&cancelled["status"], &cancelled["reason"], &cancelled["previous"]),
            (&json!("GIVEN_UP"), &json!("CANCELLED"), &json!(previous))
        );
        let again = rig.refused("POST", &path, Some(&note), (409, "conflict")).await;
        let detail = again["detail"].as_str().unwrap();
        let says = ["was cancelled before, at 2", " UTC by "];
        assert!(says.iter().all(|words| detail.contains(words)), "{again}");
    }
    for (path, why) in [
        (
            format!("/pushes/{}/cancel", push(PushState::Sending).await),
            "being sent",
        ),
        (
            format!("/pushes/{}/cancel", push(PushState::Sent).await),
            "it is SENT",
        ),
        (
            format!(
                "/notifications/{}/cancel",
                notification(NotificationState::Sending).await
            ),
            "being sent",
        ),
        (
            format!(
                "/notifications/{}/cancel",
                notification(NotificationState::GivenUp).await
            ),
            "it is GIVEN_UP",
        ),
    ] {
        let refused = rig.refused("POST", &path, Some(&note), (409, "conflict")).await;
        assert!(refused["detail"].as_str().unwrap().contains(why), "{refused}");
    }
    let letters: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM dead_letters WHERE state = 'DISCARDED' ORDER BY lane")
            .fetch_all(&rig.it.pool)
            .await
            .unwrap();
    assert_eq!(letters.len(), 2, "each has one that needs no operator");
    for letter in letters {
        let path = format!("/dead-letters/{letter}/replay");
        rig.refused("POST", &path, Some(&json!({})), (409, "cancelled"))
            .await;
    }
    let audited = audited(rig).await;
    let actions: Vec<_> = audited.iter().map(|(action, _, _)| action.as_str()).collect();
    assert_eq!(actions, ["push.cancel", "notification.cancel"]);
    assert!(
        audited
            .iter()
            .all(|(_, _, note)| note.as_deref() == Some("sent by mistake"))
    );
}

#[testkit::test]
async fn retries_that_wait_are_made_at_once_one_by_one_or_all_of_a_subscription(rig: &Rig) {
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    let hour = TimeDelta::hours(1);
    let waiting = NotificationRow::in_state(NotificationState::Retry, id).due_in(hour);
    let first = waiting.make(&rig.it.pool).await.id;
    waiting.make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Retry).due_in(hour);
    let push = push.make(&rig.it.pool).await.id;
    let note = json!({"note": "mended"});
    let paused = json!({"note": "because"});
    rig.act(&format!("/subscriptions/{id}/pause"), &paused, 200).await;
    let one = rig
        .act(&format!("/notifications/{first}/retry-now"), &note, 200)
        .await;
    assert_eq!(one["retries"], 1);
    let held = one["stillPaused"][0].as_str().unwrap();
    assert!(held.contains(&id.to_string()), "{one}");
    rig.act(&format!("/subscriptions/{id}/resume"), &json!({}), 200)
        .await;
    let none = json!([]);
    for (path, retries) in [
        (format!("/subscriptions/{id}/retry-now"), 1),
        (format!("/subscriptions/{id}/retry-now"), 0),
        (format!("/pushes/{push}/retry-now"), 1),
        ("/lanes/push/retry-now".to_owned(), 0),
        ("/lanes/reseller/retry-now".to_owned(), 0),
    ] {
        let came = rig.act(&path, &note, 200).await;
        let mut wanted = json!({"retries": retries, "more": false, "stillPaused": none});
        if path.starts_with("/pushes") {
            wanted["lastAttempt"] = false.into();
        }
        assert_eq!(came, wanted, "{path}");
    }
    let all_but_one = rig.it.config.push.retry.max_attempts - 1;
    let push = PushRow::in_state(PushState::Retry)
        .due_in(hour)
        .attempts(all_but_one);
    let push = push.make(&rig.it.pool).await.id;
    let came = rig.act(&format!("/pushes/{push}/retry-now"), &note, 200).await;
    assert_eq!(came["lastAttempt"], true, "{came}");
    let all_retries_but_one = rig.it.config.reseller.retry.max_retries;
    for (attempts, is_last) in [(1, false), (all_retries_but_one, true)] {
        let row = waiting.clone().attempts(attempts).make(&rig.it.pool).await;
        let path = format!("/notifications/{}/retry-now", row.id);
        assert_eq!(rig.act(&path, &note, 200).await["lastAttempt"], is_last);
    }
    let sent = PushRow::in_state(PushState::Sent).make(&rig.it.pool).await.id;
    let path = format!("/pushes/{sent}/retry-now");
    let refused = rig.refused("POST", &path, Some(&note), (409, "conflict")).await;
    assert!(
        refused["detail"].as_str().unwrap().contains("it is SENT"),
        "{refused}"
    );
    let actions: Vec<_> = audited(rig)
        .await
        .into_iter()
        .map(|(action, _, _)| action)
        .collect();
    assert!(
        actions.iter().filter(|it| it.ends_with(".retry-now")).count() == 6,
        "{actions:?}"
    );
}

#[testkit::test]
async fn what_was_done_about_a_reseller_is_found_over_all_its_subscriptions(rig: &Rig) {
    let make = async |reseller: &str| {
        SubscriptionRow::active()
            .reseller(reseller)
            .make(&rig.it.pool)
            .await
    };
    let (mine, other) = (make("acme").await, make("other").await);
    let note = json!({"note": "because"});
    for path in [
        format!("/subscriptions/{mine}/pause"),
        format!("/subscriptions/{other}/pause"),
        "/resellers/acme/pause".to_owned(),
        "/lanes/push/pause".to_owned(),
    ] {
        rig.act(&path, &note, 200).await;
    }
    let subjects = async |query: &str| -> Vec<String> {
        let entries = rig.all(&format!("/audit?{query}"), 1).await;
        let subject = |entry: &Value| entry["subject"].as_str().unwrap().to_owned();
        entries.iter().map(subject).collect()
    };
    let of_mine = format!("subscription/{mine}");
    assert_eq!(
        subjects("reseller=acme").await,
        ["reseller/acme".to_owned(), of_mine.clone()]
    );
    assert_eq!(subjects("reseller=acme&action=subscription").await, [of_mine]);
    assert_eq!(subjects("reseller=unknown").await, [] as [String; 0]);
    for wrong in ["actor=ann", "subject=lane/push", "without=lane"] {
        let path = format!("/audit?reseller=acme&{wrong}");
        rig.refused("GET", &path, None, (400, "invalid-query")).await;
    }
}

#[testkit::test]
async fn a_pause_of_a_resellers_own_is_listed_as_its_own_with_its_name_and_what_waits(rig: &Rig) {
    let id = SubscriptionRow::active().paused().make(&rig.it.pool).await;
    NotificationRow::in_state(NotificationState::Pending, id)
        .make(&rig.it.pool)
        .await;
    let listed = rig.see("/pauses").await;
    let [own] = &listed["items"].as_array().unwrap()[..] else {
        panic!("{listed}");
    };
    assert_eq!(
        (&own["scope"], &own["key"]),
        (&json!("subscription"), &json!(id.to_string()))
    );
    assert_eq!(
        (&own["byReseller"], &own["resellerId"]),
        (&json!(true), &json!("acme"))
    );
    let url: String = sqlx::query_scalar("SELECT url FROM subscriptions")
        .fetch_one(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!((&own["name"], &own["waiting"]), (&json!(url), &json!(1)));
    let status = rig.see("/status").await;
    assert_eq!(status["subscriptions"]["pausedByReseller"], 1);
}

#[testkit::test]
async fn a_rescue_says_what_it_found(rig: &Rig) {
    let lost = PushRow::in_state(PushState::Sending).leased_for(TimeDelta::seconds(-1));
    let id = lost.attempts(1).make(&rig.it.pool).await.id;
    let rescued = rig.act("/rescue", &json!({}), 200).await;
    assert_eq!(rescued["pushes"], json!({"pending": 1, "givenUp": 0}));
    assert_eq!(
        rescued["notifications"],
        json!({"pending": 0, "retry": 0, "givenUp": 0})
    );
    rig.it.settled(id, PushStatus::Pending).await;
}

#[testkit::test]
async fn a_wiped_broker_is_declared_again_and_what_was_queued_waits_again(rig: &Rig) {
    let broker = rig.it.broker();
    let id = rig
        .it
        .accept(PushStatus::InMemory, push_request("device-0", "Hello"))
        .await;
    rig.it.publish(&broker, &[id]).await;
    rig.it.wipe_queues().await;
    // Who is connected may find out by itself first, and is then not connected for a moment.
    let rebuilt = eventually("the broker to be told", async || {
        let asked = rig
            .call("POST", "/broker/rebuild")
            .json(&json!({"note": "wiped"}));
        let answer = asked.send().await.unwrap();
        (answer.status() == 200).then_some(answer.json::<Value>())
    })
    .await;
    assert_eq!(rebuilt.await.unwrap(), json!({"pushes": 1, "notifications": 0}));
    rig.it.settled(id, PushStatus::Pending).await;
    for queue in Queue::ALL {
        let depth = eventually("the queue to be there", async || broker.depth(queue).await.ok()).await;
        assert_eq!(depth.messages, 0, "{queue}");
    }
    let audited = audited(rig).await;
    let actions: Vec<_> = audited.iter().map(|(action, _, _)| action.as_str()).collect();
    assert_eq!(actions, ["broker.rebuild", "broker.rebuilt"]);
}
