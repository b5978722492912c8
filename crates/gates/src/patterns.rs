//! Patterns of paths: as people write them, and as they are matched.
//!
//! - `./x`, `x/`, `x//y` and `x/../y` mean what they mean to a shell.
//! - What leads to a pattern's first sign is meant literally. If a link lies on that way, what it leads to is meant as well.
//! - A pattern that can match nothing is refused: who wrote it believes that something is protected.

use std::path::{Component, Path, PathBuf};

use backout_model::Glob;

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
    globs: Vec<(Glob, String)>,
    /// Those without a sign.
    named: Vec<PathBuf>,
}

/// A pattern that starts at the root: what is literal, and the rest.
struct Anchored {
    literal: PathBuf,
    rest: Vec<String>,
}

impl Patterns {
    /// Reads patterns.
    pub(crate) fn new(written: &[String], roots: &Roots<'_>) -> Result<Self, String> {
        let mut patterns = Self::default();
        for pattern in written {
            let Anchored { literal, rest } = Anchored::of(pattern, roots)?;
            let real = followed(&literal);
            let mut starts = vec![literal];
            starts.extend((starts.first() != Some(&real)).then_some(real));
            let counts =
                |start: &PathBuf| start.starts_with(roots.base) || roots.base.starts_with(start);
            if !roots.is_own && !starts.iter().any(counts) {
                return Err(format!(
                    "`{pattern}` can match nothing: this file counts for what is in `{}`",
                    roots.base.display()
                ));
            }
            for start in starts {
                let mut whole = PathBuf::from(Glob::exactly(&start));
                whole.extend(&rest);
                let glob = Glob::read(whole, Path::new("/")).map_err(|error| error.to_string())?;
                patterns.globs.push((glob, pattern.clone()));
                if rest.is_empty() {
                    patterns.named.push(start);
                }
            }
        }
        Ok(patterns)
    }

    /// Gives the pattern that a path matches, as it is written.
    pub(crate) fn matched(&self, path: &Path) -> Option<&str> {
        let mut globs = self.globs.iter();
        let (_, written) = globs.find(|(glob, _)| glob.matches(path))?;
        Some(written)
    }

    /// Lists the paths that are named without a sign.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Path> {
        self.named.iter().map(PathBuf::as_path)
    }
}

impl Anchored {
    fn of(pattern: &str, roots: &Roots<'_>) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("a pattern must not be empty".to_owned());
        }
        let (mut literal, rest) = if let Some(rest) = pattern.strip_prefix("~/") {
            let home = roots.home.ok_or("`~` is not known here")?;
            (home.to_owned(), rest)
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (PathBuf::from("/"), rest)
        } else {
            (roots.base.to_owned(), pattern)
        };
        let mut signs: Vec<String> = Vec::new();
        // Inside of braces a slash is not the end of a name.
        let mut is_in_braces = false;
        for name in rest.split('/') {
            match name {
                "" | "." if !is_in_braces => {}
                ".." if !signs.is_empty() => {
                    return Err(format!("`..` cannot follow a sign in `{pattern}`"));
                }
                ".." => drop(literal.pop()),
                _ if signs.is_empty() && !name.contains(['*', '?', '[', ']', '{', '}', '\\']) => {
                    literal.push(name);
                }
                _ => {
                    is_in_braces |= name.contains('{');
                    signs.push(name.to_owned());
                }
            }
        }
        Ok(Self {
            literal,
            rest: signs,
        })
    }
}

/// Gives a path with all links on its way followed; what is not there is taken as it is written.
fn followed(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for above in path.ancestors() {
        if let Ok(real) = above.canonicalize() {
            return missing
                .into_iter()
                .rev()
                .fold(real, |path, name| path.join(name));
        }
        if let Some(Component::Normal(name)) = above.components().next_back() {
            missing.push(name);
        }
    }
    path.to_owned()
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
        assert_eq!(rules.matched(&base.join("shared/a.pem")), None);
    }
}
