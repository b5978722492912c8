//! What is changed: the list comes from `cargo-mutants`, which knows what is worth changing and how.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use serde_json::Value;

use crate::run::{cargo, root};

/// The code in which a wrong line would lose something or lie.
const FILES: [&str; 4] = [
    "crates/model/src/**/*.rs",
    "crates/engine/src/undo/**/*.rs",
    "crates/engine/src/recover.rs",
    "crates/engine/src/restore.rs",
];

/// Functions that give the value of a constant.
pub(crate) const COMPILE_TIME: [&str; 4] = ["bits", "from_bits", "from_bytes", "literal"];

/// One change on purpose.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// Its number in the list, from 1 on.
    pub(crate) id: usize,
    /// Where it is and what it does, in the words of the tool.
    pub(crate) name: String,
    /// The same as long as its function is, wherever that stands.
    pub(crate) key: String,
    pub(crate) file: String,
    pub(crate) genre: Genre,
    /// The bytes of the file that are replaced, and by what.
    pub(crate) span: Range<usize>,
    pub(crate) replacement: String,
    /// The compiler runs the place, too: the value of a constant.
    pub(crate) is_constant: bool,
    /// The function gives an iterator of a type that it does not name.
    pub(crate) gives_iterator: bool,
}

/// What kind of place is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Genre {
    /// A function gives another value and does nothing.
    Body,
    /// A part of an expression is replaced: an operator, a field.
    Expression,
    /// A match arm is left out.
    Arm,
    /// The guard of a match arm always or never holds.
    Guard,
}

/// Lists every change, file by file.
pub(crate) fn list() -> Result<BTreeMap<String, Vec<Mutant>>, String> {
    let mut run = cargo();
    run.args(["mutants", "--list", "--json", "--workspace", "--no-shuffle"]);
    run.args(FILES.iter().flat_map(|file| ["--file", file]));
    let output = run.current_dir(root()).output();
    let output = output.map_err(|error| format!("cargo mutants: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let mut all = BTreeMap::<String, Vec<Mutant>>::new();
    for (place, value) in listed.iter().enumerate() {
        let mutant = read(place + 1, value).ok_or_else(|| format!("cannot read {value}"))?;
        all.entry(mutant.file.clone()).or_default().push(mutant);
    }
    Ok(all)
}

fn read(id: usize, value: &Value) -> Option<Mutant> {
    let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let file = text("file")?;
    let source = fs::read_to_string(root().join(&file)).ok()?;
    let at = |end: &str| {
        let number = |name: &str| {
            let found = value.pointer(&format!("{end}/{name}"))?.as_u64()?;
            usize::try_from(found).ok()
        };
        offset(&source, number("line")?, number("column")?.checked_sub(1)?)
    };
    let span = at("/span/start")?..at("/span/end")?;
    let replacement = text("replacement")?;
    let around = at("/function/span/start").zip(at("/function/span/end"));
    let (start, end) = around.unwrap_or((0, source.len()));
    let mut hasher = DefaultHasher::new();
    (&file, source.get(start..end)?, &replacement).hash(&mut hasher);
    (span.start.checked_sub(start), span.len()).hash(&mut hasher);
    let genre = match text("genre")?.as_str() {
        "FnValue" => Genre::Body,
        "BinaryOperator" | "UnaryOperator" | "StructField" => Genre::Expression,
        "MatchArm" => Genre::Arm,
        "MatchArmGuard" => Genre::Guard,
        _ => return None,
    };
    let function = value.pointer("/function/function_name");
    let function = function.and_then(Value::as_str);
    let gives = value.pointer("/function/return_type");
    Some(Mutant {
        id,
        name: text("name")?,
        key: format!("{:016x}", hasher.finish()),
        genre,
        span,
        replacement,
        is_constant: function.is_none_or(|name| {
            let name = name.rsplit("::").next();
            name.is_some_and(|name| COMPILE_TIME.contains(&name))
        }),
        gives_iterator: gives
            .and_then(Value::as_str)
            .is_some_and(|gives| gives.starts_with("-> impl Iterator")),
        file,
    })
}

/// The byte at which a character of a line begins. Lines count from 1, characters from 0.
pub(crate) fn offset(source: &str, line: usize, column: usize) -> Option<usize> {
    let start: usize = source
        .split_inclusive('\n')
        .take(line.checked_sub(1)?)
        .map(str::len)
        .sum();
    let rest = source.get(start..)?;
    let within = rest.char_indices().nth(column).map(|(at, _)| at);
    Some(start + within.unwrap_or(rest.len()))
}
