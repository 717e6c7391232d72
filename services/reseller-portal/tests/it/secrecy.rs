//! A secret is in the answer that makes it and nowhere else: not in another answer, not in an error, not in the log, not
//! in the database.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use sqlx::PgPool;
use tracing_subscriber::fmt::MakeWriter;

use crate::portal::{Portal, id_of};

/// What the process has logged, of all tests together.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Listens to everything, down to the finest level, from now on.
    fn listen() -> Self {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_max_level(tracing::Level::TRACE);
        tracing::subscriber::set_global_default(subscriber.finish()).expect("only this test listens");
        // Tests that run beside this one may have met a line between the making of the subscriber and its becoming the
        // default: such a line counts as unwanted until the interest in it is asked for again.
        tracing::callsite::rebuild_interest_cache();
        log
    }

    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The ways in which a secret could be written.
fn forms(secret: &Value) -> Vec<String> {
    let text = secret.as_str().unwrap();
    let parsed = signing::Secret::parse(text).unwrap();
    let bytes = parsed.expose_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let list: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    vec![
        text.strip_prefix("whsec_").unwrap().to_owned(),
        hex,
        list.join(", "),
    ]
}

/// Every row of every table, as text.
async fn database(pool: &PgPool) -> String {
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
            .fetch_all(pool)
            .await
            .unwrap();
    let mut text = String::new();
    for table in tables {
        let query = sqlx::AssertSqlSafe(format!("SELECT t::text FROM \"{table}\" t"));
        let rows: Vec<String> = sqlx::query_scalar(query).fetch_all(pool).await.unwrap();
        text.extend(rows);
    }
    text
}

#[testkit::test]
async fn a_secret_is_shown_once_and_found_nowhere_afterwards(pool: PgPool) {
    let log = Log::listen();
    let portal = Portal::start(pool).await;
    let created = portal.created().await;
    let path = format!("/subscriptions/{}", id_of(&created));
    let rotated = portal.done("POST", &format!("{path}/secrets"), 201).await;
    let mut secrets = forms(&created["secret"]["secret"]);
    secrets.extend(forms(&rotated["secret"]));

    let mut seen = String::new();
    let document = serde_json::to_value(reseller_portal::openapi()).unwrap();
    for (route, item) in document["paths"].as_object().unwrap() {
        if item["get"].is_object() && item["get"]["tags"][0] != "service" {
            let route = route.replace("{id}", path.rsplit('/').next().unwrap());
            let answer = portal
                .call("GET", &route.replace("{name}", "domain.created"))
                .send()
                .await
                .unwrap();
            seen.push_str(&answer.text().await.unwrap());
        }
    }
    // Answers that change something, and such that complain of what was sent: a caller may well send its secret along.
    for (method, below, body) in [
        (
            "PATCH",
            "",
            json!({"description": "x", "secret": rotated["secret"]}),
        ),
        (
            "PATCH",
            "",
            json!({"url": format!("https://a:{}@b.example", forms(&rotated["secret"])[0])}),
        ),
        ("POST", "/deactivate", json!({})),
        ("POST", "/activate", json!({})),
        ("POST", "/verify", json!({})),
        ("POST", "/test", json!({})),
        (
            "DELETE",
            &format!("/secrets/{}", rotated["id"].as_str().unwrap()),
            json!({}),
        ),
    ] {
        let request = portal.call(method, &format!("{path}{below}")).json(&body);
        seen.push_str(&request.send().await.unwrap().text().await.unwrap());
    }
    let stored = database(&portal.pool).await;
    portal.stop().await;
    let logged = log.text();
    assert!(logged.contains("answered"), "the log is not empty");
    assert!(stored.contains("reseller.example"), "the database is not empty");
    for secret in secrets {
        assert!(!seen.contains(&secret), "in an answer");
        assert!(!logged.contains(&secret), "in the log");
        assert!(!stored.contains(&secret), "in the database");
    }
    assert!(!logged.contains("whsec_"), "nor of any other test");
}
