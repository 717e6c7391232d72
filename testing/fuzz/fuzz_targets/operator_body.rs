//! Feeds `properties::operator_body`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::operator_body::check(input));
