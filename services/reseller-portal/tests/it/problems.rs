//! Each problem that the documentation lists, provoked once: what it says of them is what the service does.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use config::Secret;
use domain::key::Role;
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, PgPool};
use testkit::FaultProxy;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::portal::{Portal, id_of, subscription};

/// What was provoked, each with its status.
struct Provoked(BTreeSet<(String, u64)>);

impl Provoked {
    async fn add(&mut self, request: RequestBuilder) {
        let answer = request.send().await.unwrap();
        self.note(&answer.json().await.unwrap());
    }

    fn note(&mut self, problem: &Value) {
        let name = problem["type"]
            .as_str()
            .unwrap_or_else(|| panic!("no problem: {problem}"));
        let name = name.replace("urn:postrider:problem:", "");
        self.0.insert((name, problem["status"].as_u64().unwrap()));
    }
}

/// Those that the document lists.
fn listed() -> BTreeSet<(String, u64)> {
    let document = serde_json::to_value(reseller_portal::openapi()).unwrap();
    let mut listed = BTreeSet::new();
    for operation in document["paths"].as_object().unwrap().values() {
        for operation in operation.as_object().unwrap().values() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let examples = &answer["content"]["application/problem+json"]["examples"];
                let names = examples
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.clone());
                listed.extend(names.map(|name| (name, status.parse().unwrap())));
            }
        }
    }
    listed
}

#[testkit::database_test]
async fn every_problem_of_the_list_is_one_that_the_service_answers(pool: PgPool) {
    let url = pool.connect_options().to_url_lossy().to_string();
    let (proxy, through) = FaultProxy::for_url(&url).await;
    let portal = Portal::start_with(pool, |config| {
        config.database.url = Secret::new(through);
        config.portal.max_body_bytes = 2_000;
        config.reseller.subscription.maximum = 3;
    })
    .await;
    let mut provoked = Provoked(BTreeSet::new());
    requests(&portal, &mut provoked).await;
    subscriptions(&portal, &mut provoked).await;
    notifications(&portal, &mut provoked).await;
    let broken = SubscriptionRow::active().make(&portal.pool).await;
    corrupt(&portal.pool, broken).await;
    provoked
        .add(portal.call("GET", &format!("/subscriptions/{broken}")))
        .await;
    proxy.cut();
    provoked.add(portal.call("GET", "/subscriptions")).await;
    proxy.heal();
    slow_body(&portal, &mut provoked).await;
    assert_eq!(provoked.0, listed());
    portal.stop().await;
}

/// What is wrong with a request itself.
async fn requests(portal: &Portal, provoked: &mut Provoked) {
    provoked.add(portal.request("GET", "/subscriptions")).await;
    let operator = portal.house_key(Role::Operator).await;
    provoked
        .add(portal.request("GET", "/subscriptions").bearer_auth(operator))
        .await;
    provoked
        .add(portal.call("GET", &format!("/subscriptions/{}", Uuid::nil())))
        .await;
    provoked.add(portal.call("GET", "/subscriptions?limt=5")).await;
    let post = || portal.call("POST", "/subscriptions");
    provoked
        .add(post().json(&json!({"urll": "https://reseller.example"})))
        .await;
    provoked
        .add(post().header("content-type", "application/json").body("{"))
        .await;
    provoked.add(post().body("url=x")).await;
    provoked
        .add(post().json(&json!({"description": "d".repeat(2_001)})))
        .await;
}

/// What the state of a subscription, its secrets, its address and its quota forbid.
async fn subscriptions(portal: &Portal, provoked: &mut Provoked) {
    let created = portal.created().await;
    let path = format!("/subscriptions/{}", id_of(&created));
    for _ in 0..2 {
        portal.created().await;
    }
    provoked
        .add(portal.call("POST", "/subscriptions").json(&subscription()))
        .await;
    provoked
        .add(portal.call("POST", &format!("{path}/activate")))
        .await;
    provoked
        .add(portal.call(
            "DELETE",
            &format!("{path}/secrets/{}", created["secret"]["id"].as_str().unwrap()),
        ))
        .await;
    for _ in 0..4 {
        portal.done("POST", &format!("{path}/secrets"), 201).await;
    }
    provoked
        .add(portal.call("POST", &format!("{path}/secrets")))
        .await;
    let stale = portal.call("PATCH", &path).header("if-match", "\"1\"");
    provoked.add(stale.json(&json!({"description": "x"}))).await;
    let more = json!({"dailyQuota": 2_000_000, "reason": "a sale"});
    let quotas = format!("{path}/quota-requests");
    portal.sent("POST", &quotas, &more, 201).await;
    provoked.add(portal.call("POST", &quotas).json(&more)).await;
    let decided: Uuid = sqlx::query_scalar(
        "UPDATE quota_requests SET status = 'DENIED', decided_by = 'ada', decided_at = created_at RETURNING id",
    )
    .fetch_one(&portal.pool)
    .await
    .unwrap();
    provoked
        .add(portal.call("DELETE", &format!("{quotas}/{decided}")))
        .await;
    sqlx::query("UPDATE subscriptions SET challenge_floor_at = $1")
        .bind(portal.now() + TimeDelta::seconds(10))
        .execute(&portal.pool)
        .await
        .unwrap();
    provoked.add(portal.call("POST", &format!("{path}/verify"))).await;
    // So many wrong ones make the code void.
    for _ in 0..12 {
        let wrong = json!({"code": "0000000000"});
        provoked
            .add(portal.call("POST", &format!("{path}/email/confirm")).json(&wrong))
            .await;
    }
}

/// What has ended, or has not.
async fn notifications(portal: &Portal, provoked: &mut Provoked) {
    let active = SubscriptionRow::in_state(SubscriptionState::Active)
        .make(&portal.pool)
        .await;
    for state in [NotificationState::Cancelled, NotificationState::Pending] {
        let made = NotificationRow::in_state(state, active).make(&portal.pool).await;
        provoked
            .add(portal.call("POST", &format!("/notifications/{}/resend", made.id)))
            .await;
    }
    let sent = NotificationRow::in_state(NotificationState::Sent, active);
    let sent = sent.make(&portal.pool).await;
    provoked
        .add(portal.call("POST", &format!("/notifications/{}/cancel", sent.id)))
        .await;
    sqlx::query(
        "INSERT INTO notifications
         SELECT (jsonb_populate_record(n, jsonb_build_object('id', overlay(n.id::text PLACING lpad(to_hex(i), 12, '0') FROM 25)))).*
         FROM notifications n, generate_series(1, 10001) i WHERE n.id = $1",
    )
    .bind(sent.id.uuid())
    .execute(&portal.pool)
    .await
    .unwrap();
    let resends = format!("/subscriptions/{active}/resends");
    let all = portal
        .call("POST", &resends)
        .json(&json!({"statuses": ["SENT"], "dryRun": true}));
    provoked.add(all).await;
    let replays = format!("/subscriptions/{active}/replays");
    let since = json!({"since": portal.now() - TimeDelta::days(2)});
    let replay = portal.sent("POST", &replays, &since, 202).await;
    provoked.add(portal.call("POST", &replays).json(&since)).await;
    sqlx::query("UPDATE replays SET status = 'COMPLETED', finished_at = now()")
        .execute(&portal.pool)
        .await
        .unwrap();
    provoked
        .add(portal.call("DELETE", &format!("{replays}/{}", id_of(&replay))))
        .await;
}

/// A name of a later version in a row.
async fn corrupt(pool: &PgPool, subscription: Uuid) {
    let mut transaction = pool.begin().await.unwrap();
    let constraints: Vec<String> = sqlx::query_scalar(
        "SELECT conname FROM pg_constraint WHERE conrelid = 'subscriptions'::regclass AND contype = 'c'
           AND pg_get_constraintdef(oid) LIKE '%state_reason%'",
    )
    .fetch_all(&mut *transaction)
    .await
    .unwrap();
    for constraint in constraints {
        let drop = format!("ALTER TABLE subscriptions DROP CONSTRAINT {constraint}");
        sqlx::query(sqlx::AssertSqlSafe(drop))
            .execute(&mut *transaction)
            .await
            .unwrap();
    }
    sqlx::query("UPDATE subscriptions SET state_reason = 'OF_A_LATER_VERSION' WHERE id = $1")
        .bind(subscription)
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

/// A body that does not come to its end in time.
async fn slow_body(portal: &Portal, provoked: &mut Provoked) {
    let hasty = Portal::start_with(portal.pool.clone(), |config| {
        config.portal.request_timeout = Duration::from_secs(1);
    })
    .await;
    let mut connection = TcpStream::connect(hasty.address).await.unwrap();
    let head = format!(
        "POST /subscriptions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\nconnection: close\r\n\r\n{{",
        hasty.address, hasty.key
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    provoked.note(&serde_json::from_str(body).unwrap());
    hasty.stop().await;
}
