//! Pushes, as callers of `POST /push` hand them in.

use reqwest::RequestBuilder;
use serde_json::json;

use super::callers::Submission;

/// A push to hand in. Its user, who gets no other one, is the Idempotency-Key too.
#[derive(Debug, Clone)]
pub(crate) struct Push {
    pub(crate) user: String,
    pub(crate) prototype: Option<&'static str>,
    pub(crate) cron: Option<&'static str>,
}

/// Pushes to be sent at once to the users `{group}-0`, `{group}-1` and so on.
pub(crate) fn pushes(group: &str, count: usize) -> Vec<Push> {
    (0..count)
        .map(|number| Push {
            user: format!("{group}-{number}"),
            prototype: Some("Hello"),
            cron: None,
        })
        .collect()
}

/// [`pushes`] with a sending window.
pub(crate) fn windowed_pushes(group: &str, count: usize, cron: &'static str) -> Vec<Push> {
    let windowed = |push| Push {
        cron: Some(cron),
        ..push
    };
    pushes(group, count).into_iter().map(windowed).collect()
}

impl Submission for Push {
    const PATH: &'static str = "/push";

    fn key(&self) -> &str {
        &self.user
    }

    fn fill(&self, request: RequestBuilder) -> RequestBuilder {
        let body = json!({
            "platform": "IOS",
            "messagePrototypeKey": self.prototype,
            "pushKey": self.user,
            "message": format!("Hello {}!", self.user),
            "cronExpression": self.cron,
        });
        request.header("Idempotency-Key", &self.user).json(&body)
    }
}
