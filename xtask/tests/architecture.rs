//! The dependency rule of ARCHITECTURE.md, compared with what cargo says, so that it cannot rot.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Who may depend on whom, among our own crates. Development dependencies do not count.
const ALLOWED: [(&str, &[&str]); 23] = [
    ("backout-crashpoint", &[]),
    ("backout-model", &[]),
    ("backout-agents", &["backout-config", "backout-model"]),
    ("backout-capture", &["backout-crashpoint"]),
    ("backout-changeset", &[]),
    ("backout-checks", &["backout-config"]),
    ("backout-config", &[]),
    ("backout-mplp", &["backout-model"]),
    ("backout-shell", &[]),
    ("backout-storage", &["backout-crashpoint", "backout-model"]),
    ("backout-files", &["backout-capture", "backout-model"]),
    (
        "backout-drivers",
        &[
            "backout-config",
            "backout-capture",
            "backout-changeset",
            "backout-crashpoint",
            "backout-files",
            "backout-model",
        ],
    ),
    (
        "backout-gates",
        &["backout-capture", "backout-checks", "backout-model"],
    ),
    (
        "backout-engine",
        &[
            "backout-capture",
            "backout-crashpoint",
            "backout-files",
            "backout-model",
            "backout-mplp",
            "backout-storage",
        ],
    ),
    (
        "backout",
        &["backout-drivers", "backout-engine", "backout-model"],
    ),
    ("backout-daemon", &["backout-engine", "backout-model"]),
    (
        "backout-mcp",
        &["backout-drivers", "backout-engine", "backout-model"],
    ),
    (
        "backout-cli",
        &[
            "backout-agents",
            "backout-capture",
            "backout-config",
            "backout-daemon",
            "backout-driver-example",
            "backout-shell",
            "backout-drivers",
            "backout-engine",
            "backout-gates",
            "backout-mcp",
            "backout-model",
            "backout-mplp",
            "backout-remote",
            "backout-storage",
        ],
    ),
    (
        "backout-bench",
        &[
            "backout",
            "backout-checks",
            "backout-drivers",
            "backout-engine",
            "backout-gates",
            "backout-model",
            "backout-storage",
        ],
    ),
    ("backout-testkit", &["backout-model", "backout-storage"]),
    ("backout-driver-example", &["backout-model"]),
    (
        "backout-remote",
        &["backout-checks", "backout-crashpoint", "backout-model"],
    ),
    ("xtask", &[]),
];

/// What the core may never bring in: it is synchronous, and it builds everywhere.
const BANNED: [&str; 4] = ["tokio", "async-std", "reqwest", "openssl-sys"];

#[test]
fn dependencies_point_one_way() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ALLOWED
        .iter()
        .map(|(name, on)| (*name, on.iter().copied().collect()))
        .collect();
    for (name, dependencies) in workspace() {
        let allowed = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("{name} is not in the table"));
        for dependency in dependencies {
            assert!(
                allowed.contains(dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn folders_have_the_names_of_their_crates() {
    let metadata = metadata(&["--no-deps"]);
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"]
            .as_str()
            .unwrap()
            .trim_start_matches("backout-");
        let manifest = package["manifest_path"].as_str().unwrap();
        assert!(
            manifest.ends_with(&format!("/{name}/Cargo.toml")),
            "{manifest}"
        );
    }
}

#[test]
fn the_core_brings_no_runtime_and_no_network() {
    let metadata = metadata(&[]);
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let brought_by: BTreeMap<&str, Vec<&str>> = nodes
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), normal_dependencies(node)))
        .collect();
    let mut waiting: Vec<&str> = brought_by
        .keys()
        .copied()
        .filter(|id| is_core(id))
        .collect();
    assert!(waiting.len() > 8, "the core is not found: {waiting:?}");
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            let is_banned = BANNED.iter().any(|name| id.contains(&format!("#{name}@")));
            assert!(!is_banned, "{id} has crept in");
            waiting.extend(&brought_by[id]);
        }
    }
}

/// Tells whether a package is ours, and not one that may bring a network: the drivers of servers, the server, and who uses them.
fn is_core(id: &str) -> bool {
    let folder = id.split_once("/crates/").map(|(_, rest)| rest);
    folder.is_some_and(|folder| {
        !["remote#", "daemon#", "mcp#", "cli#"]
            .iter()
            .any(|it| folder.starts_with(it))
    })
}

/// Lists what a package brings along wherever it goes: not what only its tests need.
fn normal_dependencies(node: &serde_json::Value) -> Vec<&str> {
    let dependencies = node["deps"].as_array().unwrap().iter();
    let normal = dependencies.filter(|dependency| {
        let kinds = dependency["dep_kinds"].as_array().unwrap();
        kinds
            .iter()
            .any(|kind| kind["kind"].as_str() != Some("dev"))
    });
    normal
        .map(|dependency| dependency["pkg"].as_str().unwrap())
        .collect()
}

/// Our crates with what they depend on among themselves.
fn workspace() -> Vec<(String, Vec<String>)> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<&str> = packages
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    let of = |package: &serde_json::Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        let normal = dependencies
            .iter()
            .filter(|d| d["kind"].as_str() != Some("dev"));
        let names = normal.map(|d| d["name"].as_str().unwrap().to_owned());
        let names = names.filter(|name| ours.contains(name.as_str())).collect();
        (package["name"].as_str().unwrap().to_owned(), names)
    };
    packages.iter().map(of).collect()
}

fn metadata(arguments: &[&str]) -> serde_json::Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}
