//! Tests of the frame around services, with services that do nothing.

mod process;
