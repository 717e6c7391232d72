//! Mails on their way out: whatever the mail server does, none is lost, and each is sent once.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use simulators::smtp::{Action, Rule, Stage};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};

use crate::post::{Post, all_sent, assert_each_arrived_once, mail, mail_to, mails, message_ids, outbox};
use crate::rig::{signs_of_life, start};

#[testkit::test]
async fn two_workers_send_every_mail_once(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let ids = mails(&it, 200).await;
    let workers = [start(&it.config), start(&it.config)];
    all_sent(&it.pool, 200).await;
    for worker in workers {
        worker.stop().await;
    }
    assert_each_arrived_once(&post, &ids);
    let connections = post.sink().report().connections;
    assert!(
        connections <= 120,
        "a connection is used for many mails, not {connections} for 200"
    );
}

#[testkit::test]
async fn a_mail_server_that_is_away_delays_mails_and_loses_none(mut it: Installation) {
    let mut post = Post::open().await;
    post.serve(&mut it.config);
    post.close().await;
    let ids = mails(&it, 40).await;
    let worker = start(&it.config);
    eventually("every mail to have been tried", async || {
        let tried: i64 =
            sqlx::query_scalar("SELECT count(*) FROM emails WHERE attempts > 0 AND last_error <> ''")
                .fetch_one(&it.pool)
                .await
                .unwrap();
        (tried == 40).then_some(())
    })
    .await;
    assert!(!outbox(&it.pool).await.contains_key("FAILED"));
    post.reopen().await;
    all_sent(&it.pool, 40).await;
    worker.stop().await;
    assert_each_arrived_once(&post, &ids);
}

#[testkit::test]
async fn a_refused_recipient_fails_alone_and_what_may_pass_is_tried_again(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let ids = mails(&it, 5).await;
    let answer = |code, text: &str| Action::Answer(code, text.to_owned());
    post.sink().script(vec![
        Rule::always(Stage::Recipient, answer(550, "5.1.1 no such user")).to("ops1@acme.example"),
        Rule::always(Stage::Recipient, answer(450, "4.2.0 greylisted"))
            .to("ops2@acme.example")
            .times(2),
        Rule::always(Stage::Message, answer(554, "5.7.1 relay access denied"))
            .to("ops3@acme.example")
            .times(1),
    ]);
    let worker = start(&it.config);
    eventually("every mail to end", async || {
        let outbox = outbox(&it.pool).await;
        (outbox.get("SENT") == Some(&4) && outbox.get("FAILED") == Some(&1)).then_some(())
    })
    .await;
    worker.stop().await;
    let (status, attempts, error) = mail(&it.pool, ids[1]).await;
    assert_eq!((&*status, attempts), ("FAILED", 1));
    assert_eq!(
        error.unwrap(),
        "the mail server refused the mail: 550 5.1.1 no such user"
    );
    assert_eq!(mail(&it.pool, ids[2]).await, ("SENT".to_owned(), 3, None));
    assert_eq!(mail(&it.pool, ids[3]).await, ("SENT".to_owned(), 2, None));
    let sent: Vec<_> = ids.iter().copied().filter(|id| *id != ids[1]).collect();
    assert_each_arrived_once(&post, &sent);
}

#[testkit::test]
async fn a_mail_server_that_hangs_or_breaks_off_is_tried_until_it_works(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    it.config.mail.timeout = Duration::from_secs(2);
    let ids = mails(&it, 10).await;
    post.sink().script(
        [
            (Stage::Connect, Action::Hang),
            (Stage::Hello, Action::Close),
            (
                Stage::Sender,
                Action::Answer(550, "5.1.8 who are you?".to_owned()),
            ),
            (Stage::Data, Action::Hang),
            (Stage::Recipient, Action::Answer(421, "4.3.2 closing".to_owned())),
            (Stage::Message, Action::Close),
        ]
        .map(|(stage, action)| Rule::always(stage, action).times(3))
        .to_vec(),
    );
    let worker = start(&it.config);
    all_sent(&it.pool, 10).await;
    worker.stop().await;
    // Again, too, when the server was too slow for so short a limit.
    assert_eq!(
        post.arrived().into_keys().collect::<BTreeSet<_>>(),
        message_ids(&ids)
    );
}

#[testkit::test]
async fn without_a_mail_server_mails_wait(it: Installation) {
    mails(&it, 3).await;
    let worker = start(&it.config);
    eventually("the job to have been executed", async || {
        signs_of_life(&it.pool, "mailer").await.filter(|signs| *signs > 2)
    })
    .await;
    worker.stop().await;
    assert_eq!(outbox(&it.pool).await, [("PENDING".to_owned(), 3)].into());
}

#[testkit::test]
async fn a_mail_that_cannot_be_composed_fails_and_one_that_is_not_due_waits(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let now = SystemClock.now();
    let broken = mail_to(&it.pool, subscription, "nobody", now).await;
    let later = mail_to(
        &it.pool,
        subscription,
        "a@acme.example",
        now + TimeDelta::hours(1),
    )
    .await;
    let worker = start(&it.config);
    let error = eventually("the mail to fail", async || {
        let (status, _, error) = mail(&it.pool, broken).await;
        (status == "FAILED").then_some(error)
    })
    .await;
    worker.stop().await;
    assert!(error.unwrap().starts_with("the recipient is no e-mail address"));
    assert_eq!(mail(&it.pool, later).await, ("PENDING".to_owned(), 0, None));
    assert_eq!(post.sink().report().kept, 0);
}
