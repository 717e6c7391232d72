//! `postrider subscriptions check`: how far a challenge gets before there is a subscription.

use anyhow::bail;
use serde_json::{Value, json};

use super::args::CheckArgs;
use super::portal;
use crate::file;
use crate::output::Column;
use crate::shown::{self, ShownColumn, cell};

const STEPS: [ShownColumn; 3] = [
    (Column::whole("step"), "/step"),
    (Column::whole("result"), "/result"),
    (Column::prose("found"), "/text"),
];

pub(super) async fn check(args: CheckArgs) -> anyhow::Result<()> {
    let mut body = json!({ "url": args.url });
    if let Some(path) = &args.secret_file {
        body["secret"] = file::read(path)?.trim().into();
    }
    let checked: Value = portal(&args.common)?.post("/endpoint-checks", &body).await?;
    args.common
        .form()
        .print(&checked, || shown::list(&checked["steps"], STEPS))?;
    let failed = shown::items(&checked["steps"])
        .iter()
        .find(|step| step["result"] == "FAILED");
    match failed {
        Some(step) => bail!(not_ready(step, args.secret_file.is_some())),
        None => Ok(()),
    }
}

/// At which step an endpoint is not ready, and what mends it.
fn not_ready(step: &Value, has_secret: bool) -> String {
    let (name, mend) = (cell(step, "/step"), cell(step, "/mend"));
    let secret = if name == "ANSWER" && !has_secret {
        "; one that checks signatures already needs the challenge signed with its secret: `--secret-file FILE` takes that. Which status was \
         answered is for the log of the endpoint to say"
    } else {
        ""
    };
    format!("the endpoint is not ready at the step {name}: {mend}{secret}")
}

/// The command that shows how far a request to the endpoint of a subscription gets.
pub(super) fn check_of(subscription: &Value) -> String {
    let url = cell(subscription, "/url");
    // A quotation mark is none of the characters of a URL that a shell takes as they are.
    format!("`postrider subscriptions check '{}'`", url.replace('\'', "%27"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_is_not_ready_is_told_of_the_secret_only_where_that_may_mend_it() {
        let step = |name: &str| json!({"step": name, "mend": "look into the log"});
        let said = not_ready(&step("ANSWER"), false);
        let begin = "the endpoint is not ready at the step ANSWER: look into the log; ";
        assert!(
            said.starts_with(begin) && said.contains("`--secret-file FILE`"),
            "{said}"
        );
        for (name, has_secret) in [("ANSWER", true), ("TLS", false)] {
            let said = not_ready(&step(name), has_secret);
            assert!(said.ends_with(": look into the log"), "{said}");
        }
        let of = json!({"url": "https://a.example/?b=1&c='"});
        assert_eq!(
            check_of(&of),
            "`postrider subscriptions check 'https://a.example/?b=1&c=%27'`"
        );
    }
}
