//! Another program on the same tree: plain calls of the system, no lease, no journal.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::dice::Dice;
use crate::names::{DIRECTORIES, Name};
use crate::tree::set_attribute;

/// A write that nobody asked us about.
#[derive(Debug, Clone)]
pub(crate) enum Foreign {
    /// Changes one line of a text in place.
    EditLine {
        at: Name,
        line: usize,
        tag: usize,
    },
    /// Writes over a file in place.
    Overwrite {
        at: Name,
        tag: usize,
    },
    /// Puts another file in place of one, as editors do.
    Replace {
        at: Name,
        tag: usize,
    },
    /// Removes a file, or a directory with all that is in it.
    Delete {
        at: Name,
    },
    /// Puts a file of its own into a directory.
    AddInside {
        at: Name,
        tag: usize,
    },
    /// Makes a directory.
    Mkdir {
        at: Name,
    },
    Chmod {
        at: Name,
    },
    SetAttribute {
        at: Name,
        tag: usize,
    },
    Move {
        from: Name,
        to: Name,
    },
}

/// Makes up a foreign write.
pub(crate) fn imagine(dice: &mut Dice, tag: usize, recent: Option<Name>) -> Foreign {
    // Often where the agent has just been.
    let at = recent
        .filter(|_| dice.chance(50))
        .unwrap_or_else(|| dice.name());
    match dice.roll(14) {
        0..=3 => Foreign::EditLine {
            at,
            line: 1 + dice.roll(20),
            tag,
        },
        4 => Foreign::Overwrite { at, tag },
        5 | 6 => Foreign::Replace { at, tag },
        7 => Foreign::Delete { at },
        8 | 9 => Foreign::AddInside {
            at: dice.pick(&DIRECTORIES),
            tag,
        },
        10 => Foreign::Mkdir { at },
        11 => Foreign::Chmod { at },
        12 => Foreign::SetAttribute { at, tag },
        _ => Foreign::Move {
            from: at,
            to: dice.name(),
        },
    }
}

impl Foreign {
    /// Does it; what does not work is left, as with any program.
    pub(crate) fn act(&self, root: &Path) {
        let _as_it_goes = self.try_to_act(root);
    }

    fn try_to_act(&self, root: &Path) -> std::io::Result<()> {
        let path = |name: Name| name.below(root);
        // A program that opens a pipe would wait for ever.
        let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file());
        match *self {
            Self::EditLine { at, line, tag } if is_file(&path(at)) => {
                let old = fs::read(path(at))?;
                let (from, to) = (format!("line {line}\n"), format!("theirs {tag}\n"));
                let new = String::from_utf8_lossy(&old).replace(&from, &to);
                fs::write(path(at), new)
            }
            Self::Overwrite { at, tag } if is_file(&path(at)) => {
                fs::write(path(at), format!("theirs {tag}\n"))
            }
            Self::Replace { at, tag } => {
                let new = root.join("theirs.tmp");
                fs::write(&new, format!("theirs {tag}\n"))?;
                fs::rename(&new, path(at)).or_else(|_| fs::remove_file(&new))
            }
            Self::Delete { at } => {
                fs::remove_file(path(at)).or_else(|_| fs::remove_dir_all(path(at)))
            }
            Self::AddInside { at, tag } => {
                let mut file = fs::File::create(path(at).join(format!("theirs-{tag}")))?;
                write!(file, "theirs {tag}")
            }
            Self::Mkdir { at } => fs::create_dir(path(at)),
            Self::Chmod { at } if !path(at).is_symlink() => {
                fs::set_permissions(path(at), fs::Permissions::from_mode(0o711))
            }
            Self::EditLine { .. } | Self::Overwrite { .. } | Self::Chmod { .. } => Ok(()),
            Self::SetAttribute { at, tag } => {
                set_attribute(&path(at), "user.theirs", format!("{tag}").as_bytes());
                Ok(())
            }
            Self::Move { from, to } => fs::rename(path(from), path(to)),
        }
    }
}
