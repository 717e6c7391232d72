//! One-time links, and the visits that they begin.

use chrono::TimeDelta;
use domain::key::Role;
use serde_json::json;
use sqlx::PgPool;
use testkit::eventually;

use crate::app::{Browser, entered, link, token_of};
use crate::portal::{Portal, answer, fields, problem};

const PANEL: &str = "https://panel.example";

async fn framed(pool: PgPool) -> Portal {
    Portal::start_with(pool, |config| {
        config.portal.embed.origins = vec![PANEL.to_owned()]
    })
    .await
}

#[testkit::test]
async fn a_link_opens_one_visit_and_then_nothing(portal: Portal) {
    let request = json!({"person": {"id": "user-17"}, "landing": "/app/deliveries?status=FAILED"});
    let link = link(&portal, &request).await;
    let (browser, other) = (Browser::new(&portal), Browser::new(&portal));
    let page = browser.see("/app/enter").await;
    assert!(!page.contains("prl_"), "{page}");
    assert_eq!(browser.get("/app").await.header("location"), "/app/expired");
    let entered = browser.enter(token_of(&link)).await;
    assert_eq!(entered.header("location"), "/app/deliveries?status=FAILED");
    let cookie = entered.header("set-cookie");
    for part in ["__Host-pr_app=", "Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    browser.see("/app").await;
    let used = other.enter(token_of(&link)).await;
    let wrong = other.enter("prl_00").await;
    let over = self::link(&portal, &json!({"person": {"id": "u"}, "linkSeconds": 30})).await;
    portal.clock.advance(TimeDelta::seconds(31));
    let over = other.enter(token_of(&over)).await;
    assert_eq!((used.status, &used.html), (410, &wrong.html));
    assert_eq!((over.status, &over.html), (410, &wrong.html));
    assert_eq!(other.get("/app").await.status, 303);
}

#[testkit::test]
async fn a_visit_ends_by_time_by_signing_out_and_with_its_key(portal: Portal) {
    let by_time = entered(&portal, &[]).await;
    by_time.see("/app").await;
    portal.clock.advance(TimeDelta::hours(8));
    assert_eq!(by_time.get("/app").await.header("location"), "/app/expired");

    let request = json!({"person": {"id": "u"}, "returnUrl": "https://panel.example/back"});
    let link = link(&portal, &request).await;
    let by_hand = Browser::new(&portal);
    by_hand.enter(token_of(&link)).await;
    by_hand.see("/app").await;
    let (to, page) = by_hand.act("/app/sign-out", &[]).await;
    assert_eq!(to, "/app/expired");
    assert!(page.contains("https://panel.example/back"), "{page}");
    assert_eq!(by_hand.get("/app").await.status, 303);

    let with_key = entered(&portal, &[]).await;
    with_key.see("/app").await;
    let visits = portal.see("/visits").await;
    assert_eq!(visits["items"].as_array().unwrap().len(), 1, "{visits}");
    assert_eq!(visits["items"][0]["person"]["name"], "Anna Ozola");
    sqlx::query("UPDATE api_keys SET revoked_at = now() WHERE reseller_id = 'acme'")
        .execute(&portal.pool)
        .await
        .unwrap();
    eventually("the visit to end", async || {
        (with_key.get("/app").await.status == 303).then_some(())
    })
    .await;
}

#[testkit::test]
async fn visits_are_ended_one_by_one_and_by_person(portal: Portal) {
    for _ in 0..2 {
        entered(&portal, &[]).await;
    }
    let visits = portal.see("/visits?person=user-17").await;
    let id = visits["items"][0]["id"].as_str().unwrap();
    let stranger = portal.key_of("stranger").await;
    let foreign = portal
        .request("DELETE", &format!("/visits/{id}"))
        .bearer_auth(&stranger);
    problem(foreign.send().await.unwrap(), 404, "not-found").await;
    portal.done("DELETE", &format!("/visits/{id}"), 204).await;
    assert_eq!(
        portal.done("DELETE", "/visits?person=user-18", 200).await,
        json!({"ended": 0})
    );
    assert_eq!(
        portal.done("DELETE", "/visits?person=user-17", 200).await,
        json!({"ended": 1})
    );
}

#[testkit::test]
async fn an_embedder_makes_links_for_any_reseller_and_does_nothing_else(portal: Portal) {
    let key = portal.house_key(Role::Embedder).await;
    let send = async |method: &str, path: &str, body: &serde_json::Value| {
        let request = portal.request(method, path).bearer_auth(&key);
        request.json(body).send().await.unwrap()
    };
    let request = json!({"resellerId": "acme", "person": {"id": "u"}});
    let made = answer(send("POST", "/portal-links", &request).await, 201).await;
    let browser = Browser::new(&portal);
    browser.enter(token_of(made["url"].as_str().unwrap())).await;
    browser.see("/app").await;
    let without = send("POST", "/portal-links", &json!({"person": {"id": "u"}})).await;
    assert_eq!(fields(&problem(without, 422, "validation").await), ["resellerId"]);
    let look = portal.request("GET", "/subscriptions").bearer_auth(&key);
    assert_eq!(look.send().await.unwrap().status(), 403);
    let other = json!({"resellerId": "stranger", "person": {"id": "u"}});
    let refused = portal
        .refused("POST", "/portal-links", Some(&other), (422, "validation"))
        .await;
    assert_eq!(fields(&refused), ["resellerId"]);
}

#[testkit::test]
async fn everything_that_is_wrong_with_a_link_is_said(portal: Portal) {
    let request = json!({
        "person": {"name": "x"}, "capabilities": ["everything"], "linkSeconds": 5, "visitMinutes": 9999, "landing": "//evil.example",
        "parentOrigin": PANEL, "returnUrl": "javascript:alert(1)", "theme": "pink", "locale": "<>", "timeZone": "Mars",
        "authTime": portal.now() + TimeDelta::hours(1), "capability": ["manage"],
    });
    let refused = portal
        .refused("POST", "/portal-links", Some(&request), (422, "validation"))
        .await;
    let mut found = fields(&refused);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "authTime",
            "capabilities[0]",
            "capability",
            "landing",
            "linkSeconds",
            "locale",
            "parentOrigin",
            "person.id",
            "returnUrl",
            "theme",
            "timeZone",
            "visitMinutes",
        ]
    );
}

#[testkit::test]
async fn only_the_page_that_the_link_names_may_frame_a_visit(pool: PgPool) {
    let portal = framed(pool).await;
    let request =
        json!({"person": {"id": "u"}, "parentOrigin": PANEL, "theme": "dark", "timeZone": "Europe/Riga"});
    let link = link(&portal, &request).await;
    let browser = Browser::new(&portal);
    let policy = |answer: &crate::app::Answer| {
        let policy = answer.header("content-security-policy").to_owned();
        let framed_by = policy.split_once("frame-ancestors ").unwrap().1;
        framed_by.split(';').next().unwrap().to_owned()
    };
    assert_eq!(policy(&browser.get("/app/enter").await), PANEL);
    let answered = browser.enter(token_of(&link)).await;
    let cookie = answered.header("set-cookie");
    for part in [
        "__Host-pr_embed=",
        "SameSite=None",
        "Partitioned",
        "Secure",
        "HttpOnly",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let page = browser.get("/app").await;
    assert_eq!(policy(&page), PANEL);
    assert!(page.html.contains(r#"data-theme="dark""#) && page.html.contains(r#"data-tz="Europe/Riga""#));
    assert!(!page.html.contains("/app/sign-out"));
    let documentation = r#"href="/docs" target="_blank" rel="noopener""#;
    assert!(page.html.contains(documentation), "{}", page.html);
    let own = entered(&portal, &[]).await;
    let page = own.get("/app").await;
    assert_eq!(policy(&page), "'none'");
    assert!(page.html.contains(r#"href="/docs">"#), "{}", page.html);
    portal.stop().await;
}

#[testkit::test]
async fn what_ends_in_a_frame_asks_the_page_around_it_and_no_other(pool: PgPool) {
    let portal = framed(pool).await;
    let asks = format!(r#"data-around="{PANEL}""#);
    let request = json!({"person": {"id": "u"}, "parentOrigin": PANEL});
    let in_frame = Browser::new(&portal);
    in_frame.enter(token_of(&link(&portal, &request).await)).await;
    let own = entered(&portal, &[]).await;
    portal.clock.advance(TimeDelta::hours(8));
    assert_eq!(in_frame.get("/app").await.header("location"), "/app/expired");
    let page = in_frame.see("/app/expired").await;
    assert!(page.contains(&asks) && page.contains("visit.js"), "{page}");
    assert!(!page.contains("keeps no cookies"), "{page}");
    let page = own.see("/app/expired").await;
    assert!(!page.contains("data-around"), "{page}");
    let page = Browser::new(&portal).see("/app/expired").await;
    assert!(
        !page.contains("data-around") && page.contains("keeps no cookies"),
        "{page}"
    );
    assert!(page.contains(&format!(r#"data-origins="{PANEL}""#)), "{page}");
    portal.stop().await;
}

#[testkit::test]
async fn what_a_viewer_prefers_is_kept_in_a_tab_and_in_a_frame(pool: PgPool) {
    let portal = framed(pool).await;
    let own = entered(&portal, &[]).await;
    let in_frame = Browser::new(&portal);
    let request = json!({"person": {"id": "u"}, "parentOrigin": PANEL});
    in_frame.enter(token_of(&link(&portal, &request).await)).await;
    for (browser, kept) in [(&own, "SameSite=Lax"), (&in_frame, "SameSite=None; Partitioned")] {
        let page = browser.see("/app").await;
        assert!(page.contains(r#"href="/app/preferences""#), "{page}");
        let form = browser.see("/app/preferences").await;
        assert!(
            form.contains(r#"method="post" action="/app/preferences""#),
            "{form}"
        );
        let fields = [
            ("theme", "dark"),
            ("tz", "Asia/Kolkata"),
            ("back", "/app/activity"),
        ];
        let answered = browser.post("/app/preferences", &fields).await;
        assert_eq!(
            (answered.status, answered.header("location")),
            (303, "/app/activity")
        );
        let cookie = answered.header("set-cookie");
        assert!(
            cookie.starts_with("pr_prefs=") && cookie.ends_with(kept),
            "{cookie}"
        );
        let (to, page) = browser
            .act("/app/preferences", &[("keys", "off"), ("back", "//evil.example")])
            .await;
        assert_eq!(to, "/app");
        assert!(
            page.contains(r#"data-theme="dark""#) && page.contains(r#"data-tz="Asia/Kolkata""#),
            "{page}"
        );
    }
    portal.stop().await;
}

#[testkit::test]
async fn cookies_open_no_operation_and_keys_no_page(portal: Portal) {
    let browser = entered(&portal, &crate::app::ALL).await;
    assert_eq!(browser.get("/subscriptions").await.status, 401);
    let with_key = portal.call("GET", "/app").send().await.unwrap();
    assert!(
        with_key.url().path().ends_with("/app/expired"),
        "{}",
        with_key.url()
    );
    let elsewhere = browser
        .request("POST", "/app/sign-out")
        .header("sec-fetch-site", "cross-site");
    assert_eq!(browser.send(elsewhere).await.status, 403);
    browser.see("/app").await;
}

#[testkit::test]
async fn made_up_cookies_and_tokens_stop_those_who_show_them_and_no_visit(portal: Portal) {
    let browser = entered(&portal, &[]).await;
    browser.see("/app").await;
    let strange = Browser::new(&portal);
    let mut answers = [Vec::new(), Vec::new()];
    for number in 0..60 {
        let request = strange.request("GET", "/app");
        let cookie = format!("__Host-pr_app=made-up-{number}");
        let answer = strange.send(request.header("cookie", cookie)).await;
        assert_eq!(answer.header("refresh"), "", "it would add to what is too much");
        answers[0].push(answer.status);
        answers[1].push(strange.enter(&format!("prl_{number}")).await.status);
    }
    for (answers, first) in answers.iter().zip([303, 410]) {
        assert_eq!(answers[0], first, "{answers:?}");
        assert!(answers.contains(&429), "{answers:?}");
    }
    browser.see("/app").await;
}

#[testkit::test]
async fn a_cookie_of_a_frame_hides_no_visit_of_an_own_tab(pool: PgPool) {
    let portal = framed(pool).await;
    let browser = entered(&portal, &[]).await;
    let request = browser.request("GET", "/app");
    let cookies = "__Host-pr_embed=of-a-visit-that-is-over";
    let own = browser.send(request.header("cookie", cookies)).await;
    assert_eq!(own.status, 200, "{}", own.html);
    let request = json!({"person": {"id": "u"}, "parentOrigin": PANEL});
    let entered = browser.enter(token_of(&link(&portal, &request).await)).await;
    let cookies: Vec<_> = entered.headers.get_all("set-cookie").iter().collect();
    let cookies: Vec<_> = cookies.iter().map(|cookie| cookie.to_str().unwrap()).collect();
    assert!(cookies[0].starts_with("__Host-pr_embed=") && cookies[0].contains("Partitioned"));
    assert_eq!(
        cookies[1],
        "__Host-pr_app=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax"
    );
}

#[testkit::test]
async fn a_problem_before_a_visit_is_known_is_shown_in_a_frame(pool: PgPool) {
    let portal = framed(pool).await;
    let strange = Browser::new(&portal);
    for number in 0..60 {
        let answer = strange.enter(&format!("prl_{number}")).await;
        let policy = answer.header("content-security-policy");
        assert!(policy.contains(&format!("frame-ancestors {PANEL}")), "{policy}");
        if answer.status == 429 {
            return;
        }
    }
    panic!("no token was too much");
}

#[testkit::test]
async fn a_slash_at_the_end_leads_to_the_dashboard_and_a_wrong_method_to_a_page(portal: Portal) {
    let browser = Browser::new(&portal);
    for (asked, leads) in [("/app/", "/app"), ("/app/?a=b%20c", "/app?a=b%20c")] {
        let answer = browser.get(asked).await;
        assert_eq!((answer.status, answer.header("location")), (308, leads));
    }
    let answer = browser.get("/app/sign-out").await;
    assert_eq!(
        (answer.status, answer.header("allow")),
        (405, "POST"),
        "{answer:?}"
    );
    assert!(
        answer.header("content-type").starts_with("text/html"),
        "{answer:?}"
    );
    assert!(answer.html.contains("<h1>"), "{answer:?}");
}
