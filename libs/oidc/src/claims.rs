//! What an ID token says, once it is believed.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value};

/// Longest name that is taken over, in characters.
const NAME_MAX_CHARS: usize = 100;
/// Most values of one claim.
const VALUES_MAX: usize = 1_000;

/// The claims of an ID token that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who said it.
    pub issuer: String,
    /// Whom it is about: the same for the same person, always.
    pub subject: String,
    /// When that person last showed who it is; none when the provider does not say.
    pub authenticated_at: Option<DateTime<Utc>>,
    /// When it was said.
    pub(crate) issued_at: DateTime<Utc>,
    pub(crate) all: Map<String, Value>,
}

impl Claims {
    /// How long before the token was made that person last showed who it is: both by the provider's clock, so that it does not matter how far
    /// ours lies apart from it.
    pub fn authenticated_before(&self) -> Option<TimeDelta> {
        self.authenticated_at
            .map(|at| (self.issued_at - at).max(TimeDelta::zero()))
    }

    /// What to call the person: the name, else the name to sign in with, else the address, else the subject. Without control characters.
    pub fn name(&self) -> String {
        let said = ["name", "preferred_username", "email"]
            .iter()
            .filter_map(|claim| self.all.get(*claim)?.as_str())
            .map(clean)
            .find(|name| !name.is_empty());
        said.unwrap_or_else(|| clean(&self.subject))
    }

    /// The texts of a claim: of a text itself, of a list its texts. A name with dots that is no claim by itself is a path into objects.
    pub fn texts(&self, claim: &str) -> Vec<String> {
        let found = self.all.get(claim).or_else(|| {
            let mut parts = claim.split('.');
            let first = self.all.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        });
        match found {
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(items)) => {
                let texts = items.iter().filter_map(Value::as_str).take(VALUES_MAX);
                texts.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Whether a character changes the direction of what stands beside it, so that a name could make an entry of the audit log read otherwise.
fn turns(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn clean(text: &str) -> String {
    let is_seen = |character: &char| !character.is_control() && !turns(*character);
    let kept = text.chars().filter(is_seen);
    // Brackets set the identity in a signature apart from the name; a name must not look like one.
    let kept = kept.filter(|character| !matches!(character, '<' | '>'));
    kept.take(NAME_MAX_CHARS).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(all: Value) -> Claims {
        let Value::Object(all) = all else { unreachable!() };
        Claims {
            issuer: "https://id.example".to_owned(),
            subject: "7f3".to_owned(),
            authenticated_at: None,
            issued_at: DateTime::UNIX_EPOCH,
            all,
        }
    }

    #[test]
    fn a_person_is_called_by_the_best_name_there_is() {
        let all = json!({"name": "Ada L.", "preferred_username": "ada", "email": "ada@id.example"});
        assert_eq!(claims(all).name(), "Ada L.");
        let all = json!({"name": " \n", "preferred_username": 7, "email": "ada@id.example"});
        assert_eq!(claims(all).name(), "ada@id.example");
        assert_eq!(claims(json!({})).name(), "7f3");
        let forged = json!({"name": "Eve <1@https://id.example>\u{0}"});
        assert_eq!(claims(forged).name(), "Eve 1@https://id.example");
        let turned = json!({"name": "Eve\u{202e} nimda\u{2066}"});
        assert_eq!(claims(turned).name(), "Eve nimda");
    }

    #[test]
    fn roles_are_a_text_a_list_or_lie_in_an_object() {
        let all = json!({
            "groups": ["a", 7, "b"], "role": "c", "realm_access": {"roles": ["d"]}, "https://x.example/roles": ["e"],
        });
        let claims = claims(all);
        assert_eq!(claims.texts("groups"), ["a", "b"]);
        assert_eq!(claims.texts("role"), ["c"]);
        assert_eq!(claims.texts("realm_access.roles"), ["d"]);
        assert_eq!(claims.texts("https://x.example/roles"), ["e"]);
        for none in ["nothing", "realm_access", "realm_access.roles.x", "", "."] {
            assert!(claims.texts(none).is_empty(), "{none}");
        }
    }
}
