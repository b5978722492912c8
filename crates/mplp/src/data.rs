//! The vendored files, embedded: nothing is read or fetched when a program runs.
//!
//! Where they come from and under which licence: `data/README.md`. A test compares this table with the directory.

/// A file, by the path that upstream gives it.
pub(crate) type File = (&'static str, &'static str);

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../data/", $path)))),*]
    };
}

/// Every schema.
pub(crate) const SCHEMAS: &[File] = files![
    "schemas/v2/common/common-types.schema.json",
    "schemas/v2/common/events.schema.json",
    "schemas/v2/common/identifiers.schema.json",
    "schemas/v2/common/learning-sample.schema.json",
    "schemas/v2/common/metadata.schema.json",
    "schemas/v2/common/trace-base.schema.json",
    "schemas/v2/events/mplp-event-core.schema.json",
    "schemas/v2/events/mplp-graph-update-event.schema.json",
    "schemas/v2/events/mplp-map-event.schema.json",
    "schemas/v2/events/mplp-pipeline-stage-event.schema.json",
    "schemas/v2/events/mplp-runtime-execution-event.schema.json",
    "schemas/v2/events/mplp-sa-event.schema.json",
    "schemas/v2/integration/mplp-ci-event.schema.json",
    "schemas/v2/integration/mplp-file-update-event.schema.json",
    "schemas/v2/integration/mplp-git-event.schema.json",
    "schemas/v2/integration/mplp-tool-event.schema.json",
    "schemas/v2/learning/mplp-learning-sample-core.schema.json",
    "schemas/v2/learning/mplp-learning-sample-delta.schema.json",
    "schemas/v2/learning/mplp-learning-sample-intent.schema.json",
    "schemas/v2/mplp-collab.schema.json",
    "schemas/v2/mplp-confirm.schema.json",
    "schemas/v2/mplp-context.schema.json",
    "schemas/v2/mplp-core.schema.json",
    "schemas/v2/mplp-dialog.schema.json",
    "schemas/v2/mplp-extension.schema.json",
    "schemas/v2/mplp-network.schema.json",
    "schemas/v2/mplp-plan.schema.json",
    "schemas/v2/mplp-role.schema.json",
    "schemas/v2/mplp-trace.schema.json",
];

/// The files of invariants, in the order in which their rules are told.
pub(crate) const INVARIANTS: &[File] = files![
    "schemas/v2/invariants/sa-invariants.yaml",
    "schemas/v2/invariants/map-invariants.yaml",
    "schemas/v2/invariants/observability-invariants.yaml",
    "schemas/v2/invariants/integration-invariants.yaml",
    "schemas/v2/invariants/learning-invariants.yaml",
];

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests look at the files themselves"
)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn files_below(directory: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files_below(&path));
            } else {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn every_schema_and_every_invariant_file_is_embedded() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        let on_disk: BTreeSet<String> = files_below(&data.join("schemas"))
            .iter()
            .map(|path| {
                path.strip_prefix(&data)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .filter(|path| path.ends_with(".schema.json") || path.contains("/invariants/"))
            .collect();
        let embedded: BTreeSet<String> = SCHEMAS
            .iter()
            .chain(INVARIANTS)
            .map(|(path, _)| (*path).to_owned())
            .collect();
        assert_eq!(embedded, on_disk);
    }

    #[test]
    fn the_vendored_files_are_unmodified() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let data = root.join("data");
        let origin = root.join("../../../shared/mplp");
        if !origin.is_dir() {
            return;
        }
        let mut compared = 0;
        for part in ["schemas", "tests"] {
            let (ours, theirs) = (data.join(part), origin.join(part));
            let names = |files: Vec<PathBuf>, below: &Path| {
                let name = |path: &PathBuf| path.strip_prefix(below).unwrap().to_owned();
                files.iter().map(name).collect::<BTreeSet<_>>()
            };
            let all = names(files_below(&ours), &ours);
            assert_eq!(all, names(files_below(&theirs), &theirs));
            for name in all {
                let (ours, theirs) = (ours.join(&name), theirs.join(&name));
                assert_eq!(
                    std::fs::read(ours).unwrap(),
                    std::fs::read(theirs).unwrap(),
                    "{}",
                    name.display()
                );
                compared += 1;
            }
        }
        let licence = |root: &Path| std::fs::read(root.join("LICENSE.txt")).unwrap();
        assert_eq!(licence(&data), licence(&origin));
        assert!(compared > 60, "{compared}");
    }
}
