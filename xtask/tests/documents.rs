//! What documents name is there: tests, by their modules, and an example that is as short as its page says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The driver that `docs/adding-a-driver.md` leads to has fewer lines, with its documentation.
const EXAMPLE_LINES_MAX: usize = 200;

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap().to_owned()
}

/// Every source file of the crates, by its path without its ending.
fn sources() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root().join("crates")];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(path.with_extension(""), text);
            }
        }
    }
    found
}

/// Lists the names in backticks that have `::` in them, below the heading of the tests.
fn named(document: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/design").join(document)).unwrap();
    let (_, tests) = text.split_once("\n## Where it is tested\n").unwrap();
    let names = tests.split('`').skip(1).step_by(2);
    let names = names.filter(|name| name.contains("::"));
    names.map(str::to_owned).collect()
}

/// Tells whether a name is a module, or a test in one.
fn is_there(name: &str, sources: &BTreeMap<PathBuf, String>) -> bool {
    let path: PathBuf = name.split("::").collect();
    let is_module = |at: &Path| at.ends_with(&path) || at.ends_with(path.join("mod"));
    let (module, test) = name.rsplit_once("::").unwrap();
    let module: PathBuf = module.split("::").collect();
    let has_test = |at: &Path, text: &str| {
        let is_its = [module.clone(), module.join("mod"), module.join("main")]
            .iter()
            .any(|it| at.ends_with(it));
        // A workload of a macro is a name and a colon.
        is_its
            && (text.contains(&format!("fn {test}(")) || text.contains(&format!("\n    {test}: ")))
    };
    sources
        .iter()
        .any(|(at, text)| is_module(at) || has_test(at, text))
}

#[test]
fn every_test_that_is_named_is_there() {
    let sources = sources();
    for document in ["stores.md", "gates.md"] {
        let names = named(document);
        assert!(names.len() > 10, "{document}: {names:?}");
        for name in names {
            assert!(is_there(&name, &sources), "{document}: `{name}`");
        }
    }
    assert!(!is_there("proof::gates::nobody_wrote_this", &sources));
    assert!(!is_there("gates::it_is_told_and_kept", &sources));
}

#[test]
fn the_example_of_a_driver_is_as_short_as_its_page_says() {
    let text = fs::read_to_string(root().join("crates/driver-example/src/lib.rs")).unwrap();
    let lines = text.lines().count();
    assert!(lines < EXAMPLE_LINES_MAX, "{lines}");
    let page = fs::read_to_string(root().join("docs/adding-a-driver.md")).unwrap();
    assert!(page.contains(&format!("under {EXAMPLE_LINES_MAX} lines")));
}
