//! Feeds `properties::event_filter`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::event_filter::check(input));
