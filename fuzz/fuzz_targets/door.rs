//! `cargo fuzz run door`: see `backout_fuzz::door`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backout_fuzz::door(data));
