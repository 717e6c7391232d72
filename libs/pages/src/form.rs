//! The fields of a form.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use http_api::{FieldProblem, Problem, TakesBodies, read_body};
use url::form_urlencoded;

/// Of an act on more than so many, their number has to be typed.
pub const TYPED_ABOVE: u64 = 1_000;

/// The fields of a form.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// A field, without the blanks around it; none where it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(key, _)| key == name);
        found
            .next()
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// A field that holds something else than text.
    ///
    /// # Errors
    ///
    /// A problem of the field, which says that it `must` be.
    pub fn parse<T: std::str::FromStr>(&self, name: &'static str, must: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| {
            let detail = format!("must be {must}");
            text.parse()
                .map_err(|_| Problem::fields(vec![FieldProblem::new(name, detail)]))
        };
        self.get(name).map(read).transpose()
    }

    /// All values of a field that can be there several times.
    pub fn all(&self, name: &str) -> Vec<String> {
        let of_it = self
            .0
            .iter()
            .filter(|(key, value)| key == name && !value.is_empty());
        of_it.map(|(_, value)| value.clone()).collect()
    }
}

impl<S: TakesBodies + Send + Sync> FromRequest<Arc<S>> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<S>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = read_body(&parts.headers, body, app.max_body_bytes(), app.deadline()).await?;
        // Browsers end the lines of a field with CR and LF, whatever ended them on the page.
        let pairs = form_urlencoded::parse(&body)
            .map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")));
        Ok(Self(pairs.collect()))
    }
}
