//! Targets that are named on the command line: paths, and others as they are printed, like `app.toml:server.port` or
//! `postgres:shop/public/orders:7`.
//!
//! A target is known by what the journal has of it: only there it is certain which of its colons, dots and brackets are signs. So
//! names may be typed without the signs for what is odd in them. A file that is there goes before a target of the same name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use backout_engine::{Call, Engine, EngineError, Report};
use backout_model::{Key, TargetPath};
use backout_storage::Filter;

use crate::failure::Failure;
use crate::paths::real;

/// Finds out what is meant.
pub(crate) fn named_target(engine: &Engine, name: &Path) -> Result<Key, Failure> {
    let path = real(name)?;
    if path.as_path().symlink_metadata().is_ok() {
        return Ok(path.into());
    }
    let mut keys = keys_called(engine, name)?;
    if let Some(name) = name.to_str() {
        keys.extend(elsewhere(engine, name)?);
    }
    let mut keys = keys.into_iter();
    let (first, second) = (keys.next(), keys.next());
    let Some(key) = first else {
        return Ok(path.into());
    };
    let is_path = !operations_at(engine, path.clone().into(), Some(1))?.is_empty();
    if second.is_none() && !is_path {
        return Ok(key);
    }
    let what = if is_path {
        "a file and a key"
    } else {
        "more than one key"
    };
    let name = name.display();
    let report = Report::usage(format!("`{name}` is the name of {what}"));
    let file = key.file().unwrap_or(&path);
    Err(report
        .next_call(
            "name the operation instead; see which wrote it with {}",
            [Call::log_of(file)],
        )
        .into())
}

/// Lists the targets outside of files that the journal knows and that are printed so, or would be without signs for what is
/// odd in them.
fn elsewhere(engine: &Engine, name: &str) -> Result<BTreeSet<Key>, Failure> {
    let (space, _) = name.split_once('/').unwrap_or((name, ""));
    let Ok(space) = Key::in_space(space, &[]) else {
        return Ok(BTreeSet::new());
    };
    if let Ok(key) = name.parse::<Key>()
        && !operations_at(engine, key.clone(), Some(1))?.is_empty()
    {
        return Ok([key].into());
    }
    let mut found = BTreeSet::new();
    for operation in operations_at(engine, space, None)? {
        for standing in &operation.targets {
            let key = standing.target.key();
            let all = std::iter::once(key.clone()).chain(key.ancestors());
            found.extend(all.filter(|key| key.plainly() == name));
        }
    }
    Ok(found)
}

/// Lists the keys that the journal knows and that are printed so.
fn keys_called(engine: &Engine, name: &Path) -> Result<BTreeSet<Key>, Failure> {
    let name = name.as_os_str().as_bytes();
    let mut found = BTreeSet::new();
    for (at, _) in name.iter().enumerate().filter(|(_, byte)| **byte == b':') {
        let (file, key) = name.split_at(at);
        let Some(file) = Some(file).filter(|file| !file.is_empty()) else {
            continue;
        };
        let file = real(Path::new(OsStr::from_bytes(file)))?;
        found.extend(keys_in(engine, &file, key)?);
    }
    Ok(found)
}

fn keys_in(engine: &Engine, file: &TargetPath, printed: &[u8]) -> Result<Vec<Key>, Failure> {
    let whole = Key::from(file.clone());
    let wanted = [whole.to_string().as_bytes(), printed].concat();
    let mut found = Vec::new();
    for operation in operations_at(engine, whole, None)? {
        for standing in &operation.targets {
            let key = standing.target.key();
            let parts = std::iter::once(key.clone()).chain(key.ancestors());
            let is_it = |key: &Key| {
                key.file() == Some(file)
                    && !key.parts().is_empty()
                    && [key.to_string(), key.plainly()]
                        .iter()
                        .any(|it| it.as_bytes() == wanted)
            };
            found.extend(parts.filter(is_it));
        }
    }
    Ok(found)
}

fn operations_at(
    engine: &Engine,
    at: Key,
    limit: Option<usize>,
) -> Result<Vec<backout_model::Operation>, Failure> {
    let filter = Filter {
        at: Some(at),
        limit,
        ..Filter::default()
    };
    let found = engine.store().operations(&filter);
    Ok(found.map_err(EngineError::from)?)
}
