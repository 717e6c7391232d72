//! Doors to what is private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use domain::notification::DeliveryOutcome;

use super::Answer;

/// Whether an endpoint that was challenged with `text` answered as it has to.
pub fn classified(outcome: DeliveryOutcome, text: &str) -> Answer {
    super::challenge::classify(outcome, text)
}
