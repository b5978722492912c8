//! `cargo fuzz run recipe`: see `backout_fuzz::recipe`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backout_fuzz::recipe(data));
