//! Feeds `properties::request_headers`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::request_headers::check(input));
