//! `postrider rescue`: finding what was lost, now.

use clap::Args;
use serde_json::{Value, json};

use crate::operator::OperatorArgs;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  postrider rescue --note 'a dispatcher was killed'")]
pub(crate) struct RescueArgs {
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    /// As JSON, just as the API answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    operator: OperatorArgs,
}

/// Rescues what there is to rescue.
pub(crate) async fn run(args: &RescueArgs) -> anyhow::Result<()> {
    let document: Value = args
        .operator
        .connect()?
        .post("/rescue", &json!({"note": args.note}))
        .await?;
    if args.json {
        return output::json(&document);
    }
    let count = |path: &str| document.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    output::result(format_args!(
        "pushes: {} wait again, {} given up; notifications: {} wait again, {} given up",
        count("/pushes/pending"),
        count("/pushes/givenUp"),
        count("/notifications/pending") + count("/notifications/retry"),
        count("/notifications/givenUp"),
    ))?;
    Ok(())
}
