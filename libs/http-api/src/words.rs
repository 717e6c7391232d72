//! Words in a query string that a parameter lists with commas between them. Every API takes them in the same form, and says the same of one that
//! it does not know.

use std::str::FromStr;

use domain::nearest;

use crate::{FieldCode, Problem};

/// What a parameter lists, as it stands there; nothing when it is missing.
pub fn listed(given: Option<&str>) -> impl Iterator<Item = &str> {
    let entries = given.unwrap_or_default().split(',').map(str::trim);
    entries.filter(|entry| !entry.is_empty())
}

/// What a parameter lists of what is `known`, each once; nothing when it is missing.
///
/// # Errors
///
/// A [`Problem`] that says what is known, for a word that is not.
pub fn some_of<T: FromStr + PartialEq>(
    parameter: &'static str,
    given: Option<&str>,
    known: &[&str],
) -> Result<Vec<T>, Problem> {
    let mut found = Vec::new();
    for word in listed(given) {
        let read = word.parse::<T>().ok().filter(|_| known.contains(&word));
        let one = read.ok_or_else(|| {
            let meant = meant(word, known);
            Problem::query(parameter, format!("must be some of {}{meant}", known.join(", ")))
                .coded(FieldCode::UnknownValue)
        })?;
        if !found.contains(&one) {
            found.push(one);
        }
    }
    Ok(found)
}

/// Which of the known words was meant, as a question.
fn meant(word: &str, known: &[&str]) -> String {
    // What the sentences call SENT, and what no likeness of the names leads from.
    let is_delivered = word.eq_ignore_ascii_case("DELIVERED") && known.contains(&"SENT");
    nearest::question(if is_delivered { "SENT" } else { word }, known.iter().copied())
}

#[cfg(test)]
mod tests {
    use domain::notification::NotificationStatus::{self, Failed, GivenUp};

    use super::*;

    fn read(given: Option<&str>) -> Result<Vec<NotificationStatus>, String> {
        let found = some_of("status", given, &["FAILED", "GIVEN_UP"]);
        found.map_err(|problem| problem.errors()[0].detail.clone())
    }

    #[test]
    fn what_is_listed_is_read_once_each() {
        assert_eq!(read(None), Ok(vec![]));
        assert_eq!(read(Some("FAILED")), Ok(vec![Failed]));
        assert_eq!(
            read(Some("GIVEN_UP, FAILED,,GIVEN_UP")),
            Ok(vec![GivenUp, Failed])
        );
    }

    #[test]
    fn what_was_delivered_is_called_sent() {
        let asked = |known: &[&str]| {
            let found: Result<Vec<NotificationStatus>, _> = some_of("status", Some("DELIVERED"), known);
            found.map_err(|problem| problem.errors()[0].detail.clone())
        };
        let hinted = "must be some of SENT, FAILED; did you mean SENT?".to_owned();
        assert_eq!(asked(&["SENT", "FAILED"]), Err(hinted));
        assert_eq!(asked(&["FAILED"]), Err("must be some of FAILED".to_owned()));
    }

    #[test]
    fn a_word_that_is_not_known_is_answered_with_those_that_are() {
        let all = "must be some of FAILED, GIVEN_UP";
        for (given, hint) in [
            ("FALED,GIVEN_UP", "; did you mean FAILED?"),
            ("FAILED,given_up", "; did you mean GIVEN_UP?"),
            // It is a status, and none of those that can be asked for.
            ("SCHEDULED", ""),
            ("FAILED;GIVEN", ""),
        ] {
            assert_eq!(read(Some(given)), Err(format!("{all}{hint}")), "{given}");
        }
    }
}
