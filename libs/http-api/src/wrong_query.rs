//! What is wrong with a query string, gathered from all of its parameters: who mends one is not told of the next one only then.

use crate::problem::Problem;

/// What is wrong with the parameters that were read so far.
#[derive(Debug, Default)]
#[must_use]
pub struct WrongQuery(pub(crate) Option<Problem>);

impl WrongQuery {
    /// What was read of a parameter. What stands in the place of one that cannot be accepted is for nothing but to read the others:
    /// [`Self::end`] or [`Self::with`] refuses the request.
    pub fn take<T: Default>(&mut self, read: Result<T, Problem>) -> T {
        read.unwrap_or_else(|problem| {
            self.add(problem);
            T::default()
        })
    }

    /// This is wrong, too.
    pub fn add(&mut self, problem: Problem) {
        self.0 = Some(match self.0.take() {
            Some(before) => before.and(problem),
            None => problem,
        });
    }

    /// Refuses the request, if anything is wrong.
    ///
    /// # Errors
    ///
    /// The [`Problem`] that names each parameter.
    pub fn end(self) -> Result<(), Problem> {
        self.with(Ok(()))
    }

    /// What was read last, if nothing is wrong.
    ///
    /// # Errors
    ///
    /// The [`Problem`] that names each parameter.
    pub fn with<T>(self, last: Result<T, Problem>) -> Result<T, Problem> {
        match (self.0, last) {
            (None, last) => last,
            (Some(before), Ok(_)) => Err(before),
            (Some(before), Err(problem)) => Err(before.and(problem)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paging;

    #[test]
    fn every_parameter_that_cannot_be_accepted_is_named_once() {
        let mut wrong = WrongQuery::default();
        assert_eq!(wrong.take(paging::limit(Some(0))), 0);
        assert_eq!(wrong.take(paging::read_id(Some("x"))), None);
        assert_eq!(wrong.take(paging::limit(Some(7))), 7);
        let again: Result<(), _> = Err(Problem::query("limit", "is there twice"));
        let problem = wrong.with(again).unwrap_err();
        let named: Vec<&str> = problem.errors().iter().map(|error| &*error.field).collect();
        assert_eq!(named, ["limit", "cursor"]);
        assert!(problem.detail().starts_with("limit must be"), "{problem:?}");
        assert!(WrongQuery::default().end().is_ok());
    }
}
