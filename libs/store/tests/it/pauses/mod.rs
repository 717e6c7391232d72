//! Pauses by operators.

mod claims;
mod periods;
mod resellers;
pub(crate) mod scene;
mod told;
