//! By what lists of notifications are filtered: how the last attempt ended. Every API takes it in the same words.

use std::ops::RangeInclusive;

use domain::notification::ERROR_TYPES;

use crate::Problem;

/// The parameter `code`: the status code of the answer.
///
/// # Errors
///
/// A [`Problem`] for what is no status code.
pub fn code(given: Option<u16>) -> Result<Option<u16>, Problem> {
    if given.is_some_and(|code| !(100..600).contains(&code)) {
        return Err(Problem::query("code", "must be between 100 and 599"));
    }
    Ok(given)
}

/// The parameter `code` where it may be a class, too: `5xx` is every status code from 500 to 599.
///
/// # Errors
///
/// A [`Problem`] for what is neither.
pub fn codes(given: Option<&str>) -> Result<Option<RangeInclusive<u16>>, Problem> {
    let read = |text: &str| match text.strip_suffix("xx") {
        Some(class) => {
            let class = class.parse::<u16>().ok().filter(|class| (1..=5).contains(class));
            class.map(|class| class * 100..=class * 100 + 99)
        }
        None => {
            let code = text.parse::<u16>().ok().filter(|code| (100..600).contains(code));
            code.map(|code| code..=code)
        }
    };
    let wrong = || Problem::query("code", "must be between 100 and 599, or a class such as 5xx");
    given.map(|text| read(text).ok_or_else(wrong)).transpose()
}

/// The parameter `error`: one of [`ERROR_TYPES`].
///
/// # Errors
///
/// A [`Problem`] for another name.
pub fn error_type(given: Option<&str>) -> Result<Option<&'static str>, Problem> {
    let find = |name: &str| {
        let mut known = ERROR_TYPES.into_iter();
        let wrong = || Problem::query("error", format!("must be one of {}", ERROR_TYPES.join(", ")));
        known.find(|known| *known == name).ok_or_else(wrong)
    };
    given.map(find).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_every_status_code_of_it() {
        for (text, range) in [("503", 503..=503), ("5xx", 500..=599), ("1xx", 100..=199)] {
            assert_eq!(codes(Some(text)).ok().flatten(), Some(range), "{text}");
        }
        assert_eq!(codes(None).ok(), Some(None));
        for text in ["99", "600", "0xx", "6xx", "xx", "50x", "", "all"] {
            assert!(codes(Some(text)).is_err(), "{text}");
        }
    }
}
