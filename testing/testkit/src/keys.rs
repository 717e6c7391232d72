//! API keys for tests, and what is done with them.

use chrono::{DateTime, Utc};
use domain::clock::{Clock as _, SystemClock};
use domain::key::{KeyDigest, Role, format_key};
use store::{Act, ApiKey, Store};

/// A key of the house with these roles, named `test`.
///
/// # Panics
///
/// When the database does not take it.
pub async fn key_of_the_house(store: &Store, roles: &[Role]) -> String {
    make(store, roles, None).await
}

/// A key of this reseller, named `test`.
///
/// # Panics
///
/// When the database does not take it.
pub async fn key_of_the_reseller(store: &Store, reseller: &str) -> String {
    make(store, &[Role::Reseller], Some(reseller)).await
}

/// What the holder of a reseller's key does.
pub fn act_of_a_reseller(at: DateTime<Utc>) -> Act<'static> {
    Act {
        by: "test (1)",
        note: None,
        at,
    }
}

/// What opens to the holder of this key what is stored of it.
///
/// # Panics
///
/// When the database does not take it.
pub async fn key_stored_as(store: &Store, stored: &ApiKey) -> String {
    // Not the most random of keys, but no two are the same.
    let mut random = [0; 32];
    random[..16].copy_from_slice(stored.id.as_bytes());
    let key = format_key(&random);
    store
        .insert_api_key(stored, &KeyDigest::of(&key))
        .await
        .expect("the key is stored");
    key
}

async fn make(store: &Store, roles: &[Role], reseller: Option<&str>) -> String {
    let reseller = reseller.map(str::to_owned);
    let stored = ApiKey::new("test".to_owned(), roles.to_vec(), reseller, SystemClock.now());
    key_stored_as(store, &stored).await
}
