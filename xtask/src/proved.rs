//! Every row of the table in `SECURITY.md` names a test that is there.

use std::fs;

use crate::run::root;
use crate::tidy::rust_files;

/// Checks the table.
pub(crate) fn check() -> Result<(), String> {
    let path = root().join("SECURITY.md");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let files = rust_files(&root().join("crates/cli/tests"));
    let sources: Vec<String> = files.iter().flat_map(fs::read_to_string).collect();
    let mut wrong = Vec::new();
    for row in rows(&text) {
        let names = tests_in(row);
        if names.is_empty() {
            wrong.push(format!("SECURITY.md: a row names no test: {row}"));
        }
        let is_there = |name: &str| sources.iter().any(|source| has(source, name));
        let missing = names.into_iter().filter(|name| !is_there(name));
        wrong.extend(missing.map(|name| format!("SECURITY.md: there is no test `{name}`")));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// Lists the rows of tables, without their heads.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    let is_head = |line: &&str| line.starts_with("| claim ") || line.starts_with("| ---");
    text.lines()
        .filter(|line| line.starts_with('|'))
        .filter(move |line| !is_head(line))
}

/// Names the tests, or the modules of tests, that a row speaks of; the beginning of a name may be left out.
fn tests_in(row: &str) -> Vec<&str> {
    let quoted = row.split('`').skip(1).step_by(2);
    let tests = quoted.filter(|text| text.contains("::") || text.starts_with('…'));
    let last = tests.filter_map(|text| text.rsplit("::").next());
    last.map(|name| name.trim_start_matches('…')).collect()
}

fn has(source: &str, name: &str) -> bool {
    [format!("{name}() {{"), format!("mod {name};")]
        .iter()
        .any(|text| source.contains(text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_tests() {
        let text = "| claim | test |\n| --- | --- |\n| `x` is kept | `a::b::is_kept`, `…_under_load`, `cargo xtask` |\n";
        let rows: Vec<&str> = rows(text).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(tests_in(rows[0]), ["is_kept", "_under_load"]);
        assert!(
            has("fn is_kept() {\n}", "is_kept") && has("fn it_is_under_load() {", "_under_load")
        );
        assert!(!has("fn is_kept() {\n}", "kept_too"));
    }

    #[test]
    fn every_row_has_a_test_that_is_there() {
        assert_eq!(check(), Ok(()));
    }
}
