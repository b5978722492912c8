//! Brings the contenders that are missing: from crates.io into `target/peers`, and from Debian's packages.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;
use crate::process::{cargo, on_path, run_well, target_dir};
use crate::report::say;

/// Program, crate, version. Fixed, so that two runs race against the same.
const CRATES: [(&str, &str, &str); 4] = [
    ("doover", "doover", "0.2.3"),
    ("undo", "undo-core", "0.2.0"),
    ("au", "agent-undo", "0.0.3"),
    ("jj", "jj-cli", "0.45.1"),
];

/// Program and package.
const PACKAGES: [(&str, &str); 3] = [("restic", "restic"), ("borg", "borgbackup"), ("git", "git")];

/// Where the program of a crate is, or would be.
pub(super) fn program(name: &str) -> PathBuf {
    target_dir().join("peers/bin").join(name)
}

/// The version that an installed program tells, without `prefix`.
pub(super) fn version(name: &str, prefix: &str) -> Result<String, Failure> {
    let program = program(name);
    if !program.is_file() {
        return Err(format!("`{name}` is not installed").into());
    }
    let ran = run_well(Command::new(program).arg("--version"))?;
    let line = ran.output.trim().replace(prefix, "");
    Ok(line.split(['-', ' ']).next().unwrap_or_default().to_owned())
}

/// Installs what is missing, of these if there are names. What cannot be installed is complained about and takes no part.
pub(super) fn install_missing(names: &[String]) -> Vec<String> {
    let is_wanted = |package: &str| {
        names.is_empty() || names.iter().any(|name| package.contains(name.as_str()))
    };
    let mut complaints = Vec::new();
    for (name, package, version) in CRATES {
        if program(name).is_file() || !is_wanted(package) {
            continue;
        }
        say(&format!("installing {package} {version}"));
        if let Err(why) = install_crate(package, version) {
            complaints.push(format!("{package} cannot be installed: {why}"));
        }
    }
    for (name, package) in PACKAGES {
        if on_path(name).is_some() || !is_wanted(package) {
            continue;
        }
        say(&format!("installing {package}"));
        if let Err(why) = install_package(package) {
            complaints.push(format!("{package} cannot be installed: {why}"));
        }
    }
    complaints
}

/// Builds without link-time optimisation, which takes minutes and gains a few percent.
fn install_crate(package: &str, version: &str) -> Result<(), Failure> {
    let mut install = cargo();
    install
        .args([
            "install",
            "--locked",
            "--quiet",
            "--version",
            version,
            package,
        ])
        .arg("--root")
        .arg(target_dir().join("peers"))
        .env("CARGO_TARGET_DIR", target_dir().join("peers/build"))
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    run_well(&mut install)?;
    Ok(())
}

fn install_package(package: &str) -> Result<(), Failure> {
    run_well(Command::new("apt-get").args(["update", "-q"]))?;
    run_well(
        Command::new("apt-get")
            .args(["install", "-y", "-q", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    Ok(())
}
