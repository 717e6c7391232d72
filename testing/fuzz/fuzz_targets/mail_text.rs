//! Feeds `properties::mail_text`, which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::mail_text::check(input));
