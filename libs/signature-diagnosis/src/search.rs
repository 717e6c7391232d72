//! Tries what may have gone wrong with a signature that does not match, from the simplest accident on.

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use signing::{SECRET_PREFIX, Secret, idempotency_key};
use zeroize::Zeroizing;

use super::Evidence;
use super::accident::{BodyAccident, ContentAccident, KeyAccident, SecretAccident, SignatureAccident};
use super::body;
use super::cause::Cause;

/// How far another timestamp may be away that is tried: as far as one that is accepted is from the present.
const SHIFT_MAX: i64 = 300;
/// As many bytes are hashed in each direction for that.
const SHIFTED_MAX_BYTES: usize = 8 << 20;

type Code = [u8; 32];
type Key = Zeroizing<Vec<u8>>;

/// A message that no signature matches, and everything that may be tried with it.
pub(super) struct Search<'a> {
    evidence: &'a Evidence<'a>,
    id: &'a str,
    timestamp: &'a str,
    /// Keys of well-formed secrets.
    keys: Vec<Key>,
    /// Keys of texts that would be secrets if they were written properly.
    repaired: Vec<(usize, SecretAccident, Key)>,
    /// What the header holds as it should be, and what can be made of the rest.
    proper: Vec<Code>,
    improper: Vec<(SignatureAccident, Code)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(evidence: &'a Evidence<'a>, secrets: &[(usize, Secret)]) -> Self {
        let header = evidence.headers.signature.unwrap_or_default();
        let repaired = evidence.secrets.iter().enumerate().filter_map(|(place, text)| {
            let (accident, key) = repaired(text)?;
            Some((place, accident, key))
        });
        Self {
            evidence,
            id: evidence.headers.id.unwrap_or_default(),
            timestamp: evidence.headers.timestamp.unwrap_or_default(),
            keys: secrets
                .iter()
                .map(|(_, secret)| Zeroizing::new(secret.expose_bytes().to_vec()))
                .collect(),
            repaired: repaired.collect(),
            proper: header.split(' ').filter_map(proper).collect(),
            improper: improper(header),
        }
    }

    /// All that is found, the likeliest first; never nothing.
    pub(super) fn causes(&self) -> Vec<Cause> {
        let mut causes = self.of_the_signature();
        if causes.is_empty() {
            causes = self.of_the_body();
        }
        if self.proper.is_empty() && !causes.iter().any(|cause| matches!(cause, Cause::Signature(_))) {
            causes.insert(0, Cause::NoSignatures);
        }
        let is_of_another = body::id(self.evidence.body).is_some_and(|id| id != self.id);
        if is_of_another && !causes.contains(&Cause::OtherId) {
            causes.insert(0, Cause::OtherId);
        }
        causes
    }

    /// Accidents of the secret, the signature, and whatever made it; the body is taken to be right.
    fn of_the_signature(&self) -> Vec<Cause> {
        let body = self.evidence.body;
        for key in &self.keys {
            let code = self.code(key, body);
            if let Some((accident, _)) = self.improper.iter().find(|(_, known)| *known == code) {
                return vec![Cause::Signature(*accident)];
            }
        }
        for (place, accident, key) in &self.repaired {
            if self.holds(&self.code(key, body)) {
                let (place, accident) = (*place, *accident);
                return vec![Cause::Secret { place, accident }];
            }
        }
        self.undecoded_key(body)
            .or_else(|| self.other_content(body))
            .or_else(|| self.other_headers(body))
            .into_iter()
            .collect()
    }

    /// The secret fits when the identifier is that of the body, or the timestamp one of shortly before or after: then a header was changed.
    fn other_headers(&self, body: &[u8]) -> Option<Cause> {
        let fits = |id: &str, timestamp: &str| {
            let parts: [&[u8]; 5] = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
            self.usable().any(|key| self.holds(&code(key, &parts)))
        };
        if body::id(body).is_some_and(|id| fits(&id, self.timestamp)) {
            return Some(Cause::OtherId);
        }
        let timestamp: i64 = self.timestamp.parse().ok()?;
        let affordable = SHIFTED_MAX_BYTES / body.len().max(1);
        let reach = SHIFT_MAX.min(i64::try_from(affordable).unwrap_or(SHIFT_MAX));
        let shifts = (1..=reach).flat_map(|shift| [shift, -shift]);
        let found = shifts
            .filter_map(|shift| Some((shift, timestamp.checked_add(shift)?)))
            .find(|(_, other)| fits(self.id, &other.to_string()));
        found.map(|(later, _)| Cause::OtherTimestamp { later })
    }

    fn undecoded_key(&self, body: &[u8]) -> Option<Cause> {
        self.evidence.secrets.iter().find_map(|text| {
            let whole = text.trim();
            let rest = whole.strip_prefix(SECRET_PREFIX)?;
            let texts = [
                (KeyAccident::WholeText, whole),
                (KeyAccident::TextAfterPrefix, rest),
            ];
            texts
                .into_iter()
                .find(|(_, key)| self.holds(&self.code(key.as_bytes(), body)))
                .map(|(accident, _)| Cause::Key(accident))
        })
    }

    fn other_content(&self, body: &[u8]) -> Option<Cause> {
        let (id, timestamp) = (self.id.as_bytes(), self.timestamp.as_bytes());
        let contents: [(ContentAccident, Vec<&[u8]>); 3] = [
            (ContentAccident::BodyAlone, vec![body]),
            (ContentAccident::NoId, vec![timestamp, b".", body]),
            (ContentAccident::Swapped, vec![timestamp, b".", id, b".", body]),
        ];
        contents.into_iter().find_map(|(accident, parts)| {
            self.usable()
                .any(|key| self.holds(&code(key, &parts)))
                .then_some(Cause::Content(accident))
        })
    }

    /// Accidents of the body, and what is left when there is none that is known.
    fn of_the_body(&self) -> Vec<Cause> {
        let (evidence, wanted) = (self.evidence, self.wanted_digest());
        let mut causes = Vec::new();
        if evidence.body.is_empty() {
            return vec![Cause::EmptyBody];
        }
        let found = evidence.body.len() as u64;
        if let Some(announced) = evidence.content_length.filter(|announced| *announced != found) {
            causes.push(Cause::Length { announced, found });
        }
        let tried = self.keys.len();
        if wanted.as_deref() == Some(&idempotency_key(evidence.body)) {
            causes.push(Cause::WrongSecret { tried });
            return causes;
        }
        if let Some((accidents, signed)) = self.earlier(wanted.as_deref()) {
            causes.push(Cause::Body(accidents));
            if !signed {
                causes.push(Cause::WrongSecretToo { tried });
            }
            return causes;
        }
        if String::from_utf8_lossy(evidence.body).contains('\u{fffd}') {
            causes.push(Cause::Replaced);
        }
        if body::is_a_notification(evidence.body) && !body::has_the_envelope(evidence.body) {
            causes.push(Cause::Rewritten);
        }
        if wanted.is_some() {
            causes.push(Cause::Altered);
        }
        if causes.is_empty() {
            causes.push(Cause::Unknown { tried });
        }
        causes
    }

    /// What was done to the body, and whether a secret fits what it was before.
    fn earlier(&self, wanted: Option<&str>) -> Option<(Vec<BodyAccident>, bool)> {
        let mut found = None;
        body::each_earlier(self.evidence.body, |earlier| {
            let signed = self
                .usable()
                .any(|key| self.holds(&self.code(key, &earlier.body)));
            let sent = wanted.is_some_and(|wanted| wanted == idempotency_key(&earlier.body));
            if signed || sent {
                found = Some((earlier.accidents.clone(), signed));
            }
            signed || sent
        });
        found
    }

    /// The header `idempotency-key`, if it can be one.
    fn wanted_digest(&self) -> Option<String> {
        let key = self.evidence.idempotency_key?.trim().to_ascii_lowercase();
        (key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(key)
    }

    fn usable(&self) -> impl Iterator<Item = &[u8]> {
        let repaired = self.repaired.iter().map(|(_, _, key)| key.as_slice());
        self.keys.iter().map(|key| key.as_slice()).chain(repaired)
    }

    fn code(&self, key: &[u8], body: &[u8]) -> Code {
        let (id, timestamp) = (self.id.as_bytes(), self.timestamp.as_bytes());
        code(key, &[id, b".", timestamp, b".", body])
    }

    fn holds(&self, code: &Code) -> bool {
        self.proper.contains(code) || self.improper.iter().any(|(_, known)| known == code)
    }
}

fn code(key: &[u8], parts: &[&[u8]]) -> Code {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("invariant: HMAC takes keys of every length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn decoded(engine: &GeneralPurpose, text: &str) -> Option<Code> {
    engine.decode(text).ok()?.try_into().ok()
}

/// A signature as it should be written.
fn proper(part: &str) -> Option<Code> {
    decoded(&STANDARD, part.strip_prefix("v1,")?)
}

/// What else can be taken for signatures in the header.
fn improper(header: &str) -> Vec<(SignatureAccident, Code)> {
    let separators = |character: char| character.is_whitespace() || ",;\"'".contains(character);
    let mut found = Vec::new();
    for part in header.split(separators).filter(|part| !part.is_empty()) {
        let part = ["v1=", "v1:", "sha256="]
            .iter()
            .find_map(|prefix| part.strip_prefix(prefix))
            .unwrap_or(part);
        if let Some(code) = hex::decode(part).ok().and_then(|bytes| bytes.try_into().ok()) {
            found.push((SignatureAccident::Hexadecimal, code));
        } else if let Some(code) = decoded(&STANDARD, part) {
            let accident = if header.contains(&format!("v1,{part}")) {
                SignatureAccident::Separator
            } else {
                SignatureAccident::NoVersion
            };
            found.push((accident, code));
        } else if let Some(code) = [URL_SAFE, URL_SAFE_NO_PAD, STANDARD_NO_PAD]
            .iter()
            .find_map(|engine| decoded(engine, part))
        {
            found.push((SignatureAccident::UrlSafe, code));
        }
    }
    found
}

/// The key that a text would be if it were written properly.
fn repaired(text: &str) -> Option<(SecretAccident, Key)> {
    let bare = text.trim().trim_matches(['"', '\'', '`']).trim();
    let whole: String = bare.split_whitespace().collect();
    let rest = whole.strip_prefix(SECRET_PREFIX);
    let encoded = rest.unwrap_or(&whole);
    // Before all others: digits of hexadecimal are digits of base64 as well, of another key.
    if let Ok(bytes) = hex::decode(encoded) {
        return Some((SecretAccident::Hexadecimal, Zeroizing::new(bytes)));
    }
    if Secret::parse(text).is_ok() {
        return None;
    }
    if let Some(key) = key(&whole) {
        let accident = if bare == whole {
            SecretAccident::Quoted
        } else {
            SecretAccident::Blanks
        };
        return Some((accident, key));
    }
    if let Some(key) = key(&format!("{SECRET_PREFIX}{encoded}")) {
        return Some((SecretAccident::NoPrefix, key));
    }
    let with = |engine: &GeneralPurpose| engine.decode(encoded).ok().map(Zeroizing::new);
    if let Some(bytes) = with(&STANDARD_NO_PAD) {
        return Some((SecretAccident::NoPadding, bytes));
    }
    with(&URL_SAFE)
        .or_else(|| with(&URL_SAFE_NO_PAD))
        .map(|bytes| (SecretAccident::UrlSafe, bytes))
}

fn key(text: &str) -> Option<Key> {
    let secret = Secret::parse(text).ok()?;
    Some(Zeroizing::new(secret.expose_bytes().to_vec()))
}
