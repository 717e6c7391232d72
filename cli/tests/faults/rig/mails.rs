//! What resellers are told of, and by how many mails.

use std::collections::BTreeSet;

use simulators::smtp::{Received, Running};
use testkit::{Installation, eventually};

/// Waits for a mail, which must be the only one that has arrived, and goes to whom subscriptions name. It may have
/// arrived more than once, as the same one, when its arrival was confirmed too late.
pub(crate) async fn the_only_mail(mail_server: &Running) {
    eventually("a mail", async || (mail_server.report().kept > 0).then_some(())).await;
    let mails = mail_server.report().mails;
    let different: BTreeSet<String> = mails.iter().map(message_id).collect();
    assert_eq!(different.len(), 1, "{mails:?}");
    for mail in mails {
        assert_eq!(mail.recipients, ["ops@acme.example"]);
    }
}

fn message_id(mail: &Received) -> String {
    let content = std::fs::read_to_string(&mail.file).expect("a mail is kept");
    let line = content.lines().find(|line| line.starts_with("Message-ID:"));
    line.expect("a mail has an identifier").to_owned()
}

/// Waits until one mail has told of notifications that were given up. What was given up after it had gone waits until an
/// hour has passed, in one mail again; all of them together tell of `count`.
pub(crate) async fn one_mail_tells_of_given_up(it: &Installation, mail_server: &Running, count: usize) {
    // One may seem to be due that is put off when it is to be claimed.
    eventually("one mail to have gone, and the other one to wait", async || {
        let (mails, sent, waiting): (i64, i64, i64) = sqlx::query_as(
            "SELECT count(*), count(*) FILTER (WHERE status = 'SENT'),
                    count(*) FILTER (WHERE status = 'PENDING' AND next_attempt_at > now() + interval '30 minutes')
             FROM emails",
        )
        .fetch_one(&it.pool)
        .await
        .expect("the mails can be read");
        assert!(sent <= 1, "{sent} mails in one hour");
        (sent == 1 && waiting <= 1 && sent + waiting == mails).then_some(())
    })
    .await;
    the_only_mail(mail_server).await;
    let (kinds, told): (Vec<String>, i64) =
        sqlx::query_as("SELECT array_agg(DISTINCT kind), sum(occurrences)::bigint FROM emails")
            .fetch_one(&it.pool)
            .await
            .expect("the mails can be read");
    assert_eq!(kinds, ["RETRIES_EXHAUSTED"]);
    assert_eq!(told, count as i64);
}
