//! One-time links that open the dashboard of a reseller: `/portal-links`; and the visits that they began: `/visits`.
//!
//! A reseller does it with its key for itself; an embedder, which is a control panel of the house, for any.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::capability::Capability;
use domain::key::KeyDigest;
use domain::reseller::{RESELLER_ID_FORM, is_reseller_id};
use http::{HeaderMap, HeaderName, StatusCode, header};
use http_api::paging::{self, List};
use http_api::{Draft, FieldCode, FieldProblem, Id, Problem, ProblemKind, ReadParams};
use serde::{Deserialize, Serialize};
use store::{EndVisits, NewPortalLink, PortalVisit};
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::{App, new_id};
use crate::dashboard;
use crate::request::Embedder;
use crate::secrets::not_to_be_kept;

const LINK_SECONDS: (u32, u32, u32) = (30, 300, 900);
const VISIT_MINUTES: (u32, u32, u32) = (15, 480, 720);
const TEXT_MAX_BYTES: usize = 200;
const URL_MAX_BYTES: usize = 2_048;
/// How far ahead of ours the clock may be of one who says when a person signed in.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(1);

/// Whom a link is for.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = PortalPerson)]
pub(crate) struct PersonPayload {
    /// What tells the person from others of the reseller. Bytes of UTF-8 are counted.
    #[schema(value_type = String, required = true, min_length = 1, max_length = 200, example = "user-17")]
    id: Option<String>,
    /// What the person is called, for the records; the id when missing.
    #[schema(max_length = 200, example = "Anna Ozola")]
    name: Option<String>,
}

/// A link to be made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schema(as = PortalLinkRequest)]
pub(crate) struct LinkPayload {
    /// Whose dashboard it opens. With a key of the reseller it may be left out.
    #[schema(example = "acme")]
    reseller_id: Option<String>,
    /// Whom it is for.
    #[schema(value_type = PersonPayload, required = true)]
    person: Option<PersonPayload>,
    /// What the visit may do beside looking; nothing when missing.
    #[schema(value_type = Option<Vec<Capability>>, example = json!(["bodies", "manage", "resend"]))]
    capabilities: Option<Vec<String>>,
    /// For how long it can be used, once.
    #[schema(minimum = 30, maximum = 900, default = 300)]
    link_seconds: Option<i64>,
    /// How long the visit lasts.
    #[schema(minimum = 15, maximum = 720, default = 480)]
    visit_minutes: Option<i64>,
    /// The page that the visit begins with, under /app.
    #[schema(max_length = 2048, default = "/app")]
    landing: Option<String>,
    /// The origin of the page that frames the visit, one of portal.embed.origins; a visit without one cannot be framed.
    #[schema(example = "https://panel.example")]
    parent_origin: Option<String>,
    /// Where the person can have another link made, when the visit is over.
    #[schema(max_length = 2048, example = "https://panel.example/notifications")]
    return_url: Option<String>,
    /// light or dark; what the browser prefers when missing.
    #[schema(example = "dark")]
    theme: Option<String>,
    /// The person's language. The pages are in English at present.
    #[schema(example = "lv-LV")]
    locale: Option<String>,
    /// In which zone times are shown at first, of the IANA database; UTC when missing.
    #[schema(example = "Europe/Riga")]
    time_zone: Option<String>,
    /// When the person last signed in. Secrets are shown within 15 minutes of it.
    auth_time: Option<DateTime<Utc>>,
}

/// A link that was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PortalLink)]
pub(crate) struct LinkDocument {
    /// Its identifier.
    id: Uuid,
    /// What to open. It is shown once, and opens one visit.
    #[schema(example = "https://notifications.example/app/enter#t=prl_5f0c81a9")]
    url: String,
    /// Until when.
    expires_at: DateTime<Utc>,
}

/// Makes a link that opens the dashboard once.
///
/// With a key of the reseller for itself, with one of the role embedder for any reseller. The token stands in the fragment of the URL, which
/// is in no log; the page that it opens uses it up. The visit ends by time, by DELETE /visits, and with the key that made the link.
#[utoipa::path(
    post, path = "/portal-links", tag = "visits", operation_id = "createPortalLink",
    security(("apiKey" = [])),
    request_body = LinkPayload,
    responses((status = 201, description = "The link.", body = LinkDocument))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    embedder: Embedder,
    headers: HeaderMap,
    Draft(payload, unread): Draft<LinkPayload>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<LinkDocument>), Problem> {
    let now = app.now();
    let link = unread.merge(check(payload, &embedder, &app, now))?;
    let token = dashboard::new_token("prl_");
    let digest = KeyDigest::of(&token);
    let create = app.store.create_portal_link(&link, &digest, embedder.act(now));
    http_api::by(embedder.deadline, ("the link", "stored"), create).await?;
    let document = LinkDocument {
        id: link.id,
        url: format!("{}/app/enter#t={token}", base(&app, &headers)),
        expires_at: link.expires_at,
    };
    Ok((StatusCode::CREATED, [not_to_be_kept()], Json(document)))
}

/// Where browsers reach this service: as it is configured, or as the caller does.
fn base(app: &App, headers: &HeaderMap) -> String {
    app.config.portal.public_url.clone().unwrap_or_else(|| {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        format!("http://{}", host.unwrap_or("localhost"))
    })
}

/// What is wrong with the fields of a payload, and what is right.
struct Checked(Vec<FieldProblem>);

impl Checked {
    fn wrong(&mut self, field: &'static str, code: FieldCode, detail: impl Into<String>) {
        self.0.push(FieldProblem::new(field, detail).coded(code));
    }

    fn text(&mut self, field: &'static str, text: Option<String>) -> Option<String> {
        let text = text?.trim().to_owned();
        let fits = (1..=TEXT_MAX_BYTES).contains(&text.len()) && !text.contains(char::is_control);
        if !fits {
            let detail = format!("must be 1 to {TEXT_MAX_BYTES} bytes of text without control characters");
            self.wrong(field, FieldCode::WrongFormat, detail);
        }
        Some(text)
    }

    fn number(
        &mut self,
        field: &'static str,
        asked: Option<i64>,
        (least, usual, most): (u32, u32, u32),
    ) -> u32 {
        let asked = asked.unwrap_or(usual.into());
        let number = u32::try_from(asked)
            .ok()
            .filter(|number| (least..=most).contains(number));
        number.unwrap_or_else(|| {
            let detail = format!("must be between {least} and {most}");
            self.0.push(FieldProblem::new(field, detail).between(least, most));
            usual
        })
    }

    fn capabilities(&mut self, names: Option<Vec<String>>) -> Vec<Capability> {
        let mut known = Vec::new();
        for (place, name) in names
            .unwrap_or_default()
            .iter()
            .enumerate()
            .take(Capability::ALL.len() * 2)
        {
            match name.parse::<Capability>() {
                Ok(capability) if !known.contains(&capability) => known.push(capability),
                Ok(_) => {}
                Err(unknown) => {
                    let field = format!("capabilities[{place}]");
                    let detail = format!("must be one of {}", unknown.known);
                    self.0
                        .push(FieldProblem::new(field, detail).coded(FieldCode::UnknownValue));
                }
            }
        }
        known
    }

    fn reseller(&mut self, asked: Option<String>, own: Option<&str>) -> String {
        match (asked, own) {
            (None, Some(own)) => own.to_owned(),
            (Some(asked), Some(own)) => {
                if asked != own {
                    self.wrong(
                        "resellerId",
                        FieldCode::Refused,
                        "is another reseller than the one of the API key",
                    );
                }
                own.to_owned()
            }
            (Some(asked), None) if is_reseller_id(&asked) => asked,
            (_, None) => {
                let detail = format!("must be the identifier of a reseller: {RESELLER_ID_FORM}");
                self.wrong("resellerId", FieldCode::WrongFormat, detail);
                String::new()
            }
        }
    }

    fn web_address(&mut self, field: &'static str, text: Option<String>) -> Option<String> {
        let text = text?;
        let url = Url::parse(&text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        if url.is_none() || text.len() > URL_MAX_BYTES {
            self.wrong(
                field,
                FieldCode::WrongFormat,
                format!("must be an http or https URL of at most {URL_MAX_BYTES} bytes"),
            );
        }
        url.map(String::from)
    }

    fn one_of(
        &mut self,
        field: &'static str,
        text: Option<String>,
        is_one: bool,
        what: &str,
    ) -> Option<String> {
        if text.is_some() && !is_one {
            self.wrong(field, FieldCode::WrongFormat, format!("must be {what}"));
        }
        text
    }
}

fn check(
    payload: LinkPayload,
    embedder: &Embedder,
    app: &App,
    now: DateTime<Utc>,
) -> Result<NewPortalLink, Problem> {
    let mut checked = Checked(Vec::new());
    let reseller_id = checked.reseller(payload.reseller_id, embedder.reseller.as_deref());
    let person = payload.person;
    let (person_id, person_name) = person.map_or((None, None), |person| (person.id, person.name));
    let person_id = checked.text("person.id", person_id).unwrap_or_else(|| {
        checked.wrong(
            "person.id",
            FieldCode::Missing,
            "must be a text: it tells whose visit it is",
        );
        String::new()
    });
    let person_name = checked
        .text("person.name", person_name)
        .unwrap_or_else(|| person_id.clone());
    let link_seconds = checked.number("linkSeconds", payload.link_seconds, LINK_SECONDS);
    let visit_minutes = checked.number("visitMinutes", payload.visit_minutes, VISIT_MINUTES);
    let capabilities = checked.capabilities(payload.capabilities);
    let landing = payload.landing.unwrap_or_else(|| dashboard::HOME.to_owned());
    if !dashboard::is_ours(&landing) || landing.len() > URL_MAX_BYTES {
        checked.wrong(
            "landing",
            FieldCode::WrongFormat,
            "must be the path of a page under /app",
        );
    }
    let is_known = |origin: &String| app.config.portal.embed.origins.contains(origin);
    let known = payload.parent_origin.as_ref().is_some_and(is_known);
    let what = "one of the origins of portal.embed.origins, which the operator of the platform sets";
    let parent_origin = checked.one_of("parentOrigin", payload.parent_origin, known, what);
    let known = matches!(payload.theme.as_deref(), Some("light" | "dark"));
    let theme = checked.one_of("theme", payload.theme, known, "light or dark");
    let is_locale = |text: &String| {
        (2..=35).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let known = payload.locale.as_ref().is_some_and(is_locale);
    let locale = checked.one_of("locale", payload.locale, known, "a language tag such as lv-LV");
    let known = payload
        .time_zone
        .as_ref()
        .is_some_and(|zone| zone.parse::<chrono_tz::Tz>().is_ok());
    let what = "a time zone of the IANA database such as Europe/Riga";
    let time_zone = checked.one_of("timeZone", payload.time_zone, known, what);
    let return_url = checked.web_address("returnUrl", payload.return_url);
    if payload.auth_time.is_some_and(|at| at > now + CLOCKS_DIFFER) {
        checked.wrong(
            "authTime",
            FieldCode::OutOfRange,
            "must not be ahead: it is when the person signed in",
        );
    }
    if !checked.0.is_empty() {
        return Err(Problem::fields(checked.0));
    }
    Ok(NewPortalLink {
        id: new_id(now),
        reseller_id,
        person_id,
        person_name,
        capabilities,
        key: Some(embedder.key),
        operator: None,
        expires_at: now + TimeDelta::seconds(link_seconds.into()),
        visit_minutes,
        landing,
        parent_origin,
        return_url,
        theme,
        locale,
        time_zone,
        authenticated_at: payload.auth_time,
    })
}

/// A visit to a dashboard that goes on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Visit)]
pub(crate) struct VisitDocument {
    /// Its identifier.
    id: Uuid,
    /// Whose dashboard it is in.
    reseller_id: String,
    /// Who visits.
    person: PersonPayload,
    /// What it may do beside looking.
    capabilities: Vec<Capability>,
    /// The key that made its link; null of an operator of the platform who looks without one.
    key_id: Option<Uuid>,
    /// When it began.
    began_at: DateTime<Utc>,
    /// When a page was last asked for, to the minute.
    last_seen_at: DateTime<Utc>,
    /// When it is over.
    ends_at: DateTime<Utc>,
    /// The origin whose pages may frame it.
    parent_origin: Option<String>,
}

impl From<PortalVisit> for VisitDocument {
    fn from(visit: PortalVisit) -> Self {
        Self {
            id: visit.id,
            reseller_id: visit.reseller_id,
            person: PersonPayload {
                id: Some(visit.person_id),
                name: Some(visit.person_name),
            },
            capabilities: visit.capabilities,
            // To a reseller operators have no names, and a key would be one.
            key_id: visit.key.filter(|_| visit.operator.is_none()),
            began_at: visit.began_at,
            last_seen_at: visit.last_seen_at,
            ends_at: visit.ends_at,
            parent_origin: visit.parent_origin,
        }
    }
}

/// Which visits.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VisitParams {
    /// Of this reseller; with a key of the role embedder only, and of all when missing.
    reseller: Option<String>,
    /// Of this person; of any when missing.
    person: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// What the previous part gave as `next`.
    cursor: Option<String>,
}

/// Which visits are to end.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EndParams {
    /// Of this reseller; with a key of the role embedder, which has to say whose they are.
    reseller: Option<String>,
    /// Of this person; of any when missing.
    person: Option<String>,
}

/// How many visits ended.
#[derive(Serialize, ToSchema)]
#[schema(as = EndedVisits)]
pub(crate) struct EndedDocument {
    /// How many.
    ended: u64,
}

/// Whose visits a caller asks about.
fn whose(embedder: &Embedder, asked: Option<String>) -> Result<Option<String>, Problem> {
    let has_nul = asked.as_deref().is_some_and(|asked| !is_reseller_id(asked));
    match (&embedder.reseller, asked) {
        (Some(own), Some(asked)) if *own != asked => Err(Problem::query(
            "reseller",
            "is another reseller than the one of the API key",
        )),
        (Some(own), _) => Ok(Some(own.clone())),
        (None, _) if has_nul => Err(Problem::query(
            "reseller",
            format!("must be the identifier of a reseller: {RESELLER_ID_FORM}"),
        )
        .coded(FieldCode::WrongFormat)),
        (None, asked) => Ok(asked),
    }
}

fn person(asked: Option<String>) -> Result<Option<String>, Problem> {
    match asked {
        Some(person) if person.contains(char::is_control) => {
            Err(Problem::query("person", "must not hold control characters").coded(FieldCode::WrongFormat))
        }
        person => Ok(person),
    }
}

/// Lists the visits that go on, the newest first.
#[utoipa::path(
    get, path = "/visits", tag = "visits", operation_id = "listVisits",
    security(("apiKey" = [])),
    params(VisitParams),
    responses((status = 200, description = "A part of the list.", body = List<VisitDocument>))
)]
pub(crate) async fn visits(
    State(app): State<Arc<App>>,
    embedder: Embedder,
    ReadParams(params, mut wrong): ReadParams<VisitParams>,
) -> Result<Json<List<VisitDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    let reseller = wrong.take(whose(&embedder, params.reseller));
    let person = wrong.with(person(params.person))?;
    let of = (reseller.as_deref(), person.as_deref());
    let list = app.store.list_portal_visits(of, before, limit + 1, app.now());
    let found = http_api::by(embedder.deadline, ("the visits", "read"), list).await?;
    Ok(Json(List::by_id(
        found,
        limit,
        |visit| visit.id,
        VisitDocument::from,
    )))
}

/// Ends visits: all of the reseller, or those of one person.
///
/// Pages that are open are refused within 5 seconds.
#[utoipa::path(
    delete, path = "/visits", tag = "visits", operation_id = "endVisits",
    security(("apiKey" = [])),
    params(EndParams),
    responses((status = 200, description = "How many went on until now.", body = EndedDocument))
)]
pub(crate) async fn end_all(
    State(app): State<Arc<App>>,
    embedder: Embedder,
    ReadParams(params, mut wrong): ReadParams<EndParams>,
) -> Result<Json<EndedDocument>, Problem> {
    let reseller = wrong.take(whose(&embedder, params.reseller));
    let person = wrong.take(person(params.person));
    if reseller.is_none() {
        wrong.add(Problem::query("reseller", "must say whose visits are to end").coded(FieldCode::Missing));
    }
    wrong.end()?;
    let which = person.as_deref().map_or(EndVisits::All, EndVisits::Of);
    let end = app
        .store
        .end_portal_visits(reseller.as_deref(), which, embedder.act(app.now()));
    let ended = http_api::by(embedder.deadline, ("the visits", "ended"), end).await?;
    Ok(Json(EndedDocument { ended }))
}

/// Ends a visit.
///
/// Pages that are open are refused within 5 seconds.
#[utoipa::path(
    delete, path = "/visits/{id}", tag = "visits", operation_id = "endVisit",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The visit's identifier.")),
    responses((status = 204, description = "It is over."))
)]
pub(crate) async fn end(
    State(app): State<Arc<App>>,
    embedder: Embedder,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    let act = embedder.act(app.now());
    let end = app
        .store
        .end_portal_visits(embedder.reseller.as_deref(), EndVisits::One(id), act);
    if http_api::by(embedder.deadline, ("the visit", "ended"), end).await? == 0 {
        let detail = "no visit that goes on has this identifier";
        return Err(Problem::new(ProblemKind::NOT_FOUND, detail));
    }
    Ok(StatusCode::NO_CONTENT)
}
