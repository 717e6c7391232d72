//! Feeds `properties::dead_message`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::dead_message::check(input));
