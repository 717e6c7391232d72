//! What people look at and change: operator-api and reseller-portal, each of one version.

use domain::key::Role;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use testkit::{Installation, eventually, key_of_the_house, key_of_the_reseller};

use crate::rig::{Process, RESELLERS, Service};
use crate::versions::{Version, Versions, stop};

/// By operators.
const LOOKED_AT: [&str; 6] = [
    "/status",
    "/dead-letters",
    "/dead-letters/groups",
    "/dead-letters/jobs",
    "/pauses",
    "/audit",
];

/// Both services of a version, and keys for them.
pub(crate) struct Apis {
    version: Version,
    /// Early versions have none.
    operator: Option<(Process, String)>,
    portal: (Process, String),
    http: Client,
    operator_key: String,
    reseller_key: String,
}

impl Apis {
    /// Starts both.
    pub(crate) async fn open(it: &Installation, versions: &Versions, version: Version) -> Self {
        let mut operator = None;
        if versions.have(version, Service::OperatorApi) {
            operator = Some(listening(versions.start(version, Service::OperatorApi).await).await);
        }
        Self {
            version,
            operator,
            portal: listening(versions.start(version, Service::ResellerPortal).await).await,
            http: Client::builder()
                .no_proxy()
                .build()
                .expect("a client can be built"),
            operator_key: key_of_the_house(&it.store, &[Role::Operator]).await,
            reseller_key: key_of_the_reseller(&it.store, RESELLERS[0]).await,
        }
    }

    /// Whether an operator can be there.
    pub(crate) fn has_operator(&self) -> bool {
        self.operator.is_some()
    }

    /// Everything that can be looked at is answered.
    pub(crate) async fn answers(&self) {
        for path in LOOKED_AT.iter().filter(|_| self.has_operator()) {
            self.look(path).await;
        }
        for path in ["/subscriptions", "/event-types"] {
            self.look_as_reseller(path).await;
        }
    }

    pub(crate) async fn look(&self, path: &str) -> Value {
        self.operate(Method::GET, path, None).await
    }

    pub(crate) async fn look_as_reseller(&self, path: &str) -> Value {
        self.ask(Method::GET, (&self.portal.1, &self.reseller_key), path, None)
            .await
    }

    /// Changes something as an operator, who says why.
    pub(crate) async fn change(&self, path: &str) -> Value {
        let why = json!({"note": "the upgrade"});
        self.operate(Method::POST, path, Some(why)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.operate(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn post_as_reseller(&self, path: &str, body: Option<Value>) -> Value {
        self.ask(Method::POST, (&self.portal.1, &self.reseller_key), path, body)
            .await
    }

    async fn operate(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (_, address) = self.operator.as_ref().expect("a version with operators");
        self.ask(method, (address, &self.operator_key), path, body).await
    }

    /// Again while the answer is "not now".
    async fn ask(
        &self,
        method: Method,
        (address, key): (&str, &str),
        path: &str,
        body: Option<Value>,
    ) -> Value {
        eventually(&format!("{path} of {:?}", self.version), async || {
            let url = format!("http://{address}{path}");
            let mut request = self.http.request(method.clone(), url).bearer_auth(key);
            if let Some(body) = &body {
                request = request.json(body);
            }
            let response = request.send().await.expect("the service answers");
            let status = response.status();
            let answer = response.text().await.expect("the answer is text");
            if status == StatusCode::SERVICE_UNAVAILABLE {
                return None;
            }
            let version = self.version;
            assert!(
                status.is_success(),
                "{path} of {version:?} was answered {status}: {answer}"
            );
            serde_json::from_str(&answer).ok()
        })
        .await
    }

    /// Stops both.
    pub(crate) async fn close(self) {
        for (process, _) in self.operator.into_iter().chain([self.portal]) {
            stop(process).await;
        }
    }
}

/// With where it listens.
async fn listening(mut process: Process) -> (Process, String) {
    let address = process.address_logged_with("listening").await;
    (process, address)
}
