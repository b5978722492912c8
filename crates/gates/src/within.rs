//! The gate for those who may write only in some directories, such as an agent that is served over MCP.
//!
//! - What counts is what a driver found at the end of every link, so no name leads out.
//! - A command that runs is asked before each call. It may write in the usual directories for temporary files too: hardly any
//!   program works without them.
//! - What lies in no file (rows of a server, keys, calls) is no matter of directories and passes.

use std::path::{Path, PathBuf};

use backout_model::ports::{Gate, Reason, Ruling, StagedChange};
use backout_model::{AgentId, Target, Verb};

/// What a reason bears whose change would leave the directories.
const RULE: &str = "roots";

/// Lets a change pass if all that it writes lies in some directories.
#[derive(Debug)]
pub struct Within {
    roots: Vec<PathBuf>,
    temporary: Vec<PathBuf>,
}

impl Within {
    /// Takes the directories, and those for the temporary files of commands. Each is meant as what it really is.
    pub fn new(roots: &[PathBuf], temporary: &[PathBuf]) -> Self {
        let real = |paths: &[PathBuf]| {
            let each = paths.iter();
            each.map(|it| it.canonicalize().unwrap_or_else(|_| it.clone()))
                .collect()
        };
        Self {
            roots: real(roots),
            temporary: real(temporary),
        }
    }

    fn is_inside(&self, path: &Path, is_command: bool) -> bool {
        let is_in = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        is_in(&self.roots) || (is_command && is_in(&self.temporary))
    }

    fn reason(&self, path: &Path) -> Reason {
        let roots: Vec<String> = self
            .roots
            .iter()
            .map(|it| it.display().to_string())
            .collect();
        let found = format!(
            "`{}` is outside of the directories that you may write in: {}",
            path.display(),
            roots.join(", ")
        );
        Reason::new(RULE, found).mended_by("write inside of them, or ask a person to do it")
    }
}

impl Gate for Within {
    fn look(&self, change: &StagedChange<'_>) -> Ruling {
        let is_command = change.verb == Verb::Run;
        let targets = change.targets.iter().filter_map(Target::file).cloned();
        let moved = change.staged.moved().into_iter();
        let moved = moved.flat_map(|(from, to)| [from, to]);
        // Who gives a file one more name can write it by that.
        let linked = change.staged.linked().into_iter().map(|(file, _)| file);
        let all = targets.chain(moved).chain(linked);
        let outside = all.filter(|path| !self.is_inside(path.as_path(), is_command));
        let reasons: Vec<Reason> = outside
            .take(1)
            .map(|path| self.reason(path.as_path()).about(Target::node(path)))
            .collect();
        if reasons.is_empty() {
            Ruling::Allow
        } else {
            Ruling::Deny { reasons }
        }
    }

    fn forbids(&self, _agent: Option<&AgentId>, path: &Path, to: Option<&Path>) -> Option<Reason> {
        let mut names = [Some(path), to].into_iter().flatten();
        let outside = names.find(|name| !self.is_inside(name, true));
        outside.map(|name| self.reason(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_only_begins_like_a_root_is_outside() {
        let gate = Within::new(&["/home/me/a".into()], &["/tmp".into()]);
        assert!(gate.is_inside(Path::new("/home/me/a/b"), false));
        assert!(!gate.is_inside(Path::new("/home/me/ab"), false));
        assert!(!gate.is_inside(Path::new("/tmp/x"), false));
        assert!(gate.is_inside(Path::new("/tmp/x"), true));
        assert!(
            gate.forbids(None, Path::new("/home/me/a/x"), Some(Path::new("/etc/x")))
                .is_some()
        );
        assert!(
            gate.forbids(None, Path::new("/home/me/a/x"), None)
                .is_none()
        );
    }

    #[test]
    fn a_root_is_what_its_links_lead_to() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, directory.path().join("link")).unwrap();
        let gate = Within::new(&[directory.path().join("link")], &[]);
        assert!(gate.is_inside(&real.canonicalize().unwrap().join("x"), false));
    }
}
