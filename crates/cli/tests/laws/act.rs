//! A change of the world: by a request, by a shell, or by somebody who asks nobody.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use backout_drivers::file::{Expect, FileRequest, Occurrence, Source};

/// One change as plain data; `tag` makes its content unlike any other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Write {
        at: &'static str,
        tag: usize,
    },
    Append {
        at: &'static str,
        tag: usize,
    },
    Edit {
        at: &'static str,
        line: usize,
        tag: usize,
    },
    Remove {
        at: &'static str,
    },
    Move {
        from: &'static str,
        to: &'static str,
    },
    Chmod {
        at: &'static str,
        is_open: bool,
    },
    Mkdir {
        at: &'static str,
    },
}

/// Several lines, so that two changes can stand side by side.
pub(crate) fn text(tag: usize) -> String {
    let lines = (1..=8).map(|line| match line {
        1 => format!("text {tag}\n"),
        line => format!("line {line}\n"),
    });
    lines.collect()
}

const fn mode(is_open: bool) -> u32 {
    if is_open { 0o755 } else { 0o700 }
}

impl Change {
    pub(crate) fn request(self, root: &Path) -> FileRequest {
        let path = |name: &str| root.join(name);
        match self {
            Self::Write { at, tag } => FileRequest::Write {
                path: path(at),
                source: Source::Bytes(text(tag).into_bytes()),
                expect: Expect::Anything,
                parents: true,
                mode: None,
            },
            Self::Append { at, tag } => FileRequest::Append {
                path: path(at),
                source: Source::Bytes(format!("more {tag}\n").into_bytes()),
            },
            Self::Edit { at, line, tag } => FileRequest::Edit {
                path: path(at),
                search: format!("line {line}\n").into_bytes(),
                replacement: format!("edit {tag}\n").into_bytes(),
                occurrence: Occurrence::Nth(1),
            },
            Self::Remove { at } => FileRequest::Remove {
                path: path(at),
                recursive: true,
            },
            Self::Move { from, to } => FileRequest::Move {
                from: path(from),
                to: path(to),
                replace: true,
            },
            Self::Chmod { at, is_open } => FileRequest::Chmod {
                path: path(at),
                mode: format!("{:o}", mode(is_open)).parse().unwrap(),
                recursive: false,
            },
            Self::Mkdir { at } => FileRequest::Mkdir {
                path: path(at),
                parents: true,
                mode: None,
            },
        }
    }

    /// The same as a line of the shell; what does not work is left.
    pub(crate) fn line(self) -> String {
        match self {
            Self::Write { at, tag } => {
                format!("printf '{}' > {at}", text(tag).replace('\n', "\\n"))
            }
            Self::Append { at, tag } => format!("[ -f {at} ] && echo 'more {tag}' >> {at}"),
            Self::Edit { at, line, tag } => {
                format!("[ -f {at} ] && sed -i 's/^line {line}$/edit {tag}/' {at}")
            }
            Self::Remove { at } => format!("rm -rf {at}"),
            Self::Move { from, to } => format!("mv -fT {from} {to}"),
            Self::Chmod { at, is_open } => format!("chmod {:o} {at}", mode(is_open)),
            Self::Mkdir { at } => format!("mkdir -p {at}"),
        }
    }

    /// The same as arguments of the program.
    pub(crate) fn arguments(self) -> Vec<String> {
        let words: Vec<String> = match self {
            Self::Write { at, tag } => {
                vec![
                    "write".into(),
                    "-p".into(),
                    at.into(),
                    "--text".into(),
                    text(tag),
                ]
            }
            Self::Append { at, tag } | Self::Edit { at, tag, .. } => {
                vec![
                    "write".into(),
                    at.into(),
                    "--text".into(),
                    format!("edit {tag}\n"),
                ]
            }
            Self::Remove { at } => vec!["rm".into(), "-r".into(), at.into()],
            Self::Move { from, to } => {
                vec!["mv".into(), "--replace".into(), from.into(), to.into()]
            }
            Self::Chmod { at, is_open } => {
                vec!["chmod".into(), format!("{:o}", mode(is_open)), at.into()]
            }
            Self::Mkdir { at } => vec!["mkdir".into(), "-p".into(), at.into()],
        };
        words
    }

    /// Somebody does it, past everything; what does not work is left, as with any program.
    pub(crate) fn by_somebody(self, root: &Path) {
        let _as_it_goes = self.try_by_somebody(root);
    }

    fn try_by_somebody(self, root: &Path) -> std::io::Result<()> {
        let path = |name: &str| root.join(name);
        match self {
            Self::Write { at, tag } => fs::write(path(at), text(tag + 1000)),
            Self::Append { at, tag } => {
                let old = fs::read_to_string(path(at))?;
                fs::write(path(at), format!("{old}theirs {tag}\n"))
            }
            Self::Edit { at, line, tag } => {
                let old = fs::read_to_string(path(at))?;
                let new = old.replace(&format!("line {line}\n"), &format!("theirs {tag}\n"));
                fs::write(path(at), new)
            }
            Self::Remove { at } => {
                fs::remove_file(path(at)).or_else(|_| fs::remove_dir_all(path(at)))
            }
            Self::Move { from, to } => fs::rename(path(from), path(to)),
            Self::Chmod { at, is_open } => {
                fs::set_permissions(path(at), fs::Permissions::from_mode(mode(is_open)))
            }
            Self::Mkdir { at } => fs::create_dir(path(at)),
        }
    }
}
