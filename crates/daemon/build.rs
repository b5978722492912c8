//! Puts the files of `web/` into the program: a table of name and bytes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let web = root.join("web");
    println!("cargo::rerun-if-changed={}", web.display());
    let mut files = Vec::new();
    gather(&web, &mut files);
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&web).expect("it is below");
        let name = name.to_str().expect("files of the page have plain names");
        let from = file.to_str().expect("the path of the sources is text");
        let _written = writeln!(table, "    ({name:?}, include_bytes!({from:?})),");
    }
    table.push(']');
    fs::write(out.join("web.rs"), table).expect("the table is written");
}

/// Lists the files of a directory and those below, without what is hidden.
fn gather(directory: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", directory.display());
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name.ends_with(".md") {
            continue;
        }
        if path.is_dir() {
            gather(&path, files);
        } else {
            files.push(path);
        }
    }
}
