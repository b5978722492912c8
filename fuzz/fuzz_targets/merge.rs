//! `cargo fuzz run merge`: see `backout_fuzz::merge`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backout_fuzz::merge(data));
