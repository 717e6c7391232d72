//! The request of a push or a notification as a command for a shell, so that an operator can see what a receiver says to it.
//!
//! Secrets are no part of it: where one belongs, the command names an environment variable. Whatever strangers have put
//! into the data is quoted such that no shell takes it for anything but text.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

/// What is sent as `user-agent`.
const USER_AGENT: &str = concat!("postrider/", env!("CARGO_PKG_VERSION"));

/// The request of a push. The device it goes to is personal, so that the command names a variable for it too.
#[derive(Debug, Clone, Copy)]
pub struct PushRequest<'a> {
    /// `swrve.url`.
    pub base_url: &'a str,
    /// What is shown on the device.
    pub message: &'a str,
    /// `swrve.test`.
    pub test: bool,
    /// The trace that it belongs to.
    pub traceparent: Option<&'a str>,
}

/// The request of a notification.
#[derive(Debug, Clone, Copy)]
pub struct NotificationRequest<'a> {
    /// Where it goes.
    pub url: &'a str,
    /// What the receiver knows the event by.
    pub event_id: &'a str,
    /// The same for every attempt.
    pub idempotency_key: &'a str,
    /// When the attempt began that is repeated: the time that was signed.
    pub signed_at: DateTime<Utc>,
    /// The bytes of the body.
    pub body: &'a str,
    /// The trace that it belongs to.
    pub traceparent: Option<&'a str>,
}

/// Repeats a push; needs the variables `SWRVE_PUSH_KEY` and `DEVICE`.
pub fn of_push(request: &PushRequest<'_>) -> String {
    let (base, secret) = without_credentials(request.base_url);
    let mut command = Command::post(
        &format!("{}/push", base.trim_end_matches('/')),
        secret,
        "SWRVE_CREDENTIALS",
    );
    command.trace(request.traceparent);
    command
        .option("--data-urlencode", "push_key=", Some("SWRVE_PUSH_KEY"))
        .option("--data-urlencode", "user=", Some("DEVICE"))
        .option("--data-urlencode", &format!("message={}", request.message), None);
    if request.test {
        command.option("--data-urlencode", "test=1", None);
    }
    command.text
}

/// Repeats a notification; needs the variable `SIGNATURE`. An endpoint that checks how old a signature is will refuse it
/// later than a few minutes after the attempt.
pub fn of_notification(request: &NotificationRequest<'_>) -> String {
    let (url, secret) = without_credentials(request.url);
    let mut command = Command::post(&url, secret, "ENDPOINT_CREDENTIALS");
    command
        .header("content-type", "application/json")
        .header("webhook-id", request.event_id)
        .header("webhook-timestamp", &request.signed_at.timestamp().to_string())
        .option("--header", "webhook-signature: ", Some("SIGNATURE"))
        .header("event-id", request.event_id)
        .header("idempotency-key", request.idempotency_key)
        .trace(request.traceparent);
    command.option("--data-raw", request.body, None);
    command.text
}

/// A URL without the part before the `@` of its host, and whether it had one.
fn without_credentials(url: &str) -> (String, bool) {
    let Some((scheme, rest)) = url.split_once(':') else {
        return (url.to_owned(), false);
    };
    // A client that dials it takes any number of slashes and backslashes for the two.
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => (format!("{scheme}://{}", &rest[at + 1..]), true),
        None => (url.to_owned(), false),
    }
}

/// A command under construction, one option a line.
struct Command {
    text: String,
}

impl Command {
    /// Brackets and braces in a URL mean themselves; redirects are not followed, as they never are.
    fn post(url: &str, secret: bool, credentials: &str) -> Self {
        let mut command = Self {
            text: "curl --globoff --include --request POST".to_owned(),
        };
        command.option("--url", url, None);
        if secret {
            command.option("--user", "", Some(credentials));
        }
        command.header("user-agent", USER_AGENT);
        command
    }

    fn header(&mut self, name: &str, value: &str) -> &mut Self {
        // No header can hold a line break, so that none was sent.
        let value = value.replace(['\r', '\n'], " ");
        self.option("--header", &format!("{name}: {value}"), None)
    }

    fn trace(&mut self, traceparent: Option<&str>) -> &mut Self {
        if let Some(traceparent) = traceparent {
            self.header("traceparent", traceparent);
        }
        self
    }

    /// An option whose value is `text`, followed by the content of a variable.
    fn option(&mut self, name: &str, text: &str, variable: Option<&str>) -> &mut Self {
        self.text.push_str(" \\\n  ");
        self.text.push_str(name);
        self.text.push(' ');
        if !text.is_empty() || variable.is_none() {
            quote(&mut self.text, text);
        }
        if let Some(variable) = variable {
            self.text.push_str("\"$");
            self.text.push_str(variable);
            self.text.push('"');
        }
        self
    }
}

/// Between single quotes a shell takes every character for itself, but for the quote. What a terminal would obey is
/// written as its bytes, as bash, zsh and ksh read them.
fn quote(out: &mut String, text: &str) {
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' => out.push_str("'\\''"),
            // No argument of a command can hold it.
            '\0' => out.push('\u{fffd}'),
            '\n' | '\t' => out.push(character),
            other if other.is_control() => {
                out.push_str("'$'");
                for byte in other.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
                out.push_str("''");
            }
            other => out.push(other),
        }
    }
    out.push('\'');
}

#[cfg(test)]
mod tests;
