//! The catalogue of event types.

use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::event::UnknownFields;
use serde_json::json;
use sqlx::PgPool;
use store::Store;
use store::webhook::NewEventType;

use crate::scene::act;

fn event_type(schema: Option<serde_json::Value>) -> NewEventType {
    NewEventType {
        name: "certificate.issued".to_owned(),
        description: "A certificate was issued.".to_owned(),
        attributes: json!([]),
        example: json!({"serial": "01"}),
        variants: json!([]),
        schema,
        unknown_fields: UnknownFields::Refuse,
    }
}

#[testkit::database_test]
async fn a_type_is_put_replaced_retired_once_and_revived(pool: PgPool) {
    let store = Store::from_pool(pool);
    let at = SystemClock.now();
    let name = "certificate.issued";
    assert!(store.put_event_type(&event_type(None), act(at)).await.unwrap());
    assert!(
        !store
            .put_event_type(&event_type(Some(json!({}))), act(at))
            .await
            .unwrap()
    );
    let replaced = store.find_event_type(name).await.unwrap().unwrap();
    assert_eq!((replaced.schema, replaced.retired_at), (Some(json!({})), None));
    assert!(store.retire_event_type(name, act(at)).await.unwrap());
    assert!(!store.retire_event_type(name, act(at)).await.unwrap());
    let retired = store.find_event_type(name).await.unwrap().unwrap();
    assert!(retired.retired_at.is_some());
    store.put_event_type(&event_type(None), act(at)).await.unwrap();
    let revived = store.find_event_type(name).await.unwrap().unwrap();
    assert_eq!(revived.retired_at, None);
    assert!(!store.retire_event_type("no.such_type", act(at)).await.unwrap());
}

#[testkit::database_test]
async fn a_change_is_seen_by_its_time_even_when_the_clock_stands_still_or_goes_back(pool: PgPool) {
    let store = Store::from_pool(pool);
    let at = SystemClock.now();
    let mut last = None;
    for at in [at, at, at - TimeDelta::hours(1), at] {
        store.put_event_type(&event_type(None), act(at)).await.unwrap();
        let changed = store
            .find_event_type("certificate.issued")
            .await
            .unwrap()
            .unwrap()
            .updated_at;
        assert!(last < Some(changed), "{last:?} {changed}");
        last = Some(changed);
    }
}

#[testkit::database_test]
async fn what_becomes_of_unknown_fields_is_remembered(pool: PgPool) {
    let store = Store::from_pool(pool);
    for unknown_fields in UnknownFields::ALL {
        let changed = NewEventType {
            unknown_fields,
            ..event_type(None)
        };
        store
            .put_event_type(&changed, act(SystemClock.now()))
            .await
            .unwrap();
        let found = store.find_event_type(&changed.name).await.unwrap().unwrap();
        assert_eq!(found.unknown_fields, unknown_fields);
    }
}

#[testkit::database_test]
async fn a_name_that_is_none_is_refused(pool: PgPool) {
    let store = Store::from_pool(pool);
    for name in ["domain", "Domain.created", "a..b", ""] {
        let wrong = NewEventType {
            name: name.to_owned(),
            ..event_type(None)
        };
        let refused = store.put_event_type(&wrong, act(SystemClock.now())).await;
        assert!(refused.is_err_and(|error| !error.is_transient()), "{name}");
    }
}
