//! The operator API as its callers see it.

use anyhow::bail;
use clap::Args;
use reqwest::StatusCode;
use serde_json::Value;

use crate::api::{Api, Service};
use crate::output::{self, Form, FormArgs, JsonArgs};

static SERVICE: Service = Service {
    name: "operator API",
    address: "OPERATOR_URL or --url",
    advice,
};

/// Where the operator API is, and the key for it.
#[derive(Debug, Clone, Args)]
pub(crate) struct OperatorArgs {
    /// Where operator-api listens.
    #[arg(long, env = "OPERATOR_URL", default_value = "http://127.0.0.1:8082")]
    url: String,
    /// An API key of the role operator; viewer for commands that only look, admin for those that change keys, quotas, event types or visits; from
    /// `postrider keys create`.
    #[arg(long, env = "OPERATOR_KEY", hide_env_values = true)]
    key: Option<String>,
}

/// What commands take that ask the operator API for one thing.
#[derive(Debug, Args)]
pub(crate) struct Common<F: Args = FormArgs> {
    #[command(flatten)]
    form: F,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}

impl Common {
    pub(crate) fn form(&self) -> Form {
        self.form.form()
    }
}

impl Common<JsonArgs> {
    /// Acts, and shows what came of it: the answer as it came, or what is `told` of it.
    pub(crate) async fn act(
        &self,
        path: &str,
        body: &Value,
        told: impl FnOnce(&Value) -> String,
    ) -> anyhow::Result<()> {
        let document: Value = self.operator.connect()?.post(path, body).await?;
        self.show(&document, told)
    }

    /// Shows what came of an act: the answer as it came, or what is `told` of it.
    pub(crate) fn show(&self, document: &Value, told: impl FnOnce(&Value) -> String) -> anyhow::Result<()> {
        if self.form.is_json() {
            return output::json(document);
        }
        Ok(output::result(told(document))?)
    }
}

impl OperatorArgs {
    /// Whether the operator API can be asked at all.
    pub(crate) fn has_key(&self) -> bool {
        self.key.as_deref().is_some_and(|key| !key.is_empty())
    }

    /// A caller with this address and key.
    pub(crate) fn connect(&self) -> anyhow::Result<Api> {
        let Some(key) = self.key.as_deref().filter(|key| !key.is_empty()) else {
            bail!(
                "no API key of an operator is given; make one with `postrider keys create --name me --role operator` and set it \
                 as OPERATOR_KEY or with --key; with the key of a reseller, `postrider notifications list --event-id` and \
                 `postrider notifications story` find and explain what is the reseller's"
            );
        };
        connect(&self.url, key)
    }
}

/// A caller with this address and key.
pub(crate) fn connect(url: &str, key: &str) -> anyhow::Result<Api> {
    Api::new(&SERVICE, url, key)
}

fn advice(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some("the API key is not accepted; check OPERATOR_KEY or --key"),
        StatusCode::FORBIDDEN => Some("the API key's roles do not allow this"),
        _ => None,
    }
}
