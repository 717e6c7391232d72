//! Mails about changes of state: one waits for each subscription, whatever writes them.

use chrono::{DateTime, TimeDelta, Utc};
use domain::email::EmailKind;
use domain::subscription::Command;
use sqlx::PgPool;
use store::Store;
use store::webhook::{Addresses, CommandOutcome, PutBack};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::{claim_one, now, only_row, postponed};
use crate::scene::{LONG, act};

async fn command(store: &Store, id: Uuid, command: Command, at: DateTime<Utc>) {
    let commanded = store.command_subscription("acme", id, command, act(at)).await;
    assert!(matches!(commanded, Ok(CommandOutcome::Done(_))), "{commanded:?}");
}

async fn toggle(store: &Store, id: Uuid, at: DateTime<Utc>) {
    command(store, id, Command::Deactivate, at).await;
    command(store, id, Command::Activate, at).await;
}

#[testkit::database_test]
async fn of_changes_that_follow_one_another_the_latest_is_told_once(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    for n in 0..20 {
        toggle(&store, id, start + TimeDelta::seconds(n)).await;
    }
    let row = only_row(&pool).await;
    assert_eq!((row.occurrences, row.next_attempt_at), (40, Some(start)));
    assert_eq!(row.data["state"], "ACTIVE");
    assert_eq!(row.created_at, start + TimeDelta::seconds(19));
}

#[testkit::database_test]
async fn what_a_reseller_does_itself_is_told_once_in_ten_minutes(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    let mut told = 0;
    for minutes in 0..60 {
        let at = start + TimeDelta::minutes(minutes);
        toggle(&store, id, at).await;
        for mail in store
            .claim_emails(at, 10, LONG, Addresses::Confirmed)
            .await
            .unwrap()
        {
            assert_eq!(mail.kind, EmailKind::StateChanged);
            store
                .end_email(mail.id, mail.lease_token, None, at)
                .await
                .unwrap();
            told += 1;
        }
    }
    assert_eq!(told, 6);
}

#[testkit::database_test]
async fn a_mail_that_was_not_sent_gives_way_to_the_one_that_knows_more(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    command(&store, id, Command::Deactivate, start).await;
    let first = claim_one(&store, start).await;
    command(&store, id, Command::Activate, start).await;
    let put_back = store.put_email_back(first.id, first.lease_token, "away", postponed(start));
    assert_eq!(put_back.await.unwrap(), PutBack::Merged);
    let row = only_row(&pool).await;
    assert_eq!((row.occurrences, row.status.as_str()), (2, "PENDING"));
    assert_eq!(row.data["state"], "ACTIVE");
}
