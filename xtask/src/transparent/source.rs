//! The sources of Debian's packages, by way of an apt of our own that nobody else sees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::told;
use crate::run::{Step, run_all};

/// Fetches and unpacks the source of a package below a directory, if it is not there; gives where it is.
pub(super) fn of_package(name: &str, home: &Path) -> Result<PathBuf, String> {
    let place = home.join("source");
    fs::create_dir_all(&place).map_err(told(&place))?;
    if let Some(found) = unpacked(name, &place)? {
        return Ok(found);
    }
    let apt = home.join("apt");
    for part in ["sources", "lists/partial", "archives/partial"] {
        let part = apt.join(part);
        fs::create_dir_all(&part).map_err(told(&part))?;
    }
    write_sources(&apt.join("sources"))?;
    let set = |key: &str, value: &Path| format!("{key}={}", value.display());
    let options = [
        set("Dir::Etc::SourceList", Path::new("/dev/null")),
        set("Dir::Etc::SourceParts", &apt.join("sources")),
        set("Dir::State::Lists", &apt.join("lists")),
        set("Dir::Cache", &apt),
    ];
    let ask = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        for option in &options {
            command.args(["-o", option]);
        }
        command.arg("-q").args(words);
        command
    };
    run_all(vec![Step::new("source lists", &mut ask(&["update"]))])?;
    // The steps run in the project's root; the package is to be unpacked elsewhere.
    let mut fetch = ask(&["source", name]);
    let status = fetch.current_dir(&place).status().map_err(told(&place))?;
    if !status.success() {
        return Err(format!("the source of {name} could not be had ({status})"));
    }
    unpacked(name, &place)?.ok_or_else(|| format!("the source of {name} was not unpacked"))
}

/// The directory of a package: its name and a version.
fn unpacked(name: &str, place: &Path) -> Result<Option<PathBuf>, String> {
    let entries = fs::read_dir(place).map_err(told(place))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let start = format!("{name}-");
    Ok(paths.find(|path| {
        let is_it = |file: &std::ffi::OsStr| file.to_string_lossy().starts_with(&start);
        path.is_dir() && path.file_name().is_some_and(is_it)
    }))
}

/// Writes the machine's own list of places anew, asking for sources.
fn write_sources(to: &Path) -> Result<(), String> {
    let lists = Path::new("/etc/apt/sources.list.d");
    let entries = fs::read_dir(lists).map_err(told(lists))?;
    let listed = entries.flatten().map(|entry| entry.path());
    for path in listed.chain([PathBuf::from("/etc/apt/sources.list")]) {
        let is_list = path
            .extension()
            .is_some_and(|end| end == "list" || end == "sources");
        let (true, Some(name), Ok(text)) = (is_list, path.file_name(), fs::read_to_string(&path))
        else {
            continue;
        };
        let lines = text.lines().map(|line| match line.strip_prefix("deb ") {
            Some(rest) => format!("deb-src {rest}\n"),
            None if line.trim_end() == "Types: deb" => "Types: deb-src\n".to_owned(),
            None => format!("{line}\n"),
        });
        let path = to.join(name);
        fs::write(&path, lines.collect::<String>()).map_err(told(&path))?;
    }
    Ok(())
}
