//! Feeds `properties::payload_schema`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::payload_schema::check(input));
