//! What can be seen of the world: every name with its kind, mode and content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::keys::apart;

/// What one name stands for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) is_directory: bool,
    mode: u32,
    content: String,
}

impl Seen {
    /// The same with the mode of another.
    pub(crate) fn with_mode_of(&self, other: &Self) -> Self {
        Self {
            mode: other.mode,
            ..self.clone()
        }
    }
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_directory { 'd' } else { '-' };
        write!(f, "{kind}{:04o} {:?}", self.mode & 0o7777, self.content)
    }
}

/// What every temporary name of the program begins with.
pub(crate) const TEMPORARY: &str = ".backout-";

pub(crate) type Tree = BTreeMap<String, Seen>;

/// Looks at everything below a directory.
pub(crate) fn look(root: &Path) -> Tree {
    let mut tree = Tree::new();
    collect(root, root, &mut tree);
    tree
}

fn collect(root: &Path, directory: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // A process that died may have left it for the recovery.
        if path.to_string_lossy().contains(TEMPORARY) {
            continue;
        }
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else if found.is_file() {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
        } else {
            String::new()
        };
        if found.is_dir() {
            collect(root, &path, tree);
        }
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let keys = found.is_file().then(|| apart(&name, &content)).flatten();
        let seen = Seen {
            is_directory: found.is_dir(),
            mode: found.mode(),
            content: match keys {
                Some(_) => "without its keys".to_owned(),
                None => content,
            },
        };
        tree.insert(name, seen);
        for (name, content) in keys.into_iter().flatten() {
            let seen = Seen {
                is_directory: false,
                mode: 0,
                content,
            };
            tree.insert(name, seen);
        }
    }
}

/// Lists the names that differ.
pub(crate) fn differing(one: &Tree, other: &Tree) -> BTreeSet<String> {
    let names = one.keys().chain(other.keys());
    let differs = |name: &&String| one.get(*name) != other.get(*name);
    names.filter(differs).cloned().collect()
}

/// Says how the world differs from what it must be, if it does.
pub(crate) fn unlike(must: &Tree, is: &Tree) -> Option<String> {
    let lines = differing(must, is).into_iter().map(|name| {
        let (must, is) = (must.get(&name), is.get(&name));
        format!("`{name}` must be {must:?} and is {is:?}")
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

pub(crate) fn put(tree: &mut Tree, name: &str, seen: Option<Seen>) {
    match seen {
        Some(seen) => drop(tree.insert(name.to_owned(), seen)),
        None => drop(tree.remove(name)),
    }
}
