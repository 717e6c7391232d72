//! What handlers take from a request besides the caller: identifiers, names, the query string, a body. Each answers with a problem
//! by itself, in the order in which a handler names them: who asks comes first, so that strangers learn nothing from the
//! rest.
//!
//! It deliberately knows no caller: who may ask is the business of each service.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{
    FromRequest, FromRequestParts, OptionalFromRequest, Path, Query, RawPathParams, Request,
};
use domain::nearest;
use http::request::Parts;
use hyper::body::Body as _;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use url::form_urlencoded;
use uuid::Uuid;

use crate::body;
use crate::field_code::FieldCode;
use crate::json::{self, Handling, Wrong};
use crate::kind::ProblemKind;
use crate::problem::{FieldProblem, Problem};
use crate::wrong_query::WrongQuery;

/// The last identifier in the path. What is no identifier is not found.
#[derive(Debug)]
pub struct Id(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let [id] = identifiers(parts, state).await?;
        Ok(Self(id))
    }
}

/// Both identifiers in the path: of something, and of something that belongs to it.
#[derive(Debug)]
pub struct Ids(pub Uuid, pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Ids {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let [outer, inner] = identifiers(parts, state).await?;
        Ok(Self(outer, inner))
    }
}

async fn identifiers<const N: usize>(
    parts: &mut Parts,
    state: &(impl Send + Sync),
) -> Result<[Uuid; N], Problem> {
    let not_found = || Problem::new(ProblemKind::NOT_FOUND, "nothing has this identifier");
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| not_found())?;
    let ids: Option<Vec<Uuid>> = params.iter().map(|(_, value)| value.parse().ok()).collect();
    ids.and_then(|ids| ids.try_into().ok()).ok_or_else(not_found)
}

/// The name in the path, of something that has no identifier. What is no UTF-8 is no name, and not found.
#[derive(Debug)]
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => Err(Problem::new(ProblemKind::NOT_FOUND, "nothing has this name")),
        }
    }
}

/// The query string.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => {
                let query = parts.uri.query().unwrap_or_default();
                Err(wrong_parameters::<T>(query, &rejection).0)
            }
        }
    }
}

/// The query string as far as it can be read, and what cannot: the values of the others are checked before anything is refused.
#[derive(Debug)]
pub struct ReadParams<T>(pub T, pub WrongQuery);

impl<T> ReadParams<T> {
    /// Parameters that no query string says.
    pub fn of(params: T) -> Self {
        Self(params, WrongQuery::default())
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ReadParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let rejection = match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => return Ok(Self::of(params)),
            Err(rejection) => rejection,
        };
        let query = parts.uri.query().unwrap_or_default();
        let (problem, others) = wrong_parameters::<T>(query, &rejection);
        let others = others.parse().ok();
        match others.map(|others| Query::try_from_uri(&others)) {
            Some(Ok(Query(params))) => Ok(Self(params, WrongQuery(Some(problem)))),
            _ => Err(problem),
        }
    }
}

/// Parameters that are looked at.
const PARAMETERS_MAX: usize = 50;

/// Looks at each parameter by itself. Returns what is wrong, and a URI with the others.
fn wrong_parameters<T: DeserializeOwned>(query: &str, rejection: &QueryRejection) -> (Problem, String) {
    let known = json::fields_of::<T>();
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    let no_parameters = || form_urlencoded::Serializer::for_suffix(String::from("/?"), "/?".len());
    let mut others = no_parameters();
    for (name, value) in form_urlencoded::parse(query.as_bytes()).take(PARAMETERS_MAX) {
        if !known.is_empty() && !known.contains(&name.as_ref()) {
            let said = match nearest::question(&name, known.iter().copied()) {
                nothing if nothing.is_empty() => format!("; it takes {}", known.join(", ")),
                question => question,
            };
            let detail = format!("is no parameter of this request{said}");
            let unknown = FieldProblem::new(name.into_owned(), detail);
            wrong.push(unknown.unknown_field(known));
            continue;
        }
        if seen.contains(&name) {
            let twice = FieldProblem::new(name.into_owned(), "is there twice");
            wrong.push(twice.coded(FieldCode::Duplicate));
            continue;
        }
        seen.push(name.clone());
        let alone = no_parameters().append_pair(&name, &value).finish();
        let read = alone.parse().ok().map(|uri| Query::<T>::try_from_uri(&uri));
        if let Some(Err(error)) = read {
            let text = error.body_text();
            // Behind what was to be read and the parameter's name.
            let said = text.split_once(": ").map_or(&*text, |(_, said)| said);
            let of_value = said.strip_prefix(&format!("{name}: ")).unwrap_or(said);
            let detail = json::plain(of_value);
            let detail = format!("cannot be {value:?}: {detail}");
            wrong.push(FieldProblem::new(name.into_owned(), detail).coded(FieldCode::of_parser(&of_value)));
        } else {
            others.append_pair(&name, &value);
        }
    }
    let detail = match wrong.first() {
        Some(first) => format!("{} {}", first.field, first.detail),
        // Each is right by itself: one is missing.
        None => rejection.body_text(),
    };
    let problem = Problem::new(ProblemKind::INVALID_QUERY, detail).with_errors(wrong);
    (problem, others.finish())
}

/// What a service allows of the bodies that it takes.
pub trait TakesBodies: Send + Sync {
    /// The length of the longest body, in bytes.
    fn max_body_bytes(&self) -> usize;

    /// When the body of a request that is read now has to be there.
    fn deadline(&self) -> Instant;
}

/// The body, which is a JSON object, as far as it can be read: its values are checked before anything is refused.
#[derive(Debug)]
pub struct Draft<T>(pub T, pub Wrong);

impl<A: TakesBodies, T: DeserializeOwned> FromRequest<Arc<A>> for Draft<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<A>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        body::require_json(&parts.headers)?;
        let body = body::read(&parts.headers, body, app.max_body_bytes(), app.deadline()).await?;
        let (payload, wrong) = json::read(&body, Handling::preferred(&parts.headers))?;
        Ok(Self(payload, wrong))
    }
}

/// The body, which is a JSON object.
#[derive(Debug)]
pub struct Payload<T>(pub T);

impl<A: TakesBodies, T: DeserializeOwned> FromRequest<Arc<A>> for Payload<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<A>) -> Result<Self, Problem> {
        let Draft(payload, wrong) = Draft::from_request(request, app).await?;
        wrong.merge(Ok(Self(payload)))
    }
}

/// For operations that may be asked without a body, which then needs no type either.
impl<A: TakesBodies, T: DeserializeOwned> OptionalFromRequest<Arc<A>> for Payload<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<A>) -> Result<Option<Self>, Problem> {
        if request.body().is_end_stream() {
            return Ok(None);
        }
        <Self as FromRequest<Arc<A>>>::from_request(request, app)
            .await
            .map(Some)
    }
}

#[cfg(test)]
mod tests {
    use http::Uri;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        limit: Option<u32>,
        cursor: Option<String>,
        subscription: Option<Uuid>,
    }

    fn uri(query: &str) -> Uri {
        format!("/?{query}").parse().unwrap()
    }

    fn refused(query: &str) -> Problem {
        let rejection = Query::<Part>::try_from_uri(&uri(query)).unwrap_err();
        wrong_parameters::<Part>(query, &rejection).0
    }

    #[test]
    fn every_parameter_that_is_unknown_wrong_or_there_twice_is_named() {
        let Query(part) = Query::<Part>::try_from_uri(&uri("limit=1")).unwrap();
        assert_eq!(
            (part.limit, part.cursor, part.subscription),
            (Some(1), None, None)
        );
        let problem = refused("curser=a&limit=x&subscription=abc&cursor=a&cursor=b");
        let errors = problem.errors().iter();
        let told: Vec<_> = errors
            .map(|error| (&*error.field, error.detail.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("curser", "is no parameter of this request; did you mean cursor?"),
                ("limit", "cannot be \"x\": must be a whole number"),
                ("subscription", "cannot be \"abc\": must be a UUID"),
                ("cursor", "is there twice"),
            ]
        );
        assert_eq!(refused("limit=1&limit=2").detail(), "limit is there twice");
    }

    #[tokio::test]
    async fn what_can_be_read_of_a_query_string_is_there_with_what_cannot() {
        let (mut parts, ()) = http::Request::get("/?limit=0&cursr=a&subscription=abc&cursor=a%26b")
            .body(())
            .unwrap()
            .into_parts();
        let ReadParams(part, mut wrong) = ReadParams::<Part>::from_request_parts(&mut parts, &())
            .await
            .unwrap();
        assert_eq!(
            (part.limit, part.cursor.as_deref(), part.subscription),
            (Some(0), Some("a&b"), None)
        );
        wrong.take(crate::paging::limit(part.limit));
        let problem = wrong.end().unwrap_err();
        let errors = problem.errors().iter();
        let named: Vec<&str> = errors.map(|error| &*error.field).collect();
        assert_eq!(named, ["cursr", "subscription", "limit"]);
    }
}
