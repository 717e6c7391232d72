//! People: operators who pause lanes and replay dead letters, resellers who want something once more. All of it over HTTP, and none
//! of it insists, save that what was paused goes on again.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::ledger::Ledger;
use crate::plan::Lane;
use crate::rng::Rng;

/// Notifications that are asked for once more at a time.
const AGAIN: i64 = 5;
/// Between two requests to let a lane go on.
const INSIST: Duration = Duration::from_millis(250);

/// Where to go, and with which key.
#[derive(Debug, Clone)]
pub struct Office {
    /// The service.
    pub address: SocketAddr,
    /// The key.
    pub key: String,
}

/// Does what people do.
#[derive(Debug, Clone)]
pub struct Operators {
    /// Carries requests.
    pub http: Client,
    /// Of operators.
    pub operator: Office,
    /// Of resellers: the portal, with the key of each.
    pub portal: HashMap<&'static str, Office>,
    /// To find out what there is.
    pub pool: PgPool,
    /// Where requests are written down that make something be sent again.
    pub ledger: Arc<Ledger>,
}

impl Operators {
    /// Whether a lane was paused.
    pub async fn pause(&self, lane: Lane) -> bool {
        let path = format!("lanes/{}/pause", lane.name());
        self.ask(&self.operator, &path, &json!({"note": "chaos"}))
            .await
            .is_some()
    }

    /// Lets a lane go on, until it does.
    pub async fn resume(&self, lane: Lane) {
        let path = format!("lanes/{}/resume", lane.name());
        while self.ask(&self.operator, &path, &json!({})).await.is_none() {
            tokio::time::sleep(INSIST).await;
        }
    }

    /// Replays all dead letters of a lane.
    pub async fn replay_dead_letters(&self, lane: Lane) -> bool {
        let job =
            json!({"action": "replay", "filter": {"lane": lane.name()}, "note": "chaos", "perSecond": 200});
        self.ask(&self.operator, "dead-letters/jobs", &job)
            .await
            .is_some()
    }

    /// Asks for a few notifications that have ended once more; returns how many will be sent again.
    pub async fn send_again(&self, choice: u64) -> usize {
        let mut rng = Rng::from_seed(choice);
        let ended: Result<Vec<(Uuid, String)>, _> = sqlx::query_as(
            "SELECT id, reseller_id FROM notifications WHERE status IN ('SENT', 'FAILED', 'GIVEN_UP')
             ORDER BY md5(id::text || $1) LIMIT $2",
        )
        .bind(rng.next().to_string())
        .bind(AGAIN)
        .fetch_all(&self.pool)
        .await;
        let mut again = 0;
        for (id, reseller) in ended.unwrap_or_default() {
            let Some(office) = self.portal.get(reseller.as_str()) else {
                continue;
            };
            self.ledger.ask_again(id);
            let path = format!("notifications/{id}/resend");
            again += usize::from(self.ask(office, &path, &Value::Null).await.is_some());
        }
        again
    }

    async fn ask(&self, office: &Office, path: &str, body: &Value) -> Option<()> {
        let mut request = self
            .http
            .post(format!("http://{}/{path}", office.address))
            .bearer_auth(&office.key);
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.ok()?;
        answer.status().is_success().then_some(())
    }
}
