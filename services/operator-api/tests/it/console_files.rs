//! Lists as files and in pages of several lengths, the pace of the push lane, and times in addresses.

use domain::push::PushState;
use serde_json::{Value, json};
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::{Browser, HOSTILE, holds};
use crate::rig::Rig;

#[testkit::test]
async fn a_list_is_written_to_a_file_as_it_is_filtered(rig: &Rig) {
    for _ in 0..2 {
        PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    }
    let failed = PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Scheduled).make(&rig.it.pool).await;
    sqlx::query("UPDATE dead_letters SET detail = $1 WHERE id = (SELECT id FROM dead_letters LIMIT 1)")
        .bind(format!("=1+1,{HOSTILE}"))
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let viewer = Browser::with_key(rig, &rig.key).await;
    let list = viewer.see("/console/dead-letters/list?lane=push").await;
    holds(&list, &["/console/dead-letters/export?format=csv&#38;lane=push"]);
    let file = viewer
        .get("/console/dead-letters/export?format=csv&lane=push")
        .await;
    assert_eq!(file.status, 200, "{file:?}");
    assert!(file.header("content-type").starts_with("text/csv"));
    assert!(file.header("content-disposition").contains("dead-letters-"));
    let mut lines = file.html.split_terminator("\r\n");
    assert!(lines.next().unwrap().starts_with("id,createdAt,lane,"));
    assert!(
        file.html.contains(&failed.id.to_string()),
        "with what it is about"
    );
    assert!(file.html.contains("'=1+1"), "a formula is text: {}", file.html);
    let none = viewer
        .get("/console/dead-letters/export?format=csv&lane=reseller")
        .await;
    assert_eq!(none.html.lines().count(), 1, "the heads alone");
    let file = viewer
        .get("/console/dead-letters/export?format=json&lane=push")
        .await;
    let rows: Value = serde_json::from_str(&file.html).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 3);

    let file = viewer.get("/console/waiting/export?format=json").await;
    let rows: Value = serde_json::from_str(&file.html).unwrap();
    assert_eq!(
        rows[0]["id"],
        json!(push.id.uuid()),
        "what waits, of every status"
    );
    let file = viewer
        .get("/console/waiting/export?format=csv&lane=reseller")
        .await;
    assert!(file.html.starts_with("id,acceptedAt,"), "{}", file.html);
    let file = viewer.get("/console/audit/export?format=csv&action=visit").await;
    assert!(file.html.contains(",visit.begin,"), "{}", file.html);
    for wrong in [
        "/console/dead-letters/export?format=xls",
        "/console/dead-letters/export?format=csv&lnae=push",
        "/console/audit/export?format=csv&since=yesterday",
    ] {
        assert_eq!(viewer.get(wrong).await.status, 400, "{wrong}");
    }
}

#[testkit::test]
async fn the_pace_of_the_push_lane_is_shown_by_the_second(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let nothing = rig.see("/lanes/push/pace").await;
    assert_eq!(
        (&nothing["sends"], &nothing["smallestGapMicros"]),
        (&json!(0), &json!(null))
    );
    assert_eq!(nothing["seconds"].as_array().unwrap().len(), 120);
    holds(
        &browser.see("/console/lanes").await,
        &["Nothing was sent in the last two minutes."],
    );
    let second = rig.now().timestamp() - 3;
    let pace = [(second - 1, 250, 4_003, 31), (second, 249, 3_900, 12)];
    let answers = [(second - 1, [248, 1, 0, 0]), (second, [240, 0, 7, 1])];
    let state = json!({"pace": pace, "answers": answers, "counters": {}});
    sqlx::query(
        "INSERT INTO processes (id, service, host, pid, version, started_at, beat_at, state)
         VALUES (gen_random_uuid(), 'dispatcher', 'host', 1, '1', now(), now(), $1)",
    )
    .bind(state)
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let pace = rig.see("/lanes/push/pace").await;
    assert_eq!(
        (&pace["sends"], &pace["smallestGapMicros"], &pace["gapMicros"]),
        (&json!(499), &json!(3_900), &json!(4_000))
    );
    assert_eq!(
        pace["answers"],
        json!({"taken": 488, "refused": 1, "failed": 7, "missing": 1})
    );
    holds(
        &browser.see("/console/lanes").await,
        &[
            "499 sends in two minutes, at most 250 in a second",
            "the smallest gap was 3.900 ms",
            "fill=\"url(#hatch)\"",
            "4.003 ms",
            "Swrve&#39;s answers in these two minutes: 2xx 488, 4xx 1, 5xx and others 7, none 1.",
            "2xx 240, 5xx and others 7, none 1",
        ],
    );
}

#[testkit::test]
async fn times_stand_in_an_address_as_they_are_everywhere(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    browser
        .act("/console/preferences", &[("tz", "Europe/Riga")])
        .await;
    for list in ["/console/waiting", "/console/audit"] {
        let answer = browser.get(&format!("{list}?since=2026-11-23T14%3A05")).await;
        assert_eq!(answer.status, 303, "{list}");
        let to = answer.header("location");
        assert_eq!(to, format!("{list}?since=2026-11-23T12%3A05%3A00Z"));
        holds(&browser.see(to).await, &["2026-11-23T14:05"]);
    }
    assert_eq!(browser.get("/console/waiting?since=yesterday").await.status, 400);
}

#[testkit::test]
async fn lists_show_as_many_rows_as_their_reader_chooses(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    for number in 0..26 {
        let of = format!("reseller-{number}");
        let id = SubscriptionRow::active().reseller(&of).make(&rig.it.pool).await;
        PushRow::in_state(PushState::Retry).make(&rig.it.pool).await;
        browser
            .act(&format!("/console/subscriptions/{id}/pause"), &[("note", "why")])
            .await;
    }
    for (list, row) in [
        ("/console/audit?action=subscription.pause", "<tr id=\"entry-"),
        ("/console/resellers?state=ACTIVE", "<tr id=\"subscription-"),
        ("/console/waiting?lane=push&status=RETRY", "<tr id=\"row-"),
    ] {
        let page = browser.see(&format!("{list}&limit=25")).await;
        assert_eq!(page.matches(row).count(), 25, "{list}: {page}");
        holds(&page, &["25 a page", "limit=200\""]);
        assert_eq!(browser.see(list).await.matches(row).count(), 26, "{list}");
        let many = browser.get(&format!("{list}&limit=201")).await;
        assert_eq!(many.status, 400, "{list}: {}", many.html);
    }
    for list in ["/console/jobs", "/console/mails", "/console/access"] {
        holds(
            &browser.see(&format!("{list}?limit=25")).await,
            &["25 a page", "limit=100\""],
        );
    }
}
