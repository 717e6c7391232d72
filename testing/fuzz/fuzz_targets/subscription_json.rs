//! Feeds `properties::subscription_json`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::subscription_json::check(input));
