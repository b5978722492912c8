//! Tools that write files and keys of files.

use std::path::PathBuf;

use backout_drivers::config::{ConfigEdit, ConfigRequest, KeyPath, NewValue, Value};
use backout_drivers::file::{Expect, FileRequest, Source};
use backout_engine::{Command, Report, WriteRequest};
use backout_model::text::Occurrence;

use super::{Work, asked, connected};
use crate::Caller;
use crate::arguments::{Connection, Delete, Edit, Move, Set, Write};
use crate::reach::Last;

pub(super) fn write(arguments: Write, caller: &Caller) -> Result<Work, Report> {
    let path = caller.path(&arguments.path, Last::Followed)?;
    let source = Source::Bytes(arguments.content.into_bytes());
    let request = match (arguments.append, arguments.create) {
        (true, true) => {
            return Err(Report::usage("`append` and `create` do not go together"));
        }
        (true, false) => FileRequest::Append { path, source },
        (false, is_new) => FileRequest::Write {
            path,
            source,
            expect: if is_new {
                Expect::New
            } else {
                Expect::Anything
            },
            parents: true,
            mode: None,
        },
    };
    Ok(carried_out(request.into(), arguments.connection))
}

pub(super) fn edit(arguments: Edit, caller: &Caller) -> Result<Work, Report> {
    let request = match (
        arguments.patch,
        arguments.path,
        arguments.search,
        arguments.replace,
    ) {
        (Some(patch), None, None, None) if !arguments.all => FileRequest::Patch {
            base: caller.directory(None)?,
            patch: patch.into_bytes(),
        },
        (None, Some(path), Some(search), Some(replace)) => FileRequest::Edit {
            path: caller.path(&path, Last::Followed)?,
            search: search.into_bytes(),
            replacement: replace.into_bytes(),
            occurrence: if arguments.all {
                Occurrence::All
            } else {
                Occurrence::Unique
            },
        },
        _ => {
            return Err(Report::usage("it is not clear what to edit")
                .next("give `path`, `search` and `replace`, or `patch` alone"));
        }
    };
    Ok(carried_out(request.into(), arguments.connection))
}

pub(super) fn delete(arguments: Delete, caller: &Caller) -> Result<Work, Report> {
    let mut requests = Vec::new();
    for path in &arguments.paths {
        requests.push(FileRequest::Remove {
            path: caller.movable(path)?,
            recursive: arguments.recursive,
        });
    }
    let request = match (requests.pop(), requests.is_empty()) {
        (None, _) => return Err(Report::usage("say what to remove, with `paths`")),
        (Some(only), true) => only,
        (Some(last), false) => {
            requests.push(last);
            FileRequest::Batch(requests)
        }
    };
    Ok(carried_out(request.into(), arguments.connection))
}

pub(super) fn moved(arguments: Move, caller: &Caller) -> Result<Work, Report> {
    let request = FileRequest::Move {
        from: caller.movable(&arguments.from)?,
        to: caller.movable(&arguments.to)?,
        replace: arguments.replace,
    };
    Ok(carried_out(request.into(), arguments.connection))
}

pub(super) fn set(arguments: Set, caller: &Caller) -> Result<Work, Report> {
    let path: PathBuf = caller.path(&arguments.path, Last::Followed)?;
    let key: KeyPath = arguments
        .key
        .parse()
        .map_err(|error| Report::usage(format!("`{}` is no key", arguments.key)).because(error))?;
    let edit = match (arguments.value, arguments.unset) {
        (None, true) => ConfigEdit::Unset { key },
        (Some(value), false) => ConfigEdit::Set {
            key,
            value: new_value(&value)?,
        },
        _ => return Err(Report::usage("give either `value` or `unset`")),
    };
    let request = ConfigRequest {
        path,
        format: None,
        edit,
    };
    Ok(carried_out(request.into(), arguments.connection))
}

fn new_value(value: &serde_json::Value) -> Result<NewValue, Report> {
    if let Some(text) = value.as_str() {
        return Ok(NewValue::Text(text.to_owned()));
    }
    let value = Value::from_json(&value.to_string());
    let value = value.map_err(|error| Report::usage("the value cannot be set").because(error))?;
    Ok(NewValue::Typed(value))
}

fn carried_out(request: WriteRequest, connection: Connection) -> Work {
    asked(move |engine, caller| {
        let engine = connected(engine, caller, &connection)?;
        Ok(engine.execute(Command::Write { request })?)
    })
}
