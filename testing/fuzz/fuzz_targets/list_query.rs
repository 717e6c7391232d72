//! Feeds `properties::list_query`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::list_query::check(input));
