//! Mails whose end the worker does not know: each is sent again, as the same mail.

use std::collections::BTreeSet;
use std::time::Duration;

use config::Secret;
use lifecycle::{Lifecycle, Readiness, Shutdown};
use simulators::smtp::{Action, Rule, Stage};
use testkit::{FaultProxy, Installation, eventually};
use tokio::runtime::Runtime;

use crate::post::{Post, all_sent, assert_each_arrived_once, mail, mails, message_ids, outbox};
use crate::rig::{signs_of_life, start};

#[testkit::test]
async fn a_mail_whose_arrival_was_not_confirmed_is_sent_again_as_the_same_mail(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let ids = mails(&it, 3).await;
    let unsure = Rule::always(Stage::Message, Action::KeepAndClose)
        .to("ops1@acme.example")
        .times(2);
    post.sink().script(vec![unsure]);
    let worker = start(&it.config);
    all_sent(&it.pool, 3).await;
    worker.stop().await;
    let arrived = post.arrived();
    assert_eq!(
        arrived.keys().cloned().collect::<BTreeSet<_>>(),
        message_ids(&ids)
    );
    assert_eq!(arrived[&format!("<{}.1@localhost>", ids[1].simple())], 3);
    assert_eq!(arrived.values().sum::<usize>(), 5);
}

#[testkit::test]
async fn a_worker_that_dies_between_handing_over_and_recording_sends_the_same_mail_again(
    mut it: Installation,
) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    it.config.mail.timeout = Duration::from_secs(20);
    let ids = mails(&it, 1).await;
    post.sink()
        .script(vec![Rule::always(Stage::Message, Action::KeepAndHang).times(1)]);
    // A runtime of its own, whose tasks can be made to vanish without a farewell.
    let doomed = Runtime::new().unwrap();
    let lifecycle = Lifecycle {
        shutdown: Shutdown::new(),
        readiness: Readiness::default(),
    };
    doomed.spawn(retry_worker::run(it.shared_config(), lifecycle));
    eventually("the mail to arrive", async || {
        (post.sink().report().kept == 1).then_some(())
    })
    .await;
    doomed.shutdown_background();
    assert_eq!(mail(&it.pool, ids[0]).await.0, "SENDING");
    let worker = start(&it.config);
    eventually("the second worker to take over", async || {
        signs_of_life(&it.pool, "mailer").await.filter(|signs| *signs > 2)
    })
    .await;
    assert_eq!(mail(&it.pool, ids[0]).await.0, "SENDING", "its lease still holds");
    sqlx::query("UPDATE emails SET leased_until = now() - interval '1 second'")
        .execute(&it.pool)
        .await
        .unwrap();
    all_sent(&it.pool, 1).await;
    worker.stop().await;
    let arrived: Vec<_> = post.arrived().into_iter().collect();
    assert_eq!(arrived, [(message_ids(&ids).pop_first().unwrap(), 2)]);
}

#[testkit::test]
async fn a_database_that_vanishes_while_mails_are_sent_costs_no_mail(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let ids = mails(&it, 30).await;
    let (proxy, url) = FaultProxy::for_url(it.config.database.url.expose()).await;
    it.config.database.url = Secret::new(url);
    let worker = start(&it.config);
    eventually("the first mails to arrive", async || {
        (post.sink().report().kept > 3).then_some(())
    })
    .await;
    proxy.cut();
    eventually("the database to be missed", async || worker.why_not("database")).await;
    proxy.heal();
    eventually("every mail to be sent", async || {
        // Those whose end could not be recorded would wait for the ends of their leases.
        sqlx::query("UPDATE emails SET leased_until = now() - interval '1 second' WHERE status = 'SENDING'")
            .execute(&it.pool)
            .await
            .unwrap();
        (outbox(&it.pool).await.get("SENT") == Some(&30)).then_some(())
    })
    .await;
    worker.stop().await;
    assert_eq!(
        post.arrived().into_keys().collect::<BTreeSet<_>>(),
        message_ids(&ids)
    );
}

#[testkit::test]
async fn a_worker_that_is_asked_to_stop_leaves_no_mail_behind_unsettled(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let ids = mails(&it, 100).await;
    let worker = start(&it.config);
    eventually("the first mails to arrive", async || {
        (post.sink().report().kept > 5).then_some(())
    })
    .await;
    worker.stop().await;
    let outbox = outbox(&it.pool).await;
    assert!(!outbox.contains_key("SENDING"), "{outbox:?}");
    let worker = start(&it.config);
    all_sent(&it.pool, 100).await;
    worker.stop().await;
    assert_each_arrived_once(&post, &ids);
}
