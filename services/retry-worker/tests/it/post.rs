//! What the tests of mails share: a mail server that can be stopped and started again at its address, mails in the
//! outbox, and looks at what has arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use config::{Config, Secret};
use domain::clock::{Clock, SystemClock};
use simulators::smtp::{Running, SmtpSink};
use sqlx::PgPool;
use tempfile::TempDir;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use tokio::net::TcpListener;
use uuid::Uuid;

/// A mail server with its folder, which outlives it.
pub(crate) struct Post {
    folder: TempDir,
    addr: SocketAddr,
    pub(crate) sink: Option<Running>,
}

impl Post {
    pub(crate) async fn open() -> Self {
        let folder = TempDir::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sink = SmtpSink::start(listener, folder.path()).unwrap();
        Self {
            folder,
            addr: sink.addr(),
            sink: Some(sink),
        }
    }

    /// Makes it the mail server of a configuration, tried again soon.
    pub(crate) fn serve(&self, config: &mut Config) {
        config.mail.smtp_url = Some(Secret::new(format!("smtp://{}", self.addr)));
        config.mail.retry_delay = Duration::from_millis(50);
    }

    pub(crate) fn sink(&self) -> &Running {
        self.sink.as_ref().expect("the mail server runs")
    }

    /// Takes the mail server away.
    pub(crate) async fn close(&mut self) {
        self.sink.take().expect("the mail server runs").shutdown().await;
    }

    /// Brings it back at the same address.
    pub(crate) async fn reopen(&mut self) {
        // Another program's connection may have the port for a moment.
        let listener = eventually("the address to be free", async || {
            TcpListener::bind(self.addr).await.ok()
        })
        .await;
        self.sink = Some(SmtpSink::start(listener, self.folder.path()).unwrap());
    }

    /// How often each mail has arrived, by its `Message-ID`.
    pub(crate) fn arrived(&self) -> BTreeMap<String, usize> {
        let mut arrived = BTreeMap::new();
        for content in self.contents() {
            *arrived.entry(header(&content, "Message-ID")).or_default() += 1;
        }
        arrived
    }

    /// The subjects of what has arrived, in that order.
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.contents()
            .iter()
            .map(|content| header(content, "Subject"))
            .collect()
    }

    fn contents(&self) -> Vec<String> {
        let mut files: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|file| is_mail(file))
            .collect();
        files.sort();
        files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect()
    }
}

/// Not one that is still being written.
fn is_mail(file: &Path) -> bool {
    let name = file.file_name().unwrap().to_string_lossy();
    !name.starts_with('.') && name.ends_with(".eml")
}

/// The value of a header, unfolded.
fn header(content: &str, name: &str) -> String {
    let head = content.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ");
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in\n{content}"))
        .to_owned()
}

/// Puts a mail that is gathered with no other into the outbox, due since `at`.
pub(crate) async fn mail_to(pool: &PgPool, subscription: Uuid, recipient: &str, at: DateTime<Utc>) -> Uuid {
    let data = serde_json::json!({
        "resellerId": "acme", "code": "5F0C81A94D",
    });
    sqlx::query_scalar(
        "INSERT INTO emails (id, kind, subscription_id, recipient, data, next_attempt_at, created_at)
         VALUES (gen_random_uuid(), 'ADDRESS_CONFIRMATION', $1, $2, $3, $4, $4) RETURNING id",
    )
    .bind(subscription)
    .bind(recipient)
    .bind(data)
    .bind(at)
    .fetch_one(pool)
    .await
    .unwrap()
}

/// How many mails there are in each status.
pub(crate) async fn outbox(pool: &PgPool) -> BTreeMap<String, i64> {
    let rows: Vec<(String, i64)> = sqlx::query_as("SELECT status, count(*) FROM emails GROUP BY 1")
        .fetch_all(pool)
        .await
        .unwrap();
    rows.into_iter().collect()
}

/// Waits until all mails are sent, and there are `count` of them.
pub(crate) async fn all_sent(pool: &PgPool, count: i64) {
    eventually(&format!("{count} mails to be sent"), async || {
        let outbox = outbox(pool).await;
        (outbox.len() == 1 && outbox.get("SENT") == Some(&count)).then_some(())
    })
    .await;
}

/// What is stored about a mail: status, attempts, last error.
pub(crate) async fn mail(pool: &PgPool, id: Uuid) -> (String, i32, Option<String>) {
    sqlx::query_as("SELECT status, attempts, last_error FROM emails WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Mails to `count` recipients, due now.
pub(crate) async fn mails(it: &Installation, count: usize) -> Vec<Uuid> {
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let mut ids = Vec::new();
    for n in 0..count {
        let recipient = format!("ops{n}@acme.example");
        ids.push(mail_to(&it.pool, subscription, &recipient, SystemClock.now()).await);
    }
    ids
}

/// The `Message-ID`s that these mails must have.
pub(crate) fn message_ids(ids: &[Uuid]) -> BTreeSet<String> {
    ids.iter()
        .map(|id| format!("<{}.1@localhost>", id.simple()))
        .collect()
}

pub(crate) fn assert_each_arrived_once(post: &Post, ids: &[Uuid]) {
    let arrived = post.arrived();
    assert_eq!(arrived.keys().cloned().collect::<BTreeSet<_>>(), message_ids(ids));
    assert!(arrived.values().all(|times| *times == 1), "{arrived:?}");
}
