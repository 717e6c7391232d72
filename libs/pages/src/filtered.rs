//! What is wrong with the filters of a list, as its page says it: above its form, and at the fields, which keep what they hold. Nothing is listed
//! then. What no field of the form holds, such as a cursor, stays a problem.

use http::StatusCode;
use http_api::{Problem, ProblemKind};

use crate::frame::Frame;
use crate::leaving_out::Filter;
use crate::markup::{Markup, escape, visible};

impl Frame {
    /// What a list answered; none where what is wrong is in `fields` of its form alone.
    ///
    /// # Errors
    ///
    /// The [`Problem`] that the list answered, where no field holds what is wrong.
    pub fn filtered<T>(&mut self, answer: Result<T, Problem>, fields: &[&str]) -> Result<Option<T>, Problem> {
        let problem = match answer {
            Ok(found) => return Ok(Some(found)),
            Err(problem) => problem,
        };
        let errors = problem.errors();
        let is_of_form = !errors.is_empty() && errors.iter().all(|it| fields.contains(&&*it.field));
        if problem.kind() != ProblemKind::INVALID_QUERY || !is_of_form {
            return Err(problem);
        }
        self.wrong = errors.to_vec();
        Ok(None)
    }

    /// Whether the list can be read as it is filtered.
    pub fn is_readable(&self) -> bool {
        self.wrong.is_empty()
    }

    /// How the page of the list is answered.
    pub fn list_status(&self) -> StatusCode {
        match self.is_readable() {
            true => StatusCode::OK,
            false => StatusCode::BAD_REQUEST,
        }
    }

    /// What is wrong with these filters, above their form, each by the name of its field and with a link to it.
    pub fn wrong_filters(&self, filters: &[Filter]) -> Markup {
        if self.is_readable() {
            return Markup(String::new());
        }
        let told = self.wrong.iter().map(|error| {
            let filter = filters.iter().find(|filter| filter.sets(&error.field));
            let (field, detail) = (escape(&error.field), escape(&visible(&error.detail)));
            let label = match filter {
                Some(filter) => filter.label(),
                None => field.as_str(),
            };
            format!(r##"<li><a href="#{field}">{label} {detail}</a></li>"##)
        });
        let told: String = told.collect();
        Markup(format!(
            r#"<div class="errors" role="alert" id="errors" tabindex="-1"><h2>The filter needs another value</h2><ul>{told}</ul></div>"#
        ))
    }

    fn wrong_with(&self, field: &str) -> Option<&str> {
        let mut wrong = self.wrong.iter();
        wrong.find(|it| it.field == field).map(|it| it.detail.as_str())
    }

    /// What a field of the form says of itself where it holds what the list does not take.
    pub fn invalid(&self, field: &str) -> Markup {
        Markup(match self.wrong_with(field) {
            Some(_) => format!(
                r#" aria-invalid="true" aria-describedby="{}-error""#,
                escape(field)
            ),
            None => String::new(),
        })
    }

    /// What is wrong with a field, to stand below it.
    pub fn error(&self, field: &str) -> Markup {
        Markup(match self.wrong_with(field) {
            Some(detail) => format!(
                r#"<p class="error" id="{}-error">{}</p>"#,
                escape(field),
                escape(&visible(detail))
            ),
            None => String::new(),
        })
    }

    /// What the address says of a field to choose from that does not have it to choose, so that the field keeps it.
    pub fn kept_choice(&self, field: &str) -> Markup {
        let value = self.asked(field);
        if value.is_empty() || self.wrong_with(field).is_none() {
            return Markup(String::new());
        }
        let (value, word) = (escape(&value), escape(&visible(&value)));
        Markup(format!(r#"<option value="{value}" selected>{word}</option>"#))
    }

    /// The kind of a field for a time: one for times alone would not show what is none.
    pub fn time_type(&self, field: &str) -> &'static str {
        match self.wrong_with(field) {
            Some(_) => "text",
            None => "datetime-local",
        }
    }
}
