//! `postrider rescue`: finding what was lost, now.

use clap::Args;
use serde_json::{Value, json};

use crate::operator::Common;
use crate::output::JsonArgs;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  postrider rescue --note 'a dispatcher was killed'")]
pub(crate) struct RescueArgs {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// Rescues what there is to rescue.
pub(crate) async fn run(args: &RescueArgs) -> anyhow::Result<()> {
    let told = |document: &Value| {
        let count = |path: &str| document.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        format!(
            "pushes: {} wait again, {} given up; notifications: {} wait again, {} given up",
            count("/pushes/pending"),
            count("/pushes/givenUp"),
            count("/notifications/pending") + count("/notifications/retry"),
            count("/notifications/givenUp"),
        )
    };
    args.common
        .act("/rescue", &json!({"note": args.note}), told)
        .await
}
