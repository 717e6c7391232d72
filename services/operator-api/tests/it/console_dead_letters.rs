//! Dead letters in the console.

mod jobs;

use domain::key::Role;
use testkit::subscription_factory::SubscriptionRow;
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

fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

#[testkit::test]
async fn the_only_subscription_at_an_endpoint_is_paused_from_its_group(rig: &Rig) {
    let (_, subscription) = make_dead_letters(rig).await;
    sqlx::query(
        "UPDATE dead_letters SET target = 'https://acme.example', reseller_id = 'acme' WHERE lane = 'reseller'",
    )
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let groups = "/console/dead-letters?lane=reseller";
    let viewer = Browser::of(rig, Role::Viewer).await;
    let page = viewer.see(groups).await;
    holds(
        &page,
        &[
            "disabled aria-describedby=\"why\" aria-label=\"Pause the subscription of http/503 https://acme.example\"",
        ],
    );
    let operator = Browser::with_key(rig, &rig.key).await;
    let place = format!("/console/subscriptions/{subscription}/pause");
    let link = format!("href=\"{place}?back=%2Fconsole%2Fdead-letters%3Flane%3Dreseller\"");
    holds(&operator.see(groups).await, &[&link]);

    // Which of two is meant, the group does not say.
    let other = SubscriptionRow::active()
        .url("https://acme.example/another")
        .make(&rig.it.pool)
        .await;
    let page = operator.see(groups).await;
    assert!(!page.contains(&place), "{page}");
    holds(
        &page,
        &[&format!("href=\"/console/subscriptions/{subscription}\"")],
    );
    sqlx::query("UPDATE subscriptions SET url = 'https://elsewhere.example/' WHERE id = $1")
        .bind(other)
        .execute(&rig.it.pool)
        .await
        .unwrap();

    let form = operator
        .see(&format!(
            "{place}?back=%2Fconsole%2Fdead-letters%3Flane%3Dreseller"
        ))
        .await;
    holds(
        &form,
        &[
            "Pause the subscription of acme",
            "name=\"back\" value=\"/console/dead-letters?lane=reseller\"",
        ],
    );
    let page = operator.refused(&place, &[("back", groups)], 422).await;
    holds(&page, &["The note is needed"]);
    let (to, page) = operator
        .act(&place, &[("back", groups), ("note", "the endpoint is down")])
        .await;
    assert_eq!(to, groups);
    holds(&page, &["The subscription is paused."]);
    assert!(!page.contains(&place), "what is paused already is not offered");
    let pauses = rig.see("/pauses").await;
    assert_eq!(pauses["items"][0]["key"], subscription.to_string());
    let (to, _) = operator
        .act(
            &format!("/console/subscriptions/{subscription}/pause"),
            &[("back", "https://elsewhere.example/"), ("note", "again")],
        )
        .await;
    assert_eq!(to, "/console", "an address of the console, and no other");
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
            "class=\"mono clip\" title=\"https://acme.example\">https://acme.example<",
            "/console/resellers/acme",
            &format!("/console/subscriptions/{subscription}"),
            "growing",
            "2 in 24 hours",
            "needs the role operator",
            "data-live=\"5000\"",
        ],
    );
    assert!(!page.contains("/console/jobs/new"), "a viewer cannot begin a job");
    for act in ["Replay", "Discard", "Note on"] {
        holds(
            &page,
            &[&format!("disabled aria-describedby=\"why\" aria-label=\"{act} ")],
        );
    }
    assert!(!page.contains("/console/dead-letters/note"), "nor write a note");
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
            "postrider dead-letters groups --lane &#39;push&#39;</code>",
        ],
    );
    let page = operator.see("/console/dead-letters?by=endpoint").await;
    holds(&page, &["https://acme.example", "the endpoint"]);
    let page = operator
        .see("/console/dead-letters?reseller=acme&since=24h")
        .await;
    holds(&page, &["1 open in 1 group:", "1 in 24 hours"]);
    let page = operator
        .see("/console/dead-letters?fingerprint=delivery/http/5*")
        .await;
    holds(
        &page,
        &[
            "1 open in 1 group",
            "list=\"kinds\"",
            "<option value=\"delivery/http/5*\">the endpoint fails (5xx)",
        ],
    );
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
        &[
            &format!("id=\"letter-{}\"", all[3]),
            "the oldest first",
            "postrider dead-letters list --order oldest</code>",
        ],
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
            &format!("it is about the push <a class=\"link\" href=\"/console/explain/{push}\">"),
            "Waits for an operator since <time ",
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

    let of_notification = letters(rig, "lane=reseller").await[0];
    let page = operator
        .see(&format!("/console/dead-letters/{of_notification}"))
        .await;
    holds(
        &page,
        &[
            "<dt>Event</dt>",
            "<li class=\"bad\">",
            "/console/waiting?lane=reseller&amp;status=ANY&amp;eventId=",
            "all its notifications",
        ],
    );
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
    let list = "/console/dead-letters?lane=push&order=latest";
    let page = operator.see(list).await;
    holds(
        &page,
        &["&amp;back=%2Fconsole%2Fdead-letters%3Flane%3Dpush%26order%3Dlatest\""],
    );
    let form = operator
        .see(&format!("{place}&{}", query(&[("back", list)])))
        .await;
    holds(
        &form,
        &["name=\"back\" value=\"/console/dead-letters?lane=push&#38;order=latest\""],
    );
    let (to, _) = operator.act(&place, &[("note", "known"), ("back", list)]).await;
    assert_eq!(to, list);
    let (to, _) = operator
        .act(&place, &[("note", "known"), ("back", "//evil.example")])
        .await;
    assert_eq!(to, "/console");
    let unknown = "/console/dead-letters/note?lane=push&fingerprint=none";
    assert_eq!(operator.get(unknown).await.status, 404);
}
