//! What kind of text an answer's body is. A receiver that fails by itself answers otherwise than the balancer in front of
//! it: the two are different failures, although their status is the same.

/// The class of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum BodyClass {
    /// Nothing but blanks.
    Empty,
    /// Begins as a JSON object or list does.
    Json,
    /// A page.
    Html,
    /// Other markup.
    Xml,
    /// Anything else.
    Text,
}

/// How much of a body is looked at for a page's beginning.
const LOOKED_AT: usize = 1024;

impl BodyClass {
    /// Classifies the beginning of a body.
    pub(super) fn of(body: &str) -> Self {
        let body = body.trim_start_matches('\u{feff}').trim_start();
        match body.as_bytes().first() {
            None => Self::Empty,
            Some(b'{' | b'[') => Self::Json,
            Some(b'<') if is_page(body) => Self::Html,
            Some(b'<') => Self::Xml,
            Some(_) => Self::Text,
        }
    }

    /// The name in a fingerprint.
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }
}

fn is_page(body: &str) -> bool {
    let head = &body.as_bytes()[..body.len().min(LOOKED_AT)];
    let holds = |tag: &[u8]| head.windows(tag.len()).any(|part| part.eq_ignore_ascii_case(tag));
    [&b"<!doctype html"[..], b"<html", b"<head", b"<body", b"<h1"]
        .into_iter()
        .any(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_body_has_its_class() {
        for (body, class) in [
            ("", "empty"),
            (" \r\n", "empty"),
            (r#"{"error":"no"}"#, "json"),
            ("\u{feff} [1]", "json"),
            ("<!DOCTYPE HTML><title>502", "html"),
            ("<!-- proxy --><HTML>", "html"),
            ("<h1>Bad Gateway</h1>", "html"),
            (
                "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>",
                "xml",
            ),
            ("<", "xml"),
            ("upstream connect error", "text"),
            ("ß<html>", "text"),
        ] {
            assert_eq!(BodyClass::of(body).as_str(), class, "{body}");
        }
        let late = format!("<{}é<html>", "x".repeat(LOOKED_AT - 2));
        assert_eq!(BodyClass::of(&late), BodyClass::Xml);
    }
}
