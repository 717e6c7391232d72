//! What stands around a page: who looks at it, in which time zone and theme, and what was just done.

use std::fmt::Display;

use askama::Template;
use axum::response::{Html, IntoResponse, Redirect, Response};
use chrono::{DateTime, DurationRound as _, TimeDelta, Timelike as _, Utc};
use chrono_tz::Tz;
use explain::words;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_api::{FieldProblem, Problem, ProblemKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use crate::assets::Assets;
use crate::folded::folded;
use crate::markup::{self, Markup};
use crate::preferences::Preferences;

/// The cookie with what was just done, which the next page says.
pub const FLASH: &str = "__Host-pr_flash";
/// What a live page says when it asks for itself, without its person.
pub const TICK: HeaderName = HeaderName::from_static("x-postrider-tick");
/// Longest text that says what was done, in bytes.
const FLASH_MAX_BYTES: usize = 1_000;
/// What the cookie begins with where nothing was done. The text after it is escaped, and never has it.
const NOT_DONE: &str = "!";

/// What was just done, or was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flash {
    /// In a sentence.
    pub said: String,
    /// How it looks: `ok`, or `warn` where nothing was done.
    pub tone: &'static str,
}

impl Flash {
    fn read(value: &str) -> Option<Self> {
        let (tone, text) = match value.strip_prefix(NOT_DONE) {
            Some(text) => ("warn", text),
            None => ("ok", value),
        };
        let said = percent_decode_str(text).decode_utf8().ok()?.into_owned();
        (!said.is_empty()).then_some(Self { said, tone })
    }
}

/// The value of a cookie.
pub fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// A number, however often a template borrows it.
pub trait Number {
    /// The number.
    fn get(&self) -> u64;
}

impl<T: Number> Number for &T {
    fn get(&self) -> u64 {
        T::get(self)
    }
}

impl Number for u64 {
    fn get(&self) -> u64 {
        *self
    }
}

impl Number for u32 {
    fn get(&self) -> u64 {
        u64::from(*self)
    }
}

impl Number for usize {
    fn get(&self) -> u64 {
        *self as u64
    }
}

/// A time, however often a template borrows it.
pub trait Moment {
    /// The time.
    fn get(&self) -> DateTime<Utc>;
}

impl<T: Moment> Moment for &T {
    fn get(&self) -> DateTime<Utc> {
        T::get(self)
    }
}

impl Moment for DateTime<Utc> {
    fn get(&self) -> DateTime<Utc> {
        *self
    }
}

/// What stands around every page, and what its template asks for. Services add what only they know.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Who looks.
    pub who: String,
    /// Path and query of this page.
    pub address: String,
    /// What the viewer prefers.
    pub preferences: Preferences,
    /// What was just done.
    pub flash: Option<Flash>,
    /// When it was asked for.
    pub now: DateTime<Utc>,
    /// Whether the page asks for itself, since it is live: its person has seen it.
    pub is_tick: bool,
    /// What is wrong with the filters of the list on the page.
    pub wrong: Vec<FieldProblem>,
    /// Where the pages begin.
    home: &'static str,
    assets: &'static Assets,
}

impl Frame {
    /// The frame of a request with these headers for pages that begin at `home`.
    pub fn new(
        (home, assets): (&'static str, &'static Assets),
        who: String,
        headers: &HeaderMap,
        address: String,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            who,
            address,
            preferences: Preferences::of(headers),
            flash: cookie(headers, FLASH).and_then(Flash::read),
            now,
            is_tick: headers.contains_key(TICK),
            wrong: Vec::new(),
            home,
            assets,
        }
    }

    fn path(&self) -> &str {
        self.address.split('?').next().unwrap_or_default()
    }

    /// Whether this page belongs to a place of the navigation.
    pub fn is_at(&self, place: &str) -> bool {
        let path = self.path();
        path == place
            || (place != self.home && path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/')))
    }

    /// The address of this page with one parameter changed; an empty value leaves it out. A list begins again with it.
    pub fn with(&self, name: &str, value: impl Display) -> String {
        let value = value.to_string();
        let mut changed = self.query_without(&[name]);
        if !value.is_empty() {
            changed.append_pair(name, &value);
        }
        self.asked_with(&changed.finish())
    }

    /// The address of this page without some parameters. A list begins again with it.
    pub fn without(&self, names: &[&str]) -> String {
        self.asked_with(&self.query_without(names).finish())
    }

    fn query_without(&self, names: &[&str]) -> form_urlencoded::Serializer<'static, String> {
        let query = self.address.split_once('?').map_or("", |(_, query)| query);
        let mut changed = form_urlencoded::Serializer::new(String::new());
        for (key, kept) in form_urlencoded::parse(query.as_bytes()) {
            if !names.contains(&&*key) && key != "cursor" {
                changed.append_pair(&key, &kept);
            }
        }
        changed
    }

    fn asked_with(&self, query: &str) -> String {
        if query.is_empty() {
            self.path().to_owned()
        } else {
            format!("{}?{query}", self.path())
        }
    }

    /// The value of a parameter of this page; empty where there is none.
    pub fn asked(&self, name: &str) -> String {
        let query = self.address.split_once('?').map_or("", |(_, query)| query);
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs
            .find_map(|(key, value)| (key == name).then(|| value.into_owned()))
            .unwrap_or_default()
    }

    /// A time as it is seen from now, with the full time for those who point at it.
    pub fn ago(&self, at: impl Moment) -> Markup {
        let at = at.get();
        self.time(at, "ago", &seen_from(self.now, at))
    }

    /// A time in the viewer's zone.
    pub fn at(&self, at: impl Moment) -> Markup {
        let at = at.get();
        let text = at
            .with_timezone(&self.preferences.zone)
            .format("%a %-d %b, %H:%M:%S");
        self.time(at, "datetime", &text.to_string())
    }

    /// A time as a field for times takes it: in the viewer's zone, which it does not name.
    pub fn local(&self, at: impl Moment) -> String {
        local(at.get(), self.preferences.zone)
    }

    fn time(&self, at: DateTime<Utc>, format: &str, text: &str) -> Markup {
        Markup(format!(
            r#"<time datetime="{}" data-format="{format}" title="{}">{text}</time>"#,
            at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            self.full(at),
        ))
    }

    fn full(&self, at: DateTime<Utc>) -> String {
        let zone = self.preferences.zone;
        let time = at.with_timezone(&zone).format("%a %-d %b %Y, %H:%M:%S");
        format!("{time} {}", zone.name())
    }

    /// A number with its thousands apart.
    pub fn number(&self, number: impl Number) -> String {
        words::number(number.get())
    }

    /// A noun with its whole number; `one` and `many` are its forms.
    pub fn of(&self, number: impl Number, one: &str, many: &str) -> String {
        // Not `words::of`, which is for what was counted up to a bound: a quota beyond it is told whole.
        words::number_of(number.get(), one, many)
    }

    /// A number that was counted up to a bound.
    pub fn counted(&self, number: impl Number) -> String {
        words::counted(number.get())
    }

    /// A length of time in seconds, in words.
    pub fn length(&self, seconds: impl Number) -> String {
        words::length(std::time::Duration::from_secs(seconds.get()))
    }

    /// A state: icon, word and colour.
    pub fn state(&self, name: impl AsRef<str>) -> Markup {
        markup::state(name.as_ref())
    }

    /// What a state is called, in a word.
    pub fn word(&self, name: impl AsRef<str>) -> String {
        markup::word(name.as_ref())
    }

    /// Text of strangers, with what is not seen as symbols.
    pub fn visible(&self, text: impl AsRef<str>) -> String {
        markup::visible(text.as_ref())
    }

    /// A body of strangers, folded where it is JSON, in a region with this identifier and name.
    pub fn folded(&self, text: impl AsRef<str>, id: impl AsRef<str>, label: impl AsRef<str>) -> Markup {
        folded(text.as_ref(), id.as_ref(), label.as_ref())
    }

    /// Where an asset is.
    pub fn asset(&self, name: &str) -> String {
        self.assets.address(name)
    }
}

/// As browsers write it themselves, without seconds where there are none: a field that they write in another way counts as edited, and a live
/// page waits for as long as one is.
pub fn local(at: DateTime<Utc>, zone: Tz) -> String {
    let format = match at.second() {
        0 => "%Y-%m-%dT%H:%M",
        _ => "%Y-%m-%dT%H:%M:%S",
    };
    at.with_timezone(&zone).format(format).to_string()
}

/// How far away a time is. Below two minutes in steps of ten seconds, else in whole minutes, which all begin at once: a page that has not
/// changed says the same for as long, and is not sent again.
fn seen_from(now: DateTime<Utc>, at: DateTime<Utc>) -> String {
    let (near, is_past) = ((at - now).abs() < TimeDelta::minutes(2), at <= now);
    let step = if near {
        TimeDelta::seconds(10)
    } else {
        TimeDelta::minutes(1)
    };
    let begun = now.duration_trunc(step).unwrap_or(now);
    let steps = (at - begun).num_seconds() / step.num_seconds();
    // The minute under way is not counted, and what was two minutes ago must not be one after that.
    let steps = if near || !is_past { steps } else { steps.min(-2) };
    match (steps, is_past) {
        (0, true) => "just now".to_owned(),
        (0, false) => "within 10 s".to_owned(),
        _ => words::relative(at, at - TimeDelta::seconds(steps * step.num_seconds())),
    }
}

/// A page, rendered.
pub struct Page<T>(
    /// Its template.
    pub T,
);

impl<T: Template> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        match self.0.render() {
            Ok(html) => Html(html).into_response(),
            Err(error) => {
                tracing::error!(%error, "failed to render a page");
                Problem::new(ProblemKind::INTERNAL, "the page could not be rendered").into_response()
            }
        }
    }
}

/// Who did something, by name alone: without the identifier of the key, or the place of a command, which the audit log has.
pub fn name_of(actor: &str) -> &str {
    let named = actor.strip_suffix(')').and_then(|begun| begun.rsplit_once(" ("));
    named.map_or(actor, |(name, _)| name)
}

/// Text as a part of a path.
pub fn segment(text: impl AsRef<str>) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(text.as_ref(), ESCAPED).to_string()
}

/// Leads on to another page after an act, which says there what was done.
pub fn done(to: &str, said: &str) -> Response {
    leads_on(to, "", said)
}

/// Leads on to another page, which says there that nothing was done, and why.
pub fn not_done(to: &str, said: &str) -> Response {
    leads_on(to, NOT_DONE, said)
}

/// Leads on to another page, which says there what came of an act that may have changed nothing.
pub fn done_if(has_changed: bool, to: &str, said: &str) -> Response {
    let leads_on = if has_changed { done } else { not_done };
    leads_on(to, said)
}

fn leads_on(to: &str, mark: &str, said: &str) -> Response {
    let cut = said
        .char_indices()
        .take_while(|(at, _)| *at < FLASH_MAX_BYTES)
        .last();
    let said = &said[..cut.map_or(0, |(at, last)| at + last.len_utf8())];
    let value = utf8_percent_encode(said, NON_ALPHANUMERIC);
    let mut response = see_other(to);
    let cookie = format!("{FLASH}={mark}{value}; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Lax");
    append_cookie(&mut response, &cookie);
    response
}

/// Leads on to another address with `GET`.
pub fn see_other(to: &str) -> Response {
    let location = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// Leads for good from another address of a page to the page, with the query that was asked for.
pub fn moved(to: &str, query: Option<&str>) -> Response {
    let to = query.map_or_else(|| to.to_owned(), |query| format!("{to}?{query}"));
    Redirect::permanent(&to).into_response()
}

/// Adds a cookie to an answer.
pub fn append_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_something_is_told_without_the_identifier_of_the_key() {
        for (actor, name) in [
            (
                "CI (nightly) (01a22a18-2cdf-7055-b5d3-c9c06e897dcb)",
                "CI (nightly)",
            ),
            ("ada (postrider-cli, root@db1)", "ada"),
            ("ada <1@https://id.example>", "ada <1@https://id.example>"),
            ("Anna (Sales) <user-17@acme>", "Anna (Sales) <user-17@acme>"),
        ] {
            assert_eq!(name_of(actor), name);
        }
    }

    #[test]
    fn a_page_says_what_was_done_and_what_was_not_in_different_colours() {
        for (response, tone) in [
            (done("/x", "Done: 100 %, really!"), "ok"),
            (not_done("/x", "Done: 100 %, really!"), "warn"),
        ] {
            let cookie = response.headers()[header::SET_COOKIE].to_str().expect("text");
            let (_, value) = cookie.split_once('=').expect("a cookie");
            let flash = Flash::read(value.split(';').next().unwrap_or_default()).expect("what was done");
            assert_eq!((flash.said.as_str(), flash.tone), ("Done: 100 %, really!", tone));
        }
        assert_eq!(Flash::read(""), None);
        assert_eq!(Flash::read(NOT_DONE), None);
    }

    #[test]
    fn a_field_holds_a_time_as_browsers_write_it() {
        let at = DateTime::UNIX_EPOCH + TimeDelta::hours(12);
        let riga = chrono_tz::Europe::Riga;
        assert_eq!(local(at, riga), "1970-01-01T15:00");
        assert_eq!(local(at + TimeDelta::seconds(5), riga), "1970-01-01T15:00:05");
    }

    #[test]
    fn what_is_near_is_told_to_ten_seconds_and_grows_with_time() {
        let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(86_404);
        let seen = |seconds| seen_from(at + TimeDelta::seconds(seconds), at);
        for (seconds, said) in [
            (-300, "in 5 min"),
            (-90, "in 1 min 30 s"),
            (-4, "within 10 s"),
            (0, "just now"),
            (5, "just now"),
            (16, "10 s ago"),
            (70, "1 min ago"),
            (80, "1 min 10 s ago"),
            (119, "1 min 50 s ago"),
            (120, "2 min ago"),
            (175, "2 min ago"),
            (7_200, "1 h 59 min ago"),
        ] {
            assert_eq!(seen(seconds), said, "after {seconds} s");
        }
    }
}
