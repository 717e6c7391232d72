//! What is served about pushes.

pub(crate) mod lane;
pub(crate) mod lookup;
pub(crate) mod payload;
pub(crate) mod submit;
