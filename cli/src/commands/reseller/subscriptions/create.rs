//! `postrider subscriptions create`: makes one, and says what comes next.

use serde_json::Value;

use super::args::CreateArgs;
use super::portal;
use super::wait::{not_active, until_active};
use crate::file;
use crate::output::{self, Form};
use crate::portal::PAGE_MAX;
use crate::shown::{self, cell};

pub(super) async fn create(args: CreateArgs) -> anyhow::Result<()> {
    let portal = portal(&args.common)?;
    let mut body = serde_json::to_value(&args.fields)?;
    body["url"] = args.url.into();
    body["eventTypes"] = args.event_types.into();
    body["email"] = args.email.into();
    body["verifyLater"] = args.verify_later.into();
    if let Some(path) = &args.secret_file {
        body["secret"] = file::read(path)?.trim().into();
    }
    let created: Value = portal.post("/subscriptions", &body).await?;
    // It is made: what else there is may stay unknown.
    let all: anyhow::Result<Value> = portal.get("/subscriptions", &[("limit", PAGE_MAX)]).await;
    let twin = all.ok().and_then(|all| twin(&all, &created));
    match args.common.form() {
        Form::Table => {
            output::result(format_args!("subscription {}", cell(&created, "/id")))?;
            output::result(format_args!("secret {}", cell(&created, "/secret/secret")))?;
        }
        form => form.print(&created, || {
            shown::record("subscription", &created, [("secret", "/secret/secret")])
        })?,
    }
    if args.common.form() == Form::Name && args.secret_file.is_none() {
        // Standard output is the identifier alone, and this is the only time at which a new secret is shown unasked.
        output::note(format_args!("secret {}", cell(&created, "/secret/secret")));
    }
    let id = cell(&created, "/id");
    output::note(format_args!(
        "keep the secret like a password; `postrider secrets show {id} {}` shows it again where the operator allows that",
        cell(&created, "/secret/id")
    ));
    output::note(next_step(args.verify_later, args.secret_file.is_none(), &id));
    if let Some(twin) = twin {
        output::note(format_args!(
            "a subscription of yours gets the same events at this URL: {twin}; each event comes twice"
        ));
    }
    if args.wait {
        let id = id.parse()?;
        let active = until_active(&portal, id, &created);
        args.within.limit(active, not_active(id)).await?;
    }
    Ok(())
}

/// Another subscription of the reseller that gets the same events at the same URL.
fn twin(all: &Value, created: &Value) -> Option<String> {
    let filter = |of: &Value| {
        let mut types: Vec<String> = shown::items(&of["eventTypes"])
            .iter()
            .map(|it| cell(it, ""))
            .collect();
        types.sort();
        types
    };
    let is_twin = |other: &&Value| {
        other["id"] != created["id"]
            && other["url"] == created["url"]
            && other["state"] != "DEACTIVATED"
            && filter(other) == filter(created)
    };
    let other = shown::items(&all["items"]).iter().find(is_twin)?;
    Some(cell(other, "/id"))
}

/// What a first-time user does next.
fn next_step(verify_later: bool, is_new: bool, id: &str) -> String {
    let start = if is_new {
        "start your endpoint with this secret, then "
    } else {
        ""
    };
    if verify_later {
        format!("{start}have it challenged: postrider subscriptions verify {id} --wait")
    } else if is_new {
        format!(
            "the first challenge is on its way; {start}have it challenged again: postrider subscriptions verify {id} --wait"
        )
    } else {
        String::from("the challenge is on its way")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_second_subscription_with_the_same_url_and_filter_is_noticed() {
        let (url, other) = ("https://a.example/", "https://b.example/");
        let of = |id: &str, url: &str, types: [&str; 2], state: &str| json!({"id": id, "url": url, "eventTypes": types, "state": state});
        let created = of("new", url, ["domain.*", "contact.*"], "PENDING_VERIFICATION");
        let twin_among = |others: Value| twin(&json!({ "items": others }), &created);
        let same = of("old", url, ["contact.*", "domain.*"], "ACTIVE");
        assert_eq!(twin_among(json!([created, same])).as_deref(), Some("old"));
        for different in [
            created.clone(),
            of("old", other, ["contact.*", "domain.*"], "ACTIVE"),
            of("old", url, ["contact.*", "host.*"], "ACTIVE"),
            of("old", url, ["contact.*", "domain.*"], "DEACTIVATED"),
        ] {
            assert_eq!(twin_among(json!([different])), None, "{different}");
        }
    }
}
