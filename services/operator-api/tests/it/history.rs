//! What a lane did by the minute.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use store::Beat;
use uuid::Uuid;

use crate::console::{Browser, holds};
use crate::rig::Rig;

#[testkit::test]
async fn a_lane_tells_what_it_did_by_the_minute(rig: &Rig) {
    let beat = Beat {
        process: Uuid::now_v7(),
        service: "dispatcher",
        host: "one",
        pid: 1,
        version: "0.1.0",
        uptime: Duration::ZERO,
        state: &json!({
            "counters": {"pushesSent": 4, "eventsAccepted": 2, "notificationsPutBack": 3},
            "deliveriesInFlight": 38, "deliverySlots": 40, "leading": 17,
        }),
    };
    rig.it.store.beat(beat).await.unwrap();
    // Whichever minute that was in, it is among the last three.
    rig.clock.advance(TimeDelta::minutes(1));
    let history = rig.see("/lanes/push/history?minutes=3").await;
    assert_eq!(history["lane"], "push");
    let minutes = history["items"].as_array().unwrap();
    assert_eq!(minutes.len(), 3);
    let told = minutes.iter().find(|minute| minute["delivered"] == 4).unwrap();
    assert!(told["processes"].as_u64().unwrap() >= 1, "{history}");
    assert_eq!(told["epochs"], json!([17]));
    let history = rig.see("/lanes/reseller/history").await;
    let minutes = history["items"].as_array().unwrap();
    assert_eq!(minutes.len(), 60);
    assert!(minutes.iter().any(|minute| minute["accepted"] == 2));
    assert!(minutes.iter().all(|minute| minute["epochs"] == json!([])));
    let full = minutes.iter().find(|minute| minute["slots"] == 40).unwrap();
    assert_eq!((&full["inFlight"], &full["putBack"]), (&json!(38), &json!(3)));
    let browser = Browser::with_key(rig, &rig.key).await;
    holds(
        &browser.see("/console/lanes").await,
        &[
            "At most 38 of 40 slots were taken at once; 3 notifications were put back",
            "38 of 40</td>",
        ],
    );
}

#[testkit::test]
async fn a_lane_tells_the_outages_and_pauses_that_are_over(rig: &Rig) {
    let history = rig.see("/lanes/push/history").await;
    assert_eq!((&history["holds"], &history["pauses"]), (&json!([]), &json!([])));
    let sql = "INSERT INTO holds (class, since, probes, last_answer, answered_at)
               VALUES ('SWRVE', now() - interval '21 s', 20, '503', now())";
    sqlx::query(sql).execute(&rig.it.pool).await.unwrap();
    let history = rig.see("/lanes/push/history").await;
    assert_eq!(history["holds"][0]["endedAt"], json!(null), "{history}");
    let sql = "DELETE FROM holds";
    sqlx::query(sql).execute(&rig.it.pool).await.unwrap();
    rig.act("/lanes/push/pause", &json!({"note": "incident 17"}), 200)
        .await;
    rig.act("/lanes/push/resume", &json!({}), 200).await;
    let history = rig.see("/lanes/push/history").await;
    let held = &history["holds"][0];
    assert_eq!(
        (&held["class"], &held["probes"], &held["lastAnswer"]),
        (&json!("SWRVE"), &json!(20), &json!("503"))
    );
    let pause = &history["pauses"][0];
    assert!(
        held["endedAt"].is_string() && pause["resumedAt"].is_string(),
        "{history}"
    );
    assert_eq!(pause["note"], json!("incident 17"), "it is over");
    assert_eq!(pause["until"], json!(null), "it is over");
    let until = rig.now() + TimeDelta::hours(1);
    let body = json!({"note": "until then", "until": until});
    rig.act("/lanes/push/pause", &body, 200).await;
    let history = rig.see("/lanes/push/history").await;
    let pauses = history["pauses"].as_array().unwrap();
    let in_force = pauses.iter().find(|pause| pause["resumedAt"].is_null());
    let told = in_force.unwrap()["until"].as_str().unwrap();
    let told: DateTime<Utc> = told.parse().unwrap();
    assert_eq!(told.timestamp(), until.timestamp(), "{history}");
    let history = rig.see("/lanes/reseller/history").await;
    assert_eq!((&history["holds"], &history["pauses"]), (&json!([]), &json!([])));
}

#[testkit::test]
async fn web_push_tells_what_it_did_by_the_minute(rig: &Rig) {
    let counters = json!({"webpushDirect": 7, "webpushStored": 3, "webpushErrors": 1, "webpushOpened": 5});
    let beat = Beat {
        process: Uuid::now_v7(),
        service: "webpush-endpoint",
        host: "one",
        pid: 1,
        version: "0.1.0",
        uptime: Duration::ZERO,
        state: &json!({ "counters": counters }),
    };
    rig.it.store.beat(beat).await.unwrap();
    rig.clock.advance(TimeDelta::minutes(1));
    let history = rig.see("/webpush/history?minutes=3").await;
    let minutes = history["items"].as_array().unwrap();
    assert_eq!(minutes.len(), 3);
    let told = minutes.iter().find(|minute| minute["direct"] == 7).unwrap();
    let told = ["stored", "failed", "opened"].map(|name| &told[name]);
    assert_eq!(told, [3, 1, 5]);
}

#[testkit::test]
async fn a_history_that_is_not_kept_is_refused(rig: &Rig) {
    for query in ["minutes=0", "minutes=61", "minutes=x", "hours=1"] {
        let path = format!("/lanes/push/history?{query}");
        rig.refused("GET", &path, None, (400, "invalid-query")).await;
        let path = format!("/webpush/history?{query}");
        rig.refused("GET", &path, None, (400, "invalid-query")).await;
    }
    rig.refused("GET", "/lanes/fast/history", None, (404, "not-found"))
        .await;
}
