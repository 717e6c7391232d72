//! Cancelling until none is left: each request is answered with a page that says what came of all of them and has the form of the next one, which a
//! script sends. Where it stops, the same form waits for its person.

use askama::Template;
use axum::response::{IntoResponse as _, Response};
use domain::counted::number;
use http_api::Problem;

use crate::cancellations::CancellationDocument;
use crate::console::act::{Asked, answered};
use crate::console::frame::{Frame, Page};
use crate::console::provider::again_at;
use crate::console::visit::Fields;
use crate::request::AUTHENTICATION_TOO_OLD;

/// The field of the box that chooses it.
const GO_ON: &str = "goOn";

/// The box that chooses it. Without scripts each request is a click, whatever was chosen.
pub(super) fn asked() -> Asked {
    Asked {
        name: GO_ON,
        label: "After these",
        choices: vec![("on".to_owned(), "Go on until none is left".to_owned())],
        is_several: true,
        needs_script: true,
        ..Asked::default()
    }
}

/// What came of the requests so far, which the form takes from one to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SoFar {
    cancelled: u64,
    /// Those of them that had been delivered before.
    delivered: u64,
    /// How many are left, as far as they were counted.
    left: u64,
    /// Whether there may be more than these.
    at_least: bool,
}

impl SoFar {
    /// What a form says of it; nothing where going on was not chosen.
    pub(super) fn read(fields: &Fields) -> Result<Option<Self>, Problem> {
        if fields.get(GO_ON).is_none() {
            return Ok(None);
        }
        let count = |name: &'static str| fields.parse::<u64>(name, "a whole number");
        Ok(Some(Self {
            cancelled: count("cancelled")?.unwrap_or_default(),
            delivered: count("delivered")?.unwrap_or_default(),
            left: count("left")?.unwrap_or_default(),
            at_least: fields.get("atLeast").is_some(),
        }))
    }

    /// Whether something was cancelled before this request.
    pub(super) fn has_begun(self) -> bool {
        self.cancelled > 0
    }

    fn and(self, done: &CancellationDocument) -> Self {
        Self {
            cancelled: self.cancelled.saturating_add(done.cancelled),
            delivered: self.delivered.saturating_add(done.delivered),
            left: done.left,
            at_least: done.left_at_least,
        }
    }

    fn left_in_words(self) -> String {
        match (self.left, self.at_least) {
            (0, false) => "none".to_owned(),
            (0, true) => "not counted".to_owned(),
            (left, false) => number(left),
            (left, true) => format!("at least {}", number(left)),
        }
    }

    /// The fields of the form of the next request: what was agreed to, and this.
    fn fields(self, sent: &Fields) -> Vec<(&'static str, String)> {
        let agreed = [GO_ON, "name", "note"].map(|name| (name, sent.get(name).map(str::to_owned)));
        let counted = [
            ("cancelled", Some(self.cancelled.to_string())),
            ("delivered", Some(self.delivered.to_string())),
            ("left", Some(self.left.to_string())),
            ("atLeast", self.at_least.then(|| "on".to_owned())),
        ];
        let all = agreed.into_iter().chain(counted);
        all.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[derive(Template)]
#[template(path = "going_on.html")]
struct GoingOn {
    frame: Frame,
    /// What is cancelled.
    many: &'static str,
    /// The list of it.
    back: &'static str,
    so_far: SoFar,
    said: String,
    /// The fields of the next request; none when it has ended.
    next: Vec<(&'static str, String)>,
    /// Why it has stopped before its end.
    problem: Option<String>,
    /// Where the provider asks the person once more, when that is why.
    again: Option<String>,
}

/// What a request was about: what is cancelled, and the list of it.
pub(super) type About = (&'static str, &'static str);

/// The page after a request that was done.
pub(super) fn after(
    frame: Frame,
    (many, back): About,
    (sent, so_far): (&Fields, SoFar),
    done: &CancellationDocument,
) -> Response {
    let so_far = so_far.and(done);
    let came = came_of(&frame, so_far.cancelled, so_far.delivered);
    let goes_on = done.more && done.cancelled > 0;
    let then = match (goes_on, done.more, done.matching) {
        (true, ..) => left(&frame, so_far),
        (false, false, _) => format!("{} No more match.", rest(&frame, done)),
        (false, true, 0) => format!(" {}", none(done)),
        (false, true, _) => format!(
            "{} None of the last ones could be cancelled, so that it has ended; more may match.",
            rest(&frame, done)
        ),
    };
    let next = match goes_on {
        true => so_far.fields(sent),
        false => Vec::new(),
    };
    let page = Page(GoingOn {
        frame,
        many,
        back,
        so_far,
        said: format!("{came}{then}"),
        next,
        problem: None,
        again: None,
    });
    page.into_response()
}

/// The page after a request that was refused or failed. What was cancelled before it stays so, and the form goes on from there.
pub(super) fn stopped(
    frame: Frame,
    (many, back): About,
    (sent, so_far): (&Fields, SoFar),
    problem: Problem,
) -> Response {
    let came = came_of(&frame, so_far.cancelled, so_far.delivered);
    let again = (problem.kind() == AUTHENTICATION_TOO_OLD).then(|| again_at(&frame.address));
    let page = Page(GoingOn {
        said: format!("{came}{}", left(&frame, so_far)),
        frame,
        many,
        back,
        so_far,
        next: so_far.fields(sent),
        problem: Some(problem.detail().to_owned()),
        again,
    });
    answered(page, problem)
}

fn left(frame: &Frame, so_far: SoFar) -> String {
    let are_left = frame.of(so_far.left, "is left", "are left");
    match (so_far.left, so_far.at_least) {
        (0, _) => " More may be left.".to_owned(),
        (_, true) => format!(" At least {are_left}."),
        (_, false) => format!(" {are_left}."),
    }
}

/// What is said of those that were cancelled.
pub(super) fn came_of(frame: &Frame, cancelled: u64, delivered: u64) -> String {
    let came = match cancelled {
        0 => "None was cancelled.".to_owned(),
        1 => "1 was cancelled and will not be sent.".to_owned(),
        many => format!("{} were cancelled and will not be sent.", frame.number(many)),
    };
    match delivered {
        0 => came,
        delivered => format!(
            "{came} {} of them had been delivered before, and that stays so.",
            frame.number(delivered)
        ),
    }
}

/// What is said of those that a request has found and not cancelled.
pub(super) fn rest(frame: &Frame, done: &CancellationDocument) -> String {
    match done.matching.saturating_sub(done.cancelled) {
        0 => String::new(),
        left => format!(" {} being sent or had ended.", frame.of(left, "was", "were")),
    }
}

/// What is said where none was found.
pub(super) fn none(counted: &CancellationDocument) -> &'static str {
    match counted.more {
        false => "Nothing that waits matches any more, so that there is nothing to cancel.",
        true => {
            "None of those that were looked at matches, and not all were: restrict it further, by a status, a reseller or times."
        }
    }
}
