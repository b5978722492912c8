//! `cargo fuzz run log`: see `backout_fuzz::log`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backout_fuzz::log(data));
