//! Feeds `properties::cron`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::cron::check(input));
