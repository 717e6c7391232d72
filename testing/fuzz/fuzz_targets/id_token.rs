//! Feeds `properties::id_token`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::id_token::check(input));
