//! `GET /explain/{id}`: the story of one push, event, notification, dead letter, subscription, or user agent of Web Push, in sentences.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use explain::{Context, Explanation, SAME_TIME, SubscriptionFacts};
use http_api::{Name, Params, Problem, ProblemKind};
use serde::Deserialize;
use store::timeline::{NotificationTimeline, PushTimeline};
use store::webhook::{EventView, StateEntry, SubscriptionView};
use store::webpush::StoredClient;
use store::{AuditFilter, AuditView, DeadLetterView, Store};
use tokio::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;
use webpush::MessageId;

use crate::app::App;
use crate::request::Viewer;
use crate::search::{FoundDocument, MESSAGE_ID, at_end, identifier, look, quota_request, searchable};

/// Most states of a subscription that are told, and changes of its limits, the newest ones.
const STATES_MAX: u32 = 20;
/// Up to how many notifications of a subscription that wait are counted in each status.
const WAITING_COUNTED_MAX: u32 = 10_000;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(explain))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// Whose event it is, when `id` is what its caller called it (`eventId`).
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
}

/// Tells the story of one push, event, notification or dead letter, of a user agent or message of Web Push, or how it stands with a subscription.
///
/// What happened to it when, why it is where it is, what happens next, and which commands help. With `reseller` the
/// identifier is the `eventId` that the caller gave to one of the reseller's events, or a value in the data of one. Any other text, also one that looks like an identifier, stands for the one thing that
/// `GET /search` finds for it; when that is none or several, it is not found.
#[utoipa::path(
    get, path = "/explain/{id}", tag = "status", operation_id = "explain", security(("apiKey" = [])),
    params(
        ("id" = Uuid, Path, description = "A push, an event, a notification, a dead letter, a subscription, or a user agent or message id of Web Push; with `reseller` any text."),
        ExplainQuery,
    ),
    responses((status = 200, description = "The story.", body = Explanation))
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Name(id): Name,
    Params(query): Params<ExplainQuery>,
) -> Result<Json<Explanation>, Problem> {
    let reseller = query.reseller.as_deref();
    match tell(&app, viewer.deadline, &id, reseller).await {
        Ok((_, story)) => Ok(Json(story)),
        Err(problem) if problem.kind() == ProblemKind::NOT_FOUND => {
            Box::pin(of_search(&app, viewer.deadline, (&id, reseller), problem))
                .await
                .map(Json)
        }
        Err(problem) => Err(problem),
    }
}

/// The story of the one thing that a search finds for a text that is no address of ours, such as the push of the device that is known by it, be it in
/// the form of an identifier; of a reseller, if one is named; `unknown` when it finds nothing.
async fn of_search(
    app: &App,
    deadline: Instant,
    (text, reseller): (&str, Option<&str>),
    unknown: Problem,
) -> Result<Explanation, Problem> {
    // The database takes no text with this character.
    let can_be = reseller.is_none_or(|reseller| !reseller.contains('\0'));
    let Some(sought) = searchable(text).filter(|text| can_be && at_end(text).is_none()) else {
        return Err(unknown);
    };
    let found = http_api::by(deadline, ("the answer", "read"), look(app, sought, reseller)).await?;
    let found = found.items;
    if let [one] = found.as_slice() {
        let telling = story(app, &one.id, None);
        if let Some((_, story)) = http_api::by(deadline, ("the story", "read"), telling).await? {
            return Ok(story);
        }
        if let Some(detail) = without_story(app, deadline, &one.id).await? {
            return Err(Problem::new(ProblemKind::NOT_FOUND, detail));
        }
    }
    let named: Vec<String> = found.iter().map(|it| format!("{} {}", it.kind, it.id)).collect();
    let detail = match named.as_slice() {
        [] => return Err(unknown),
        [one] => format!(
            "{one} is all that is found for {sought:?}, and has no story; `postrider find` tells what it is"
        ),
        several => format!(
            "{} things are found for {sought:?}, of which {}: {}",
            several.len(),
            which_tells(&found, sought),
            several.join(", ")
        ),
    };
    Err(Problem::new(ProblemKind::NOT_FOUND, detail))
}

/// Which commands tell one of what was found, which several things were.
fn which_tells(found: &[FoundDocument], sought: &str) -> String {
    let are_keys = found.iter().filter(|it| it.kind == "key").count();
    let stories = "`postrider explain` tells one by its identifier, and `postrider find` what each is";
    let keys = format!(
        "`postrider keys list --name {sought:?}` lists API keys, and `postrider audit --subject api-key/ID` what was done to one"
    );
    match are_keys {
        0 => stories.to_owned(),
        all if all == found.len() => keys,
        _ => format!("{stories}; {keys}"),
    }
}

/// What a story is told of.
pub(crate) enum Subject {
    Push(Box<PushTimeline>),
    Notification(Box<NotificationTimeline>),
    Event(Box<EventView>),
    Subscription(Box<SubscriptionFacts>),
    UserAgent {
        stored: Box<StoredClient>,
        /// The message id that was asked for.
        message: Option<String>,
    },
    DeadLetter {
        letter: Box<DeadLetterView>,
        acts: Vec<AuditView>,
        /// What it is about, if that is still known.
        about: Option<Box<Self>>,
    },
}

impl Subject {
    fn story(&self, context: &Context) -> Explanation {
        match self {
            Self::Push(history) => explain::push(history, context),
            Self::Notification(history) => explain::notification(history, context),
            Self::Event(event) => explain::event(event, context),
            Self::Subscription(facts) => explain::subscription(facts, context),
            Self::UserAgent { stored, message } => explain::user_agent(stored, message.as_deref(), context),
            Self::DeadLetter { letter, acts, about } => {
                let about = about.as_ref().map(|about| about.story(context));
                explain::dead_letter(letter, acts, about, context)
            }
        }
    }
}

/// The story of what has this identifier, with what it is told of.
pub(crate) async fn tell(
    app: &App,
    deadline: Instant,
    id: &str,
    reseller: Option<&str>,
) -> Result<(Subject, Explanation), Problem> {
    let told = http_api::by(deadline, ("the story", "read"), story(app, id, reseller)).await?;
    if let Some(told) = told {
        return Ok(told);
    }
    if reseller.is_none()
        && let Some(detail) = without_story(app, deadline, id).await?
    {
        return Err(Problem::new(ProblemKind::NOT_FOUND, detail));
    }
    let named = if reseller.is_some() {
        http_api::by(deadline, ("the events", "read"), app.store.events_named(id)).await?
    } else {
        Vec::new()
    };
    let others: Vec<&str> = named.iter().map(|event| event.reseller.as_str()).collect();
    Err(unknown(id, reseller, &others))
}

/// What has this identifier and no story, with the command that shows it: a job on dead letters, an API key, or a quota request.
async fn without_story(app: &App, deadline: Instant, id: &str) -> Result<Option<String>, Problem> {
    let Some(id) = identifier(id) else {
        return Ok(None);
    };
    let finding = app.store.find_dead_letter_job(id);
    if http_api::by(deadline, ("the job", "read"), finding)
        .await?
        .is_some()
    {
        let told =
            format!("{id} is a job on dead letters, which has no story: `postrider jobs show {id}` shows it");
        return Ok(Some(told));
    }
    let key = http_api::by(deadline, ("the key", "read"), app.store.find_key(id)).await?;
    if let Some(key) = key {
        return Ok(Some(format!(
            "{id} is the API key {}, which has no story: `postrider keys list` shows it, and `postrider audit --subject api-key/{id}` \
             what was done to it",
            key.name
        )));
    }
    let finding = quota_request(app, id);
    let request = http_api::by(deadline, ("the quota request", "read"), finding).await?;
    Ok(request.map(|request| {
        format!(
            "{id} is a quota request of {} for the subscription {}, which has no story: `postrider quotas requests --status {}` shows it",
            request.reseller, request.subscription, request.status
        )
    }))
}

/// As [`tell`], but that nothing has this identifier is an answer.
pub(crate) async fn story(
    app: &App,
    id: &str,
    reseller: Option<&str>,
) -> Result<Option<(Subject, Explanation)>, store::Error> {
    let context = context(app).await?;
    let found = find(app, id, reseller).await?;
    Ok(found.map(|subject| {
        let story = subject.story(&context);
        (subject, story)
    }))
}

/// Nothing has this identifier, or no event of the reseller; of `others` there is one that was called so.
fn unknown(id: &str, reseller: Option<&str>, others: &[&str]) -> Problem {
    let others = match others {
        [] => String::new(),
        [one] => format!("; {one} has one"),
        several => format!("; {} have one", several.join(", ")),
    };
    let detail = match reseller {
        Some(reseller) => format!(
            "{reseller} has no event that its caller called {id:?}, or it is forgotten; the identifier that was answered \
             for the event still leads to it{others}. A text that an event has, such as the name of a domain, is found by `postrider notifications list \
             --reseller {reseller} --value`, and any other text by `postrider find`"
        ),
        None if id.starts_with(MESSAGE_ID) => "no message of Web Push has this id, or it was made with keys that are not among the \
                 webpush.keys of operator-api"
            .to_owned(),
        None if identifier(id).is_none() => format!(
            "use --device for a device's push key, --reseller for what a caller called its event, and `postrider find` for any \
             other text: {id:?} is no identifier such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d"
        ),
        None => "no push, event, notification, dead letter, subscription or user agent has this identifier; what is older than the \
                 retention is forgotten"
            .to_owned(),
    };
    Problem::new(ProblemKind::NOT_FOUND, detail)
}

/// What has this identifier.
async fn find(app: &App, id: &str, reseller: Option<&str>) -> Result<Option<Subject>, store::Error> {
    let store = &app.store;
    if let Some(reseller) = reseller {
        let Some(event) = store.event_of_key(reseller, id).await? else {
            return Ok(None);
        };
        return find_event(store, event).await;
    }
    let Some(id) = identifier(id) else {
        return find_message(app, id).await;
    };
    let mut found = find_push(store, id).await?;
    if found.is_none() {
        found = find_notification(store, id).await?;
    }
    if found.is_none() {
        found = find_event(store, id).await?;
    }
    if found.is_none() {
        found = find_subscription(store, id).await?;
    }
    if found.is_none() {
        let stored = store.webpush_stored_client(id).await?;
        found = stored.map(|stored| Subject::UserAgent {
            stored: Box::new(stored),
            message: None,
        });
    }
    if found.is_some() {
        return Ok(found);
    }
    let Some((letter, acts)) = store.dead_letter_timeline(id).await? else {
        return Ok(None);
    };
    let about = match (letter.push, letter.notification) {
        (Some(push), _) => find_push(store, push).await?,
        (None, Some(notification)) => find_notification(store, notification).await?,
        (None, None) => None,
    };
    Ok(Some(Subject::DeadLetter {
        letter: Box::new(letter),
        acts,
        about: about.map(Box::new),
    }))
}

/// What a message id of Web Push leads to: it names its user agent, for those who have the keys.
async fn find_message(app: &App, id: &str) -> Result<Option<Subject>, store::Error> {
    let keys: Vec<&str> = app
        .config
        .webpush
        .keys
        .iter()
        .map(config::Secret::expose)
        .collect();
    let Some(message) = webpush::Keys::parse(&keys.join(","))
        .ok()
        .and_then(|keys| MessageId::open(&keys, id))
    else {
        return Ok(None);
    };
    let stored = app.store.webpush_stored_client(message.uaid).await?;
    Ok(stored.map(|stored| Subject::UserAgent {
        stored: Box::new(stored),
        message: Some(id.to_owned()),
    }))
}

async fn find_push(store: &Store, id: Uuid) -> Result<Option<Subject>, store::Error> {
    let history = store.push_timeline(id).await?;
    Ok(history.map(|history| Subject::Push(Box::new(history))))
}

async fn find_notification(store: &Store, id: Uuid) -> Result<Option<Subject>, store::Error> {
    let history = store.notification_timeline(id).await?;
    Ok(history.map(|history| Subject::Notification(Box::new(history))))
}

async fn find_event(store: &Store, id: Uuid) -> Result<Option<Subject>, store::Error> {
    let event = store.find_event(id).await?;
    Ok(event.map(|event| Subject::Event(Box::new(event))))
}

async fn find_subscription(store: &Store, id: Uuid) -> Result<Option<Subject>, store::Error> {
    let Some(view) = store.find_any_subscription(id).await? else {
        return Ok(None);
    };
    let states = store.list_states(id, None, STATES_MAX).await?;
    Ok(Some(Subject::Subscription(Box::new(SubscriptionFacts {
        acts: acts_on(store, &view, &states).await?,
        states,
        waiting: store.waiting_sums(id, WAITING_COUNTED_MAX).await?,
        counted_up_to: WAITING_COUNTED_MAX,
        budget: store.budgets_of(&[id]).await?.remove(&id),
        view,
    }))))
}

/// The pauses of a subscription and of its reseller, and their ends, by which it came to these states, and the newest changes of its limits.
async fn acts_on(
    store: &Store,
    view: &SubscriptionView,
    states: &[StateEntry],
) -> Result<Vec<AuditView>, store::Error> {
    let own = format!("subscription/{}", view.id);
    let of_either = [own.clone(), format!("reseller/{}", view.reseller)];
    let times: Vec<_> = states.iter().map(|entry| entry.at).collect();
    let pauses = [
        "subscription.pause",
        "subscription.resume",
        "reseller.pause",
        "reseller.resume",
    ];
    let mut acts = store.acts_around(&times, SAME_TIME, &of_either, &pauses).await?;
    let limits = ["subscription.limits", "quota-request.approve"];
    let filter = AuditFilter {
        actions: Some(limits.map(str::to_owned).to_vec()),
        subject: Some(own),
        since: Some(view.created_at),
        ..AuditFilter::default()
    };
    acts.extend(store.list_audit(&filter, STATES_MAX).await?);
    Ok(acts)
}

async fn context(app: &App) -> Result<Context, store::Error> {
    Ok(Context {
        now: app.now(),
        pauses: app.store.list_pauses().await?,
        holds: app.store.list_holds().await?,
        rules: app.config.as_ref().into(),
    })
}
