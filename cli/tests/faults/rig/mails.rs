//! What resellers are told of, and by how many mails.

use smtp_sink::{Received, Running};
use testkit::{Installation, eventually};

/// Waits for a mail, which must be the only one that has arrived, and goes to whom subscriptions name.
pub(crate) async fn the_only_mail(mail_server: &Running) -> Received {
    eventually("a mail", async || (mail_server.report().kept > 0).then_some(())).await;
    let mut mails = mail_server.report().mails;
    assert_eq!(mails.len(), 1, "{mails:?}");
    let mail = mails.remove(0);
    assert_eq!(mail.recipients, ["ops@acme.example"]);
    assert!(mail.file.is_file(), "{mail:?}");
    mail
}

/// Waits until one mail has told of notifications that were given up. What was given up after it had gone waits until an
/// hour has passed, in one mail again; all of them together tell of `count`.
pub(crate) async fn one_mail_tells_of_given_up(it: &Installation, mail_server: &Running, count: usize) {
    the_only_mail(mail_server).await;
    let (kinds, told, mails, waiting): (Vec<String>, i64, i64, i64) = sqlx::query_as(
        "SELECT array_agg(DISTINCT kind), sum(occurrences)::bigint, count(*),
                count(*) FILTER (WHERE next_attempt_at > created_at + interval '30 minutes')
         FROM emails",
    )
    .fetch_one(&it.pool)
    .await
    .expect("the mails can be read");
    assert_eq!(kinds, ["RETRIES_EXHAUSTED"]);
    assert_eq!(told, count as i64);
    assert_eq!(mails - waiting, 1, "the others wait");
    assert!(waiting <= 1, "{waiting} mails wait");
}
