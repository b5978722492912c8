//! Patterns of paths: as people write them, and as they are matched.
//!
//! - `./x`, `x/`, `x//y`, `x/../y` and `{x,y}` mean what they mean to a shell.
//! - What leads to a pattern's first sign is meant literally. If links lie on that way, they are protected, and what they lead to is
//!   meant as well, also if it is not there yet.
//! - A link whose name a sign matches is followed, too, as far as names are matched one by one: not behind a `**`.
//! - A pattern that can match nothing is refused: who wrote it believes that something is protected.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use backout_model::{Glob, GlobError};

use crate::braces::written_out;
use crate::ways::Way;

/// How many names are looked at to find links that signs match.
const NAMES_MAX: usize = 10_000;

/// A pattern of stars of up to this length can be compiled, whatever stands between them.
const PLAIN_MAX: usize = 1000;

/// What means something in a pattern that is written out.
const SIGNS: [char; 5] = ['*', '?', '[', ']', '\\'];

/// What patterns start at.
#[derive(Debug)]
pub(crate) struct Roots<'r> {
    /// Where relative ones start.
    pub(crate) base: &'r Path,
    /// What `~` stands for.
    pub(crate) home: Option<&'r Path>,
    /// Whether they are the user's own, which count everywhere; those of a project count below `base`.
    pub(crate) is_own: bool,
}

/// Patterns, as they are written and as they are matched.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    /// What is matched, each with what was written.
    globs: Vec<(Lazy, String)>,
    /// Where what each of them matches begins, up to its first sign, and whether there is one.
    tops: Vec<(PathBuf, bool)>,
    /// Those in which a `**` stands.
    deep: Vec<(PathBuf, String)>,
}

/// A pattern that is compiled when the first path comes by that may match: most never have to.
#[derive(Debug)]
struct Lazy {
    /// What is literal.
    start: PathBuf,
    /// The names from the first sign on.
    rest: Vec<String>,
    glob: OnceLock<Glob>,
}

impl Lazy {
    /// Takes a pattern. One with a sign that can be wrong is compiled at once.
    fn new(start: PathBuf, rest: Vec<String>) -> Result<Self, GlobError> {
        let lazy = Self {
            start,
            rest,
            glob: OnceLock::new(),
        };
        let is_plain = |name: &String| !name.contains(['[', ']', '{', '}', '\\']);
        let length: usize = lazy.rest.iter().map(String::len).sum();
        if !lazy.rest.iter().all(is_plain) || length > PLAIN_MAX {
            let _compiled = lazy.glob.set(lazy.compiled()?);
        }
        Ok(lazy)
    }

    fn compiled(&self) -> Result<Glob, GlobError> {
        let mut whole = PathBuf::from(Glob::exactly(&self.start));
        whole.extend(&self.rest);
        Glob::read(whole, Path::new("/"))
    }

    fn matches(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.start) else {
            return false;
        };
        match self.rest.as_slice() {
            [] => true,
            [all] if all == "**" => !below.as_os_str().is_empty(),
            _ => {
                let compiled = || self.compiled().expect("stars can be read");
                self.glob.get_or_init(compiled).matches(path)
            }
        }
    }
}

/// A pattern that starts at the root.
struct Anchored {
    /// The directories before the first sign.
    literal: PathBuf,
    /// The names from the first sign on.
    rest: Vec<String>,
    /// Links that were left by a `..`.
    links: Vec<PathBuf>,
}

impl Patterns {
    /// Reads patterns.
    pub(crate) fn new(written: &[String], roots: &Roots<'_>) -> Result<Self, String> {
        let mut patterns = Self::default();
        for pattern in written {
            if pattern.is_empty() {
                return Err("a pattern must not be empty".to_owned());
            }
            let mut counts = roots.is_own;
            let choices = written_out(pattern)?.into_iter();
            for choice in choices.filter(|choice| !choice.is_empty()) {
                counts |= patterns.add(&choice, pattern, roots)?;
            }
            if !counts {
                return Err(format!(
                    "`{pattern}` can match nothing: this file counts for what is in `{}`",
                    roots.base.display()
                ));
            }
        }
        Ok(patterns)
    }

    /// Adds one of the patterns that `pattern` stands for. Tells whether it can match something that the file counts for.
    fn add(&mut self, choice: &str, pattern: &str, roots: &Roots<'_>) -> Result<bool, String> {
        let Anchored {
            literal,
            rest,
            links,
        } = Anchored::of(choice, roots)?;
        let way = Way::of(&literal);
        let is_first = way.end == literal;
        let mut starts = vec![(literal, rest.clone())];
        let mut links = [links, way.links].concat();
        if !is_first {
            starts.push((way.end.clone(), rest.clone()));
        }
        let mut left = NAMES_MAX;
        let ends = linked(&way.end, &rest, &mut links, &mut left);
        starts.extend(ends);
        let counts = |start: &Path| start.starts_with(roots.base) || roots.base.starts_with(start);
        let does_count = starts.iter().any(|(start, _)| counts(start));
        let links = links.into_iter().map(|link| (link, Vec::new()));
        for (start, rest) in starts.into_iter().chain(links) {
            let lazy = Lazy::new(start.clone(), rest.clone()).map_err(|error| error.to_string())?;
            self.globs.push((lazy, pattern.to_owned()));
            if rest.iter().any(|name| name == "**") {
                self.deep.push((start.clone(), pattern.to_owned()));
            }
            self.tops.push((start, !rest.is_empty()));
        }
        Ok(does_count)
    }

    /// Tells whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Gives the pattern that a path matches, as it is written.
    pub(crate) fn matched(&self, path: &Path) -> Option<&str> {
        let mut globs = self.globs.iter();
        let (_, written) = globs.find(|(glob, _)| glob.matches(path))?;
        Some(written)
    }

    /// Lists the places at or below which all lies that they match.
    pub(crate) fn tops(&self) -> impl Iterator<Item = &Path> {
        self.tops.iter().map(|(top, _)| top.as_path())
    }

    /// Tells whether they can match something below a path that they do not match.
    pub(crate) fn may_match_below(&self, path: &Path) -> bool {
        let mut tops = self.tops.iter();
        tops.any(|(top, is_open)| top.starts_with(path) || (*is_open && path.starts_with(top)))
    }

    /// Lists links that a pattern with a `**` matches, each with that pattern, if what they lead to has another name that no
    /// pattern matches: such links are not followed when the rules are read. So many names are looked at, at most.
    pub(crate) fn links_behind(&self, names_max: usize) -> Vec<(PathBuf, PathBuf, &str)> {
        let mut found = Vec::new();
        let mut left = names_max;
        for (top, written) in &self.deep {
            let mut waiting = vec![top.clone()];
            while let Some(directory) = waiting.pop() {
                for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                    left = left.saturating_sub(1);
                    let (path, kind) = (entry.path(), entry.file_type());
                    if left > 0 && kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                        waiting.push(path);
                    } else if kind.is_ok_and(|kind| kind.is_symlink()) {
                        let end = Way::of(&path).end;
                        let is_new = self.matched(&path) == Some(written)
                            && self.matched(&end).is_none()
                            && !found.iter().any(|(known, _, _)| *known == path);
                        if is_new {
                            found.push((path, end, written.as_str()));
                        }
                    }
                }
            }
        }
        found
    }
}

impl Anchored {
    fn of(pattern: &str, roots: &Roots<'_>) -> Result<Self, String> {
        let (mut literal, rest) = if let Some(rest) = pattern.strip_prefix("~/") {
            let home = roots.home.ok_or("`~` is not known here")?;
            (home.to_owned(), rest)
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (PathBuf::from("/"), rest)
        } else {
            (roots.base.to_owned(), pattern)
        };
        let (mut signs, mut links) = (Vec::new(), Vec::new());
        for name in rest.split('/') {
            match name {
                "" | "." => {}
                ".." if !signs.is_empty() => {
                    return Err(format!("`..` cannot follow a sign in `{pattern}`"));
                }
                // Behind a link it leads to where that leads.
                ".." => {
                    let way = Way::of(&literal);
                    links.extend(way.links);
                    literal = way.end;
                    literal.pop();
                }
                _ if signs.is_empty() && !name.contains(SIGNS) => literal.push(name),
                _ => signs.push(name.to_owned()),
            }
        }
        Ok(Self {
            literal,
            rest: signs,
            links,
        })
    }
}

/// Finds the links in a directory that the next name of a pattern matches, and what they lead to, with the rest of the pattern.
fn linked(
    directory: &Path,
    rest: &[String],
    links: &mut Vec<PathBuf>,
    left: &mut usize,
) -> Vec<(PathBuf, Vec<String>)> {
    let Some((first, rest)) = rest.split_first() else {
        return Vec::new();
    };
    if first == "**" {
        return Vec::new();
    }
    let Ok(glob) = Glob::read(first, directory) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let (path, kind) = (entry.path(), entry.file_type());
        if !glob.matches(&path) {
            continue;
        }
        if kind.as_ref().is_ok_and(fs::FileType::is_symlink) {
            let way = Way::of(&path);
            links.extend(way.links);
            found.extend(linked(&way.end, rest, links, left));
            found.push((way.end, rest.to_vec()));
        } else if kind.is_ok_and(|kind| kind.is_dir()) {
            found.extend(linked(&path, rest, links, left));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(base: &Path, patterns: &[&str], is_own: bool) -> Result<Patterns, String> {
        let written: Vec<String> = patterns.iter().map(|&it| it.to_owned()).collect();
        let roots = Roots {
            base,
            home: Some(Path::new("/home/u")),
            is_own,
        };
        Patterns::new(&written, &roots)
    }

    #[test]
    fn what_is_compiled_late_can_be_compiled() {
        for signs in ["*", "?", "**/", "*a", "a*/", "?*/**/"] {
            let pattern = signs.repeat(PLAIN_MAX / signs.len());
            let names = pattern.split('/').filter(|name| !name.is_empty());
            let lazy = Lazy::new("/p".into(), names.map(ToOwned::to_owned).collect()).unwrap();
            assert!(lazy.glob.get().is_none(), "{signs}");
            lazy.matches(Path::new("/p/a/b"));
            assert!(lazy.glob.get().is_some(), "{signs}");
        }
        assert!(Lazy::new("/p".into(), vec!["[".to_owned()]).is_err());
    }

    #[test]
    fn patterns_start_at_the_file_at_home_or_at_the_root() {
        let patterns = ["secrets/**", "~/.ssh", "/etc/*.conf", "**/*.pem"];
        let rules = read(Path::new("/p"), &patterns, true).unwrap();
        for (path, pattern) in [
            ("/p/secrets/a/b", "secrets/**"),
            ("/home/u/.ssh", "~/.ssh"),
            ("/home/u/.ssh/id", "~/.ssh"),
            ("/etc/x.conf", "/etc/*.conf"),
            ("/p/a/b/c.pem", "**/*.pem"),
            ("/p/c.pem", "**/*.pem"),
        ] {
            assert_eq!(rules.matched(Path::new(path)), Some(pattern), "{path}");
        }
        for path in ["/p/secret", "/q/secrets/a", "/etc/d/x.conf", "/c.pem"] {
            assert_eq!(rules.matched(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_path_may_be_written_as_to_a_shell() {
        for pattern in [
            "s/",
            "./s",
            ".//s",
            "s/.",
            "x/../s",
            "../p/s",
            "/p/s/",
            "s//",
            "/q/../p/s",
            "././s/./",
        ] {
            let rules = read(Path::new("/p"), &[pattern], false).unwrap();
            for path in ["/p/s", "/p/s/k", "/p/s/d/k"] {
                assert_eq!(rules.matched(Path::new(path)), Some(pattern), "{path}");
            }
            assert_eq!(rules.matched(Path::new("/p/st")), None, "{pattern}");
        }
        for pattern in ["s//k", "s/./k", "s/*/", "./s/k/", "s/{k,x}", "{s/k,y/./z}"] {
            let rules = read(Path::new("/p"), &[pattern], false).unwrap();
            assert_eq!(rules.matched(Path::new("/p/s/k")), Some(pattern));
            assert_eq!(rules.matched(Path::new("/p/s")), None, "{pattern}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_refused() {
        for pattern in ["../q", "/etc/passwd", "~/.ssh", "x/../../y", "/q/*.pem"] {
            let wrong = read(Path::new("/p"), &[pattern], false).unwrap_err();
            assert!(wrong.contains("can match nothing"), "{wrong}");
        }
        let wrong = read(Path::new("/p"), &["*/../x"], false).unwrap_err();
        assert_eq!(wrong, "`..` cannot follow a sign in `*/../x`");
        for pattern in ["/**/x", "..", "/", "../p"] {
            read(Path::new("/p"), &[pattern], false).unwrap();
        }
    }

    #[test]
    fn a_directory_with_signs_of_a_pattern_in_its_name_is_taken_literally() {
        let rules = read(Path::new("/p[1]"), &["x"], false).unwrap();
        assert_eq!(rules.matched(Path::new("/p[1]/x/y")), Some("x"));
        assert_eq!(rules.matched(Path::new("/p1/x")), None);
    }

    #[test]
    fn a_link_stands_for_itself_and_for_what_it_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("shared")).unwrap();
        std::os::unix::fs::symlink("shared", base.join("secrets")).unwrap();
        let rules = read(&base, &["secrets", "secrets/sub/*.pem"], false).unwrap();
        for path in ["secrets", "secrets/k", "shared", "shared/k"] {
            assert_eq!(rules.matched(&base.join(path)), Some("secrets"), "{path}");
        }
        let rules = read(&base, &["secrets/sub/*.pem"], false).unwrap();
        assert!(rules.matched(&base.join("shared/sub/a.pem")).is_some());
        assert!(rules.matched(&base.join("secrets")).is_some());
        assert_eq!(rules.matched(&base.join("shared/a.pem")), None);
    }

    #[test]
    fn every_link_of_a_chain_is_protected_and_so_is_what_is_not_there_yet() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, base.join(name)).unwrap();
        };
        std::fs::create_dir_all(base.join("shared/sub")).unwrap();
        link("middle", "secrets");
        link("shared", "middle");
        link("nowhere", "dangling");
        link("shared/sub", "behind");
        for (pattern, paths) in [
            ("secrets", vec!["secrets", "middle", "shared", "shared/k"]),
            ("secrets/k", vec!["secrets", "middle", "shared/k"]),
            ("dangling", vec!["dangling", "nowhere", "nowhere/k"]),
            ("behind/../k", vec!["behind", "shared/k"]),
            ("s*s", vec!["secrets", "middle", "shared/k"]),
            ("s*s/k", vec!["middle", "shared/k"]),
            ("{./secrets,x}", vec!["secrets", "middle", "shared/k", "x"]),
            ("sec{rets,}", vec!["secrets", "sec", "shared/k"]),
            ("{behind/..,x}/k", vec!["shared/k", "x/k"]),
        ] {
            let rules = read(&base, &[pattern], false).unwrap();
            for path in paths {
                let matched = rules.matched(&base.join(path));
                assert_eq!(matched, Some(pattern), "{pattern} {path}");
            }
            assert_eq!(rules.matched(&base.join("other")), None, "{pattern}");
        }
    }
}
