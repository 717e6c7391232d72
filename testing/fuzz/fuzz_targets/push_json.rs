//! Feeds `properties::push_json`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::push_json::check(input));
