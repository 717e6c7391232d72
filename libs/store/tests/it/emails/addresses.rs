//! Addresses: nothing but a code goes to one before the code is back, and codes are few.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::email::EmailKind;
use domain::subscription::{Command, SubscriptionChange};
use sqlx::PgPool;
use store::Store;
use store::webhook::{Addresses, CodeChecked, ConfirmationAsked};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::now;
use crate::scene::{LONG, act};

/// How long a mail waits.
const MAX_AGE: Duration = Duration::from_secs(5 * 86_400);

/// Gives a subscription another address, as the portal does.
async fn name(store: &Store, id: Uuid, email: &str, addresses: Addresses, at: DateTime<Utc>) {
    let change = SubscriptionChange {
        email: Some(email.to_owned()),
        ..SubscriptionChange::default()
    };
    let changed = store.change_subscription("acme", id, &change, addresses, act(at));
    assert_eq!(changed.await.unwrap().unwrap().email, email);
}

async fn deactivate(store: &Store, id: Uuid, at: DateTime<Utc>) {
    store
        .command_subscription("acme", id, Command::Deactivate, act(at))
        .await
        .unwrap();
}

/// What goes out at a time, as kind and recipient.
async fn sent(store: &Store, at: DateTime<Utc>) -> Vec<(EmailKind, String)> {
    store.hold_unconfirmed_emails(at, 100, MAX_AGE).await.unwrap();
    let mut sent = Vec::new();
    for mail in store
        .claim_emails(at, 100, LONG, Addresses::Confirmed)
        .await
        .unwrap()
    {
        assert!(
            store
                .end_email(mail.id, mail.lease_token, None, at)
                .await
                .unwrap()
        );
        sent.push((mail.kind, mail.recipient));
    }
    sent
}

async fn code(pool: &PgPool, address: &str) -> String {
    sqlx::query_scalar("SELECT code FROM email_addresses WHERE address = $1")
        .bind(address)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn nothing_but_the_code_goes_to_an_address_until_the_code_is_back(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    name(&store, id, "New@acme.example", Addresses::Confirmed, start).await;
    deactivate(&store, id, start).await;
    let to_new = async |at| {
        let sent = sent(&store, at).await.into_iter();
        let to_new = sent.filter(|(_, recipient)| recipient == "New@acme.example");
        to_new.map(|(kind, _)| kind).collect::<Vec<_>>()
    };
    assert_eq!(to_new(start).await, [EmailKind::AddressConfirmation]);
    assert_eq!(to_new(start + TimeDelta::days(2)).await, []);
    let at = start + TimeDelta::days(3);
    let confirm = async |code: &str| store.confirm_address("acme", id, code, act(at)).await.unwrap();
    assert_eq!(confirm("0000000000").await, CodeChecked::Wrong);
    let code = code(&pool, "new@acme.example").await;
    let CodeChecked::Right(view) = confirm(&format!(" {} ", code.to_lowercase())).await else {
        panic!("the code should be right");
    };
    assert_eq!(view.email_confirmed_at, Some(at));
    assert_eq!(to_new(at).await, [EmailKind::StateChanged]);
    // For every subscription of the reseller, and for no other reseller's.
    let other = SubscriptionRow::active().make(&pool).await;
    name(&store, other, "new@acme.example", Addresses::Confirmed, at).await;
    assert_eq!(
        sent(&store, at)
            .await
            .iter()
            .filter(|(kind, _)| *kind == EmailKind::AddressConfirmation)
            .count(),
        0
    );
    let confirmed: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM email_addresses WHERE address = 'new@acme.example' AND confirmed_at IS NOT NULL",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(confirmed, 1);
}

#[testkit::database_test]
async fn what_waits_for_a_confirmation_that_never_comes_ends_by_age(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    name(&store, id, "new@acme.example", Addresses::Confirmed, start).await;
    deactivate(&store, id, start).await;
    sent(&store, start).await;
    // By a clock that is ahead they are old already.
    let ahead = start + TimeDelta::days(31);
    let ended = store.hold_unconfirmed_emails(ahead, 100, MAX_AGE).await.unwrap();
    assert_eq!(ended, 0);
    sqlx::query("UPDATE emails SET created_at = created_at - interval '5 days' WHERE status = 'PENDING'")
        .execute(&pool)
        .await
        .unwrap();
    let later = start + TimeDelta::days(60);
    let ended = store.hold_unconfirmed_emails(later, 100, MAX_AGE).await.unwrap();
    assert_eq!(ended, 1);
    let why: String = sqlx::query_scalar("SELECT last_error FROM emails WHERE status = 'FAILED'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(why, "the address has not been confirmed");
}

#[testkit::database_test]
async fn an_address_gets_ten_codes_a_day_and_each_reseller_one_of_its_own(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let mut asked = Vec::new();
    for n in 0..12 {
        let reseller = format!("reseller{n}");
        let row = SubscriptionRow::active().reseller(&reseller);
        let id = row.make(&pool).await;
        sqlx::query("UPDATE subscriptions SET email = 'victim@example.net' WHERE id = $1")
            .bind(id)
            .execute(&pool)
            .await
            .unwrap();
        asked.push(
            store
                .ask_for_confirmation(&reseller, id, act(start))
                .await
                .unwrap(),
        );
    }
    let full = ConfirmationAsked::NotBefore(start + TimeDelta::days(1));
    assert_eq!(asked[..10], [ConfirmationAsked::Done; 10]);
    assert_eq!(asked[10..], [full, full]);
    assert_eq!(sent(&store, start).await.len(), 10);
}

#[testkit::database_test]
async fn a_reseller_has_twenty_codes_sent_a_day(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    for n in 0..30 {
        name(
            &store,
            id,
            &format!("victim{n}@example.net"),
            Addresses::Confirmed,
            start,
        )
        .await;
    }
    let codes = async |at| {
        let sent = sent(&store, at).await.into_iter();
        sent.filter(|(kind, _)| *kind == EmailKind::AddressConfirmation)
            .count()
    };
    assert_eq!(codes(start).await, 20);
    let refused = store.ask_for_confirmation("acme", id, act(start)).await.unwrap();
    assert_eq!(refused, ConfirmationAsked::NotBefore(start + TimeDelta::days(1)));
    // A clock that is ahead has no days of its own.
    let ahead = start + TimeDelta::days(31);
    let refused = store.ask_for_confirmation("acme", id, act(ahead)).await.unwrap();
    assert_eq!(refused, ConfirmationAsked::NotBefore(start + TimeDelta::days(1)));
    sqlx::query(
        "UPDATE email_addresses SET asked_at = ARRAY(SELECT t - interval '1 day' FROM unnest(asked_at) t)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let asked = store.ask_for_confirmation("acme", id, act(start)).await.unwrap();
    assert_eq!(asked, ConfirmationAsked::Done);
    assert_eq!(codes(start).await, 1);
}

#[testkit::database_test]
async fn ten_wrong_codes_make_the_right_one_void(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    name(&store, id, "new@acme.example", Addresses::Confirmed, start).await;
    let first = code(&pool, "new@acme.example").await;
    let confirm = async |code: &str| store.confirm_address("acme", id, code, act(start)).await.unwrap();
    for _ in 0..9 {
        assert_eq!(confirm("WRONG").await, CodeChecked::Wrong);
    }
    assert_eq!(confirm("WRONG").await, CodeChecked::Void);
    assert_eq!(confirm(&first).await, CodeChecked::Void);
    let asked = store.ask_for_confirmation("acme", id, act(start)).await.unwrap();
    assert_eq!(asked, ConfirmationAsked::Done);
    let second = code(&pool, "new@acme.example").await;
    assert_ne!(second, first);
    assert!(matches!(confirm(&second).await, CodeChecked::Right(_)));
}

#[testkit::database_test]
async fn an_address_that_was_named_past_the_portal_is_asked_when_there_is_something_to_tell(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    // As a replica of an earlier version does.
    sqlx::query("UPDATE subscriptions SET email = 'old@acme.example'")
        .execute(&pool)
        .await
        .unwrap();
    deactivate(&store, id, start).await;
    let expected = (EmailKind::AddressConfirmation, "old@acme.example".to_owned());
    assert_eq!(sent(&store, start).await, [expected]);
}

#[testkit::database_test]
async fn where_addresses_are_trusted_mails_go_at_once(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    name(&store, id, "new@acme.example", Addresses::Trusted, start).await;
    deactivate(&store, id, start).await;
    let sent = sent(&store, start).await;
    assert!(
        sent.contains(&(EmailKind::StateChanged, "new@acme.example".to_owned())),
        "{sent:?}"
    );
    assert!(
        !sent
            .iter()
            .any(|(kind, _)| *kind == EmailKind::AddressConfirmation)
    );
}
