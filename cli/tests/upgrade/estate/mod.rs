//! What the previous version has left in the database, in every state that there is: this version brings each to its end.

mod ends;
mod left;

use std::path::PathBuf;

use simulators::smtp::{Running, SmtpSink};
use sqlx::PgPool;
use testkit::{Installation, run};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::apis::Apis;
use crate::rig::{Service, Subscribers};
use crate::tallies::tallies_equal_counts;
use crate::versions::Version::{Previous, This};
use crate::versions::{Versions, stop};
use left::Left;

#[sqlx::test(migrations = false)]
async fn what_the_previous_version_left_behind_is_brought_to_its_end(pool: PgPool) {
    run(pool, async |it: Installation| {
        let versions = Versions::of(&it).await;
        let subscribers = Subscribers::of(&it, left::subscribers()).await;
        let ingest = versions.start(Previous, Service::IngestApi).await;
        let previous = Apis::open(&it, &versions, Previous).await;
        let mut left = Left::by(&it, &versions, &subscribers, &previous).await;

        if previous.has_operator() {
            left.is_worked_on(&it, &subscribers, &previous).await;
        }
        versions.migrate().await;
        previous.answers().await;
        let this = Apis::open(&it, &versions, This).await;
        if !previous.has_operator() {
            left.is_worked_on(&it, &subscribers, &this).await;
        }
        this.answers().await;
        left.everything_is_explained(&this).await;
        previous.close().await;
        left.comes_later(&versions).await;
        let mails = mail_server().await;
        let settings = [("POSTRIDER__MAIL__SMTP_URL", format!("smtp://{}", mails.addr()))];
        let worker = versions
            .fleet(This)
            .start_with(Service::RetryWorker, &settings)
            .await;
        let dispatcher = versions.start(This, Service::Dispatcher).await;
        left.is_resumed(&subscribers, &this).await;

        ends::of(&it, &left, &subscribers).await;
        ends::mails_have_gone(&it, &mails).await;
        tallies_equal_counts(&it.pool).await;
        left.everything_is_explained(&this).await;
        this.close().await;
        for process in [ingest, worker, dispatcher] {
            stop(process).await;
        }
    })
    .await;
}

async fn mail_server() -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let folder = format!("upgrade-mail-{}", Uuid::now_v7().simple());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    SmtpSink::start(listener, &folder).expect("the sink starts")
}
