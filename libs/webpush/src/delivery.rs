//! The headers that say how long a message is worth something, and what it replaces.

use std::fmt;

use chrono::TimeDelta;

use crate::Refusal;

/// The longest time for which a message is kept: 30 days.
pub const MAX_TTL: TimeDelta = TimeDelta::seconds(2_592_000);

/// The longest topic, in characters (RFC 8030, section 5.4).
const TOPIC_MAX: usize = 32;

/// Reads the header `TTL`; more than `max` is taken for `max`.
pub fn ttl(header: Option<&str>, max: TimeDelta) -> Result<TimeDelta, Refusal> {
    let text = header.ok_or(Refusal::NoTtl)?.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::NoTtl);
    }
    // More digits than fit are more seconds than are kept.
    let seconds = digits.parse().unwrap_or(i64::MAX);
    if negative && seconds > 0 {
        return Err(Refusal::NegativeTtl);
    }
    Ok(TimeDelta::try_seconds(seconds).unwrap_or(max).min(max))
}

/// A name by which a newer message replaces an older one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topic(String);

impl Topic {
    /// Reads the header `Topic`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.is_empty() || text.len() > TOPIC_MAX || !text.bytes().all(allowed) {
            return Err(Refusal::Topic);
        }
        Ok(Self(text.to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ttl_is_required_clamped_and_not_negative() {
        for (header, expected) in [
            (None, Err(111)),
            (Some(""), Err(111)),
            (Some("soon"), Err(111)),
            (Some("1.5"), Err(111)),
            (Some("--1"), Err(111)),
            (Some("-1"), Err(114)),
            (Some("-99999999999999999999"), Err(114)),
            (Some("0"), Ok(0)),
            (Some("-0"), Ok(0)),
            (Some(" 60 "), Ok(60)),
            (Some("2592000"), Ok(2_592_000)),
            (Some("2592001"), Ok(2_592_000)),
            (Some("99999999999999999999"), Ok(2_592_000)),
        ] {
            let read = ttl(header, MAX_TTL).map(|ttl| ttl.num_seconds());
            assert_eq!(
                read.map_err(|refusal| refusal.errno().unwrap()),
                expected,
                "{header:?}"
            );
        }
    }

    #[test]
    fn a_topic_has_the_alphabet_and_length_of_the_standard() {
        for good in ["a", "Inbox_1-2", &"x".repeat(32)] {
            assert_eq!(Topic::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "ä", "a=", "a:b", &"x".repeat(33)] {
            assert_eq!(Topic::parse(bad).unwrap_err(), Refusal::Topic, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(text in ".{0,60}") {
            let read = ttl(Some(&text), MAX_TTL);
            prop_assert!(read.is_err() || (TimeDelta::zero()..=MAX_TTL).contains(&read.unwrap()));
            let _ = Topic::parse(&text);
        }
    }
}
