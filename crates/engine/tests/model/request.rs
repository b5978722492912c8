//! What the agent may ask: every request that the file driver knows.

use std::path::{Path, PathBuf};

use backout_drivers::file::{Expect, FileRequest, Occurrence, Source};

use crate::dice::Dice;
use crate::names::Name;
use crate::tree::text;

/// A request as plain data; `tag` makes its content unlike any other.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    Write {
        at: Name,
        tag: usize,
        is_large: bool,
        parents: bool,
        mode: Option<u32>,
    },
    Append {
        at: Name,
        tag: usize,
    },
    Edit {
        at: Name,
        tag: usize,
        line: usize,
    },
    Patch {
        at: Name,
        tag: usize,
        line: usize,
    },
    Remove {
        at: Name,
        recursive: bool,
    },
    Move {
        from: Name,
        to: Name,
        replace: bool,
    },
    Copy {
        from: Name,
        to: Name,
        recursive: bool,
        replace: bool,
    },
    Mkdir {
        at: Name,
        parents: bool,
    },
    Symlink {
        at: Name,
        to: Name,
        replace: bool,
    },
    HardLink {
        at: Name,
        to: Name,
    },
    Chmod {
        at: Name,
        mode: &'static str,
        recursive: bool,
    },
    Chown {
        at: Name,
        owner: u32,
        recursive: bool,
    },
    Batch(Vec<Self>),
}

const MODES: [&str; 5] = ["u+x,go-r", "0600", "u+s", "a=rX", "1777"];

/// An ordinary user must still be able to look at everything afterwards.
const MODES_OF_A_USER: [&str; 5] = ["u+x,go-r", "0700", "u+s", "u=rwX,go=", "1777"];

/// Makes up a request.
pub(crate) fn imagine(dice: &mut Dice, tag: usize, can_nest: bool) -> Plan {
    let at = dice.name();
    let to = dice.name();
    let (recursive, replace) = (dice.chance(70), dice.chance(50));
    let line = 1 + dice.roll(20);
    match dice.roll(if can_nest { 25 } else { 22 }) {
        0..=4 => Plan::Write {
            at,
            tag,
            is_large: dice.chance(20),
            parents: replace,
            mode: dice.chance(20).then_some(0o640),
        },
        5 => Plan::Append { at, tag },
        6 | 7 => Plan::Edit { at, tag, line },
        8 => Plan::Patch {
            at: Name(dice.roll(3)),
            tag,
            line,
        },
        9..=11 => Plan::Remove { at, recursive },
        12..=14 => Plan::Move {
            from: at,
            to,
            replace,
        },
        15 | 16 => Plan::Copy {
            from: at,
            to,
            recursive,
            replace,
        },
        17 => Plan::Mkdir {
            at,
            parents: replace,
        },
        18 => Plan::Symlink { at, to, replace },
        19 => Plan::HardLink { at, to },
        20 => Plan::Chmod {
            at,
            mode: dice.pick(if rustix::process::geteuid().is_root() {
                &MODES
            } else {
                &MODES_OF_A_USER
            }),
            recursive,
        },
        21 => Plan::Chown {
            at,
            owner: 1000 + u32::from(replace),
            recursive,
        },
        _ => {
            let count = 2 + dice.roll(3);
            Plan::Batch(
                (0..count)
                    .map(|part| imagine(dice, tag * 10 + part, false))
                    .collect(),
            )
        }
    }
}

impl Plan {
    /// Makes it a request below a directory.
    #[expect(clippy::too_many_lines, reason = "one arm per kind of request")]
    pub(crate) fn request(&self, root: &Path) -> FileRequest {
        let path = |name: Name| name.below(root);
        match *self {
            Self::Write {
                at,
                tag,
                is_large,
                parents,
                mode,
            } => FileRequest::Write {
                path: path(at),
                source: Source::Bytes(content(tag, is_large)),
                expect: Expect::Anything,
                parents,
                mode,
            },
            Self::Append { at, tag } => FileRequest::Append {
                path: path(at),
                source: Source::Bytes(format!("mine {tag}\n").into_bytes()),
            },
            Self::Edit { at, tag, line } => FileRequest::Edit {
                path: path(at),
                search: format!("line {line}\n").into_bytes(),
                replacement: format!("mine {tag}\n").into_bytes(),
                occurrence: Occurrence::Nth(1),
            },
            Self::Patch { at, tag, line } => FileRequest::Patch {
                base: root.to_path_buf(),
                patch: patch(at, tag, line),
            },
            Self::Remove { at, recursive } => FileRequest::Remove {
                path: path(at),
                recursive,
            },
            Self::Move { from, to, replace } => FileRequest::Move {
                from: path(from),
                to: path(to),
                replace,
            },
            Self::Copy {
                from,
                to,
                recursive,
                replace,
            } => FileRequest::Copy {
                from: path(from),
                to: path(to),
                recursive,
                replace,
            },
            Self::Mkdir { at, parents } => FileRequest::Mkdir {
                path: path(at),
                parents,
                mode: None,
            },
            Self::Symlink { at, to, replace } => FileRequest::Symlink {
                path: path(at),
                to: to.below(Path::new("")).into_os_string(),
                replace,
            },
            Self::HardLink { at, to } => FileRequest::HardLink {
                path: path(at),
                to: path(to),
            },
            Self::Chmod {
                at,
                mode,
                recursive,
            } => FileRequest::Chmod {
                path: path(at),
                mode: mode.parse().unwrap(),
                recursive,
            },
            Self::Chown {
                at,
                owner,
                recursive,
            } => FileRequest::Chown {
                path: path(at),
                uid: None,
                gid: Some(owner),
                recursive,
            },
            Self::Batch(ref plans) => {
                FileRequest::Batch(plans.iter().map(|plan| plan.request(root)).collect())
            }
        }
    }

    /// Lists the names it speaks of.
    pub(crate) fn names(&self) -> Vec<Name> {
        match *self {
            Self::Write { at, .. }
            | Self::Append { at, .. }
            | Self::Edit { at, .. }
            | Self::Patch { at, .. }
            | Self::Remove { at, .. }
            | Self::Mkdir { at, .. }
            | Self::Chmod { at, .. }
            | Self::Chown { at, .. } => vec![at],
            Self::Symlink { at, to, .. } | Self::HardLink { at, to } => vec![at, to],
            Self::Move { from, to, .. } | Self::Copy { from, to, .. } => vec![from, to],
            Self::Batch(ref plans) => plans.iter().flat_map(Self::names).collect(),
        }
    }

    /// Lists the moves in it.
    pub(crate) fn moves(&self) -> Vec<(Name, Name)> {
        match self {
            Self::Move { from, to, .. } => vec![(*from, *to)],
            Self::Batch(plans) => plans.iter().flat_map(Self::moves).collect(),
            Self::Write { .. }
            | Self::Append { .. }
            | Self::Edit { .. }
            | Self::Patch { .. }
            | Self::Remove { .. }
            | Self::Copy { .. }
            | Self::Mkdir { .. }
            | Self::Symlink { .. }
            | Self::HardLink { .. }
            | Self::Chmod { .. }
            | Self::Chown { .. } => Vec::new(),
        }
    }
}

fn content(tag: usize, is_large: bool) -> Vec<u8> {
    if is_large {
        return vec![b'A' + u8::try_from(tag % 26).unwrap_or(0); 70_000 + tag];
    }
    text(1 + tag % 20, &format!("mine {tag}"))
}

fn patch(at: Name, tag: usize, line: usize) -> Vec<u8> {
    let name = PathBuf::from(String::from_utf8_lossy(&at.bytes()).into_owned());
    let name = name.display();
    format!("--- a/{name}\n+++ b/{name}\n@@ -{line} +{line} @@\n-line {line}\n+mine {tag}\n")
        .into_bytes()
}
