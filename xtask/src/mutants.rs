//! Changing the code on purpose, one place at a time, to see that a test notices.
//!
//! Only where a wrong line would lose or lie: the model, and undo, redo and recovery in the engine. A round takes hours, so
//! it can be told in parts: `cargo xtask mutants 3/40`.

use crate::run::{Step, cargo, run_all, say};

/// What is changed.
const FILES: [&str; 4] = [
    "crates/model/src/**/*.rs",
    "crates/engine/src/undo/**/*.rs",
    "crates/engine/src/recover.rs",
    "crates/engine/src/restore.rs",
];

/// A test that takes longer than this has been changed into a loop.
const SECONDS_MAX: &str = "240";

/// Makes the changes, or one part of them; installs the tool if it is missing.
pub(crate) fn mutants(arguments: &[String]) -> Result<(), String> {
    let is_there = cargo().args(["mutants", "--version"]).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        say("installing cargo-mutants");
        let mut install = cargo();
        install.args(["install", "cargo-mutants", "--locked"]);
        run_all(vec![Step::new("cargo-mutants", &mut install)])?;
    }
    let mut run = cargo();
    run.args(["mutants", "--workspace", "--no-shuffle"]);
    run.args(["--sharding", "round-robin", "--timeout", SECONDS_MAX]);
    run.args(["--test-tool", "nextest"]);
    run.args(["--features", "backout-cli/testing"]);
    run.args(["--test-package", "backout-model,backout-engine,backout-cli"]);
    // Recovery and the order of acts are tested through the program.
    let filter = "not package(backout-cli) or binary(laws) or test(trust::)";
    run.args(["--cargo-test-arg", "-E", "--cargo-test-arg", filter]);
    run.args(FILES.iter().flat_map(|file| ["--file", file]));
    match arguments {
        [] => {}
        [part] => drop(run.args(["--shard", part])),
        _ => return Err("usage: cargo xtask mutants [PART/OF]".to_owned()),
    }
    run_all(vec![Step::new("mutants", &mut run)])
}
