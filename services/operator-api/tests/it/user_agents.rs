//! The user agents of Web Push, one by one.

use domain::clock::{Clock as _, SystemClock};
use domain::month::Month;
use serde_json::json;
use uuid::Uuid;

use crate::rig::{Rig, fields};

const NODE: &str = "http://node-1:8085";

#[testkit::test]
async fn user_agents_are_listed_with_where_they_are_connected(rig: &Rig) {
    let (store, now) = (&rig.it.store, SystemClock.now());
    let month = Month::containing(now);
    let (connected, away) = (Uuid::from_u128(1), Uuid::from_u128(2));
    for (uaid, node) in [(connected, Some(NODE)), (away, None)] {
        let registered = store.webpush_register(uaid, node, now, month, Uuid::new_v4(), 10);
        registered.await.unwrap();
    }
    let all = rig.see("/webpush/user-agents").await;
    let items = all["items"].as_array().unwrap();
    let told: Vec<_> = items
        .iter()
        .map(|it| (&it["id"], &it["state"], &it["node"], &it["channels"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!(connected), &json!("CONNECTED"), &json!(NODE), &json!(1)),
            (&json!(away), &json!("AWAY"), &json!(null), &json!(1)),
        ]
    );
    for (query, wanted) in [
        ("state=AWAY", &[away][..]),
        ("state=CONNECTED,AWAY", &[connected, away]),
        ("node=http://node-1:8085", &[connected]),
        ("since=2100-01-01T00:00:00Z", &[]),
        ("limit=1", &[connected]),
    ] {
        let found = rig.see(&format!("/webpush/user-agents?{query}")).await;
        let items = found["items"].as_array().unwrap().iter();
        let ids: Vec<_> = items.map(|it| it["id"].clone()).collect();
        assert_eq!(json!(ids), json!(wanted), "{query}");
        assert_eq!(found["next"].is_string(), query == "limit=1", "{query}");
    }
    let path = "/webpush/user-agents?state=GONE&limit=0";
    let problem = rig.refused("GET", path, None, (400, "invalid-query")).await;
    assert_eq!(fields(&problem), ["limit", "state"]);
}
