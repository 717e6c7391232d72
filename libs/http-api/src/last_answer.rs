//! By what lists of notifications are filtered: how the last attempt ended. Every API takes it in the same words.

use std::ops::RangeInclusive;

use domain::notification::ERROR_TYPES;

use crate::{FieldCode, Problem};

/// What is said of a `code` that is none.
pub const NO_CODE: &str = "must be between 100 and 599, or a class such as 5xx";

/// The status codes that a text stands for: one, or those of a class, such as `5xx`, which are all from 500 to 599.
pub fn status_codes(text: &str) -> Option<RangeInclusive<u16>> {
    let text = text.to_ascii_lowercase();
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let code: u16 = text.parse().ok().filter(|code| (100..600).contains(code))?;
    Some(code..=code)
}

/// The parameter `code`: the status code of the answer, or a class of them.
///
/// # Errors
///
/// A [`Problem`] for what is neither.
pub fn code(given: Option<&str>) -> Result<Option<RangeInclusive<u16>>, Problem> {
    let read = |text| {
        status_codes(text).ok_or_else(|| Problem::query("code", NO_CODE).coded(FieldCode::WrongFormat))
    };
    given.map(read).transpose()
}

/// The parameter `error`: one of [`ERROR_TYPES`].
///
/// # Errors
///
/// A [`Problem`] for another name.
pub fn error_type(given: Option<&str>) -> Result<Option<&'static str>, Problem> {
    let find = |name: &str| {
        let mut known = ERROR_TYPES.into_iter();
        let wrong = || {
            Problem::query("error", format!("must be one of {}", ERROR_TYPES.join(", ")))
                .coded(FieldCode::UnknownValue)
        };
        known.find(|known| *known == name).ok_or_else(wrong)
    };
    given.map(find).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_every_status_code_of_it() {
        for (text, range) in [
            ("503", 503..=503),
            ("5xx", 500..=599),
            ("4XX", 400..=499),
            ("1xx", 100..=199),
        ] {
            assert_eq!(code(Some(text)).ok().flatten(), Some(range), "{text}");
        }
        assert_eq!(code(None).ok(), Some(None));
        for text in ["99", "600", "0xx", "6xx", "xx", "50x", "", "all"] {
            assert!(code(Some(text)).is_err(), "{text}");
        }
    }
}
