//! What is served about events and their types.

pub(crate) mod batch;
mod catalogue;
pub(crate) mod checking;
pub(crate) mod lane;
pub(crate) mod lookup;
pub(crate) mod payload;
pub(crate) mod promise;
pub(crate) mod submit;
pub(crate) mod types;

pub(crate) use catalogue::Catalogue;
