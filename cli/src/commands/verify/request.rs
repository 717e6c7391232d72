//! A request as it was saved: as HTTP has it, or as a line of JSON that a receiver printed.

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use signing::{HEADER_ID, HEADER_SIGNATURE, HEADER_TIMESTAMP};
use std::collections::BTreeMap;

/// What the portal looks at. Other headers stay here: those of a gateway may be secrets.
const CHECKED: [&str; 5] = [
    HEADER_ID,
    HEADER_TIMESTAMP,
    HEADER_SIGNATURE,
    "idempotency-key",
    "content-length",
];

/// Headers, and the body byte by byte.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// Names as they are looked up; the first one of a name counts.
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What `postrider listen --json`, `postrider receive --json` and `postrider trigger --json` print.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    headers: BTreeMap<String, String>,
    body: String,
    body_base64: Option<String>,
}

impl Request {
    /// One that has a body so far.
    pub(super) fn new(body: Vec<u8>) -> Self {
        Self {
            headers: Vec::new(),
            body,
        }
    }

    /// Reads a saved one.
    pub(super) fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        if bytes.trim_ascii_start().starts_with(b"{") {
            return Self::of_json(bytes);
        }
        let mut request = Self::default();
        let mut rest = bytes;
        let mut is_first = true;
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, after) = end.map_or((rest, None), |end| (&rest[..end], Some(&rest[end + 1..])));
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let (true, Some(body)) = (line.is_empty(), after) {
                request.body = body.to_vec();
                return Ok(request);
            }
            let line = String::from_utf8_lossy(line);
            match header(&line) {
                _ if line.is_empty() => {}
                Ok(header) => request.add(vec![header]),
                Err(_) if is_first && line.contains(' ') => {}
                Err(_) => bail!(
                    "the request has a line before its body that is no header: {}; write headers, an empty line and the body",
                    crate::output::harmless(&line)
                ),
            }
            is_first = false;
            let Some(after) = after else {
                bail!(
                    "the request has no empty line after its headers, so that it is not known where its body begins"
                );
            };
            rest = after;
        }
    }

    fn of_json(bytes: &[u8]) -> anyhow::Result<Self> {
        let line: Line = serde_json::from_slice(bytes).context(
            "the request is JSON, but not one object with headers and body, as a line of `postrider listen --json` is; to \
             check a body alone leave --request out and give the headers with -H",
        )?;
        let body = match line.body_base64 {
            Some(encoded) => STANDARD
                .decode(encoded)
                .context("bodyBase64 of the request is no base64")?,
            None => line.body.into_bytes(),
        };
        let mut request = Self::new(body);
        request.add(
            line.headers
                .into_iter()
                .map(|(name, value)| (named(&name), value))
                .collect(),
        );
        Ok(request)
    }

    /// More headers, which go before those that are there.
    pub(super) fn add(&mut self, headers: Vec<(String, String)>) {
        for (name, value) in headers.into_iter().rev() {
            self.headers.insert(0, (name, value));
        }
    }

    /// Each header that the portal looks at once, by its name in lower case.
    pub(super) fn headers(&self) -> BTreeMap<&str, &str> {
        // The first one of a name counts, and the last one that is collected stays.
        let reversed = self.headers.iter().rev();
        let asked = reversed.filter(|(name, _)| CHECKED.contains(&name.as_str()));
        asked
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    /// The value of a header by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// `NAME: VALUE`.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .filter(|(name, _)| !name.trim().is_empty() && !name.trim().contains(' '))
        .ok_or_else(|| format!("{text:?} is no header; write NAME: VALUE, such as 'webhook-id: order-17'"))?;
    Ok((named(name), value.trim().to_owned()))
}

/// The name as it is looked up. CGI, WSGI and PHP write HTTP_WEBHOOK_ID for webhook-id.
fn named(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase().replace('_', "-");
    match name.strip_prefix("http-") {
        Some(rest) => rest.to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_headers_an_empty_line_and_a_body_to_the_byte() {
        for text in [
            "POST /hook HTTP/1.1\r\nWebhook-Id: 1\r\nHTTP_WEBHOOK_TIMESTAMP:5\r\n\r\n{\n}\r\n",
            "Webhook-Id:  1 \nwebhook-timestamp: 5\n\n{\n}\r\n",
            "POST http://127.0.0.1:1/\nwebhook-id: 1\nwebhook-timestamp: 5\n\n{\n}\r\n",
        ] {
            let request = Request::read(text.as_bytes()).unwrap();
            assert_eq!(
                (request.header("webhook-id"), request.header("webhook-timestamp")),
                (Some("1"), Some("5"))
            );
            assert_eq!(request.body, b"{\n}\r\n", "{text}");
        }
    }

    #[test]
    fn lines_of_json_are_read_in_each_form_that_is_printed() {
        let line = r#"{"number":1,"headers":{"webhook-id":"1"},"body":"{}","status":200}"#;
        let base64 = r#"{"headers":{"webhook-id":"1"},"body":"?","bodyBase64":"e30="}"#;
        for text in [line, base64] {
            let request = Request::read(text.as_bytes()).unwrap();
            assert_eq!(
                (request.header("webhook-id"), request.body.as_slice()),
                (Some("1"), &b"{}"[..]),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_request_says_what_is_missing() {
        for (text, part) in [
            ("webhook-id: 1\nno header\n\n{}", "is no header"),
            ("webhook-id: 1\n", "no empty line"),
            ("webhook-id: 1", "no empty line"),
            (r#"{"id":"1"}"#, "leave --request out"),
        ] {
            let error = format!("{:#}", Request::read(text.as_bytes()).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        assert!(header("webhook-id 1").is_err() && header(": 1").is_err());
    }

    #[test]
    fn options_go_before_what_a_file_says() {
        let mut request = Request::read(b"webhook-id: 1\n\n").unwrap();
        request.add(vec![("webhook-id".to_owned(), "2".to_owned())]);
        assert_eq!(request.header("webhook-id"), Some("2"));
    }
}
