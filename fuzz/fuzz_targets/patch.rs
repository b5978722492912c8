//! `cargo fuzz run patch`: see `backout_fuzz::patch`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backout_fuzz::patch(data));
