//! `postrider subscriptions`: what a reseller is told of, and where.

mod args;
mod delete;
mod deliveries;
mod update;

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Common, NOT_NOW, is_not_now, look, notifications};
use crate::commands::resellers;
use crate::file;
use crate::output::{self, Column, Form};
use crate::portal::{PAGE_MAX, Portal};
use crate::problem::Refusal;
use crate::progress::Progress;
use crate::shown::{self, Shown, ShownColumn, cell};

pub(crate) use args::SubscriptionsCommand;

use args::{
    CheckArgs, ConfirmArgs, CreateArgs, ListArgs, MetricsArgs, One, ShowArgs, StatesArgs, TestArgs, Waited,
};
use update::update;

/// How often a subscription is looked at that is waited for.
const POLL: Duration = Duration::from_secs(1);

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

const STEPS: [ShownColumn; 3] = [
    (Column::whole("step"), "/step"),
    (Column::whole("result"), "/result"),
    (Column::prose("found"), "/text"),
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

const STATES: [ShownColumn; 5] = [
    (Column::time("since"), "/at"),
    (Column::whole("state"), "/state"),
    (Column::whole("reason"), "/stateReason"),
    (Column::whole("paused").spare(2), "/paused"),
    (Column::whole("paused by operators").spare(1), "/held"),
];

const METRICS: [Shown; 15] = [
    ("since", "/since"),
    ("attempts", "/attempts"),
    ("delivered", "/delivered"),
    ("failed for good", "/failed"),
    ("tried again", "/retried"),
    ("success rate", "/successRate"),
    ("failure rate", "/failureRate"),
    ("retry rate", "/retryRate"),
    ("half took ms", "/latencyMillis/p50"),
    ("95 of 100 took ms", "/latencyMillis/p95"),
    ("99 of 100 took ms", "/latencyMillis/p99"),
    ("attempts without answer", "/unanswered"),
    ("half delivered within ms", "/deliveryDelayMillis/p50"),
    ("95 of 100 delivered within ms", "/deliveryDelayMillis/p95"),
    ("99 of 100 delivered within ms", "/deliveryDelayMillis/p99"),
];

/// How coarse the times are, which are counted in buckets that grow: `domain::latency`.
const ESTIMATED: &str = "times are estimates: those of attempts may be off by a fifth, those from event to delivery (\"delivered within\", \"in ms\") by \
     two fifths";

/// Does what the command says.
pub(crate) async fn run(command: SubscriptionsCommand) -> anyhow::Result<()> {
    use SubscriptionsCommand as Command;
    match command {
        Command::List(args) => list(args).await,
        Command::Show(ShowArgs { one, operator }) => {
            if !one.common.portal.has_key() && operator.has_key() {
                return resellers::subscription(&operator, one.common.form(), one.id).await;
            }
            match find(&portal(&one.common)?, one.id).await {
                // Whose subscription it is may be known to the operators' key alone.
                Err(error) if operator.has_key() && is_unknown(&error) => {
                    resellers::subscription(&operator, one.common.form(), one.id).await
                }
                found => {
                    let (document, version) = found?;
                    show(&one.common, &document, version.as_deref())
                }
            }
        }
        Command::Check(args) => check(args).await,
        Command::Create(args) => create(*args).await,
        Command::Update(args) => update(*args).await,
        Command::Activate(args) => command_and_wait(&args, "activate").await,
        Command::Verify(args) => command_and_wait(&args, "verify").await,
        Command::Deactivate(args) => delete::deactivate(&args).await,
        Command::Pause(one) => act(&one, "pause").await,
        Command::Resume(one) => act(&one, "resume").await,
        Command::Confirm(args) => confirm(&args).await,
        Command::Test(args) => test(&args).await,
        Command::Delete(args) => delete::run(&args).await,
        Command::Metrics(args) => metrics(&args).await,
        Command::States(args) => states(&args).await,
    }
}

fn portal<F: Args>(common: &Common<F>) -> anyhow::Result<Portal> {
    Portal::connect(&common.portal)
}

fn path(id: Uuid) -> String {
    format!("/subscriptions/{id}")
}

/// A subscription, and the version of what can be changed of it.
async fn find(portal: &Portal, id: Uuid) -> anyhow::Result<(Value, Option<String>)> {
    let path = path(id);
    portal.versioned(portal.request(Method::GET, &path), &path).await
}

fn show(common: &Common, document: &Value, version: Option<&str>) -> anyhow::Result<()> {
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

/// Whether the portal knows no such thing of the reseller's.
fn is_unknown(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<Refusal>();
    refusal.is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND)
}

/// Resellers ask the portal, and operators their API: who has named what only that knows, or has no key of a reseller.
async fn list(args: ListArgs) -> anyhow::Result<()> {
    let common = &args.common;
    let is_operator = args.reseller.is_some() || args.with_url.is_some() || args.failing;
    if is_operator || (!common.portal.has_key() && args.operator.has_key()) {
        let asked = [
            ("reseller", args.reseller),
            ("url", args.with_url),
            ("failing", args.failing.then(|| "true".to_owned())),
            ("cursor", args.cursor),
        ];
        return resellers::subscriptions(&args.operator, common.form(), asked).await;
    }
    let query = [("limit", Some(PAGE_MAX.to_owned())), ("cursor", args.cursor)];
    let document: Value = portal(common)?.get("/subscriptions", &query).await?;
    let nothing =
        "there is no subscription yet; `postrider subscriptions create --help` shows how to make one";
    shown::print(&document, common.form(), COLUMNS, nothing)
}

async fn check(args: CheckArgs) -> anyhow::Result<()> {
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
fn check_of(subscription: &Value) -> String {
    let url = cell(subscription, "/url");
    // A quotation mark is none of the characters of a URL that a shell takes as they are.
    format!("`postrider subscriptions check '{}'`", url.replace('\'', "%27"))
}

async fn create(args: CreateArgs) -> anyhow::Result<()> {
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

async fn act(one: &One, action: &str) -> anyhow::Result<()> {
    let document = command(&portal(&one.common)?, one.id, action).await?;
    tell(one, &document)
}

async fn command(portal: &Portal, id: Uuid, action: &str) -> anyhow::Result<Value> {
    portal.post(&format!("{}/{action}", path(id)), &json!({})).await
}

fn tell(one: &One, document: &Value) -> anyhow::Result<()> {
    if one.common.is_json() {
        return output::json(document);
    }
    output::result(format_args!("{}: {}", one.id, state(document)))?;
    Ok(())
}

fn state(document: &Value) -> String {
    let paused = match (&document["pausedAt"], &document["heldAt"]) {
        (_, held) if !held.is_null() => ", paused by the operators of the platform, who alone let it go on",
        (paused, _) if !paused.is_null() => ", paused",
        _ => "",
    };
    format!(
        "{} ({}){paused}",
        cell(document, "/state"),
        cell(document, "/stateReason")
    )
}

async fn command_and_wait(args: &Waited, action: &str) -> anyhow::Result<()> {
    let one = &args.one;
    if !args.wait {
        return act(one, action).await;
    }
    let portal = portal(&one.common)?;
    let active = async {
        let document = command_in_time(&portal, one.id, action).await?;
        tell(one, &until_active(&portal, one.id, &document).await?)
    };
    args.within.limit(active, not_active(one.id)).await
}

/// Gives a command, again when the portal wants it later.
async fn command_in_time(portal: &Portal, id: Uuid, action: &str) -> anyhow::Result<Value> {
    let (pause, times) = NOT_NOW;
    let mut told = String::new();
    for _ in 1..times {
        let error = match command(portal, id, action).await {
            Err(error) if is_not_now(&error) => error,
            answered => return answered,
        };
        let refusal = error.downcast_ref::<Refusal>();
        let pause = refusal.and_then(|refusal| refusal.retry_after).unwrap_or(pause);
        let why = refusal.map(|refusal| output::harmless(&refusal.problem.to_string()));
        let why = why.unwrap_or_default();
        if why != told {
            output::note(format_args!(
                "{id}: {why}; the portal is asked again in {} s, as it wants it",
                pause.as_secs()
            ));
            told = why;
        }
        tokio::time::sleep(pause).await;
    }
    command(portal, id, action).await
}

/// What has not happened, and what to do, when the time is over.
fn not_active(id: Uuid) -> [String; 2] {
    [
        format!("the subscription {id} has not become ACTIVE"),
        format!("`postrider subscriptions show {id}` shows what came of the last challenge"),
    ]
}

/// How often the endpoint was challenged in vain, and what came of it the last time.
fn challenges(document: &Value) -> (String, String) {
    (
        cell(document, "/verification/failedAttempts"),
        cell(document, "/verification/error"),
    )
}

/// Waits until the endpoint is verified, or will not be unless the reseller acts. What came of challenges before `began`, the
/// subscription as the command left it, is none of its business. Returns the subscription as it has become.
async fn until_active(portal: &Portal, id: Uuid, began: &Value) -> anyhow::Result<Value> {
    let progress = Progress::waiting("waiting until the endpoint is verified");
    let mut told = challenges(began);
    loop {
        let document = look(portal, &path(id), &()).await?;
        let now = challenges(&document);
        match cell(&document, "/state").as_str() {
            "ACTIVE" => {
                progress.note(format_args!(
                    "the endpoint is verified; the subscription {id} is ACTIVE"
                ));
                return Ok(document);
            }
            "PENDING_VERIFICATION" if !document["verification"]["nextAttemptAt"].is_null() => {}
            _ => bail!(
                "the subscription {id} is {}: {}; {} shows step by step how far a request gets",
                state(&document),
                now.1,
                check_of(&document)
            ),
        }
        if now != told {
            let (failed, error) = &now;
            progress.note(format_args!(
                "challenge {failed} was not met: {error}; the next one comes at {}, or with `postrider subscriptions verify {id}`; {} shows \
                 step by step how far a request gets",
                cell(&document, "/verification/nextAttemptAt"),
                check_of(&document),
            ));
            told = now;
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn confirm(args: &ConfirmArgs) -> anyhow::Result<()> {
    let (one, portal) = (&args.one, portal(&args.one.common)?);
    let path = format!("{}/email", path(one.id));
    let Some(code) = &args.code else {
        portal.post_empty(&format!("{path}/resend")).await?;
        output::note(format_args!(
            "the code is sent again, unless the address is confirmed; then: postrider subscriptions confirm {} --code CODE",
            one.id
        ));
        return Ok(());
    };
    let body = json!({ "code": code.trim() });
    let document: Value = portal.post(&format!("{path}/confirm"), &body).await?;
    if one.common.is_json() {
        return output::json(&document);
    }
    output::result(format_args!(
        "{}: {} is confirmed",
        one.id,
        cell(&document, "/email")
    ))?;
    Ok(())
}

async fn test(test: &TestArgs) -> anyhow::Result<()> {
    let args = &test.waited;
    let common = &args.one.common;
    let portal = portal(common)?;
    let path = format!("{}/test", path(args.one.id));
    let mut body = json!({});
    for (name, value) in [("type", &test.event_type), ("variant", &test.variant)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let sent: Value = portal.post(&path, &body).await?;
    let id: Uuid = cell(&sent, "/notificationId").parse()?;
    if !args.wait {
        if common.is_json() {
            return output::json(&sent);
        }
        output::result(id)?;
        // It is sent: where it stands may stay unknown.
        if let Ok(found) = notifications::find(&portal, id).await
            && !found["pausedBy"].is_null()
        {
            let held = notifications::held_by(&cell(&found, "/pausedBy"), &cell(&found, "/subscriptionId"));
            output::note(format_args!(
                "the test event waits for the end of the pause: {held}"
            ));
        }
        return Ok(());
    }
    if !common.is_json() {
        output::result(id)?;
    }
    let ended = notifications::until_ended(&portal, id, args.within).await;
    if common.is_json() {
        let found = notifications::find(&portal, id).await?;
        let mut told = sent;
        for name in ["status", "reason", "attempts", "pausedBy"] {
            told[name] = found[name].clone();
        }
        output::json(&told)?;
    }
    ended
}

async fn metrics(args: &MetricsArgs) -> anyhow::Result<()> {
    let (one, form) = (&args.one, args.one.common.form());
    let path = format!("{}/metrics", path(one.id));
    let mut query = vec![("hours", args.hours.to_string())];
    query.extend(args.step.map(|step| ("step", step.to_string())));
    query.extend(args.event_type.clone().map(|name| ("eventType", name)));
    let document: Value = portal(&one.common)?.get(&path, &query).await?;
    let mut types = shown::items(&document["byEventType"]).iter();
    let of_type = types.find(|of| of["eventType"].as_str() == args.event_type.as_deref());
    if let (Some(name), None) = (&args.event_type, of_type)
        && form != Form::Json
    {
        output::note(output::harmless(&format!(
            "no attempt of the last {} h was for an event of the type {name}; --by-event-type lists those that were",
            args.hours
        )));
    }
    if form.is_for_people() && document["attempts"] != 0 {
        output::note(ESTIMATED);
    }
    form.print(&document, || {
        if args.by_event_type {
            let of = (Column::whole("event type"), "/eventType");
            return deliveries::listed(&document["byEventType"], of, form);
        }
        let from = (Column::time("from"), "/hour");
        if args.event_type.is_some() {
            let hours = of_type.map_or(&Value::Null, |of| &of["hours"]);
            return deliveries::listed(hours, from, form);
        }
        if args.step.is_some() {
            return deliveries::listed(&document["hours"], from, form);
        }
        let whose = ("subscription", &*one.id.to_string());
        let mut readable = document.clone();
        for rate in ["successRate", "failureRate", "retryRate"] {
            if let Some(share) = document[rate].as_f64() {
                readable[rate] = format!("{:.1} %", share * 100.0).into();
            }
        }
        let mut table = shown::record_of(whose, &readable, METRICS);
        for (status, count) in document["answers"].as_object().into_iter().flatten() {
            table.add_row([format!("answers {status}"), count.to_string()]);
        }
        table
    })
}

async fn states(args: &StatesArgs) -> anyhow::Result<()> {
    let one = &args.one;
    let path = format!("{}/states", path(one.id));
    let portal = portal(&one.common)?;
    let pages = args.part.of(&portal, &path, Map::new());
    let nothing = |_: &Value| "no state is recorded".to_owned();
    shown::print_pages(pages, one.common.form(), STATES, nothing).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
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
    fn states_fit_the_terminal() {
        let states = json!([
            {"at": "2026-11-21T12:00:00.5Z", "state": "ACTIVE", "stateReason": "VERIFIED", "paused": true, "held": false},
            {"at": "2026-11-21T11:59:31Z", "state": "PENDING_VERIFICATION", "stateReason": "CREATED", "paused": false, "held": false},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&states, STATES)));
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
}
