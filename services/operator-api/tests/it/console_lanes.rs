//! The page of the lanes, and what is done from it.

use chrono::TimeDelta;
use domain::key::Role;
use domain::notification::NotificationState;
use domain::push::PushState;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::{Browser, HOSTILE, acts, holds, shows_hostile};
use crate::rig::Rig;

#[testkit::test]
async fn a_lane_is_paused_and_resumed_by_its_name_and_with_a_note(rig: &Rig) {
    PushRow::in_state(PushState::Pending).make(&rig.it.pool).await;
    let browser = Browser::of(rig, Role::Operator).await;
    let page = browser.see("/console/lanes").await;
    holds(
        &page,
        &[
            "Both lanes are open",
            "push.ready",
            "reseller.retry",
            "1 push waits now",
            "data-expect=\"push\"",
        ],
    );
    let one = browser.get("/console/lanes/reseller?minutes=5").await;
    assert_eq!(one.header("location"), "/console/lanes?minutes=5#reseller");
    assert_eq!(browser.get("/console/lanes/none").await.status, 404);
    let pause = "/console/lanes/push/pause";
    holds(
        &browser.see(pause).await,
        &[
            "Pause the push lane",
            "1 push waits now",
            "Resuming it undoes this",
        ],
    );
    let again = browser
        .refused(pause, &[("name", "pus"), ("note", HOSTILE)], 422)
        .await;
    holds(&again, &["must be push", "value=\"pus\"", "1 push waits now"]);
    shows_hostile(&again);
    let again = browser.refused(pause, &[], 422).await;
    holds(&again, &["must be push", "is needed here"]);
    assert!(acts(rig, "lane").await.is_empty());
    browser
        .refused(
            "/console/lanes/pushes/pause",
            &[("name", "pushes"), ("note", "a")],
            404,
        )
        .await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    viewer
        .refused(pause, &[("name", "push"), ("note", "a")], 403)
        .await;
    holds(&viewer.see("/console/lanes").await, &["needs the role operator"]);

    let (to, page) = browser.act(pause, &[("name", "push"), ("note", HOSTILE)]).await;
    assert_eq!(to, "/console/lanes");
    holds(
        &page,
        &[
            "The push lane is paused. What comes is stored, and waits until you resume it.",
            "1 waits because of it",
            "/console/lanes/push/resume",
        ],
    );
    shows_hostile(&page);
    shows_hostile(&browser.see("/console/waiting").await);
    let now = browser.see("/console").await;
    holds(
        &now,
        &["<span class=\"tag\">lane</span> <a class=\"link\" href=\"/console/lanes#push\">push</a>"],
    );
    let resume = "/console/lanes/push/resume";
    let again = browser.refused(resume, &[("name", "reseller")], 422).await;
    holds(&again, &["must be push", "1 push waits now"]);
    let (_, page) = browser
        .act(resume, &[("name", "push"), ("note", "Swrve is back")])
        .await;
    holds(&page, &["The push lane goes on", "Both lanes are open"]);
    assert_eq!(
        acts(rig, "lane.pause").await,
        [("lane/push".to_owned(), HOSTILE.to_owned())]
    );
    assert_eq!(
        acts(rig, "lane.resume").await,
        [("lane/push".to_owned(), "Swrve is back".to_owned())]
    );
}

#[testkit::test]
async fn what_waits_for_a_retry_is_made_due_from_where_it_is_seen(rig: &Rig) {
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let hour = TimeDelta::hours(1);
    let waiting = NotificationRow::in_state(NotificationState::Retry, subscription).due_in(hour);
    let one = waiting.make(&rig.it.pool).await.id.uuid();
    waiting.make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Retry).due_in(hour);
    let push = push.make(&rig.it.pool).await.id.uuid();
    let browser = Browser::of(rig, Role::Operator).await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    let lanes = "/console/lanes";
    for (page, place, said, came) in [
        (
            format!("/console/explain/{one}"),
            format!("/console/notifications/{one}"),
            "One notification: ",
            "1 retry is due now.",
        ),
        (
            format!("/console/subscriptions/{subscription}"),
            format!("/console/subscriptions/{subscription}"),
            "2 notifications wait for a retry now",
            "1 retry is due now.",
        ),
        (
            format!("/console/explain/{push}"),
            format!("/console/pushes/{push}"),
            "One push: ",
            "1 retry is due now.",
        ),
        (
            lanes.to_owned(),
            format!("{lanes}/push"),
            "1 push waits for a retry now.",
            "Nothing waits for a retry that is not due already.",
        ),
    ] {
        let act = format!("{place}/retry-now");
        holds(&browser.see(&page).await, &[&format!("action=\"{act}\""), said]);
        holds(
            &browser.see(&act).await,
            &[said, "cannot be undone", "name=\"note\""],
        );
        viewer.see(&act).await;
        viewer.refused(&act, &[("note", "no")], 403).await;
        let long = "x".repeat(2_001);
        let again = browser.refused(&act, &[("note", &*long)], 422).await;
        holds(&again, &["Nothing was done", "aria-invalid=\"true\"", said]);
        let (to, shown) = browser.act(&act, &[("note", "mended")]).await;
        assert_eq!(to, page);
        holds(&shown, &[came]);
    }
    let act = format!("/console/pushes/{push}/retry-now");
    let again = browser.refused(&act, &[], 409).await;
    holds(&again, &["is due already"]);
    browser.refused("/console/lanes/pushes/retry-now", &[], 404).await;
    for (action, subject) in [
        ("notification.retry-now", format!("notification/{one}")),
        ("subscription.retry-now", format!("subscription/{subscription}")),
        ("push.retry-now", format!("push/{push}")),
    ] {
        assert_eq!(acts(rig, action).await, [(subject, "mended".to_owned())]);
    }
    holds(
        &browser.see("/console").await,
        &["<dt>Leader</dt><dd>none: no push is sent"],
    );
    let page = browser.see("/console/lanes?minutes=15").await;
    holds(&page, &["The last 15 minutes: ", "viewBox=\"0 0 60 48\""]);
    assert_eq!(browser.get("/console/lanes?minutes=61").await.status, 400);
}

#[testkit::test]
async fn what_had_stopped_a_lane_is_listed_when_it_is_over(rig: &Rig) {
    let browser = Browser::of(rig, Role::Operator).await;
    let (lanes, none) = ("/console/lanes", "No hold and no pause ended in this time.");
    assert_eq!(browser.see(lanes).await.matches(none).count(), 2);
    let sql = "INSERT INTO past_holds (class, since, ended_at, probes, last_answer)
               VALUES ('SWRVE', now() - interval '90 s', now(), 27, $1)";
    sqlx::query(sql)
        .bind(HOSTILE)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let pause = [("name", "reseller"), ("note", "incident 17")];
    browser.act("/console/lanes/reseller/pause", &pause).await;
    let page = browser.see(lanes).await;
    assert_eq!(page.matches(none).count(), 1, "a pause is in force: {page}");
    holds(
        &page,
        &[
            "Push lane: earlier holds and pauses",
            "1 min 30 s",
            "Swrve was out of order; 27 probes, the last failure: ",
        ],
    );
    shows_hostile(&page);
    browser
        .act("/console/lanes/reseller/resume", &[("name", "reseller")])
        .await;
    let page = browser.see(lanes).await;
    holds(
        &page,
        &[
            "Reseller lane: earlier holds and pauses",
            "incident 17",
            "action=lane.pause,lane.resume&amp;subject=lane/reseller",
        ],
    );
    assert!(!page.contains(none), "{page}");
}

#[testkit::test]
async fn what_is_held_is_shown_with_the_lane(rig: &Rig) {
    let sql = "INSERT INTO holds (class, since, probes, probed_at, last_answer) VALUES ('SWRVE', now(), 3, now(), $1)";
    sqlx::query(sql)
        .bind(HOSTILE)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let browser = Browser::of(rig, Role::Viewer).await;
    for path in ["/console/lanes", "/console/waiting"] {
        let page = browser.see(path).await;
        holds(&page, &["Swrve is out of order"]);
        shows_hostile(&page);
    }
}
