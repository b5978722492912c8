//! What the tests need beyond the Rust toolchain, from Debian's packages.

use std::process::Command;

use crate::run::{Step, run_all, say};

/// A program that the tests use, and the package that brings it.
const NEEDED: [(&str, &str); 24] = [
    ("setfacl", "acl"),
    ("setfattr", "attr"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.xfs", "xfsprogs"),
    ("setpriv", "util-linux"),
    ("strace", "strace"),
    ("git", "git"),
    ("make", "make"),
    ("python3", "python3"),
    ("script", "bsdutils"),
    ("bwrap", "bubblewrap"),
    ("pgrep", "procps"),
    ("nginx", "nginx-light"),
    ("redis-server", "redis-server"),
    ("mariadbd", "mariadb-server"),
    ("openssl", "openssl"),
    ("curl", "curl"),
    ("notify-send", "libnotify-bin"),
    ("dbus-daemon", "dbus"),
    ("pdns_server", "pdns-server"),
    ("tmux", "tmux"),
    // It installs the coding agents into `target/agents`.
    ("npm", "npm"),
    // The page is looked at in it.
    ("chromium", "chromium"),
];

/// A file that the tests use, and the package that brings it.
const FILES: [(&str, &str); 5] = [
    (
        "/usr/lib/python3/dist-packages/jsonschema/__init__.py",
        "python3-jsonschema",
    ),
    (
        "/usr/lib/python3/dist-packages/yaml/__init__.py",
        "python3-yaml",
    ),
    (
        "/usr/lib/python3/dist-packages/jeepney/__init__.py",
        "python3-jeepney",
    ),
    // Its programs are in a directory of their version, on nobody's path.
    ("/usr/lib/postgresql", "postgresql"),
    (
        "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql",
        "pdns-backend-sqlite3",
    ),
];

/// Programs that tests run under our watch if they are here. Without one, its test says so.
const WANTED: [(&str, &str); 3] = [
    ("rsync", "rsync"),
    ("sqlite3", "sqlite3"),
    ("bindfs", "bindfs"),
];

/// Installs the packages whose programs are missing. Without root it says which they are.
pub(crate) fn install_what_tests_need() -> Result<(), String> {
    install(&missing_of(&NEEDED))?;
    for (file, package) in FILES {
        install_if_missing(file, package)?;
    }
    if let Err(why) = install(&missing_of(&WANTED)) {
        say(&format!("{why}; what needs them is not tried"));
    }
    Ok(())
}

fn missing_of(programs: &[(&str, &'static str)]) -> Vec<&'static str> {
    let missing = programs.iter().filter(|(program, _)| !is_there(program));
    missing.map(|(_, package)| *package).collect()
}

/// Installs a package if what it brings is not there.
pub(crate) fn install_if_missing(file: &str, package: &str) -> Result<(), String> {
    if std::path::Path::new(file).exists() {
        return Ok(());
    }
    install(&[package])
}

/// Installs packages.
pub(crate) fn install(missing: &[&str]) -> Result<(), String> {
    if missing.is_empty() {
        return Ok(());
    }
    say(&format!("installing {}", missing.join(" ")));
    run_all(vec![
        Step::new(
            "package lists",
            Command::new("apt-get").arg("update").arg("-q"),
        ),
        Step::new(
            "packages",
            Command::new("apt-get")
                .args(["install", "-y", "-q", "--no-install-recommends"])
                .args(missing)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        ),
    ])
    .map_err(|why| format!("{why}; install by hand: {}", missing.join(" ")))
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/sbin".into(), "/usr/sbin".into()]);
    places.into_iter().any(|place| place.join(program).exists())
}
