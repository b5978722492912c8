//! What the product stands for, tried on the real program: real processes, real aborts, real full disks.
//!
//! The snapshots of what people read are in the other test binary (`tests/main.rs`); here it is the world that is
//! compared, bit for bit. Crash points need the feature `testing`, which `cargo xtask test` turns on.

#![cfg(feature = "testing")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and may say what it counted"
)]

mod attacks;
mod bad_days;
mod checks;
mod commands;
mod crash;
mod crash_pairs;
mod damage;
mod databases;
mod deciding;
mod disk;
#[cfg(target_arch = "x86_64")]
mod errno;
mod fidelity;
mod formats;
mod gates;
mod gates_around;
mod gates_held;
mod graph;
mod hosts;
mod http;
mod key_stories;
mod keys;
mod ladder;
mod locked;
mod memory;
mod mixed;
mod once;
mod power;
mod processes;
mod programs;
mod programs_decided;
mod random;
mod reach;
mod redis;
mod resume;
mod rollout;
mod rollout_others;
mod rollout_stopped;
mod ruled;
mod sandbox;
mod sandbox_branches;
mod sandbox_elsewhere;
mod storm;
mod trial;
mod trust;
mod workspace;
mod workspace_others;
mod world;
mod zoo;
