//! `cargo fuzz run relay`: see `backout_fuzz::relay`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backout_fuzz::relay(data));
