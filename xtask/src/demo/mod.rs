//! The main job, shown: an agent's command removes what git never knew, it is taken back, and the later work stays.
//!
//! `cargo xtask demo --picture FILE` draws the same terminal as an SVG, for the README.

mod picture;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{Step, cargo, root, run_all, say};

/// What is typed, line by line.
const TYPED: [&str; 7] = [
    "ls -A",
    "backout run -- git clean -fdxq",
    "ls -A",
    "backout write TODO.md --text 'ship it'",
    "backout log",
    "backout undo @-1",
    "cat .env",
];

/// Builds the program and shows it in a temporary directory that is removed afterwards.
pub(crate) fn demo(words: &[String]) -> Result<(), String> {
    let picture = match words {
        [] => None,
        [flag, path] if flag == "--picture" => Some(path),
        _ => return Err("usage: cargo xtask demo [--picture FILE]".to_owned()),
    };
    run_all(vec![Step::new(
        "build",
        cargo().args(["build", "--release", "--package", "backout-cli"]),
    )])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let place = std::env::temp_dir().join(format!("backout-demo-{}", std::process::id()));
    let shown = told(&target.join("release"), &place, picture.is_some());
    fs::remove_dir_all(&place).map_err(|error| error.to_string())?;
    let shown = shown?;
    match picture {
        None => say(&shown),
        Some(path) => {
            fs::write(path, picture::svg(&shown)).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Types every line into a shell and gives what a terminal would show.
fn told(programs: &Path, place: &Path, is_coloured: bool) -> Result<String, String> {
    let work = place.join("shop");
    fs::create_dir_all(work.join("uploads")).map_err(|error| error.to_string())?;
    for (name, text) in [
        (".gitignore", ".env\nuploads/\n"),
        (".env", "STRIPE_KEY=sk_live_5eC7\n"),
        ("uploads/logo.png", "a picture\n"),
        ("main.rs", "fn main() {}\n"),
    ] {
        fs::write(work.join(name), text).map_err(|error| error.to_string())?;
    }
    let shell = |line: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = [programs.to_path_buf()]
            .into_iter()
            .chain(std::env::split_paths(&path));
        let paths = std::env::join_paths(paths).map_err(|error| error.to_string())?;
        let done = Command::new("sh")
            .args(["-c", &format!("{{ {line}; }} 2>&1")])
            .current_dir(&work)
            .env("PATH", paths)
            .env("BACKOUT_STATE_DIR", place.join("state"))
            .env("CLICOLOR_FORCE", if is_coloured { "1" } else { "0" })
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        if done.status.success() {
            Ok(text)
        } else {
            Err(format!("`{line}` ended with {}: {text}", done.status))
        }
    };
    shell(
        "git init -q . && git add . && git -c user.name=you -c user.email=you@example.org commit -qm shop",
    )?;
    let mut shown = String::new();
    for line in TYPED {
        let real = if is_coloured {
            line.replace("backout ", "backout --color always ")
        } else {
            line.to_owned()
        };
        let text = shell(&real)?;
        // One line is enough for a list of short names.
        let text = if line.starts_with("ls") {
            text.split_whitespace().collect::<Vec<_>>().join("  ") + "\n"
        } else {
            text
        };
        // Writing to a string cannot fail.
        let _written = writeln!(shown, "$ {line}\n{text}");
    }
    Ok(shown)
}
