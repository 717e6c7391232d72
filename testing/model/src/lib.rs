//! Models of the protocol by which pushes and notifications are delivered, for [stateright](https://docs.rs/stateright) to go
//! through all that can happen within bounds.
//!
//! What decides in the product decides here: the transition functions, policies and verdicts of `domain`. What the statements of
//! `store` guard and the services do in which order is written down once more, in small, next to the name of the file that it stands
//! for. [docs/model.md](../../../docs/model.md) says what is modelled, what is not, and how many states were visited.
//!
//! Nothing here is shipped, and nothing here talks to a server.

pub mod catalogue;
pub mod check;
pub mod delivery;
pub mod graph;
pub mod leadership;
pub mod pause;
pub mod quota;
pub mod webpush;
