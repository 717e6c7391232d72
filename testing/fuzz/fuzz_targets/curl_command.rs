//! Feeds `properties::curl_command`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::curl_command::check(input));
