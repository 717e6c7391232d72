//! `postrider subscriptions update`: changes what is given, of the version that was read and of no other.

use anyhow::bail;
use reqwest::header::IF_MATCH;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::args::UpdateArgs;
use super::list::show;
use super::wait::{not_active, until_active};
use super::{find, path, portal};
use crate::output;
use crate::problem::Refusal;
use crate::shown::cell;

/// What makes another version, by the names of the API.
const CHANGEABLE: [&str; 8] = [
    "url",
    "eventTypes",
    "email",
    "description",
    "timeoutMillis",
    "resendAfterOutage",
    "retryPlan",
    "retryClientErrors",
];

pub(super) async fn update(args: UpdateArgs) -> anyhow::Result<()> {
    let mut body = serde_json::to_value(&args.fields)?;
    for (name, value) in [
        ("url", args.url.map(Value::from)),
        ("eventTypes", args.event_types.map(Value::from)),
        ("email", args.email.map(Value::from)),
    ] {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    if body == json!({}) {
        bail!(
            "nothing is to be changed; give one of --url, --event-types, --email, --description, --timeout-millis, \
             --resend-after-outage, --retry-plan and --retry-client-errors"
        );
    }
    let portal = portal(&args.common)?;
    let (before, read) = find(&portal, args.id).await?;
    let given = args.if_version.as_deref();
    let expected = given
        .map(|version| format!("\"{}\"", version.trim_matches('"')))
        .or(read);
    let path = path(args.id);
    let mut request = portal.request(Method::PATCH, &path).json(&body);
    if let Some(version) = &expected {
        request = request.header(IF_MATCH, version);
    }
    let (document, version): (Value, _) = match portal.versioned(request, &path).await {
        Err(error) if is_stale(&error) => {
            let (now, _) = find(&portal, args.id).await?;
            let id = args.id;
            return Err(error.context(format!(
                "the subscription {id} was changed meanwhile and is left as it is: {}; give the command again if it still holds",
                meanwhile(&before, &now, &body)
            )));
        }
        changed => changed?,
    };
    if args.wait {
        let active = until_active(&portal, args.id, &document);
        let verified = args.within.limit(active, not_active(args.id)).await?;
        return show(&args.common, &verified, version.as_deref());
    }
    show(&args.common, &document, version.as_deref())?;
    let waits = body.get("url").is_some() && document["state"] == "PENDING_VERIFICATION";
    if waits && document["stateReason"] == "ENDPOINT_CHANGED" {
        output::note("what comes waits until the endpoint has answered its challenge");
    } else if waits {
        output::note(format_args!(
            "until the endpoint has answered its challenge, events become no notifications of this subscription; then `postrider replay {} \
             --newer-than 1h --status MISSED` sends those of that time",
            args.id
        ));
    }
    Ok(())
}

/// Whether the subscription has another version than the one that was to be changed.
fn is_stale(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<Refusal>();
    refusal.is_some_and(|refusal| refusal.status == StatusCode::PRECONDITION_FAILED)
}

/// What was changed between two looks; when nothing was, as with a version that was read long ago, how that stands now which was to be
/// changed.
fn meanwhile(before: &Value, now: &Value, asked: &Value) -> String {
    let value = |document, name: &str| cell(document, &format!("/{name}"));
    let mut told: Vec<String> = CHANGEABLE
        .iter()
        .filter(|name| before[**name] != now[**name])
        .map(|name| {
            format!(
                "{name} was {:?} and is {:?}",
                value(before, name),
                value(now, name)
            )
        })
        .collect();
    if told.is_empty() {
        let names = CHANGEABLE.iter().filter(|name| !asked[**name].is_null());
        told = names
            .map(|name| format!("{name} is {:?}", value(now, name)))
            .collect();
    }
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_says_what_was_changed_or_how_it_stands() {
        let before = json!({"url": "https://a.example/", "eventTypes": ["domain.*"], "state": "ACTIVE"});
        let now = json!({"url": "https://a.example/", "eventTypes": ["domain.*", "contact.*"], "state": "DEGRADED"});
        let asked = json!({"url": "https://b.example/"});
        assert_eq!(
            meanwhile(&before, &now, &asked),
            r#"eventTypes was "domain.*" and is "domain.*, contact.*""#
        );
        assert_eq!(meanwhile(&now, &now, &asked), r#"url is "https://a.example/""#);
    }
}
