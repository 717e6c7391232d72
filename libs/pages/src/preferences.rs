//! What a viewer prefers: kept in a cookie, which the server and the scripts write, and asked for by a form that needs no script.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::response::Response;
use chrono_tz::Tz;
use http::HeaderMap;
use url::form_urlencoded;

use crate::form::Fields;
use crate::frame::{append_cookie, cookie, see_other};

/// The cookie with what a viewer prefers; scripts read and write it as well.
pub const PREFERENCES: &str = "pr_prefs";

/// What a viewer prefers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preferences {
    /// `light` or `dark`; empty for what the system has.
    pub theme: &'static str,
    /// In which zone times are written.
    pub zone: Tz,
    /// `dense` or `comfortable`.
    pub density: &'static str,
    /// Whether pages follow what happens.
    pub live: bool,
    /// Whether single keys do something.
    pub keys: bool,
}

impl Preferences {
    /// Those that a browser sends; what it does not say, or says wrongly, is as for everyone.
    pub fn of(headers: &HeaderMap) -> Self {
        let said = cookie(headers, PREFERENCES).unwrap_or_default();
        let mut preferences = Self {
            theme: "",
            zone: Tz::UTC,
            density: "dense",
            live: true,
            keys: true,
        };
        for (name, value) in form_urlencoded::parse(said.as_bytes()) {
            preferences.set(&name, &value);
        }
        preferences
    }

    /// Takes one over.
    pub fn set(&mut self, name: &str, value: &str) {
        match (name, value) {
            ("theme", "light") => self.theme = "light",
            ("theme", "dark") => self.theme = "dark",
            ("theme", _) => self.theme = "",
            ("density", "comfortable") => self.density = "comfortable",
            ("density", _) => self.density = "dense",
            ("live", value) => self.live = value != "off",
            ("keys", value) => self.keys = value != "off",
            ("tz", zone) => self.zone = zone.parse().unwrap_or(self.zone),
            _ => {}
        }
    }

    /// As the value of the cookie.
    pub fn written(&self) -> String {
        let switch = |on| if on { "on" } else { "off" };
        form_urlencoded::Serializer::new(String::new())
            .append_pair("theme", self.theme)
            .append_pair("tz", self.zone.name())
            .append_pair("density", self.density)
            .append_pair("live", switch(self.live))
            .append_pair("keys", switch(self.keys))
            .finish()
    }
}

/// Keeps what the fields of a form prefer, beside what is preferred already, and leads on `to` an address.
pub fn prefer(mut preferences: Preferences, fields: &Fields, to: &str) -> Response {
    for name in ["theme", "tz", "density", "live", "keys"] {
        if let Some(value) = fields.all(name).last() {
            preferences.set(name, value);
        }
    }
    let mut response = see_other(to);
    let value = preferences.written();
    let cookie = format!("{PREFERENCES}={value}; Path=/; Max-Age=31536000; Secure; SameSite=Lax");
    append_cookie(&mut response, &cookie);
    response
}

/// The form of what a viewer prefers.
#[derive(Debug, Template)]
#[template(path = "preferences_form.html")]
pub struct PreferencesForm {
    preferences: Preferences,
    home: &'static str,
}

impl HtmlSafe for PreferencesForm {}

impl PreferencesForm {
    /// The form for pages that begin at `home`; what it sends goes to `preferences` below that.
    pub fn new(preferences: Preferences, home: &'static str) -> Self {
        Self { preferences, home }
    }

    fn themes(&self) -> [(&'static str, &'static str); 3] {
        [("system", "As the system"), ("light", "Light"), ("dark", "Dark")]
    }

    fn has(&self, kept: &str, value: impl AsRef<str>) -> bool {
        kept == value.as_ref() || kept.is_empty() && value.as_ref() == "system"
    }

    fn densities(&self) -> [(&'static str, &'static str); 2] {
        [("dense", "Dense"), ("comfortable", "Comfortable")]
    }

    /// What can be on or off: its name, what it is called, what it does, and whether it is on.
    fn switches(&self) -> [(&'static str, &'static str, &'static str, bool); 2] {
        [
            (
                "live",
                "Live",
                "Pages follow what happens, where scripts run.",
                self.preferences.live,
            ),
            (
                "keys",
                "Single keys",
                "Keys such as j, k and ? do something, where scripts run.",
                self.preferences.keys,
            ),
        ]
    }
}
