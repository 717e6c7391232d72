//! What a service says when it refuses something, and how that is told.

use std::fmt;
use std::time::Duration;

use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Deserialize;

use crate::age::length;
use crate::output;

/// A problem document, as far as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    pub(crate) title: String,
    pub(crate) detail: String,
    pub(crate) errors: Vec<FieldProblem>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct FieldProblem {
    pub(crate) field: String,
    pub(crate) detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.errors.is_empty() {
            return f.write_str(if self.detail.is_empty() {
                "no reason given"
            } else {
                &self.detail
            });
        }
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{} {}", error.field, error.detail)?;
        }
        Ok(())
    }
}

/// When a service wants to be asked again, where its answer says so.
pub(crate) fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// When a service wants to be asked again, as it follows what it refuses.
pub(crate) fn again_in(retry_after: Option<Duration>) -> String {
    retry_after.map_or(String::new(), |wait| {
        format!("; ask again in {}", length(wait.as_secs()))
    })
}

/// That an answer leads elsewhere, and where.
fn elsewhere(response: &Response) -> String {
    let location = response.headers().get(LOCATION);
    let to = location.and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
    format!("it leads to {to}, and redirects are not followed: write the address that is meant")
}

/// What the portal says after each event type that it does not know.
const CATALOGUE: &str = "; GET /event-types lists what it has";

/// Names the command that lists event types, once, where the portal names its request.
fn with_command(problem: &str) -> String {
    if problem.contains(CATALOGUE) {
        let once = problem.replace(CATALOGUE, "");
        let separator = if once.ends_with('?') { "" } else { ";" };
        format!("{once}{separator} `postrider events list` lists what the catalogue has")
    } else {
        problem.to_owned()
    }
}

/// A request that a service has refused. Commands that know what a status means find it in the error.
#[derive(Debug)]
pub(crate) struct Refusal {
    url: String,
    pub(crate) status: StatusCode,
    /// When the service wants to be asked again.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) problem: Problem,
    /// What mends it, where that is not about what was asked for.
    advice: Option<&'static str>,
}

impl Refusal {
    /// What the answer of `url` says of why it is none that was hoped for.
    pub(crate) async fn of(url: String, response: Response) -> Self {
        let leads_to = response.status().is_redirection().then(|| elsewhere(&response));
        let (status, retry_after) = (response.status(), retry_after(&response));
        let mut problem: Problem = response.json().await.unwrap_or_default();
        if let Some(elsewhere) = leads_to {
            problem.detail = elsewhere;
        }
        Self {
            url,
            status,
            retry_after,
            problem,
            advice: None,
        }
    }

    /// The same with what mends a refusal of its status. What the answer says itself is not told twice.
    pub(crate) fn advised(mut self, advice: impl FnOnce(StatusCode) -> Option<&'static str>) -> Self {
        self.advice = advice(self.status).filter(|_| !self.names_the_role());
        self
    }

    /// Whether it is for want of a role, and says which one it takes.
    fn names_the_role(&self) -> bool {
        self.status == StatusCode::FORBIDDEN && self.problem.detail.contains(" needs ")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is told may be a stranger's text that is said to be wrong.
        let problem = output::harmless(&with_command(&self.problem.to_string()));
        write!(f, "{problem} ({} answered {})", self.url, self.status.as_u16())?;
        f.write_str(&again_in(self.retry_after))?;
        // The reason first: what was asked for is more often wrong than the key.
        self.advice.map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_redirect_is_no_answer_and_says_where_it_leads() {
        let response = http::Response::builder()
            .status(308)
            .header("location", "https://portal.example/overview")
            .body("")
            .unwrap();
        let refusal = Refusal::of("http://portal.example/overview".to_owned(), response.into()).await;
        let said = refusal.to_string();
        assert!(
            said.starts_with("it leads to https://portal.example/overview,"),
            "{said}"
        );
        assert!(
            said.ends_with("(http://portal.example/overview answered 308)"),
            "{said}"
        );
    }

    #[test]
    fn event_types_that_are_unknown_name_the_command_that_lists_them_once() {
        let unknown = |found: &str| {
            format!(
                "is {found:?}, but the catalogue has no such event type; GET /event-types lists what it has"
            )
        };
        let errors = ["a.b", "c.d"].map(|found| FieldProblem {
            field: "eventTypes".to_owned(),
            detail: unknown(found),
        });
        let problem = Problem {
            errors: errors.into(),
            ..Problem::default()
        };
        let said = with_command(&problem.to_string());
        assert_eq!(
            said,
            "eventTypes is \"a.b\", but the catalogue has no such event type; eventTypes is \"c.d\", but the catalogue has no such event \
             type; `postrider events list` lists what the catalogue has"
        );
        let one = format!("{}; did you mean a.c?", unknown("a.b"));
        assert!(
            with_command(&one)
                .ends_with("did you mean a.c? `postrider events list` lists what the catalogue has"),
            "{}",
            with_command(&one)
        );
        assert_eq!(with_command("is missing"), "is missing");
    }

    #[tokio::test]
    async fn what_is_refused_for_now_says_when_it_may_be_asked_again() {
        let response = http::Response::builder()
            .status(429)
            .header("retry-after", "90")
            .body(r#"{"detail": "the API key may hand in 1 a second, pushes and events together"}"#)
            .unwrap();
        let refusal = Refusal::of("http://ingest.example/push".to_owned(), response.into()).await;
        assert_eq!(
            refusal.to_string(),
            "the API key may hand in 1 a second, pushes and events together (http://ingest.example/push answered 429); ask again in 1 min 30 s"
        );
    }

    #[tokio::test]
    async fn the_reason_comes_before_what_may_mend_it() {
        let response = http::Response::builder()
            .status(404)
            .body(r#"{"detail": "no event of yours has this id"}"#)
            .unwrap();
        let refusal = Refusal::of("http://portal.example/events/1".to_owned(), response.into()).await;
        assert_eq!(
            refusal
                .advised(|status| (status == StatusCode::NOT_FOUND).then_some("look elsewhere"))
                .to_string(),
            "no event of yours has this id (http://portal.example/events/1 answered 404); look elsewhere"
        );
    }
}
