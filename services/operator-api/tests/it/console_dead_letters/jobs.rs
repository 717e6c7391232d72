//! Jobs on dead letters in the console.

use domain::key::Role;
use domain::push::PushState;
use serde_json::{Value, json};
use testkit::push_factory::PushRow;
use uuid::Uuid;

use super::letters;
use crate::console::{Browser, holds};
use crate::dead_letters::make_dead_letters;
use crate::rig::Rig;

/// The value of a hidden field of a form.
fn hidden<'h>(html: &'h str, name: &str) -> &'h str {
    let start = format!("name=\"{name}\" value=\"");
    let found = html
        .split_once(&start)
        .unwrap_or_else(|| panic!("{name} is no field: {html}"));
    found.1.split('"').next().unwrap()
}

/// As many dead letters as that, of one kind.
async fn many(rig: &Rig, count: i32) {
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, detail, created_at)
         SELECT 'push', 'MALFORMED', 'broker/malformed', 'what', now() - interval '1 hour'
         FROM generate_series(1, $1)",
    )
    .bind(count)
    .execute(&rig.it.pool)
    .await
    .unwrap();
}

#[testkit::test]
async fn a_job_is_about_what_was_counted_and_is_steered(rig: &Rig) {
    make_dead_letters(rig).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let path = "/console/jobs/new?action=replay&fingerprint=swrve/503&since=24h&perSecond=1";
    let page = operator.see(path).await;
    holds(
        &page,
        &[
            "<h1>Replay 2 dead letters</h1>",
            "kind swrve/503, of the last 24 hours",
            "2 s at 1",
            "postrider dead-letters replay --fingerprint &#39;swrve/503&#39; --since",
            "Replay 2</button>",
            " --rate 1</code>",
        ],
    );
    assert!(!page.contains("data-expect"), "two are few");
    let (since, until) = (hidden(&page, "since"), hidden(&page, "until"));
    let base = [
        ("action", "replay"),
        ("fingerprint", "swrve/503"),
        ("since", since),
        ("until", until),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&base[..], more].concat();
    for (more, said) in [
        (
            &[("counted", "2"), ("perSecond", "fast"), ("note", "kept")][..],
            "Most a second: must be a number",
        ),
        (
            &[("counted", "2"), ("perSecond", "0"), ("note", "kept")],
            "Most a second: must be between 1 and",
        ),
        (&[("counted", "1"), ("note", "kept")], "more match now"),
    ] {
        let page = operator.refused("/console/jobs", &with(more), 422).await;
        holds(&page, &["The job was not started", said, ">kept</textarea>"]);
        assert_eq!(hidden(&page, "until"), until);
    }
    // What comes after the counting is not meant.
    PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    let (job, page) = operator
        .act(
            "/console/jobs",
            &with(&[("counted", "2"), ("perSecond", "1"), ("note", "Swrve is back")]),
        )
        .await;
    holds(
        &page,
        &[
            "2 dead letters are replayed",
            "0 of 2 replayed",
            "Swrve is back",
            "1 open dead letter that differs from the filter in time alone was written later",
            "data-live=\"2000\"",
            "<dialog id=\"pause\"",
        ],
    );
    let made = rig
        .see(
            job.strip_prefix("/console")
                .map(|path| format!("/dead-letters{path}"))
                .unwrap()
                .as_str(),
        )
        .await;
    assert_eq!(
        (&made["matching"], &made["perSecond"], &made["note"]),
        (&json!(2), &json!(1), &json!("Swrve is back"))
    );
    for (act, said, status) in [
        ("pause", "The job is paused.", "An operator has paused it."),
        ("resume", "The job goes on", "Running"),
        ("cancel", "The job was cancelled.", "Cancelled"),
    ] {
        holds(
            &operator.see(&format!("{job}/{act}")).await,
            &["name=\"note\"", "Back</a>", "0 of 2 looked at"],
        );
        if act == "cancel" {
            operator.refused(&format!("{job}/{act}"), &[], 422).await;
        }
        let (to, page) = operator.act(&format!("{job}/{act}"), &[("note", "a")]).await;
        assert_eq!(to, job);
        holds(&page, &[said, status]);
    }
    holds(
        &operator.see(&job).await,
        &[
            " cancelled it on <time",
            " after 0 of 2 dead letters. 2 dead letters are left untouched.",
        ],
    );
    holds(
        &operator.refused(&format!("{job}/resume"), &[], 409).await,
        &["has ended before"],
    );
    let list = operator.see("/console/jobs?status=CANCELLED").await;
    holds(
        &list,
        &[
            &format!("href=\"{job}\""),
            "kind swrve/503",
            "Swrve is back",
            "0 delivered, 0 waiting, 0 failed again",
        ],
    );
    holds(
        &operator.see("/console/jobs?status=RUNNING").await,
        &["No job has this status."],
    );
    assert_eq!(operator.get("/console/jobs?status=DONE").await.status, 400);
    let log = rig.all("/audit?action=dead-letter-job", 10).await;
    assert_eq!(log.len(), 4, "{log:?}");
}

#[testkit::test]
async fn a_job_is_begun_with_care_once_and_its_rate_is_changed(rig: &Rig) {
    many(rig, 120).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let path = "/console/jobs/new?action=replay&lane=push";
    let page = operator.see(path).await;
    holds(
        &page,
        &[
            "Will be skipped",
            "name=\"canary\"",
            "name=\"pauseAbove\"",
            "name=\"order\"",
        ],
    );
    for (name, suggested) in [("canary", "10"), ("pauseAbove", "20"), ("limit", "")] {
        let field = format!("name=\"{name}\" inputmode=\"numeric\" value=\"{suggested}\"");
        holds(&page, &[&field]);
    }
    let discard = operator.see("/console/jobs/new?action=discard&lane=push").await;
    assert!(!discard.contains("name=\"canary\""), "nothing is sent");
    holds(&page, &[" --rate 100 --canary 10 --pause-above 20</code>"]);
    holds(&discard, &[" --rate 100 --note &#39;…&#39;</code>"]);
    let (until, job) = (hidden(&page, "until").to_owned(), hidden(&page, "job").to_owned());
    let base = [
        ("action", "replay"),
        ("lane", "push"),
        ("until", &*until),
        ("counted", "120"),
        ("job", &*job),
        ("perSecond", "5"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&base[..], more].concat();
    let wrong = with(&[
        ("canary", "few"),
        ("pauseAbove", "100"),
        ("limit", "0"),
        ("order", "best"),
    ]);
    let page = operator.refused("/console/jobs", &wrong, 422).await;
    holds(&page, &["First ones: must be a number", "href=\"#canary\""]);
    let wrong = with(&[("pauseAbove", "100"), ("limit", "0"), ("order", "best")]);
    let page = operator.refused("/console/jobs", &wrong, 422).await;
    holds(
        &page,
        &[
            "Percent: must be",
            "Most in all: must be",
            "Order: must be oldest or newest",
        ],
    );
    let right = with(&[
        ("canary", "3"),
        ("pauseAbove", "20"),
        ("limit", "50"),
        ("order", "newest"),
        ("note", "with care"),
    ]);
    let (to, page) = operator.act("/console/jobs", &right).await;
    assert_eq!(to, format!("/console/jobs/{job}"));
    holds(
        &page,
        &[
            "50 dead letters are replayed",
            "0 of 50 replayed",
            "the newest first",
            "3, before the others",
            "more than 20 %",
            "at most 5 a second",
        ],
    );
    // Sent twice, it is one job; with other values it is none.
    let (again, page) = operator.act("/console/jobs", &right).await;
    assert_eq!(again, to);
    holds(&page, &["The job was started before, and only once."]);
    let page = operator
        .refused("/console/jobs", &with(&[("note", "without care")]), 409)
        .await;
    holds(
        &page,
        &["another job has this identifier", ">without care</textarea>"],
    );
    assert_ne!(hidden(&page, "job"), job, "the next one is another");
    assert_eq!(rig.all("/dead-letters/jobs", 10).await.len(), 1);

    let rate = format!("{to}/rate");
    holds(&operator.see(&rate).await, &["value=\"5\"", "From 1 to 10,000."]);
    let fields = [("perSecond", "0"), ("note", "kept")];
    let page = operator.refused(&rate, &fields, 422).await;
    holds(
        &page,
        &[
            "Most a second: must be between",
            ">kept</textarea>",
            "rate-perSecond-error",
        ],
    );
    let (_, page) = operator
        .act(&rate, &[("perSecond", "7"), ("note", "slower")])
        .await;
    holds(
        &page,
        &["at most 7 a second from now on", "at most 7 a second, the"],
    );
    assert_eq!(rig.all("/audit?action=dead-letter-job.pace", 10).await.len(), 1);

    // As the retry worker leaves a job whose first ones are waited for, and then did not succeed.
    for (because, said) in [
        (
            "CANARY",
            "It waits for what becomes of the first 3, and goes on by itself",
        ),
        (
            "CANARY_FAILED",
            "It has paused itself: none of the first ones was delivered.",
        ),
    ] {
        sqlx::query("UPDATE dead_letter_jobs SET status = 'PAUSED', paused_because = $1")
            .bind(because)
            .execute(&rig.it.pool)
            .await
            .unwrap();
        holds(&operator.see(&to).await, &[said, "Go on with the rest"]);
    }
    holds(&operator.see("/console/jobs").await, &["Paused"]);
    let (_, page) = operator.act(&format!("{to}/resume"), &[]).await;
    holds(&page, &["The job goes on"]);
}

#[testkit::test]
async fn what_an_ended_job_has_replayed_is_listed_from_its_page(rig: &Rig) {
    let job = Uuid::now_v7();
    let push = PushRow::in_state(PushState::Sent)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    sqlx::query(
        "INSERT INTO dead_letter_jobs (id, action, status, filter, per_second, until, matching, examined, done, created_by, created_at,
                                       paced_to, updated_at, finished_at)
         VALUES ($1, 'REPLAY', 'COMPLETED', '{\"lane\": \"push\"}', 100, now(), 1, 1, 1, 'ann', now(), now(), now(), now())",
    )
    .bind(job)
    .execute(&rig.it.pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, detail, push_id, state, resolved_at, resolved_by, job_id)
         VALUES ('push', 'FAILED', 'swrve/503', 'busy', $1, 'REPLAYED', now(), 'ann', $2)",
    )
    .bind(push)
    .bind(job)
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see(&format!("/console/jobs/{job}")).await;
    holds(&page, &[&format!("job={job}\">1 dead letter</a>"), "lane push"]);
    assert!(
        !page.contains("/console/dead-letters/list?lane=push"),
        "none of its filter is open: {page}"
    );
    let list = format!("/console/dead-letters/list?state=REPLAYED&job={job}");
    let list = operator.see(&list).await;
    let push = push.to_string();
    holds(
        &list,
        &[
            &push,
            "1 match, the newest first",
            "id=\"job\" name=\"job\"",
            "title=\"DELIVERED\"",
        ],
    );
}

#[testkit::test]
async fn a_large_number_has_to_be_typed(rig: &Rig) {
    many(rig, 1_001).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see("/console/jobs/new?action=discard&lane=push").await;
    holds(
        &page,
        &["Discard 1,001</button>", "data-expect=\"1001\"", "required"],
    );
    let until = hidden(&page, "until").to_owned();
    let base = [
        ("action", "discard"),
        ("lane", "push"),
        ("until", &*until),
        ("counted", "1001"),
        ("note", "a"),
    ];
    let with = |number: &'static str| [&base[..], &[("number", number)]].concat();
    for wrong in ["", "1000", "many"] {
        let page = operator.refused("/console/jobs", &with(wrong), 422).await;
        holds(&page, &["href=\"#number\"", "must be 1001"]);
    }
    let without_note = [
        ("action", "discard"),
        ("lane", "push"),
        ("counted", "1001"),
        ("number", "1001"),
    ];
    let page = operator.refused("/console/jobs", &without_note, 422).await;
    holds(&page, &["href=\"#note\""]);
    let all_wrong = [&without_note[..3], &[("number", "1"), ("perSecond", "fast")]].concat();
    let page = operator.refused("/console/jobs", &all_wrong, 422).await;
    holds(
        &page,
        &["href=\"#note\"", "href=\"#perSecond\"", "href=\"#number\""],
    );
    let jobs: Value = rig.see("/dead-letters/jobs").await;
    assert_eq!(jobs["items"], json!([]), "nothing was started");
    let (_, page) = operator.act("/console/jobs", &with("1,001")).await;
    holds(
        &page,
        &["1,001 dead letters are discarded", "0 of 1,001 discarded"],
    );
}

#[testkit::test]
async fn more_are_chosen_by_identifier_than_an_address_holds(rig: &Rig) {
    many(rig, 1_001).await;
    let all: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM dead_letters")
        .fetch_all(&rig.it.pool)
        .await
        .unwrap();
    let ids: Vec<_> = all.iter().map(Uuid::to_string).collect();
    let operator = Browser::with_key(rig, &rig.key).await;
    holds(
        &operator.see("/console/dead-letters/list").await,
        &[
            "data-kept=\"dead-letters of ",
            "<textarea id=\"ids\" name=\"ids\"",
        ],
    );
    let viewer = Browser::of(rig, Role::Viewer).await;
    let page = viewer.see("/console/dead-letters/list").await;
    assert!(
        !page.contains("data-kept") && !page.contains("<textarea"),
        "{page}"
    );

    // As the list sends them: those of the page as fields of their own.
    let others = ids[1..].join("\r\n");
    let chosen = [
        ("action", "discard"),
        ("chosen", "ids"),
        ("id", &*ids[0]),
        ("ids", &others),
    ];
    let counted = operator.post("/console/jobs/new", &chosen).await;
    assert_eq!(counted.status, 200, "{}", counted.html);
    holds(
        &counted.html,
        &[
            "Discard 1,001 dead letters",
            "1,001 chosen one by one",
            "data-expect=\"1001\"",
            "data-uses=\"dead-letters of ",
            "postrider dead-letters discard $(cat ids.txt)",
        ],
    );
    let ids = hidden(&counted.html, "ids");
    let fields = [
        ("action", "discard"),
        ("chosen", "ids"),
        ("ids", ids),
        ("counted", "1001"),
        ("number", "1001"),
        ("note", "a"),
    ];
    let (to, page) = operator.act("/console/jobs", &fields).await;
    let job = to.rsplit('/').next().unwrap();
    holds(
        &page,
        &[
            "1,001 dead letters are discarded",
            "data-clears=\"dead-letters of ",
            &format!(" data-job=\"{job}\""),
        ],
    );

    for (wrong, said) in [
        ("nonsense", "is no identifier"),
        ("", "select one dead letter at least"),
    ] {
        let fields = [("action", "replay"), ("chosen", "ids"), ("ids", wrong)];
        let page = operator.refused("/console/jobs/new", &fields, 422).await;
        holds(&page, &[said, &format!(">{wrong}</textarea>")]);
    }
}

#[testkit::test]
async fn single_ones_are_chosen_and_nothing_is_nothing(rig: &Rig) {
    make_dead_letters(rig).await;
    let all = letters(rig, "").await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let path = format!("/console/jobs/new?id={}&id={}&action=discard", all[0], all[1]);
    let page = operator.see(&path).await;
    holds(&page, &["Discard 2 dead letters", "2 chosen one by one"]);
    let (first, second) = (all[0].to_string(), all[1].to_string());
    let fields = [
        ("action", "discard"),
        ("id", &*first),
        ("id", &second),
        ("counted", "2"),
        ("note", "a"),
    ];
    let (_, page) = operator.act("/console/jobs", &fields).await;
    holds(
        &page,
        &["2 chosen one by one", &format!("/console/dead-letters/{first}")],
    );
    let nothing = operator
        .see("/console/jobs/new?action=replay&reseller=unknown")
        .await;
    holds(&nothing, &["there is nothing to do"]);
    assert!(
        !nothing.contains("action=\"/console/jobs\""),
        "no button for nothing"
    );
    for wrong in [
        "lane=push",
        "action=mend",
        "action=replay&lnae=push",
        "action=replay&since=yesterday",
    ] {
        let answer = operator.get(&format!("/console/jobs/new?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.html);
    }
    assert_eq!(
        operator.get("/console/jobs/new?action=replay&id=x").await.status,
        422
    );
    // Nothing selected and nothing said are not everything.
    for (none, said) in [
        ("chosen=ids", "select one dead letter at least"),
        ("chosen=ids&lane=push", "select one dead letter at least"),
        ("", "must be 1 if every open dead letter is meant"),
        ("state=REPLAYED", "must be 1 if every open dead letter is meant"),
    ] {
        let answer = operator
            .get(&format!("/console/jobs/new?action=discard&{none}"))
            .await;
        assert_eq!(answer.status, 422, "{none}: {}", answer.html);
        holds(&answer.html, &[said]);
    }
    let nothing = [("action", "discard"), ("counted", "2"), ("note", "a")];
    operator.refused("/console/jobs", &nothing, 422).await;
    let nothing_selected = [&nothing[..], &[("chosen", "ids"), ("lane", "push")]].concat();
    operator.refused("/console/jobs", &nothing_selected, 422).await;
    let jobs = rig.all("/dead-letters/jobs", 10).await;
    assert_eq!(jobs.len(), 1, "nothing else was started: {jobs:?}");
    let list = operator.see("/console/dead-letters/list").await;
    assert_eq!(hidden(&list, "chosen"), "ids");
    let all = operator.see("/console/jobs/new?action=discard&all=1").await;
    // No worker is there to do the first job.
    holds(&all, &["Discard 4 dead letters", "Every open dead letter."]);
    assert_eq!(hidden(&all, "all"), "1");
    let viewer = Browser::of(rig, Role::Viewer).await;
    assert_eq!(viewer.get(&path).await.status, 403);
    viewer.refused("/console/jobs", &fields, 403).await;
    assert_eq!(viewer.get("/console/jobs").await.status, 200);
}
