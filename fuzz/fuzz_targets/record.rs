//! `cargo fuzz run record`: see `backout_fuzz::record`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backout_fuzz::record(data));
