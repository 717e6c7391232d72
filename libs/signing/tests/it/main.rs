//! What others see of this crate: the vectors in `sdks/vectors.json`, and what an independent implementation says of it.

mod cases;
mod interop;
mod messages;
mod notifications;
mod python;
mod sample;
mod vector;
mod vectors;
