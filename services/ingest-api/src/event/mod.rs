//! What is served about events and their types.

pub(crate) mod batch;
mod catalogue;
pub(crate) mod idempotency;
pub(crate) mod lane;
pub(crate) mod lookup;
pub(crate) mod payload;
pub(crate) mod submit;
pub(crate) mod types;
pub(crate) mod validate;

pub(crate) use catalogue::Catalogue;
