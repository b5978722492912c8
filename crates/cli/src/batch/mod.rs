//! A batch as JSON: several changes that happen together or not at all.
//!
//! The shape is in the help of `backout batch`. Unknown fields are refused with their place, paths are relative
//! and stay below the directory that they start at.

mod shape;
#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};

use backout_drivers::config::{
    ConfigEdit, ConfigError, ConfigRequest, Format, KeyPath, NewValue, Value,
};
use backout_drivers::file::{Expect, FileRequest, Source};
use backout_engine::{Call, Report};
use backout_model::text::Occurrence;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::value::RawValue;

use crate::accounts::ownership;
use shape::{Batch, Change, Copy, Edit, Merge, Move, Set, Symlink, Unset, Write};

/// One change of a batch or of a plan.
pub(crate) enum Changed {
    /// Of whole files.
    Files(FileRequest),
    /// Of keys in a config file.
    Keys(ConfigRequest),
}

/// Reads a batch; its paths start at `base`.
pub(crate) fn parse(json: &[u8], base: &Path) -> Result<Vec<FileRequest>, Report> {
    let whole = |(change, number): (Changed, usize)| match change {
        Changed::Files(request) => Ok(request),
        Changed::Keys(_) => {
            let what = format!("change {number} of the batch cannot be made");
            let report = Report::usage(what).because("a batch changes whole files");
            Err(report
                .next("use `backout set`, `unset` or `merge`, or a plan of `backout rollout`"))
        }
    };
    let changes = parse_plan(json, base)?.into_iter();
    changes.zip(1..).map(whole).collect()
}

/// Reads changes of files and of keys; their paths start at `base`.
pub(crate) fn parse_plan(json: &[u8], base: &Path) -> Result<Vec<Changed>, Report> {
    let batch: Batch = serde_json::from_slice(json).map_err(|error| {
        Report::usage("the batch cannot be read")
            .because(error)
            .next_call("see its shape with {}", [Call::of("batch").option("help")])
    })?;
    if batch.changes.is_empty() {
        return Err(Report::usage("the batch is empty").next("put something into `changes`"));
    }
    let numbered = batch.changes.into_iter().zip(1..);
    let request = |(change, number): (Change, usize)| {
        change.request(base).map_err(|report| Report {
            what: format!(
                "change {number} of the batch cannot be made: {}",
                report.what
            ),
            ..report
        })
    };
    numbered.map(request).collect()
}

impl Change {
    fn request(self, base: &Path) -> Result<Changed, Report> {
        let at = |path: &Path| below(base, path);
        Ok(Changed::Files(match self {
            Self::Set(set) => return set.request(base).map(Changed::Keys),
            Self::Unset(unset) => return unset.request(base).map(Changed::Keys),
            Self::Merge(merge) => return merge.request(base).map(Changed::Keys),
            Self::Write(write) => write.request(base)?,
            Self::Append(append) => FileRequest::Append {
                path: at(&append.path)?,
                source: source(base, append.text, append.base64, append.from)?,
            },
            Self::Edit(edit) => edit.request(base)?,
            Self::Patch(patch) => FileRequest::Patch {
                base: patch
                    .base
                    .map_or(Ok(base.to_path_buf()), |path| at(&path))?,
                patch: patch.patch.into_bytes(),
            },
            Self::Remove(remove) => FileRequest::Remove {
                path: at(&remove.path)?,
                recursive: remove.recursive,
            },
            Self::Move(Move { from, to, replace }) => FileRequest::Move {
                from: at(&from)?,
                to: at(&to)?,
                replace,
            },
            Self::Copy(Copy {
                from,
                to,
                recursive,
                replace,
            }) => FileRequest::Copy {
                from: at(&from)?,
                to: at(&to)?,
                recursive,
                replace,
            },
            Self::Mkdir(mkdir) => FileRequest::Mkdir {
                path: at(&mkdir.path)?,
                parents: mkdir.parents,
                mode: mkdir.mode.as_deref().map(bits).transpose()?,
            },
            Self::Symlink(Symlink { path, to, replace }) => FileRequest::Symlink {
                path: at(&path)?,
                to: to.into(),
                replace,
            },
            Self::Link(link) => FileRequest::HardLink {
                path: at(&link.path)?,
                to: at(&link.to)?,
            },
            Self::Chmod(chmod) => FileRequest::Chmod {
                path: at(&chmod.path)?,
                mode: chmod.mode.parse().map_err(not_a_mode)?,
                recursive: chmod.recursive,
            },
            Self::Chown(chown) => {
                let owner = ownership(&chown.owner)?;
                let path = at(&chown.path)?;
                FileRequest::Chown {
                    path,
                    uid: owner.uid,
                    gid: owner.gid,
                    recursive: chown.recursive,
                }
            }
        }))
    }
}

impl Set {
    fn request(self, base: &Path) -> Result<ConfigRequest, Report> {
        let key = key(&self.key)?;
        let value = NewValue::Typed(value(&self.value)?);
        keys(
            base,
            &self.path,
            self.format,
            ConfigEdit::Set { key, value },
        )
    }
}

impl Unset {
    fn request(self, base: &Path) -> Result<ConfigRequest, Report> {
        let key = key(&self.key)?;
        keys(base, &self.path, self.format, ConfigEdit::Unset { key })
    }
}

impl Merge {
    fn request(self, base: &Path) -> Result<ConfigRequest, Report> {
        let patch = value(&self.patch)?;
        keys(base, &self.path, self.format, ConfigEdit::Merge { patch })
    }
}

fn keys(
    base: &Path,
    path: &Path,
    format: Option<String>,
    edit: ConfigEdit,
) -> Result<ConfigRequest, Report> {
    let format = format.map(|name| {
        let unknown = || {
            let report = Report::usage(format!("`{name}` is no format"));
            report.next("a format is json, jsonc, yaml, toml, ini or env")
        };
        Format::of_name(&name).ok_or_else(unknown)
    });
    Ok(ConfigRequest {
        path: below(base, path)?,
        format: format.transpose()?,
        edit,
    })
}

fn key(text: &str) -> Result<KeyPath, Report> {
    let wrong = |error: ConfigError| Report::usage(error.to_string());
    text.parse().map_err(wrong)
}

fn value(json: &RawValue) -> Result<Value, Report> {
    Value::from_json(json.get()).map_err(|error| Report::usage(error.to_string()))
}

impl Write {
    fn request(self, base: &Path) -> Result<FileRequest, Report> {
        let expect = match (self.create, self.existing) {
            (false, false) => Expect::Anything,
            (true, false) => Expect::New,
            (false, true) => Expect::Existing,
            (true, true) => {
                return Err(
                    Report::usage("`create` and `existing` contradict each other")
                        .next("leave one of them out"),
                );
            }
        };
        Ok(FileRequest::Write {
            path: below(base, &self.path)?,
            source: source(base, self.text, self.base64, self.from)?,
            expect,
            parents: self.parents,
            mode: self.mode.as_deref().map(bits).transpose()?,
        })
    }
}

impl Edit {
    fn request(self, base: &Path) -> Result<FileRequest, Report> {
        let occurrence = match (self.all, self.nth) {
            (false, None) => Occurrence::Unique,
            (true, None) => Occurrence::All,
            (false, Some(nth)) => Occurrence::Nth(nth),
            (true, Some(_)) => {
                return Err(Report::usage("`all` and `nth` contradict each other")
                    .next("leave one of them out"));
            }
        };
        Ok(FileRequest::Edit {
            path: below(base, &self.path)?,
            search: self.search.into_bytes(),
            replacement: self.replace.into_bytes(),
            occurrence,
        })
    }
}

/// Gives a path its place below `base`, which it may not leave.
fn below(base: &Path, path: &Path) -> Result<PathBuf, Report> {
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.as_os_str().is_empty() || !path.components().all(is_plain) {
        return Err(Report::usage(format!(
            "`{}` is not a path below this directory",
            path.display()
        ))
        .because("paths in a batch are relative and have no `..`")
        .next("run it in the directory that holds everything it writes"));
    }
    Ok(base.join(path))
}

fn source(
    base: &Path,
    text: Option<String>,
    encoded: Option<String>,
    from: Option<PathBuf>,
) -> Result<Source, Report> {
    match (text, encoded, from) {
        (Some(text), None, None) => Ok(Source::Bytes(text.into_bytes())),
        (None, Some(encoded), None) => {
            let bytes = decoded(&encoded).map(Source::Bytes);
            bytes.ok_or_else(|| Report::usage("`base64` does not hold base64"))
        }
        (None, None, Some(from)) => Ok(Source::Path(below(base, &from)?)),
        _ => Err(Report::usage("it is not clear what to write")
            .next("give exactly one of `text`, `base64` and `from`")),
    }
}

/// Decodes base64 with the standard alphabet. Padding may be left out, all of it. Nothing but the alphabet is accepted.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let is_padded = text.ends_with('=');
    let engine = if is_padded { STANDARD } else { STANDARD_NO_PAD };
    engine.decode(text).ok()
}

fn bits(text: &str) -> Result<u32, Report> {
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777);
    mode.ok_or_else(|| {
        Report::usage(format!("`{text}` is not a mode")).next("give octal digits, like \"0644\"")
    })
}

fn not_a_mode(error: impl std::fmt::Display) -> Report {
    Report::usage(error.to_string())
}
