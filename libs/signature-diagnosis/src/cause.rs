//! A reason in words: what it is and what mends it. None repeats anything of a secret, a signature or a body.

use std::fmt;

use signing::{HEADER_ID, HEADER_SIGNATURE, HEADER_TIMESTAMP, SecretError};

use super::accident::{BodyAccident, ContentAccident, KeyAccident, SecretAccident, SignatureAccident};

/// From when on a timestamp can only be one in milliseconds: seconds will not have so many digits for 3,000 years.
const SURELY_MILLIS: i64 = 100_000_000_000;

const REPLACED: &str = "the body holds U+FFFD, which stands where bytes could not be decoded";
const REWRITTEN: &str = "the body is not written as Postrider writes it ({\"id\":…,\"type\":…,\"timestamp\":…,\"data\":…} \
                         without blanks): it was parsed as JSON and written again";
const ALTERED: &str = "the body was altered: its SHA-256 is not what the header idempotency-key says";

/// Why a message is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A header is missing or empty.
    MissingHeader(&'static str),
    /// The identifier holds a full stop.
    AmbiguousId,
    /// The timestamp is no number of seconds.
    BadTimestamp,
    /// The timestamp is too far away from the present.
    Untimely {
        /// Seconds since then; below zero when it is ahead.
        age: i64,
        /// How many would be tolerated.
        tolerance: u64,
        /// Whether everything else is right.
        otherwise_right: bool,
    },
    /// There is nothing to check with.
    NoSecret,
    /// A text that was given is no secret.
    MalformedSecret {
        /// Its place among those given, from 0.
        place: usize,
        /// What is wrong with it.
        error: SecretError,
    },
    /// A text that was given is no secret, but would be the right one if it were written properly.
    Secret {
        /// Its place among those given, from 0.
        place: usize,
        /// What is wrong with it.
        accident: SecretAccident,
    },
    /// The header has no signature of version `v1`.
    NoSignatures,
    /// The right signature is there, but not as it should be written.
    Signature(SignatureAccident),
    /// The signer keyed the signature with something else.
    Key(KeyAccident),
    /// The signer signed something else.
    Content(ContentAccident),
    /// The body was changed on its way, and it is known how.
    Body(Vec<BodyAccident>),
    /// The body has nothing in it.
    EmptyBody,
    /// The body has another length than was announced.
    Length {
        /// What `content-length` says.
        announced: u64,
        /// What there is.
        found: u64,
    },
    /// Characters were replaced, since the bytes were decoded as something that they are not.
    Replaced,
    /// The body is not written as Postrider writes it: it was parsed and written again; how is unknown.
    Rewritten,
    /// The body was changed: it is not the one that `idempotency-key` was made of.
    Altered,
    /// The body belongs to another message than the headers.
    OtherId,
    /// The signature is right for another timestamp.
    OtherTimestamp {
        /// By how many seconds that is later than the header; below zero when it is earlier.
        later: i64,
    },
    /// The body is what was sent: so it is the secret that does not fit.
    WrongSecret {
        /// How many were tried.
        tried: usize,
    },
    /// What the body was before it was changed is what was sent: so the secret does not fit either.
    WrongSecretToo {
        /// How many were tried.
        tried: usize,
    },
    /// Nothing of what happens often: it may be the secret or the body.
    Unknown {
        /// How many secrets were tried.
        tried: usize,
    },
}

impl Cause {
    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingHeader(_) => "missing_header",
            Self::AmbiguousId => "ambiguous_id",
            Self::BadTimestamp => "bad_timestamp",
            Self::Untimely { age, .. } if *age > 0 => "too_old",
            Self::Untimely { .. } => "too_new",
            Self::NoSecret => "no_secret",
            Self::MalformedSecret { .. } | Self::Secret { .. } => "malformed_secret",
            Self::NoSignatures => "no_signatures",
            Self::Signature(_) => "malformed_signature",
            Self::Key(_) => "signed_with_another_key",
            Self::Content(_) => "signed_something_else",
            Self::Body(accidents) if accidents.iter().any(is_of_json) => "reserialised_body",
            Self::Rewritten => "reserialised_body",
            Self::Body(_) | Self::EmptyBody | Self::Length { .. } | Self::Replaced | Self::Altered => {
                "altered_body"
            }
            Self::OtherId => "other_id",
            Self::OtherTimestamp { .. } => "other_timestamp",
            Self::WrongSecret { .. } | Self::WrongSecretToo { .. } => "wrong_secret",
            Self::Unknown { .. } => "wrong_secret_or_altered_body",
        }
    }

    /// Whether it is what is left when nothing is known.
    pub(super) fn is_a_guess(&self) -> bool {
        matches!(
            self,
            Self::WrongSecret { .. } | Self::WrongSecretToo { .. } | Self::Unknown { .. }
        )
    }

    /// What mends it, as one sentence without a full stop.
    pub fn mend(&self) -> String {
        match self {
            Self::MissingHeader(name) => format!(
                "look whether your server or a proxy drops {name} or calls it otherwise (HTTP_WEBHOOK_… in CGI and WSGI); \
                 names are not case-sensitive"
            ),
            Self::AmbiguousId => "Postrider never sends such an id: refuse the request".to_owned(),
            Self::BadTimestamp => {
                "hand the header on as it arrived: digits alone, without blanks, quotes or a fraction".to_owned()
            }
            Self::Untimely { age, .. } if age.saturating_abs() > SURELY_MILLIS => {
                "the timestamp is in milliseconds, or the clock is: both have to be in seconds".to_owned()
            }
            Self::Untimely { age, .. } if *age > 0 => {
                "set the clock of this machine (NTP); a recorded request is refused on purpose: check it as of its time \
                 (`postrider verify --at recorded`), or send it again, which makes a new signature"
                    .to_owned()
            }
            Self::Untimely { .. } => "set the clock of this machine (NTP): it is behind".to_owned(),
            Self::NoSecret => "give the secret that was shown when the subscription was made".to_owned(),
            Self::MalformedSecret { .. } | Self::Secret { .. } => {
                "copy the secret again, from whsec_ to its end, as it was shown".to_owned()
            }
            Self::NoSignatures | Self::Signature(_) => format!(
                "{HEADER_SIGNATURE} holds one or more of \"v1,\" and base64, with one blank between them; hand it on as it \
                 arrived, and write your own so"
            ),
            Self::Key(_) => "take off whsec_ and decode the rest as base64: these bytes are the key".to_owned(),
            Self::Content(_) => "sign {webhook-id}.{webhook-timestamp}.{body}".to_owned(),
            Self::Body(accidents) => mends(accidents),
            Self::EmptyBody => {
                "the body was read before, by a middleware perhaps, or was not handed on; read it once and keep the bytes"
                    .to_owned()
            }
            Self::Length { .. } => "read the body to its end, and hand on neither more nor less".to_owned(),
            Self::Replaced => BodyAccident::ReadAsLatin1.mend().to_owned(),
            Self::Rewritten => BodyAccident::Respaced.mend().to_owned(),
            Self::Altered => "find out what changes the body between its arrival and the check".to_owned(),
            Self::OtherId => "keep the headers and the body of one request together".to_owned(),
            Self::OtherTimestamp { .. } => {
                format!("take {HEADER_TIMESTAMP} as it arrived with this very request, and not the time of its arrival")
            }
            Self::WrongSecret { .. } | Self::WrongSecretToo { .. } | Self::Unknown { .. } => {
                "compare the secret with the one of this very subscription (each has its own; `postrider secrets list` shows \
                 since when), and take the body as it arrived"
                    .to_owned()
            }
        }
    }
}

fn is_of_json(accident: &BodyAccident) -> bool {
    use BodyAccident::{Reescaped, Reordered, Respaced};
    matches!(accident, Respaced | Reordered | Reescaped)
}

/// Each piece of advice once.
fn mends(accidents: &[BodyAccident]) -> String {
    let mut mends: Vec<&str> = Vec::new();
    for accident in accidents {
        if !mends.contains(&accident.mend()) {
            mends.push(accident.mend());
        }
    }
    mends.join("; ")
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingHeader(name) => write!(f, "the header {name} is missing"),
            Self::AmbiguousId => write!(f, "the header {HEADER_ID} holds a full stop"),
            Self::BadTimestamp => write!(f, "the header {HEADER_TIMESTAMP} is not a number of seconds"),
            Self::Untimely {
                age,
                tolerance,
                otherwise_right,
            } => untimely(f, *age, *tolerance, *otherwise_right),
            Self::NoSecret => f.write_str("there is no secret to check with"),
            Self::MalformedSecret { place, error } => {
                write!(f, "secret {} cannot be used: {error}", place + 1)
            }
            Self::Secret { place, accident } => {
                write!(f, "secret {} is the right one, but {accident}", place + 1)
            }
            Self::NoSignatures => write!(
                f,
                "the header {HEADER_SIGNATURE} holds no signature of version v1"
            ),
            Self::Signature(accident) => {
                write!(f, "the right signature is there, but {accident}")
            }
            Self::Key(accident) => write!(f, "the signature was made with {accident} as its key"),
            Self::Content(accident) => write!(f, "what was signed is {accident}"),
            Self::Body(accidents) => {
                let words: Vec<String> = accidents.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "the body is not the one that was signed: {}",
                    words.join(", and ")
                )
            }
            Self::EmptyBody => f.write_str("the body is empty"),
            Self::Length { announced, found } => {
                write!(
                    f,
                    "the body has {found} bytes, but content-length says {announced}"
                )
            }
            Self::Replaced => f.write_str(REPLACED),
            Self::Rewritten => f.write_str(REWRITTEN),
            Self::Altered => f.write_str(ALTERED),
            Self::OtherId => write!(f, "the id in the body is not what the header {HEADER_ID} says"),
            Self::OtherTimestamp { later } => write!(
                f,
                "the secret and the body are right, but {HEADER_TIMESTAMP} was changed: the signature is for a time {} {}",
                span(later.unsigned_abs()),
                if *later > 0 { "later" } else { "earlier" }
            ),
            Self::WrongSecret { tried } => write!(
                f,
                "the body is the one that was sent (its SHA-256 is the idempotency-key), so {} wrong, or {HEADER_ID}, \
                 {HEADER_TIMESTAMP} or {HEADER_SIGNATURE} was changed",
                secrets(*tried)
            ),
            Self::WrongSecretToo { tried } => write!(
                f,
                "what the body was before is what was sent (its SHA-256 is the idempotency-key), but no signature fits that either: so \
                 {} wrong too, or {HEADER_ID}, {HEADER_TIMESTAMP} or {HEADER_SIGNATURE} was changed",
                secrets(*tried)
            ),
            Self::Unknown { tried } => write!(
                f,
                "either {} wrong, or the body or a header was altered",
                secrets(*tried)
            ),
        }
    }
}

fn secrets(tried: usize) -> String {
    match tried {
        0 | 1 => "the secret is".to_owned(),
        2 => "both secrets are".to_owned(),
        more => format!("all {more} secrets are"),
    }
}

fn untimely(f: &mut fmt::Formatter<'_>, age: i64, tolerance: u64, right: bool) -> fmt::Result {
    let distance = age.unsigned_abs();
    let direction = if age > 0 { "ago" } else { "in the future" };
    let by = distance.saturating_sub(tolerance);
    write!(
        f,
        "the message was signed {} {direction}, which is {} more than the {tolerance} s that are tolerated; ",
        span(distance),
        span(by)
    )?;
    f.write_str(if right {
        "everything else is right"
    } else {
        "and its signature does not match either"
    })
}

/// Seconds for people.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min {} s", seconds / 60, seconds % 60),
        7_200..172_800 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}
