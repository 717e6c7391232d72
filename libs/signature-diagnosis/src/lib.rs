//! Why a signature is not accepted: what went wrong on the way, found by trying the accidents that happen often.
//!
//! For people who are making their endpoint work. It deliberately decides nothing: what is accepted is what
//! [`verify`](signing::verify()) accepts, and its verdict is repeated here unchanged. It takes thousands of times as long as
//! `verify`, and its comparisons tell by their time how much of a guess was right, so that no endpoint should run it for
//! strangers. It is no part of `signing`, which receivers take away.

mod accident;
mod body;
mod cause;
mod json;
mod search;

use std::time::Duration;

use signing::{HEADER_ID, HEADER_SIGNATURE, HEADER_TIMESTAMP, Secret, SignedHeaders, VerifyError, verify};

pub use accident::{BodyAccident, ContentAccident, KeyAccident, SecretAccident, SignatureAccident};
pub use cause::Cause;

use search::Search;

/// What a receiver has in hand.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The secrets as they were given: what is wrong with one of them may be the reason.
    pub secrets: &'a [&'a str],
    /// The three headers that matter.
    pub headers: SignedHeaders<'a>,
    /// The header `idempotency-key`. It is not signed, but tells an altered body from a wrong secret.
    pub idempotency_key: Option<&'a str>,
    /// The header `content-length`, in bytes.
    pub content_length: Option<u64>,
    /// The body as the receiver has it.
    pub body: &'a [u8],
    /// The present time in seconds since 1970.
    pub now: i64,
    /// How far the timestamp may be away.
    pub tolerance: Duration,
}

/// Which secret a message was signed with, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// Its place among those given, from 0.
    pub secret: usize,
    /// Seconds from the timestamp to the present; below zero when the timestamp is ahead.
    pub age: i64,
}

/// What is to be thought of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// What [`verify`](signing::verify()) says with those of the secrets that are well-formed.
    pub verdict: Result<Signed, VerifyError>,
    /// Why, the likeliest first. Also of an accepted message there may be something to say, such as that one of the secrets
    /// is malformed; of one that is not accepted there is always something.
    pub causes: Vec<Cause>,
}

/// Judges a message and finds out why it is not accepted. Nothing of a secret, a signature or a body is repeated.
pub fn diagnose(evidence: &Evidence<'_>) -> Diagnosis {
    let secrets: Vec<(usize, Secret)> = evidence
        .secrets
        .iter()
        .enumerate()
        .filter_map(|(place, text)| Some((place, Secret::parse(text).ok()?)))
        .collect();
    let verdict = check(evidence, &secrets);
    let causes = match verdict {
        Ok(_) => Vec::new(),
        Err(VerifyError::MissingHeader(_)) => missing(&evidence.headers),
        Err(VerifyError::AmbiguousId) => vec![Cause::AmbiguousId],
        Err(VerifyError::BadTimestamp) => vec![Cause::BadTimestamp],
        Err(VerifyError::TooOld | VerifyError::TooNew) => untimely(evidence, &secrets),
        Err(VerifyError::NoMatch) => Search::new(evidence, &secrets).causes(),
    };
    Diagnosis {
        verdict,
        causes: with_malformed_secrets(evidence, causes),
    }
}

/// One secret at a time, so that it is known which was the right one.
fn check(evidence: &Evidence<'_>, secrets: &[(usize, Secret)]) -> Result<Signed, VerifyError> {
    let ask = |secrets: &[&Secret]| {
        verify(
            secrets,
            evidence.headers,
            evidence.body,
            evidence.now,
            evidence.tolerance,
        )
    };
    for (place, secret) in secrets {
        if ask(&[secret]).is_ok() {
            let age = age(evidence).unwrap_or_default();
            return Ok(Signed { secret: *place, age });
        }
    }
    Err(ask(&[]).err().unwrap_or(VerifyError::NoMatch))
}

fn age(evidence: &Evidence<'_>) -> Option<i64> {
    let signed_at: i64 = evidence.headers.timestamp?.parse().ok()?;
    Some(evidence.now.saturating_sub(signed_at))
}

fn missing(headers: &SignedHeaders<'_>) -> Vec<Cause> {
    let all = [
        (headers.id, HEADER_ID),
        (headers.timestamp, HEADER_TIMESTAMP),
        (headers.signature, HEADER_SIGNATURE),
    ];
    all.into_iter()
        .filter(|(value, _)| value.is_none_or(str::is_empty))
        .map(|(_, name)| Cause::MissingHeader(name))
        .collect()
}

/// The clock is one thing and the signature another: a developer who mends the one wants to know of the other.
fn untimely(evidence: &Evidence<'_>, secrets: &[(usize, Secret)]) -> Vec<Cause> {
    let age = age(evidence).unwrap_or_default();
    let then = Evidence {
        now: evidence.now.saturating_sub(age),
        ..*evidence
    };
    let otherwise_right = check(&then, secrets).is_ok();
    let mut causes = vec![Cause::Untimely {
        age,
        tolerance: evidence.tolerance.as_secs(),
        otherwise_right,
    }];
    if !otherwise_right {
        causes.extend(Search::new(&then, secrets).causes());
    }
    causes
}

/// A malformed secret of which nothing more is known is named before the guess that no secret fits.
fn with_malformed_secrets(evidence: &Evidence<'_>, mut causes: Vec<Cause>) -> Vec<Cause> {
    if evidence.secrets.is_empty() {
        causes.insert(0, Cause::NoSecret);
    }
    let malformed = evidence.secrets.iter().enumerate().filter_map(|(place, text)| {
        let error = Secret::parse(text).err()?;
        let explained = causes
            .iter()
            .any(|cause| matches!(cause, Cause::Secret { place: known, .. } if *known == place));
        (!explained).then_some(Cause::MalformedSecret { place, error })
    });
    let malformed: Vec<_> = malformed.collect();
    let last_guess = causes.iter().position(Cause::is_a_guess).unwrap_or(causes.len());
    causes.splice(last_guess..last_guess, malformed);
    causes
}

#[cfg(test)]
mod tests;
