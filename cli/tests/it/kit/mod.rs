//! The commands for resellers' developers.

mod accidents;
mod catalogue;
mod hanging_up;
mod hints;
mod listening;
mod portal;
mod resends;
mod tail;
mod told;

use serde_json::Value;

pub(crate) use portal::pretended;

use crate::postrider::{Running, postrider};

/// The one of the public vector of Standard Webhooks.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A `postrider listen --json`, with the line that it began with.
fn listen(arguments: &str) -> (Running, Value) {
    let mut process = postrider(&format!("listen --json {arguments}")).start();
    let line = json_line(&mut process);
    (process, line)
}

fn url(introduction: &Value) -> &str {
    introduction["listening"].as_str().expect("where it listens")
}

fn json_line(process: &mut Running) -> Value {
    serde_json::from_str(&process.line()).expect("a line of JSON")
}
