//! Reads an answer as far as it is worth it. The status alone says whether a notification was delivered, so once it is
//! there nothing that happens to the body changes the outcome: it is cut off where it gets too long, too late or lost.

use std::time::Duration;

use domain::notification::DeliveryOutcome;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::retry_after::retry_after;

/// How long a body may take once the headers are there; the deadline of the attempt still holds.
const MAX_BODY_TIME: Duration = Duration::from_secs(2);
/// Up to so many bytes are read, though not kept: the connection of an answer that was read to its end can be used
/// again, and opening another costs more than reading a page.
const MAX_READ_BYTES: usize = 64 * 1024;

/// The outcome that `response` stands for, with the first `kept` bytes of its body as text.
pub(crate) async fn outcome_of(response: Response, kept: usize, deadline: Instant) -> DeliveryOutcome {
    DeliveryOutcome::Answered {
        status: response.status().as_u16(),
        retry_after: retry_after(response.headers()),
        body: body_of(response, kept, deadline.min(Instant::now() + MAX_BODY_TIME)).await,
    }
}

async fn body_of(mut response: Response, kept: usize, deadline: Instant) -> String {
    let declared = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok());
    // Nothing is read for the connection's sake when it is clear that the end will not be reached.
    let read_at_most = match declared {
        Some(length) if length > MAX_READ_BYTES => kept,
        _ => kept.max(MAX_READ_BYTES),
    };
    let mut body = Vec::with_capacity(declared.unwrap_or_default().min(kept));
    let mut read = 0;
    while let Ok(Ok(Some(chunk))) = timeout_at(deadline, response.chunk()).await {
        read += chunk.len();
        let wanted = chunk.len().min(kept - body.len());
        body.extend_from_slice(&chunk[..wanted]);
        if read >= read_at_most && declared != Some(read) {
            break;
        }
    }
    text_of(&body, kept)
}

/// `bytes` as text that PostgreSQL can store and that is not longer than `kept` bytes.
fn text_of(bytes: &[u8], kept: usize) -> String {
    let mut text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(kept));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_storable_and_not_longer_than_what_is_kept() {
        assert_eq!(text_of(b"ok", 10), "ok");
        assert_eq!(text_of(b"a\0b", 10), "a\u{fffd}b");
        assert_eq!(text_of(&[0xff; 9], 9), "\u{fffd}".repeat(3));
        // A character that was cut in half at the end goes away.
        assert_eq!(text_of("abé".as_bytes().split_at(3).0, 3), "ab");
    }
}
