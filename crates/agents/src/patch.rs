//! Which files a patch in the form of `apply_patch` names.
//!
//! ```text
//! *** Begin Patch
//! *** Update File: src/a.rs
//! *** Move to: src/b.rs
//! @@ ...
//! *** End Patch
//! ```

use std::path::PathBuf;

use backout_model::Verb;

/// Finds the files, each once, in the order of the patch. None if the text is no patch.
pub(crate) fn files(text: &str) -> Option<(Verb, Vec<PathBuf>)> {
    if !text.contains("*** Begin Patch") {
        return None;
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut verbs = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let named = [
            ("*** Add File:", Verb::Write),
            ("*** Update File:", Verb::Edit),
            ("*** Delete File:", Verb::Remove),
            ("*** Move to:", Verb::Move),
        ];
        let found = named.into_iter().find_map(|(head, verb)| {
            let path = line.strip_prefix(head)?.trim();
            (!path.is_empty()).then(|| (verb, PathBuf::from(path)))
        });
        if let Some((verb, path)) = found {
            verbs.push(verb);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    let verb = match verbs.as_slice() {
        [only] => *only,
        _ => Verb::Batch,
    };
    Some((verb, paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_its_files() {
        let text = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** Update File: a b.txt\n*** Move to: c.txt\n@@\n-x\n+y\n*** Delete File: gone\n*** End Patch\n";
        let (verb, paths) = files(text).unwrap();
        assert_eq!(verb, Verb::Batch);
        let names = ["new.txt", "a b.txt", "c.txt", "gone"];
        assert_eq!(paths, names.map(PathBuf::from));
        let (verb, _) = files("*** Begin Patch\n*** Delete File: gone\n*** End Patch").unwrap();
        assert_eq!(verb, Verb::Remove);
        assert_eq!(files("rm x"), None);
    }
}
