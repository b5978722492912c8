//! The main job, shown: an agent writes, one write was wrong, it goes and the independent later work stays.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{Step, cargo, root, run_all, say};

/// Builds the program and shows it in a temporary directory that is removed afterwards.
pub(crate) fn demo() -> Result<(), String> {
    run_all(vec![Step::new(
        "build",
        cargo().args(["build", "--release", "--package", "backout-cli"]),
    )])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let program = target.join("release/backout");
    let place = std::env::temp_dir().join(format!("backout-demo-{}", std::process::id()));
    fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let result = show(&program, &place);
    fs::remove_dir_all(&place).map_err(|error| error.to_string())?;
    result
}

fn show(program: &Path, place: &Path) -> Result<(), String> {
    let state = place.join("state");
    let work = place.join("work");
    fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    fs::write(work.join("app.toml"), "port = 8080\nhost = \"localhost\"\n")
        .map_err(|error| error.to_string())?;
    for arguments in [
        &["edit", "app.toml", "--search", "8080", "--replace", "80800"][..],
        &[
            "write",
            "notes.txt",
            "--text",
            "kept: independent of the bad edit\n",
        ],
        &["log"],
        &["diff", "@-1"],
        &["undo", "@-1", "--dry-run"],
        &["undo", "@-1"],
        &["log"],
    ] {
        say(&format!("\n$ backout {}", arguments.join(" ")));
        let status = Command::new(program)
            .args(arguments)
            .current_dir(&work)
            .env("BACKOUT_STATE_DIR", &state)
            .status()
            .map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!(
                "`backout {}` ended with {status}",
                arguments.join(" ")
            ));
        }
    }
    say("\n$ cat app.toml notes.txt");
    for file in ["app.toml", "notes.txt"] {
        let text = fs::read_to_string(work.join(file)).map_err(|error| error.to_string())?;
        say(text.trim_end());
    }
    Ok(())
}
