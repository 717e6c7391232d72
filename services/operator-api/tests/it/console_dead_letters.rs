//! Dead letters and jobs in the console.

use domain::key::Role;
use domain::push::PushState;
use serde_json::{Value, json};
use testkit::push_factory::PushRow;
use url::form_urlencoded;
use uuid::Uuid;

use crate::console::{Browser, HOSTILE, holds, shows_hostile};
use crate::dead_letters::make_dead_letters;
use crate::rig::Rig;

async fn letters(rig: &Rig, query: &str) -> Vec<Uuid> {
    let found = rig.all(&format!("/dead-letters?{query}"), 100).await;
    found
        .iter()
        .map(|letter| letter["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

/// A dead letter in which strangers have written wherever they can write.
async fn hostile(rig: &Rig) -> Uuid {
    sqlx::query_scalar(
        "INSERT INTO dead_letters (lane, reason, fingerprint, target, detail, reseller_id, event_type, prototype, message)
         VALUES ('push', 'MALFORMED', $1, $1, $1, $1, $1, $1,
                 jsonb_build_object('reason', $1, 'queue', $1, 'count', 1, 'body', $1, 'headers', jsonb_build_object($1, $1)))
         RETURNING id",
    )
    .bind(HOSTILE)
    .fetch_one(&rig.it.pool)
    .await
    .unwrap()
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

fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// The value of a hidden field of a form.
fn hidden<'h>(html: &'h str, name: &str) -> &'h str {
    let start = format!("name=\"{name}\" value=\"");
    let found = html
        .split_once(&start)
        .unwrap_or_else(|| panic!("{name} is no field: {html}"));
    found.1.split('"').next().unwrap()
}

#[testkit::test]
async fn groups_say_what_went_wrong_where_and_how_often(rig: &Rig) {
    let viewer = Browser::of(rig, Role::Viewer).await;
    let empty = viewer.see("/console/dead-letters").await;
    holds(&empty, &["No dead letters are open.", "There has never been one"]);

    let (_, subscription) = make_dead_letters(rig).await;
    sqlx::query(
        "UPDATE dead_letters SET target = 'https://acme.example', reseller_id = 'acme', fingerprint = 'delivery/http/503/html'
         WHERE lane = 'reseller'",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let page = viewer.see("/console/dead-letters").await;
    holds(
        &page,
        &[
            "4 open in 3 groups",
            "Swrve fails: 503",
            "a message that cannot be read",
            "https://acme.example",
            "/console/resellers/acme",
            &format!("/console/subscriptions/{subscription}"),
            "growing",
            "2 in 24 hours",
            "needs the role operator",
            "data-live=\"5000\"",
        ],
    );
    assert!(!page.contains("/console/jobs/new"), "a viewer cannot begin a job");
    for list in ["/console/dead-letters", "/console/dead-letters/list"] {
        let page = viewer.see(&format!("{list}?since=7d")).await;
        holds(&page, &["data-since=\"20"]);
    }
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see("/console/dead-letters?lane=push&order=latest").await;
    holds(
        &page,
        &[
            "3 open in 2 groups",
            "Replay all 3 that match",
            "/console/jobs/new?action=replay&#38;lane=push",
            "Open ones: lane push.",
        ],
    );
    let page = operator.see("/console/dead-letters?by=endpoint").await;
    holds(&page, &["https://acme.example", "the endpoint"]);
    let page = operator
        .see("/console/dead-letters?reseller=acme&since=24h")
        .await;
    holds(&page, &["1 open in 1 group:", "nothing is counted by the hour"]);
    let page = operator.see("/console/dead-letters?reseller=unknown").await;
    holds(&page, &["No dead letter matches reseller unknown"]);
    for wrong in [
        "lnae=push",
        "lane=fast",
        "since=yesterday",
        "by=colour",
        "order=best",
        "lane=push&lane=push",
    ] {
        let answer = operator.get(&format!("/console/dead-letters?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.html);
    }
}

#[testkit::test]
async fn a_row_has_acts_only_where_a_filter_is_about_it_alone(rig: &Rig) {
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, target, detail)
         VALUES ('push', 'MALFORMED', 'swrve/503', '', 'what'), ('push', 'MALFORMED', 'delivery/connect', '', 'what'),
                ('push', 'MALFORMED', 'delivery/connect', 'https://acme.example', 'what'),
                ('push', 'MALFORMED', 'prototype-key/*', 'https://acme.example', 'what'), ('push', 'MALFORMED', '', '', 'what')",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see("/console/dead-letters").await;
    holds(
        &page,
        &[
            "aria-label=\"Discard swrve/503 \"",
            "aria-label=\"Discard delivery/connect https://acme.example\"",
            "aria-label=\"List delivery/connect \"",
            "aria-label=\"List prototype-key/* https://acme.example\"",
            "aria-label=\"List  \"",
        ],
    );
    assert_eq!(page.matches("aria-label=\"Replay ").count(), 2, "{page}");
    let page = operator.see("/console/dead-letters?by=endpoint").await;
    holds(
        &page,
        &[
            "action=replay&#38;lane=push&#38;target=https%3A%2F%2Facme.example\"",
            "aria-label=\"List delivery/connect \"",
        ],
    );
}

#[testkit::test]
async fn dead_letters_are_listed_chosen_and_paged(rig: &Rig) {
    make_dead_letters(rig).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let all = letters(rig, "").await;
    let first = operator.see("/console/dead-letters/list?limit=3").await;
    for id in &all[..3] {
        holds(
            &first,
            &[
                &format!("id=\"letter-{id}\""),
                &format!("name=\"id\" value=\"{id}\""),
            ],
        );
    }
    let (_, older) = first.split_once("rel=\"next\" href=\"").unwrap();
    let older = older.split('"').next().unwrap().replace("&#38;", "&");
    let second = operator.see(&older).await;
    holds(&second, &[&format!("id=\"letter-{}\"", all[3]), "Newest first"]);
    assert!(!second.contains("rel=\"next\""));
    let oldest = operator
        .see("/console/dead-letters/list?order=oldest&limit=1")
        .await;
    holds(
        &oldest,
        &[&format!("id=\"letter-{}\"", all[3]), "the oldest first"],
    );
    let none = operator.see("/console/dead-letters/list?state=DISCARDED").await;
    holds(&none, &["No dead letter matches state DISCARDED"]);
    for wrong in [
        "limit=0",
        "limit=201",
        "limit=x",
        "order=best",
        "cursor=x",
        "colour=red",
    ] {
        let answer = operator.get(&format!("/console/dead-letters/list?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.html);
    }
}

#[testkit::test]
async fn one_dead_letter_is_shown_replayed_and_discarded(rig: &Rig) {
    let (push, _) = make_dead_letters(rig).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    let of_push = letters(rig, "reason=GIVEN_UP").await[0];
    let path = format!("/console/dead-letters/{of_push}");
    let page = operator.see(&path).await;
    holds(
        &page,
        &[
            "Dead letter: Swrve fails: 503",
            &format!("/console/explain/{push}"),
            "503 Service Unavailable",
            "SWRVE_PUSH_KEY",
            "<dialog id=\"replay\"",
            "<dialog id=\"discard\"",
            "0af7651916cd43dd8448eb211c80319c",
            "data-live=\"5000\"",
        ],
    );
    let page = viewer.see(&path).await;
    holds(&page, &["needs the role operator"]);
    assert!(!page.contains("<dialog"), "a viewer has no forms");
    for act in ["replay", "discard"] {
        let refused = viewer
            .refused(&format!("{path}/{act}"), &[("note", "a")], 403)
            .await;
        holds(&refused, &["operator"]);
        holds(
            &operator.see(&format!("{path}/{act}")).await,
            &["<h1>", "Back</a>", "name=\"note\""],
        );
    }
    let long = "x".repeat(2_001);
    for note in [" ", &*long] {
        let page = operator
            .refused(&format!("{path}/discard"), &[("note", note)], 422)
            .await;
        holds(&page, &["Nothing was done", "#discard-note", note.trim()]);
    }
    let (to, page) = operator
        .act(&format!("{path}/replay"), &[("note", HOSTILE)])
        .await;
    assert_eq!(to, path);
    holds(&page, &["The dead letter was replayed."]);
    shows_hostile(&page);
    assert!(
        !operator
            .see(&path)
            .await
            .contains("The dead letter was replayed."),
        "it is said once"
    );
    let refused = operator.refused(&format!("{path}/replay"), &[], 409).await;
    holds(&refused, &["the dead letter was replayed before"]);

    let malformed = letters(rig, "reason=MALFORMED").await[0];
    let path = format!("/console/dead-letters/{malformed}");
    holds(
        &operator.see(&path).await,
        &["push.ready", "What the broker handed back"],
    );
    let (_, page) = operator
        .act(&format!("{path}/discard"), &[("note", "a test of ours")])
        .await;
    holds(
        &page,
        &["The dead letter was discarded.", "a test of ours", "Discarded"],
    );
    let log = rig.all("/audit?action=dead-letter", 10).await;
    let actions: Vec<_> = log
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["dead-letter.discard", "dead-letter.replay"]);
    for none in [Uuid::now_v7().to_string(), "nonsense".to_owned()] {
        assert_eq!(
            operator
                .get(&format!("/console/dead-letters/{none}"))
                .await
                .status,
            404
        );
    }
}

#[testkit::test]
async fn what_strangers_wrote_is_text_on_every_page(rig: &Rig) {
    let id = hostile(rig).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let filter = query(&[
        ("target", HOSTILE),
        ("fingerprint", HOSTILE),
        ("prototype", HOSTILE),
    ]);
    for path in [
        "/console/dead-letters".to_owned(),
        "/console/dead-letters?by=endpoint".to_owned(),
        format!("/console/dead-letters?{filter}"),
        "/console/dead-letters/list".to_owned(),
        format!("/console/dead-letters/list?{filter}"),
        format!("/console/dead-letters/{id}"),
        format!("/console/dead-letters/{id}/discard"),
        format!("/console/jobs/new?action=discard&{filter}"),
        format!("/console/jobs/new?action=replay&id={id}"),
    ] {
        shows_hostile(&operator.see(&path).await);
    }
    let fields = [
        ("action", "discard"),
        ("target", HOSTILE),
        ("counted", "1"),
        ("perSecond", HOSTILE),
    ];
    shows_hostile(&operator.refused("/console/jobs", &fields, 422).await);
    let fields = [
        ("action", "discard"),
        ("target", HOSTILE),
        ("counted", "1"),
        ("note", HOSTILE),
    ];
    let (job, page) = operator.act("/console/jobs", &fields).await;
    for page in [
        page,
        operator.see(&job).await,
        operator.see("/console/jobs").await,
    ] {
        shows_hostile(&page);
    }
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
async fn a_note_is_kept_with_its_group(rig: &Rig) {
    make_dead_letters(rig).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see("/console/dead-letters").await;
    holds(&page, &["Note on swrve/503"]);
    let groups = rig.see("/dead-letters/groups?fingerprint=swrve/503").await;
    let group = &groups["items"][0];
    let member = |name: &str| group[name].as_str().unwrap();
    let words = ["lane", "fingerprint", "target"].map(|name| (name, member(name)));
    let words: Vec<_> = words.into_iter().filter(|(_, word)| !word.is_empty()).collect();
    let place = format!("/console/dead-letters/note?{}", query(&words));
    holds(
        &operator.see(&place).await,
        &["Swrve fails: 503", "Who looks after it"],
    );
    let long = "x".repeat(1_001);
    let wrong = [("owner", &*long), ("note", "kept"), ("until", "yesterday")];
    let page = operator.refused(&place, &wrong, 422).await;
    holds(
        &page,
        &[
            "Who looks after it: must be at most",
            "It holds for: must be a time",
            ">kept</textarea>",
        ],
    );
    let note = [("owner", "ada"), ("note", HOSTILE), ("until", "24")];
    let (to, page) = operator.act(&place, &note).await;
    assert_eq!(to, "/console/dead-letters");
    shows_hostile(&page);
    holds(
        &page,
        &["The note is shown with the group", ">ada<", "until <time"],
    );
    let form = operator.see(&place).await;
    shows_hostile(&form);
    holds(&form, &["value=\"ada\"", "As it is: until"]);
    let (_, page) = operator.act(&place, &[]).await;
    holds(&page, &["The note on the group was taken away."]);
    assert!(!page.contains(">ada<"));
    let unknown = "/console/dead-letters/note?lane=push&fingerprint=none";
    assert_eq!(operator.get(unknown).await.status, 404);
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
