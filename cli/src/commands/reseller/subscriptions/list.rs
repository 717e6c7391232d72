//! `postrider subscriptions list` and `show`: a reseller's own over the portal, and for operators those of all.

use serde_json::Value;

use super::args::{ListArgs, ShowArgs};
use super::check::check_of;
use super::{find, portal};
use crate::commands::reseller::asked::{Asked, asked};
use crate::commands::reseller::{Common, is_unknown};
use crate::commands::resellers;
use crate::output::{self, Column};
use crate::portal::PAGE_MAX;
use crate::shown::{self, Shown, ShownColumn};

const COLUMNS: [ShownColumn; 8] = [
    (Column::whole("subscription"), "/id"),
    (Column::whole("url"), "/url"),
    (Column::prose("event types").spare(1), "/eventTypes"),
    (Column::whole("state"), "/state"),
    (Column::whole("reason").spare(3), "/stateReason"),
    (Column::time("paused since").spare(2), "/pausedAt"),
    (Column::time("failing since").spare(1), "/failingSince"),
    (Column::prose("description").spare(4), "/description"),
];

const ROWS: [Shown; 21] = [
    ("url", "/url"),
    ("event types", "/eventTypes"),
    ("email", "/email"),
    ("email confirmed", "/emailConfirmedAt"),
    ("description", "/description"),
    ("state", "/state"),
    ("reason", "/stateReason"),
    ("since", "/stateChangedAt"),
    ("paused since", "/pausedAt"),
    ("paused by operators since", "/heldAt"),
    ("failing since", "/failingSince"),
    ("verified", "/verification/verifiedAt"),
    ("next challenge", "/verification/nextAttemptAt"),
    ("failed challenges", "/verification/failedAttempts"),
    ("why", "/verification/error"),
    ("timeout in ms", "/timeoutMillis"),
    ("daily quota", "/dailyQuota"),
    ("requests a second", "/requestsPerSecond"),
    ("sent again after an outage", "/resendAfterOutage"),
    ("retry plan", "/retryPlan"),
    ("retries of 4xx", "/retryClientErrors"),
];

/// Lists those of the reseller, or what operators ask for.
pub(super) async fn list(args: ListArgs) -> anyhow::Result<()> {
    let common = &args.common;
    let is_for_operators =
        args.reseller.is_some() || args.with_url.is_some() || args.failing || args.state.is_some();
    if asked(is_for_operators, &common.portal, &args.operator) == Asked::Operator {
        let query = [
            ("reseller", args.reseller),
            ("url", args.with_url),
            ("failing", args.failing.then(|| "true".to_owned())),
            ("state", args.state.map(|state| state.to_ascii_uppercase())),
            ("cursor", args.cursor),
        ];
        return resellers::subscriptions(&args.operator, common.form(), query).await;
    }
    let query = [("limit", Some(PAGE_MAX.to_owned())), ("cursor", args.cursor)];
    let document: Value = portal(common)?.get("/subscriptions", &query).await?;
    let nothing =
        "there is no subscription yet; `postrider subscriptions create --help` shows how to make one";
    shown::print(&document, common.form(), COLUMNS, nothing)
}

/// Shows one: the portal's where there is a key for it, else the operators'.
pub(super) async fn show_one(ShowArgs { one, operator }: &ShowArgs) -> anyhow::Result<()> {
    if asked(false, &one.common.portal, operator) == Asked::Operator {
        return resellers::subscription(operator, one.common.form(), one.id).await;
    }
    match find(&portal(&one.common)?, one.id).await {
        // Whose subscription it is may be known to the operators' key alone.
        Err(error) if operator.has_key() && is_unknown(&error) => {
            output::note(
                "the reseller has no such subscription: the operator API is asked, with OPERATOR_KEY",
            );
            resellers::subscription(operator, one.common.form(), one.id).await
        }
        found => {
            let (document, version) = found?;
            show(&one.common, &document, version.as_deref())
        }
    }
}

/// Shows one as the portal has it.
pub(super) fn show(common: &Common, document: &Value, version: Option<&str>) -> anyhow::Result<()> {
    let record = || {
        let mut record = shown::record("subscription", document, ROWS);
        if let Some(version) = version {
            record.add_row(["version", version.trim_matches('"')]);
        }
        record
    };
    common.form().print(document, record)?;
    if common.form().is_for_people() && is_challenged_in_vain(document) {
        output::note(format_args!(
            "{} shows step by step how far a request to the endpoint gets",
            check_of(document)
        ));
    }
    Ok(())
}

fn is_challenged_in_vain(subscription: &Value) -> bool {
    subscription["state"] == "PENDING_VERIFICATION" && !subscription["verification"]["error"].is_null()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn subscriptions_fit_the_terminal() {
        let subscriptions = json!([
            {"id": "01a1fd84-191a-7334-a6ae-613178d80d71", "state": "ACTIVE", "stateReason": "VERIFIED",
             "url": "https://hooks.reseller.example/postrider/notifications?tenant=4711", "pausedAt": null,
             "eventTypes": ["domain.created", "domain.deleted", "domain.transfer.requested", "contact.*"]},
            {"id": "01a1fd84-ba0d-74fc-a5c1-94d557988f4b", "state": "PENDING_VERIFICATION", "stateReason": "CREATED",
             "url": "https://a.example/", "pausedAt": "2026-11-21T12:00:00.123456Z", "eventTypes": ["*"]},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&subscriptions, COLUMNS)));
    }

    #[test]
    fn a_list_shows_descriptions_where_there_is_room() {
        let one =
            json!([{"id": "1", "url": "https://a.example/", "eventTypes": ["*"], "description": "the shop"}]);
        let listed = shown::list(&one, COLUMNS).at(None);
        assert!(
            listed.contains("description") && listed.contains("the shop"),
            "{listed}"
        );
    }

    #[test]
    fn a_list_says_since_when_a_subscription_fails() {
        let subscriptions = json!([
            {"id": "01a1fd84-191a-7334-a6ae-613178d80d71", "state": "DEGRADED", "stateReason": "CONTINUOUS_FAILURE",
             "url": "https://a.example/", "failingSince": "2026-11-21T12:00:00.123456Z", "eventTypes": ["*"]},
        ]);
        let listed = shown::list(&subscriptions, COLUMNS).at(None);
        assert!(
            listed.contains("failing since") && listed.contains("2026-11-21T12:00:00Z"),
            "{listed}"
        );
    }

    #[test]
    fn one_subscription_fits_the_terminal() {
        let subscription = json!({
            "id": "01a1fd84-191a-7334-a6ae-613178d80d71", "state": "DEACTIVATED", "stateReason": "CONTINUOUS_FAILURE",
            "url": "https://hooks.reseller.example/postrider/notifications?tenant=4711&token=3c9909afec25354d551dae21590bb26e",
            "eventTypes": ["domain.*"], "email": "operations+postrider@reseller.example", "dailyQuota": 1_000_000,
            "verification": {"error": "the challenge was answered with 404 Not Found and a body of 31 bytes, which is not the token"},
        });
        insta::assert_snapshot!(output::at_widths(&shown::record(
            "subscription",
            &subscription,
            ROWS
        )));
    }

    #[test]
    fn what_was_challenged_in_vain_is_told_from_what_was_not_yet_and_what_is_verified() {
        for (state, error, is_in_vain) in [
            ("PENDING_VERIFICATION", json!("no answer"), true),
            ("PENDING_VERIFICATION", Value::Null, false),
            ("ACTIVE", json!("no answer"), false),
        ] {
            let subscription = json!({"state": state, "verification": {"error": error}});
            assert_eq!(is_challenged_in_vain(&subscription), is_in_vain, "{subscription}");
        }
    }
}
