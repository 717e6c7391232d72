//! Doors to what is private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use lapin::types::FieldTable;
use serde_json::Value;

use crate::dead::{Death, table};

/// What is told of a dead-lettered message with these headers: the headers, and reason, queue and count of its first
/// death.
pub fn dead_letter(headers: &FieldTable) -> (Value, Option<String>, Option<String>, u64) {
    let headers = table(headers);
    let death = Death::read(&headers);
    (headers, death.reason, death.queue, death.count)
}
