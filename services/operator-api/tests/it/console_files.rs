//! Lists as files and in pages of several lengths, the pace of the push lane, and times in addresses.

use domain::key::Role;
use domain::push::PushState;
use serde_json::{Value, json};
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::{Browser, HOSTILE, holds};
use crate::mails::mail;
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
    assert_eq!(rows["items"].as_array().unwrap().len(), 3);
    assert_eq!(rows["notAll"], json!(null), "it is all");

    let file = viewer.get("/console/waiting/export?format=json").await;
    let rows: Value = serde_json::from_str(&file.html).unwrap();
    assert_eq!(
        rows["items"][0]["id"],
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
async fn a_file_that_is_not_all_says_so(rig: &Rig) {
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
         SELECT 'push', 'REJECTED', 'broker/delivery_limit', 'given up' FROM generate_series(1, 10001)",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let viewer = Browser::with_key(rig, &rig.key).await;
    let list = "/console/dead-letters/export?lane=push&format=";
    let file = viewer.get(&format!("{list}csv")).await.html;
    assert_eq!(file.lines().count(), 10_002);
    let last = file.lines().last().unwrap();
    assert!(last.contains("This is not all"), "{last}");
    let file: Value = serde_json::from_str(&viewer.get(&format!("{list}json")).await.html).unwrap();
    assert_eq!(file["items"].as_array().unwrap().len(), 10_000);
    holds(file["notAll"].as_str().unwrap(), &["This is not all"]);
}

#[testkit::test]
async fn groups_jobs_resellers_and_mails_are_files_too(rig: &Rig) {
    for _ in 0..2 {
        PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    }
    let body = json!({"action": "discard", "filter": {"lane": "push"}, "note": "they are old"});
    let job = rig.act("/dead-letters/jobs", &body, 202).await;
    let first = SubscriptionRow::active()
        .reseller("acme")
        .make(&rig.it.pool)
        .await;
    let other = SubscriptionRow::active()
        .reseller("export")
        .make(&rig.it.pool)
        .await;
    let waits = mail(rig, first, ("SECURITY_CHANGED", "PENDING"), 300).await;
    let failed = mail(rig, other, ("QUOTA_DECIDED", "FAILED"), -30).await;
    rig.act("/lanes/push/pause", &json!({"note": "why"}), 200).await;
    let viewer = Browser::of(rig, Role::Viewer).await;

    for (page, file) in [
        (
            "/console/dead-letters?lane=push&by=endpoint",
            "/console/dead-letters/groups/export?format=csv&#38;lane=push\"",
        ),
        (
            "/console/jobs?status=RUNNING&limit=25",
            "/console/jobs/export?format=csv&#38;status=RUNNING\"",
        ),
        (
            "/console/resellers?state=ACTIVE",
            "/console/subscriptions/export?format=csv&#38;state=ACTIVE\"",
        ),
        (
            "/console/mails?status=FAILED",
            "/console/mails/export?format=csv&#38;status=FAILED\"",
        ),
    ] {
        holds(&viewer.see(page).await, &[file]);
    }
    for (file, heads, holding, lines) in [
        (
            "/console/dead-letters/groups/export?",
            "lane,fingerprint,kind,target,count,",
            "push,swrve/503,swrve-5xx,".to_owned(),
            2,
        ),
        (
            "/console/jobs/export?status=RUNNING&",
            "id,action,status,",
            format!("{},discard,RUNNING,", job["id"].as_str().unwrap()),
            2,
        ),
        (
            "/console/jobs/export?status=PAUSED&",
            "id,action,status,",
            String::new(),
            1,
        ),
        (
            "/console/subscriptions/export?",
            "id,subscriptions,active,",
            "export,1,1,0,0,".to_owned(),
            3,
        ),
        (
            "/console/subscriptions/export?text=acme&state=ACTIVE&",
            "id,resellerId,url,",
            format!("{first},acme,"),
            2,
        ),
        (
            "/console/subscriptions/export?state=trouble&",
            "id,resellerId,endpoint,",
            String::new(),
            1,
        ),
        (
            "/console/pauses/export?",
            "scope,key,resellerId,",
            "lane,push,,".to_owned(),
            2,
        ),
        (
            "/console/quota-requests/export?",
            "id,resellerId,subscriptionId,",
            String::new(),
            1,
        ),
        (
            "/console/quota-requests/export?status=ALL&",
            "id,resellerId,subscriptionId,",
            String::new(),
            1,
        ),
        (
            "/console/mails/export?",
            "id,kind,status,",
            format!("{waits},SECURITY_CHANGED,PENDING,"),
            2,
        ),
        (
            "/console/mails/export?status=FAILED&",
            "id,kind,status,",
            format!("{failed},QUOTA_DECIDED,FAILED,export,"),
            2,
        ),
    ] {
        let written = viewer.get(&format!("{file}format=csv")).await;
        assert_eq!(written.status, 200, "{file}: {written:?}");
        assert!(written.html.starts_with(heads), "{file}: {}", written.html);
        holds(&written.html, &[&holding]);
        assert_eq!(written.html.lines().count(), lines, "{file}: {}", written.html);
        let written = viewer.get(&format!("{file}format=json")).await;
        let rows: Value = serde_json::from_str(&written.html).unwrap();
        assert_eq!(rows["items"].as_array().unwrap().len(), lines - 1, "{file}");
    }
    for wrong in [
        "/console/dead-letters/groups/export?format=csv&lane=fast",
        "/console/jobs/export?format=csv&status=GONE",
        "/console/mails/export?format=csv&sttaus=SENT",
        "/console/subscriptions/export?format=csv&state=GONE",
        "/console/subscriptions/export?format=xls",
        "/console/quota-requests/export?format=csv&status=GONE",
    ] {
        assert_eq!(viewer.get(wrong).await.status, 400, "{wrong}");
    }
    let named_so = viewer.see("/console/resellers/export").await;
    holds(&named_so, &["<h1>", "export"]);
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
async fn a_wrong_filter_is_said_at_its_field_which_keeps_what_was_typed(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    browser
        .act("/console/preferences", &[("tz", "Europe/Riga")])
        .await;
    for (list, field, kept) in [
        // The clocks go forward over this hour.
        (
            "/console/audit?since=2026-03-29T03%3A30&actor=ada",
            "since",
            "type=\"text\" step=\"1\" value=\"2026-03-29T03:30\"",
        ),
        (
            "/console/waiting?until=2026-03-29T03%3A30",
            "until",
            "type=\"text\" step=\"1\" value=\"2026-03-29T03:30\"",
        ),
        (
            "/console/waiting?lane=reseller&code=99",
            "code",
            "name=\"code\" value=\"99\"",
        ),
        (
            "/console/waiting?status=LOST",
            "status",
            "<option value=\"LOST\" selected>LOST</option>",
        ),
        (
            "/console/jobs?status=DONE",
            "status",
            "<option value=\"DONE\" selected>DONE</option>",
        ),
        (
            "/console/resellers?state=LOST",
            "state",
            "<option value=\"LOST\" selected>LOST</option>",
        ),
        (
            "/console/resellers?failing=perhaps",
            "failing",
            "<option value=\"perhaps\" selected>perhaps</option>",
        ),
        (
            "/console/dead-letters?lane=fast",
            "lane",
            "<option value=\"fast\" selected>fast</option>",
        ),
        (
            "/console/dead-letters/list?subscription=acme",
            "subscription",
            "name=\"subscription\" value=\"acme\"",
        ),
        (
            "/console/dead-letters/resellers?until=yesterday",
            "until",
            "name=\"until\" value=\"yesterday\"",
        ),
    ] {
        let answer = browser.get(list).await;
        assert_eq!(answer.status, 400, "{list}");
        holds(
            &answer.html,
            &[
                "The filter needs another value",
                &format!("<a href=\"#{field}\">{field} "),
                &format!(" aria-invalid=\"true\" aria-describedby=\"{field}-error\""),
                &format!("<p class=\"error\" id=\"{field}-error\">"),
                kept,
            ],
        );
        assert!(
            !answer.html.contains("data-live"),
            "nothing to ask for again: {list}"
        );
        assert!(!answer.html.contains("format=csv"), "and no file: {list}");
    }
    let hostile = browser
        .get("/console/jobs?status=%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        .await;
    holds(&hostile.html, &["selected>&lt;script&gt;"]);
    let none_of_the_form = browser.get("/console/jobs?cursor=x").await;
    assert!(
        !none_of_the_form.html.contains("The filter needs"),
        "a problem of its own"
    );
    assert_eq!(none_of_the_form.status, 400);
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
