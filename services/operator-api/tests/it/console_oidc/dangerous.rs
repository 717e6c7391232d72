//! What is dangerous: a person has to have shown a moment ago who it is.

use chrono::TimeDelta;
use config::KeyLogin;
use domain::key::Role;
use serde_json::json;
use sqlx::PgPool;

use super::{JOBS, begin, entries, rig_with, signed_in};
use crate::cancellations::scheduled;
use crate::console::{Browser, holds};

#[testkit::test]
async fn what_is_dangerous_needs_a_person_who_has_just_shown_who_it_is(pool: PgPool) {
    let (rig, provider) = rig_with(pool, Some(KeyLogin::Always)).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let (form, fields) = (
        "/console/lanes/push/pause",
        [("note", "a test"), ("name", "push")],
    );
    let page = browser.refused(form, &fields, 403).await;
    let again = "/console/sign-in/start?again=1&#38;next=%2Fconsole%2Flanes%2Fpush%2Fpause";
    holds(&page, &["Show once more who you are", again]);
    assert!(entries(&rig, "lane.pause").await.is_empty());

    let start = again.replace("&#38;", "&");
    let answer = browser.get(&start).await;
    assert!(answer.header("location").contains("max_age=300"), "{answer:?}");
    let back = provider.visit(answer.header("location")).await;
    provider.change(|mood| mood.authenticated_ago = 400);
    let refused = browser.get(&back).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    holds(&refused.html, &["auth_time of the ID token lies too far back"]);

    provider.change(|mood| mood.authenticated_ago = 1);
    let back = begin(&browser, &provider, &start).await;
    let answer = browser.get(&back).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, form),
        "{answer:?}"
    );
    holds(
        &browser.see(form).await,
        &["<p class=\"flash warn\"", "Nothing was done yet"],
    );
    browser.act(form, &fields).await;
    assert_eq!(entries(&rig, "lane.pause").await.len(), 1);
    assert_eq!(
        entries(&rig, "visit.end").await.len(),
        1,
        "the visit of before is over"
    );

    rig.clock.advance(TimeDelta::minutes(5));
    browser.refused(form, &fields, 403).await;
    // What is not dangerous needs nothing.
    browser.act("/console/lanes/push/resume", &fields).await;
    let key = rig.key_of(Role::Operator).await;
    let by_key = Browser::with_key(&rig, &key).await;
    by_key.act(form, &fields).await;
}

#[testkit::test]
async fn what_was_typed_is_kept_while_a_person_shows_who_it_is(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "leads").await;
    let (lane, keys) = ("/console/lanes/push/pause", "/console/access/keys");
    let pause = [("note", "a \"test\""), ("name", "push")];
    let key = [("called", "ci"), ("roles", "viewer"), ("note", "two\nlines")];
    for (form, fields, held) in [
        (lane, &pause[..], "name=\"note\" value=\"a &#34;test&#34;\""),
        (lane, &pause[..], "name=\"name\" value=\"push\""),
        (keys, &key[..], "name=\"roles\" value=\"viewer\""),
        (keys, &key[..], "name=\"note\" value=\"two\nlines\""),
    ] {
        let page = browser.refused(form, fields, 403).await;
        let action = format!("<form method=\"post\" action=\"{form}\">");
        holds(&page, &["Show once more who you are", &action, held]);
    }
    let page = browser.refused(lane, &pause, 403).await;
    let (_, start) = page.split_once("href=\"/console/sign-in/start").unwrap();
    let (start, _) = start.split_once('"').unwrap();
    provider.change(|mood| mood.authenticated_ago = 1);
    let start = format!("/console/sign-in/start{}", start.replace("&#38;", "&"));
    let back = begin(&browser, &provider, &start).await;
    assert_eq!(browser.get(&back).await.status, 303);
    browser.act(lane, &pause).await;
    assert_eq!(entries(&rig, "lane.pause").await[0]["note"], "a \"test\"");
}

#[testkit::test]
async fn a_provider_that_does_not_say_when_is_asked_again(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.claims = json!({"auth_time": null}));
    let browser = signed_in(&rig, &provider, "on-call").await;
    browser
        .refused(
            "/console/lanes/push/pause",
            &[("note", "a test"), ("name", "push")],
            403,
        )
        .await;
}

#[testkit::test]
async fn discarding_many_needs_a_person_who_has_just_shown_who_it_is(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let many = "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
        SELECT 'push', 'MALFORMED', 'malformed', 'a test' FROM generate_series(1, 1001)";
    sqlx::query(many).execute(&rig.it.pool).await.unwrap();
    let fields = |action| {
        let number = [("counted", "1001"), ("number", "1001")];
        [
            ("action", action),
            ("lane", "push"),
            ("note", "a test"),
            number[0],
            number[1],
        ]
    };
    let page = browser.refused(JOBS, &fields("discard"), 403).await;
    let form = "next=%2Fconsole%2Fjobs%2Fnew%3Faction%3Ddiscard%26lane%3Dpush";
    holds(&page, &["Show once more who you are", form]);
    let typed = [&fields("discard")[..], &[("perSecond", "7")][..]].concat();
    let page = browser.refused(JOBS, &typed, 403).await;
    holds(
        &page,
        &[
            &format!("{form}%26perSecond%3D7"),
            "name=\"note\" value=\"a test\"",
        ],
    );
    assert!(entries(&rig, "dead-letter-job").await.is_empty());
    browser.act(JOBS, &fields("replay")).await;
}

#[testkit::test]
async fn cancelling_that_goes_on_stops_for_a_person_who_has_to_show_who_it_is(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    scheduled(&rig, 1_001).await;
    let form = "/console/waiting/cancel?lane=push&status=SCHEDULED&counted=1001";
    let fields = [
        ("goOn", "on"),
        ("name", "1001"),
        ("note", "a test"),
        ("cancelled", "5000"),
        ("left", "1001"),
    ];
    let page = browser.refused(form, &fields[..3], 403).await;
    holds(
        &page,
        &["Show once more who you are", "name=\"goOn\" value=\"on\""],
    );
    let page = browser.refused(form, &fields, 403).await;
    let start = "/console/sign-in/start?again=1&#38;next=%2Fconsole%2Fwaiting%2Fcancel";
    holds(
        &page,
        &[
            "5,000 were cancelled and will not be sent. 1,001 are left.",
            "It has stopped",
            "you have signed in more than five minutes ago",
            start,
            "id=\"go-on\"",
            "name=\"cancelled\" value=\"5000\"",
            "name=\"note\" value=\"a test\"",
        ],
    );
    assert!(!page.contains("data-goes-on"), "{page}");
    assert!(entries(&rig, "push.cancel-many").await.is_empty());

    provider.change(|mood| mood.authenticated_ago = 1);
    let back = begin(&browser, &provider, &start.replace("&#38;", "&")).await;
    assert_eq!(browser.get(&back).await.status, 303);
    let answer = browser.post(form, &fields).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    holds(
        &answer.html,
        &["6,001 were cancelled and will not be sent. No more match."],
    );
    assert_eq!(entries(&rig, "push.cancel-many").await.len(), 1);
}

#[testkit::test]
async fn what_an_address_does_not_hold_is_kept_while_a_person_shows_who_it_is(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let many = "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
        SELECT 'push', 'MALFORMED', 'malformed', 'a test' FROM generate_series(1, 1001) RETURNING id::text";
    let ids: Vec<String> = sqlx::query_scalar(many).fetch_all(&rig.it.pool).await.unwrap();
    let ids = ids.join(" ");
    let fields = [
        ("action", "discard"),
        ("chosen", "ids"),
        ("ids", &*ids),
        ("perSecond", "7"),
        ("note", "a \"test\""),
        ("counted", "1001"),
        ("number", "1001"),
    ];
    let held = format!("name=\"ids\" value=\"{ids}\"");
    let page = browser.refused(JOBS, &fields, 403).await;
    let start = "/console/sign-in/start?again=1&#38;next=%2Fconsole%2Fdead-letters%2Flist";
    holds(
        &page,
        &[
            "Show once more who you are",
            &format!("href=\"{start}\" target=\"_blank\""),
            "<form method=\"post\" action=\"/console/jobs\">",
            &held,
            "name=\"perSecond\" value=\"7\"",
            "name=\"note\" value=\"a &#34;test&#34;\"",
        ],
    );

    provider.change(|mood| mood.authenticated_ago = 1);
    let back = begin(&browser, &provider, &start.replace("&#38;", "&")).await;
    assert_eq!(browser.get(&back).await.status, 303);
    browser.act(JOBS, &fields).await;
    assert_eq!(entries(&rig, "dead-letter-job.create").await.len(), 1);
}

#[testkit::test]
async fn what_is_dangerous_at_once_is_so_in_slices(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let letters = "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
        SELECT lane, 'MALFORMED', 'malformed', 'a test' FROM generate_series(1, 600), unnest(ARRAY ['push', 'reseller']) lane";
    sqlx::query(letters).execute(&rig.it.pool).await.unwrap();
    let slice = |lane| {
        [
            ("action", "discard"),
            ("lane", lane),
            ("note", "a test"),
            ("counted", "600"),
            ("number", "600"),
        ]
    };
    browser.act(JOBS, &slice("push")).await;
    let page = browser.refused(JOBS, &slice("reseller"), 403).await;
    holds(&page, &["Show once more who you are"]);
    assert_eq!(entries(&rig, "dead-letter-job.create").await.len(), 1);
    // An hour later it is another matter.
    rig.clock.advance(TimeDelta::minutes(25));
    browser.see(JOBS).await;
    rig.clock.advance(TimeDelta::minutes(25));
    browser.see(JOBS).await;
    rig.clock.advance(TimeDelta::minutes(11));
    browser.act(JOBS, &slice("reseller")).await;
}

#[testkit::test]
async fn pausing_many_is_as_dangerous_as_pausing_a_lane(pool: PgPool) {
    let (rig, provider) = rig_with(pool, None).await;
    provider.change(|mood| mood.authenticated_ago = 301);
    let browser = signed_in(&rig, &provider, "on-call").await;
    let who = format!("Ada Lovelace <7f3a@{}>", provider.issuer());
    let paused = "INSERT INTO audit_log (id, at, actor, action, subject)
        SELECT overlay(gen_random_uuid()::text PLACING left(replace($1::uuid::text, '-', ''), 8) || '-' ||
                       substr(replace($1::uuid::text, '-', ''), 9, 4) FROM 1 FOR 13)::uuid, $2, $3, 'reseller.pause', 'reseller/r' || n
        FROM generate_series(1, 10) n";
    sqlx::query(paused)
        .bind(uuid_at(rig.now()))
        .bind(rig.now())
        .bind(who)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let page = browser
        .refused("/console/resellers/acme/pause", &[("note", "a test")], 403)
        .await;
    holds(&page, &["Show once more who you are"]);
}

fn uuid_at(at: chrono::DateTime<chrono::Utc>) -> uuid::Uuid {
    let seconds = at.timestamp().unsigned_abs();
    uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0))
}
