//! Access on the console: keys that are made and revoked, visits that are ended, and limits that are set.

use domain::key::Role;
use serde_json::{Value, json};
use testkit::eventually;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::{Browser, HOSTILE, ended, holds, shows_hostile};
use crate::rig::{Rig, problem};

#[testkit::test]
async fn a_key_is_made_shown_once_and_revoked_by_administrators(rig: &Rig) {
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see("/console/access").await;
    holds(
        &page,
        &["needs the role admin", "Visits that go on", "data-live=\"30000\""],
    );
    let held = |act: &str| format!("aria-describedby=\"why-keys\" aria-label=\"{act} ");
    holds(&page, &[&held("Rotate"), &held("Revoke")]);
    let fields = [("called", "ben"), ("roles", "viewer")];
    operator.refused("/console/access/keys", &fields, 403).await;

    let admin = Browser::of(rig, Role::Admin).await;
    let wrong = [
        ("called", ""),
        ("roles", "reseller"),
        ("roles", "viewer"),
        ("note", "kept"),
    ];
    let page = admin.refused("/console/access/keys", &wrong, 422).await;
    holds(
        &page,
        &[
            "Who it is for: is needed",
            "value=\"reseller\" checked",
            ">kept</textarea>",
        ],
    );
    let fields = [("called", HOSTILE), ("roles", "viewer"), ("roles", "operator")];
    let made = admin.post("/console/access/keys", &fields).await;
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(made.header("cache-control"), "no-store");
    shows_hostile(&made.html);
    let (_, key) = made.html.split_once("id=\"made-key\">").unwrap();
    let key = key.split('<').next().unwrap().to_owned();
    let browser = Browser::with_key(rig, &key).await;
    browser.see("/console/jobs").await;

    let page = admin.see("/console/access").await;
    shows_hostile(&page);
    assert!(!page.contains(&key), "a key is shown once");
    let listed = rig.see("/keys?role=viewer").await;
    let id = listed["items"][0]["id"].as_str().unwrap();
    let place = format!("/console/access/keys/{id}/revoke");
    holds(&page, &[&place]);
    let named = format!(" (viewer, operator), {id}. Services refuse it");
    let asked = admin.see(&place).await;
    holds(&asked, &["This cannot be undone", &named]);
    shows_hostile(&asked);
    let again = admin.refused(&place, &[("note", " ")], 422).await;
    holds(&again, &["Nothing was done", "aria-invalid=\"true\"", &named]);
    let (to, page) = admin.act(&place, &[("note", "has left")]).await;
    assert_eq!(to, "/console/access");
    holds(&page, &["The key is revoked."]);
    assert!(!page.contains(&place), "it is not listed any more");
    let log = rig.all("/audit?action=api-key.revoke", 10).await;
    let (by, _) = log[0]["actor"].as_str().unwrap().split_once(" (").unwrap();
    let made_by = format!("<span class=\"muted small\">by {by}</span>");
    holds(
        &admin.see("/console/access?revoked=true").await,
        &[id, "revoked ", &made_by, &format!(" by {by}</span>")],
    );
    assert_eq!((log.len(), &log[0]["note"]), (1, &json!("has left")));
    admin.refused(&place, &[("note", "late")], 404).await;
}

#[testkit::test]
async fn keys_are_filtered_by_what_they_allow_and_by_whose_they_are(rig: &Rig) {
    let admin = Browser::of(rig, Role::Admin).await;
    for reseller in ["acme", "bolt"] {
        let called = format!("shop of {reseller}");
        let fields = [
            ("called", called.as_str()),
            ("roles", "reseller"),
            ("resellerId", reseller),
        ];
        let made = admin.post("/console/access/keys", &fields).await;
        assert_eq!(made.status, 200, "{made:?}");
    }
    let of_one = admin
        .see("/console/access?role=reseller&reseller=acme&revoked=true")
        .await;
    holds(
        &of_one,
        &[
            "shop of acme",
            "<option value=\"reseller\" selected>",
            "name=\"reseller\" value=\"acme\"",
            // The others are kept by the form, and by the way back to all.
            "name=\"revoked\" value=\"true\"",
            "href=\"/console/access?revoked=true\"",
        ],
    );
    assert!(!of_one.contains("shop of bolt"), "{of_one}");
    let none = admin.see("/console/access?role=embedder&reseller=acme").await;
    holds(&none, &["No key matches.", "Clear all filters"]);
    let wrong = admin.get("/console/access?role=king").await;
    assert_eq!(wrong.status, 400);
    holds(
        &wrong.html,
        &["role must be one of", "Visits that go on", "no key is shown"],
    );
}

#[testkit::test]
async fn a_key_that_hands_in_is_made_with_its_limits(rig: &Rig) {
    let admin = Browser::of(rig, Role::Admin).await;
    let limits = [
        ("called", "campaigns"),
        ("lane", "push"),
        ("prototypes", "Hello, Good Bye,"),
        ("perSecond", "50"),
    ];
    let with = |others: &[(&'static str, &'static str)]| [&limits[..], others].concat();
    for (others, said) in [
        (vec![("roles", "viewer")], "Lane: goes with the role ingest alone"),
        (
            vec![("roles", "ingest"), ("eventTypes", "domain.*")],
            "Event types: goes with the lane reseller only",
        ),
    ] {
        let fields = with(&others);
        let page = admin.refused("/console/access/keys", &fields, 422).await;
        holds(&page, &[said, "value=\"Hello, Good Bye,\""]);
    }
    let made = admin
        .post("/console/access/keys", &with(&[("roles", "ingest")]))
        .await;
    assert_eq!(made.status, 200, "{made:?}");
    let listed = rig.see("/keys?role=ingest").await;
    let campaigns = |key: &&Value| key["name"] == "campaigns";
    let key = listed["items"].as_array().unwrap().iter().find(campaigns);
    let key = key.unwrap();
    assert_eq!(
        (&key["scope"], &key["perSecond"]),
        (
            &json!({"lane": "push", "prototypes": ["Hello", "Good Bye"]}),
            &json!(50)
        )
    );
}

#[testkit::test]
async fn a_visit_is_ended_by_administrators(rig: &Rig) {
    let admin = Browser::of(rig, Role::Admin).await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    let visits = rig.see("/visits").await;
    let of_viewer = |visit: &&Value| visit["roles"] == json!(["viewer"]);
    let visit = visits["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(of_viewer)
        .unwrap();
    assert_eq!(
        (&visit["breaksGlass"], &visit["issuer"]),
        (&json!(false), &json!(null))
    );
    let id = visit["id"].as_str().unwrap().to_owned();
    let place = format!("/console/access/visits/{id}/end");
    holds(&admin.see("/console/access").await, &[&place]);
    viewer.refused(&place, &[], 403).await;
    admin.refused(&place, &[], 422).await;
    let (_, page) = admin.act(&place, &[("note", "left the desk")]).await;
    holds(&page, &["The visit is over."]);
    assert!(!page.contains(&place), "it is not listed any more");
    eventually("the visit to be over", async || {
        (viewer.get("/console/jobs").await.status == 303).then_some(())
    })
    .await;
    ended(&viewer).await;
    let log = rig.all("/audit?action=visit.end", 10).await;
    assert_eq!((log.len(), &log[0]["note"]), (1, &json!("left the desk")));
    assert_eq!(log[0]["subject"], json!(format!("visit/{id}")));

    let key = rig.key_of(Role::Admin).await;
    let end = async |id: &str| {
        let request = rig.request("DELETE", &format!("/visits/{id}")).bearer_auth(&key);
        request.send().await.unwrap()
    };
    problem(end(&id).await, 404, "not-found").await;
    let visits = rig.see("/visits?limit=1").await;
    let last = visits["items"][0]["id"].as_str().unwrap();
    assert_eq!(end(last).await.status(), 204);
}

#[testkit::test]
async fn who_has_access_is_a_file_without_what_gives_it(rig: &Rig) {
    let key = rig.key_of(Role::Viewer).await;
    let viewer = Browser::with_key(rig, &key).await;
    let page = viewer.see("/console/access?revoked=true&limit=25").await;
    holds(
        &page,
        &[
            "/console/access/keys/export?format=csv&#38;revoked=true\"",
            "/console/access/visits/export?format=json\"",
        ],
    );
    let cookie = viewer.cookie("__Host-pr_console");
    for (list, heads, least) in [
        (
            "keys",
            "id,name,roles,resellerId,createdAt,createdBy,revokedAt,revokedBy,",
            2,
        ),
        ("visits", "id,name,roles,", 1),
        ("portal-visits", "id,resellerId,personId,", 0),
        ("portal-links", "id,resellerId,personId,", 0),
    ] {
        let path = format!("/console/access/{list}/export?format=");
        let csv = viewer.get(&format!("{path}csv")).await;
        assert_eq!(csv.status, 200, "{list}: {csv:?}");
        assert!(csv.html.starts_with(heads), "{list}: {}", csv.html);
        let json = viewer.get(&format!("{path}json")).await.html;
        let rows: Value = serde_json::from_str(&json).unwrap();
        let count = rows["items"].as_array().unwrap().len();
        assert_eq!(csv.html.lines().count(), count + 1, "{list}: {}", csv.html);
        assert!(count >= least, "{list}: {json}");
        for never in [&*key, &*cookie, "digest", "token"] {
            assert!(!csv.html.contains(never), "{list}: {}", csv.html);
            assert!(!json.contains(never), "{list}: {json}");
        }
    }
    for wrong in ["keys/export?format=xls", "visits/export?format=csv&revoked=true"] {
        let answer = viewer.get(&format!("/console/access/{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
}

#[testkit::test]
async fn limits_are_set_on_the_page_of_the_subscription(rig: &Rig) {
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    let (place, form) = (
        format!("/console/subscriptions/{id}"),
        format!("/console/subscriptions/{id}/limits"),
    );
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see(&place).await;
    holds(&page, &["Set limits…", "needs the role admin"]);
    assert!(!page.contains(&form), "another role has no form");
    operator.refused(&form, &[("dailyQuota", "5")], 403).await;
    let admin = Browser::of(rig, Role::Admin).await;
    holds(
        &admin.see(&place).await,
        &["Set limits…", "The default when it is empty"],
    );
    for (daily, said) in [("many", "must be a number"), ("0", "must be 1 to")] {
        let fields = [("dailyQuota", daily), ("note", "kept")];
        let page = admin.refused(&form, &fields, 422).await;
        holds(&page, &[said, &format!("value=\"{daily}\""), ">kept</textarea>"]);
    }
    let fields = [
        ("dailyQuota", "1234"),
        ("requestsPerSecond", ""),
        ("note", "a merger"),
    ];
    let (to, page) = admin.act(&form, &fields).await;
    assert_eq!(to, place);
    holds(&page, &["The limits are set.", "1,234"]);
    holds(&admin.see(&form).await, &["value=\"1234\""]);
    // A form that was shown before another person changed the other limit leaves that alone.
    let shown = [("shown-dailyQuota", "1234"), ("shown-requestsPerSecond", "")];
    let other = [
        shown[0],
        shown[1],
        ("dailyQuota", "1234"),
        ("requestsPerSecond", "7"),
    ];
    admin.act(&form, &other).await;
    holds(
        &admin.see(&form).await,
        &[
            "name=\"shown-dailyQuota\" value=\"1234\"",
            "name=\"shown-requestsPerSecond\" value=\"7\"",
        ],
    );
    let late = [shown[0], shown[1], ("dailyQuota", ""), ("requestsPerSecond", "")];
    admin.act(&form, &late).await;
    let unchanged = [("shown-requestsPerSecond", "7"), ("requestsPerSecond", "7")];
    let page = admin.refused(&form, &unchanged, 422).await;
    holds(&page, &["there is nothing to set"]);
    let set = rig.see(&format!("/subscriptions/{id}")).await;
    assert_eq!(
        (&set["id"], &set["dailyQuota"], &set["requestsPerSecond"]),
        (&json!(id), &Value::Null, &json!(7))
    );
}
