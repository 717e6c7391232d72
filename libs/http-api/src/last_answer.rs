//! By what lists of notifications are filtered: how the last attempt ended. Every API takes it in the same words.

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
