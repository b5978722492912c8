//! Running the fuzz targets of `fuzz/`, each for a bounded time.
//!
//! The fuzzer needs the nightly compiler, so it is no part of `ci`; the inputs that it found once are
//! (`crates/drivers/tests/corpus.rs`).

use std::fs;
use std::process::Command;

use crate::run::{Step, root, run_all, say};

/// So long each target runs if nobody says otherwise.
const SECONDS: u64 = 30;

/// Larger inputs only cost time.
const INPUT_BYTES_MAX: u64 = 8192;

/// Runs every target; installs the tool if it is missing.
pub(crate) fn fuzz(arguments: &[String]) -> Result<(), String> {
    let seconds = match arguments {
        [] => SECONDS,
        [seconds] => seconds
            .parse()
            .map_err(|_| format!("`{seconds}` is no number of seconds"))?,
        _ => return Err("usage: cargo xtask fuzz [SECONDS]".to_owned()),
    };
    if !works(&["--version"]) {
        return Err(
            "the fuzzer needs the nightly compiler: `rustup toolchain install nightly`".to_owned(),
        );
    }
    if !works(&["fuzz", "--version"]) {
        say("installing cargo-fuzz");
        let mut install = nightly();
        install.args(["install", "cargo-fuzz", "--locked"]);
        run_all(vec![Step::new("cargo-fuzz", &mut install)])?;
    }
    for target in targets()? {
        // New inputs go to the build directory; the corpus in the repository is small and chosen by hand.
        let found = root().join("fuzz/target/found").join(&target);
        fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
        say(&format!("== {target}, {seconds} s"));
        let mut run = nightly();
        run.args(["fuzz", "run", "--fuzz-dir", "fuzz", &target])
            .arg(&found)
            .arg(root().join("fuzz/corpus").join(&target))
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={INPUT_BYTES_MAX}"))
            .arg("-print_final_stats=1");
        run_all(vec![Step::new("fuzz", &mut run)])?;
    }
    Ok(())
}

/// Lists the targets: each has a folder of inputs.
fn targets() -> Result<Vec<String>, String> {
    let corpus = root().join("fuzz/corpus");
    let listed = fs::read_dir(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let names = listed.flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// The nightly cargo. What the cargo that runs us has set would choose its own compiler again.
fn nightly() -> Command {
    let mut command = Command::new("cargo");
    command
        .arg("+nightly")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO");
    command
}

fn works(arguments: &[&str]) -> bool {
    let output = nightly().args(arguments).current_dir(root()).output();
    output.is_ok_and(|output| output.status.success())
}
