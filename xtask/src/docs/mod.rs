//! The documents as a site: `cargo xtask docs`.
//!
//! The book's sources are put together in `target/book/src`, which has the layout of the project, so that every link means there
//! what it means here. Two chapters are made by the program itself: the reference of the commands from their help, that of HTTP
//! from the OpenAPI document. `mdbook` is built into `target/tools` if it is not there. Nothing here is needed by `ci`, which
//! checks only that no link leads nowhere (`links`).

pub(crate) mod links;
mod reference;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Step, cargo, root, run_all, say};

/// The version that the site was last built with.
const MDBOOK: &str = "0.5.4";

/// What the book takes from outside of `docs/`.
const BESIDE: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "python/README.md",
];

/// Builds the site into `target/book/html`, and checks the links of what came out.
pub(crate) fn docs() -> Result<(), String> {
    links::check()?;
    let book = root().join("target/book");
    if book.exists() {
        fs::remove_dir_all(&book).map_err(|error| format!("{}: {error}", book.display()))?;
    }
    let source = book.join("src");
    copy_tree(&root().join("docs"), &source.join("docs"))?;
    for name in BESIDE {
        copy(&root().join(name), &source.join(name))?;
    }
    run_all(vec![Step::new(
        "the program",
        // As the tests build it, so that nothing is compiled for this alone.
        cargo()
            .args(["build", "--workspace", "--bin", "backout"])
            .args(["--features", "backout-cli/testing"]),
    )])?;
    let chapters = source.join("docs/reference");
    write(&chapters.join("cli.md"), &reference::commands()?)?;
    write(&chapters.join("http.md"), &reference::http()?)?;
    let summary = source.join("docs/SUMMARY.md");
    let text = read(&summary)?;
    fs::remove_file(&summary).map_err(|error| error.to_string())?;
    write(&source.join("SUMMARY.md"), &from_the_root(&text))?;
    write(&book.join("book.toml"), SETTINGS)?;
    let mdbook = mdbook()?;
    let mut build = Command::new(mdbook);
    build.arg("build").arg(&book);
    run_all(vec![Step::new("book", &mut build)])?;
    links::check_pages(&book.join("html"))?;
    say(&format!("the site is in {}", book.join("html").display()));
    Ok(())
}

const SETTINGS: &str = "[book]
title = \"Backout\"
description = \"No agent write without a back-out plan\"
language = \"en\"

[build]
build-dir = \"html\"
create-missing = false
use-default-preprocessors = false

[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"
";

/// Makes the summary, which stands in `docs/`, one that stands a level higher.
fn from_the_root(summary: &str) -> String {
    summary
        .replace("](", "](docs/")
        .replace("](docs/)", "]()")
        .replace("](docs/../", "](")
}

/// Finds the program that builds books, or builds it.
fn mdbook() -> Result<PathBuf, String> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/mdbook");
    if program.exists() {
        return Ok(program);
    }
    let mut install = cargo();
    install
        .args(["install", "--locked", "--quiet", "mdbook", "--version"])
        .args([
            MDBOOK,
            "--no-default-features",
            "--features",
            "search",
            "--root",
        ])
        .arg(&tools);
    run_all(vec![Step::new("mdbook", &mut install)])?;
    Ok(program)
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    let entries = fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    write_bytes(to, &bytes)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    write_bytes(path, text.as_bytes())
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}
