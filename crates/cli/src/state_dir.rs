//! Where the state is when nobody says: `$XDG_STATE_HOME/backout`, or `~/.local/state/backout`.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backout_engine::Report;

use crate::env_vars;

/// The directory's name below the place for everybody's state.
const NAME: &str = "backout";

/// Gives the state directory that was asked for, or the default one.
pub(crate) fn state_dir(given: Option<&Path>) -> Result<PathBuf, Report> {
    let variable = || std::env::var_os(env_vars::STATE_DIR).filter(|value| !value.is_empty());
    match (given, variable().map(PathBuf::from)) {
        (Some(path), _) => Ok(path.to_path_buf()),
        (None, Some(path)) if path.is_absolute() => Ok(path),
        (None, Some(path)) => Err(relative(&path)),
        (None, None) => default_in(
            std::env::var_os(env_vars::XDG_STATE_HOME),
            std::env::var_os(env_vars::HOME),
        ),
    }
}

/// Gives the user's own file of rules for gates: `$XDG_CONFIG_HOME/backout/backout.toml`, or in `~/.config`. Where `HOME` is
/// somebody else's, as after `su`, that one's rules are not his.
pub(crate) fn own_rules() -> Option<PathBuf> {
    let absolute = |name| absolute(std::env::var_os(name)?);
    let at_home = || Some(home().filter(|home| is_own(home))?.join(".config"));
    let config = absolute(env_vars::XDG_CONFIG_HOME).or_else(at_home)?;
    Some(config.join(NAME).join("backout.toml"))
}

fn is_own(directory: &Path) -> bool {
    let user = rustix::process::geteuid();
    let owner = std::fs::metadata(directory).map(|found| found.uid());
    user.is_root() || owner.is_ok_and(|owner| owner == user.as_raw())
}

/// Gives the home directory.
pub(crate) fn home() -> Option<PathBuf> {
    absolute(std::env::var_os(env_vars::HOME)?)
}

/// The XDG rules say that a relative path is to be ignored.
fn absolute(path: OsString) -> Option<PathBuf> {
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

/// What is done in one directory could not be undone from another.
fn relative(path: &Path) -> Report {
    let name = env_vars::STATE_DIR;
    Report::usage(format!("the environment variable {name} cannot be used"))
        .because(format!(
            "`{}` is a relative path: it would be another store in each directory",
            path.display()
        ))
        .next("set it to an absolute path, or take it away")
}

fn default_in(state_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, Report> {
    if let Some(state_home) = state_home.and_then(absolute) {
        return Ok(state_home.join(NAME));
    }
    if let Some(home) = home.and_then(absolute) {
        return Ok(home.join(".local/state").join(NAME));
    }
    Err(Report::usage("it is not clear where the state is kept")
        .because(format!(
            "neither {} nor {} is set",
            env_vars::XDG_STATE_HOME,
            env_vars::HOME
        ))
        .next(format!(
            "name a directory with `--state-dir DIR` or {}",
            env_vars::STATE_DIR
        )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_follows_the_xdg_rules() {
        let of = |state_home: Option<&str>, home: Option<&str>| {
            default_in(state_home.map(OsString::from), home.map(OsString::from)).ok()
        };
        assert_eq!(
            of(Some("/s"), Some("/h")),
            Some(PathBuf::from("/s/backout"))
        );
        assert_eq!(
            of(None, Some("/h")),
            Some(PathBuf::from("/h/.local/state/backout"))
        );
        assert_eq!(
            of(Some("relative"), Some("/h")),
            Some(PathBuf::from("/h/.local/state/backout"))
        );
        assert_eq!(of(Some(""), None), None);
    }
}
