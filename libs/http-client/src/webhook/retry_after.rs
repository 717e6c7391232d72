//! Reads `Retry-After` (RFC 9110, section 10.2.3). What it asks for may be absurd; whether to follow is not decided here.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::notification::RetryAfter;
use http::HeaderMap;
use http::header::RETRY_AFTER;

/// Longer delays are taken for this one, so that no caller has to think of overflows.
const MAX_SECONDS: u64 = 100 * 365 * 24 * 60 * 60;

/// When the receiver wants to be asked again, if it says so legibly.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<RetryAfter> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.is_empty() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only a number too large for the type fails.
        let seconds = text.parse::<u64>().unwrap_or(MAX_SECONDS).min(MAX_SECONDS);
        return Some(RetryAfter::Delay(Duration::from_secs(seconds)));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(RetryAfter::At(DateTime::<Utc>::from(at)))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use http::HeaderValue;

    use super::*;

    fn read(value: &str) -> Option<RetryAfter> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
        retry_after(&headers)
    }

    #[test]
    fn seconds_are_a_delay() {
        let delay = |seconds| Some(RetryAfter::Delay(Duration::from_secs(seconds)));
        assert_eq!(read("0"), delay(0));
        assert_eq!(read("120"), delay(120));
        assert_eq!(read(" 007 "), delay(7));
        assert_eq!(read("99999999999999999999999999"), delay(MAX_SECONDS));
        assert_eq!(read("18446744073709551615"), delay(MAX_SECONDS));
    }

    #[test]
    fn the_three_date_formats_are_a_time() {
        let at = Utc.with_ymd_and_hms(1994, 11, 6, 8, 49, 37).unwrap();
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(read(text), Some(RetryAfter::At(at)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_ignored() {
        for text in [
            "",
            " ",
            "-5",
            "+5",
            "1.5",
            "1e3",
            "soon",
            "5, 6",
            "2026-01-01T00:00:00Z",
            "Sun, 99 Nov 1994",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_bytes(b"\xff5").unwrap());
        assert_eq!(retry_after(&headers), None);
    }
}
